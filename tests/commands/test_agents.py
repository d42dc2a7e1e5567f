"""`agents`: which there were, what became of each, and where its log is."""

import json
from pathlib import Path

import pytest

from tests.backends.journal.make import make_journal, needs_journal_tools
from tests.commands.running import AT, CAPTURES, TRUE_CAPTURES, Runner, sources_of
from tests.journal_captures import container_rows, exported, supervisor_rows


def test_since_leaves_out_what_ended_before(run: Runner) -> None:
    arguments = ("agents", "--json", "--at", "2026-11-20T20:36:10Z", *sources_of("local"))
    everything = run(*arguments).json["agents"]
    assert len(everything) == 8
    assert len(run(*arguments, "--since", "2026-11-20T20:36:00Z").json["agents"]) < 8


@pytest.mark.parametrize("capture", TRUE_CAPTURES)
@pytest.mark.parametrize("form", ["--json", "--csv", "--plain"])
def test_full_ids_of_agents_are_never_printed(capture: str, form: str, run: Runner) -> None:
    ran = run("agents", form, "--at", AT, *sources_of(capture))
    text = (CAPTURES / capture / "supervisor.log").read_text(errors="replace")
    full = {part[:32] for part in text.split("'agent_id': '")[1:]}
    assert full
    assert not [one for one in full if one[:8] in ran.out + ran.err]


@needs_journal_tools
def test_out_of_journals_agents_are_those_that_were_with_all_their_times(tmp_path: Path, run: Runner) -> None:
    make_journal(tmp_path, [exported(supervisor_rows("docker"))], "remote-v3.journal")
    make_journal(tmp_path, [exported(container_rows("docker"))], "remote-docker7.journal")
    truth = json.loads((CAPTURES / "docker" / "expected.json").read_text())["agents"]
    since = ("--since", "2026-11-20T20:00:00Z")
    found = run("agents", "--json", "--at", AT, "--journal", tmp_path, *since).json["agents"]
    assert {agent["agent"]: agent["messages"] for agent in found} == {
        prefix: told["messages"] for prefix, told in truth.items()
    }
    for agent in found:
        assert agent["connected_at"] <= agent["last_message_at"] <= agent["since"]
        assert (agent["log_place"], agent["log"].partition("@")[2]) == ("read", "docker7")
        assert agent["log"].startswith(agent["container"])
        assert "UTC" in agent["log_command"]
    files = run("agents", "--json", "--at", AT, *sources_of("docker")).json["agents"]
    kept = ("agent", "state", "host", "container_id", "why", "restarts")
    assert sorted(tuple(a[key] for key in kept) for a in found) == sorted(
        tuple(a[key] for key in kept) for a in files
    )
