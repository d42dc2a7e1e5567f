"""`wait` and `status` on records that change while they look."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobtui.backends.sirepo.source import SirepoDb
from jobtui.commands.streams import Exit
from jobtui.demo.site import DriverName
from jobtui.model.clock import to_rfc3339
from tests.analysis.explain.cases import played
from tests.commands.running import AT, CAPTURES, Runner, environment, sources_of
from tests.condor import event, executing, submitted
from tests.pty_program import PtyProgram

DONE = "hZk95g40-4u2Pj0fB-heightWeightReport"
FAILED = "hZk95g40-tAdRyEYP-heightWeightReport"


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


@pytest.mark.parametrize(("job", "code"), [(DONE, 0), (FAILED, 1)])
def test_a_job_that_is_over_is_not_waited_for(job: str, code: int, run: Runner) -> None:
    ran = run("wait", job, "--timeout", "60s", *sources_of("local"))
    assert ran.code == code
    assert ran.out.startswith(job)


def test_out_of_time_is_said(srdb: Path, run: Runner) -> None:
    change(srdb, status="running")
    ran = run("wait", DONE, "--until", "done", "--timeout", "0s", "--srdb", srdb)
    assert ran.code == 3
    assert f"{DONE} is still running after 0s" in ran.err


def test_it_ends_when_the_job_does(srdb: Path) -> None:
    change(srdb, status="running")
    command = [sys.executable, "-m", "jobtui", "wait", DONE, "--timeout", "60s", "--srdb", str(srdb)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), text=True) as waiting:
        change(srdb, status="error", error="no such breed")
        out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 1
    assert out == f"{DONE} failed: no such breed\n"


def test_a_stuck_job_needs_a_person(srdb: Path, run: Runner) -> None:
    change(srdb, status="pending", computeJobStart=0, jobStatusMessage=None)
    ran = run("wait", DONE, "--timeout", "60s", "--srdb", srdb)
    assert ran.code == 3
    assert "no agent answered" in ran.out


@pytest.mark.parametrize("flags", [("--until", "never"), ("--until", ","), ("--timeout", "soon")])
def test_what_cannot_be_waited_for(flags: tuple[str, str], run: Runner) -> None:
    assert run("wait", DONE, *flags, *sources_of("local")).code == 2


def test_status_is_one_line(run: Runner) -> None:
    ran = run("status", "--at", AT, *sources_of("local"))
    assert ran.out == "●0 ○0 ✗4\n"
    assert ran.code == 0
    counts = run("status", "--json", "--at", AT, *sources_of("local")).json
    assert (counts["running"], counts["pending"], counts["stuck"], counts["failed_1h"]) == (0, 0, 0, 4)


def test_status_for_prometheus_and_of_the_newest_records(
    srdb: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run("status", "--prometheus", "--at", AT, *sources_of("local"))
    assert 'jobtui_jobs{state="failed_1h"} 4\n' in ran.out
    assert ran.out.endswith("jobtui_sources_down 0\n")
    for nth in range(3):
        old = srdb / "supervisor-job" / f"{nth}{DONE[1:]}.json"
        old.write_text((srdb / "supervisor-job" / f"{DONE}.json").read_text().replace(DONE, old.stem))
        os.utime(old, (nth, nth))
    change(srdb, status="running", computeJobStart=1, lastUpdateTime=1)
    monkeypatch.setattr("jobtui.commands.jobs.NEWEST", 1)
    monkeypatch.setattr(
        SirepoDb.__init__, "__kwdefaults__", {**(SirepoDb.__init__.__kwdefaults__ or {}), "batch_files": 1}
    )
    assert run("status", "--srdb", srdb).out == "●1 ○0 !1 of the newest 1\n"
    assert run("status", "--json", "--srdb", srdb).json["newest"] == 1


def test_a_terminal_is_told_what_is_waited_for(srdb: Path) -> None:
    change(srdb, status="pending", computeJobStart=0, computeJobQueued=2**32, jobStatusMessage=None)
    with PtyProgram(["-m", "jobtui", "wait", DONE, "--timeout", "60s", "--srdb", str(srdb)]) as program:
        program.wait_seen(f"waiting for {DONE} to be done or stuck: pending: its agent".encode())
        change(srdb, status="completed")
        program.wait_seen(f"{DONE} completed".encode())


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


def test_a_held_job_of_htcondor_says_why_it_is_held(run: Runner, tmp_path: Path) -> None:
    log = tmp_path / "event.log"
    held = event(12, "2026-11-20 10:02:00Z", "Job was held.", "too much memory", "Code 34 Subcode 0")
    log.write_text(submitted() + executing() + held)
    flags = ("--at", "2026-11-20T11:00:00Z", "--condor-log", str(log))
    ran = run("wait", "7.0", "--until", "stuck", "--timeout", "5s", *flags)
    assert ran.code == Exit.ATTENTION
    assert "too much memory" in ran.out
