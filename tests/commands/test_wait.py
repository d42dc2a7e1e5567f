"""`wait` and `status` on records that change while they look."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobtui.analysis.alerts import News
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.commands.watch import job_words
from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.jobs import Job, JobStatus
from tests.analysis.explain.cases import played
from tests.builders import a_job, ago
from tests.commands.running import CAPTURES, Runner, started
from tests.demo.sites import DriverName
from tests.pty_program import PtyProgram
from tests.waiting import LONG_S, wait_for

DONE = "hZk95g40-4u2Pj0fB-heightWeightReport"


@pytest.fixture
def srdb(tmp_path: Path) -> Path:
    (tmp_path / "supervisor-job").mkdir()
    shutil.copy(CAPTURES / "local" / "supervisor-job" / f"{DONE}.json", tmp_path / "supervisor-job")
    return tmp_path


def change(srdb: Path, **fields: Any) -> None:
    """Write the record again, as a supervisor does."""
    path = srdb / "supervisor-job" / f"{DONE}.json"
    fresh = path.with_name("record.tmp")
    fresh.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    fresh.rename(path)


def test_out_of_time_is_said(srdb: Path, run: Runner) -> None:
    change(srdb, status="running")
    ran = run("wait", DONE, "--until", "done", "--timeout", "0s", "--srdb", srdb)
    assert ran.code == 3
    assert f"{DONE} is still running after 0s" in ran.err


def test_it_ends_when_the_job_does(srdb: Path) -> None:
    change(srdb, status="running")
    with started(out := srdb / "out", "wait", DONE, "--timeout", "60s", "--srdb", srdb) as waiting:
        change(srdb, status="error", error="no such breed")
        assert waiting.wait(LONG_S) == 1
    assert out.read_text() == f"{DONE} failed: no such breed\n"


def test_status_of_the_newest_records(srdb: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for nth in range(3):
        old = srdb / "supervisor-job" / f"{nth}{DONE[1:]}.json"
        old.write_text((srdb / "supervisor-job" / f"{DONE}.json").read_text().replace(DONE, old.stem))
        os.utime(old, (nth, nth))
    change(srdb, status="running", computeJobStart=1, lastUpdateTime=1)
    monkeypatch.setattr("jobtui.commands.jobs.NEWEST", 1)
    monkeypatch.setattr(SirepoDb, "batch_files", 1)
    assert run("status", "--srdb", srdb).out == "●1 ○0 !1 of the newest 1\n"
    assert run("status", "--json", "--srdb", srdb).json["newest"] == 1


def test_a_run_that_logs_tell_to_be_lost_is_stuck_whatever_its_record_says(
    run: Runner, tmp_path: Path
) -> None:
    play = played("stale-record", 3, DriverName.LOCAL, 130)
    flags = play.write(tmp_path)
    words = ("wait", play.jid, "--until", "stuck", "--at", to_rfc3339(play.now))
    told = run(*words, "--timeout", "60s", *flags)
    untold = run(*words, "--timeout", "0s", "--srdb", tmp_path)
    assert told.code == untold.code == 3
    assert "The supervisor was restarted after this run was asked for" in told.out
    assert f"{play.jid} is still running" in untold.err


def by_ours(job: Job) -> Nanos:
    return ago(0)


def test_only_what_stands_otherwise_is_news() -> None:
    news = News()
    running = a_job()
    assert news.of([running], by_ours) == [running]
    assert news.of([running, a_job(percent=5.0)], by_ours) == []
    again = a_job(runs=2)
    failed = a_job(status=JobStatus.FAILED, runs=2)
    assert news.of([again, failed], by_ours) == [again, failed]
    news.forget([running.id])
    assert news.of([failed], by_ours) == [failed]
    assert news.of([a_job(status=JobStatus.PENDING, is_quasi=True)], by_ours) == []


def test_a_job_in_words_has_no_sign_and_nothing_hostile() -> None:
    failed = a_job(status=JobStatus.FAILED, name="a\x1b[31m", model="anim", error="no such\nbreed")
    words = job_words(failed, ago(0))
    assert words == f"failed: a␛[31m anim, of {failed.owner}, no such␊breed. Id {failed.id}"


def test_changes_are_told_line_by_line_and_nothing_is_painted(tmp_path: Path) -> None:
    records = tmp_path / "supervisor-job"
    shutil.copytree(CAPTURES / "local" / "supervisor-job", records)
    kept = min(records.glob("*.json"))
    with PtyProgram(["-m", "jobtui", "--plain", "--srdb", str(tmp_path)]) as program:
        program.wait_seen(b"line by line; ctrl+c ends it.")
        assert b" jobs: " in program.seen
        name = "VUlhaMOD-aaaaaaaa-animation"
        (records / f"{name}.json").write_text(kept.read_text().replace(kept.stem, name))
        program.wait_seen(f"Id {name}".encode())
        program.press(b"\x03")
        wait_for(lambda: program.code() is not None)
        assert b"\x1b" not in program.seen
        assert program.seen.count(b"Id " + name.encode()) == 1
