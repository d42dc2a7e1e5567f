"""`demo` without a terminal, and `jobtui THING` without one."""

import tempfile
from pathlib import Path

import pytest

from jobtui.demo.incidents import INCIDENTS
from tests.commands.running import AT, FAILED, ROOT, Runner, sources_of


def test_commands_on_the_demo_have_the_same_ids_each_time_and_leave_nothing(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    failed = (ROOT / "README.md").read_text().split("jobtui demo explain ")[1].split()[0]
    assert failed in run("demo", "jobs", "status:failed").out
    why = run("demo", "explain", failed, "--json")
    assert why.code == 1
    assert f"jobtui demo logs {failed}" in why.out
    assert run("demo", "--seed", "3", "explain", failed).code == 4
    assert run("demo", "wait", failed).out == f"{failed} failed: a big ugly error\n"
    assert [*tmp_path.iterdir()] == []


def test_its_failures_are_asked_for_as_those_of_a_memory(run: Runner) -> None:
    seen = run("demo", "seen", "out of memory", "--json", "--at", "2020-01-01T00:00:00Z")
    assert seen.code == 0
    assert [one["count"] > 1 for one in seen.json["signatures"]] == [True]
    assert run("demo", "changed", "host:v4", "host:none", "--json").json["before"] >= 0
    assert "nothing is remembered yet" in run("seen").err


def test_incidents_are_listed(run: Runner) -> None:
    listed = run("demo", "--incident", "list")
    assert listed.code == 0
    assert all(name in listed.out for name in INCIDENTS)


def test_open_without_a_terminal_prints_a_thing_or_the_job_table(run: Runner) -> None:
    shown = run(FAILED, "--at", AT, *sources_of("local"))
    assert shown == run("show", FAILED, "--at", AT, *sources_of("local"))
    assert shown.code == 1
    assert run(FAILED, "--json", *sources_of("local")).json["schema"] == "jobtui/show/1"
    assert run("--at", AT, *sources_of("local")) == run("jobs", "--at", AT, *sources_of("local"))
