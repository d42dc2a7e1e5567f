"""`jobs`, and what each command says in a line and by its exit code."""

import csv
import io
import json
import os
from pathlib import Path

import pytest

from tests.commands.running import AT, Runner, a_db, sources_of

HANGING = "docker-agents-never-start"


def ids(out: str) -> list[str]:
    return [job["id"] for job in json.loads(out)["jobs"]]


def test_a_filter_picks(run: Runner) -> None:
    ran = run("jobs", "status:failed", "-model:~Anim", "--json", "--at", AT, *sources_of("local"))
    assert ran.code == 0
    assert {job["status"] for job in ran.json["jobs"]} == {"failed"}
    assert len(ran.json["jobs"]) == 4


def test_what_needs_a_person_is_first_and_then_the_newest(tmp_path: Path, run: Runner) -> None:
    db = a_db(
        tmp_path,
        aaaaaaaa__aaaaaaaa__old={"status": "completed", "lastUpdateTime": 1795206000},
        aaaaaaaa__bbbbbbbb__new={"status": "completed", "lastUpdateTime": 1795207000},
        aaaaaaaa__cccccccc__live={
            "status": "running", "computeJobStart": 1795208300, "lastUpdateTime": 1795208300,
            "jobRunMode": "parallel",
        },
        aaaaaaaa__dddddddd__hangs={
            "status": "pending", "computeJobQueued": 1795200000, "jobRunMode": "sequential",
        },
    )  # fmt: skip
    ran = run("jobs", "--srdb", db, "--at", AT, "--json")
    assert [jid.rpartition("-")[2] for jid in ids(ran.out)] == ["hangs", "live", "new", "old"]
    assert ran.json["jobs"][0]["flags"] == ["no_progress"]


def test_only_jobs_that_lived_in_the_time_asked_for(run: Runner) -> None:
    until = run("jobs", "--json", "--until", "2026-11-20T20:34:35Z", *sources_of("local"))
    since = run("jobs", "--json", "--since", "2026-11-20T20:35:45Z", *sources_of("local"))
    every = run("jobs", "--json", *sources_of("local"))
    assert 0 < len(ids(until.out)) < len(ids(every.out))
    assert 0 < len(ids(since.out)) < len(ids(every.out))


def test_csv_has_a_head_and_a_row_for_each(run: Runner) -> None:
    ran = run("jobs", "--csv", *sources_of("local"))
    rows = [*csv.DictReader(io.StringIO(ran.out))]
    assert len(rows) == 18
    assert {"id", "status", "owner", "queued_at", "flags"} <= set(rows[0])
    assert {row["status"] for row in rows} == {"completed", "failed", "canceled", "missing"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_database_is_one_line_and_exit_5(tmp_path: Path, run: Runner) -> None:
    db = a_db(tmp_path)
    (db / "supervisor-job").chmod(0)
    ran = run("jobs", "--srdb", db)
    (db / "supervisor-job").chmod(0o700)
    assert ran.code == 5
    assert "permission denied" in ran.err
    assert ran.err.count("\n") == 1
