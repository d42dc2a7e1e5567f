"""`demo` without a terminal, and `jobtui THING` without one."""

import tempfile
from pathlib import Path

import pytest

from jobtui.demo.incidents import INCIDENTS
from tests.commands.running import AT, ROOT, Runner, sources_of

FAILED = "DJouDZ9T-4F4EUZjI-heightWeightReport"


def test_commands_run_on_it_with_the_same_ids_each_time_and_nothing_is_left_behind(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    failed = (ROOT / "README.md").read_text().split("jobtui demo explain ")[1].split()[0]
    assert failed in run("demo", "jobs", "status:failed").out
    why = run("demo", "explain", failed, "--json")
    assert why.code == 1
    assert f"jobtui demo logs {failed}" in why.out
    assert run("demo", "--seed", "3", "explain", failed).code == 4
    assert run("demo", "wait", failed).code == 2
    assert [*tmp_path.iterdir()] == []


def test_incidents_are_listed_and_a_wrong_one_is_exit_2(run: Runner) -> None:
    listed = run("demo", "--incident", "list")
    assert listed.code == 0
    assert all(name in listed.out for name in INCIDENTS)
    wrong = run("demo", "--incident", "agent-deth")
    assert (wrong.code, wrong.out) == (2, "")
    assert '"agent-death"' in wrong.err


def test_without_a_terminal_a_thing_is_shown_and_nothing_is_the_job_table(run: Runner) -> None:
    shown = run(FAILED, "--at", AT, *sources_of("local"))
    assert shown == run("show", FAILED, "--at", AT, *sources_of("local"))
    assert shown.code == 1
    assert run(FAILED, "--json", *sources_of("local")).json["schema"] == "jobtui/show/1"
    assert run("--at", AT, *sources_of("local")) == run("jobs", "--at", AT, *sources_of("local"))


def test_an_unknown_thing_that_is_nearly_a_command_is_told_so(run: Runner) -> None:
    ran = run("tmeline", *sources_of("local"))
    assert ran.code == 4
    assert 'did you mean "timeline"?' in ran.err
