"""`jobtui --plain` on a terminal: words, line by line, and nothing painted."""

import shutil
import signal
from pathlib import Path

import pytest

from jobtui.analysis.alerts import News
from jobtui.commands.watch import job_words
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from tests.pty_program import PtyProgram
from tests.waiting import wait_for

CAPTURE = Path(__file__).parents[1] / "fixtures" / "sirepo" / "local"
NOW = Nanos(1_795_208_400 * SECOND)


def job(status: JobStatus, **more: object) -> Job:
    return Job(
        id=JobId("u1-s1-m"),
        system="sirepo",
        status=status,
        native_status="x",
        source="db",
        **more,  # type: ignore[arg-type]
    )


def by_ours(job: Job) -> Nanos:
    return NOW


def test_only_what_stands_otherwise_is_news() -> None:
    news = News()
    running = job(JobStatus.RUNNING, runs=1)
    assert news.of([running], by_ours) == [running]
    assert news.of([running, job(JobStatus.RUNNING, runs=1, percent=5.0)], by_ours) == []
    again = job(JobStatus.RUNNING, runs=2)
    failed = job(JobStatus.FAILED, runs=2)
    assert news.of([again, failed], by_ours) == [again, failed]
    news.forget([JobId("u1-s1-m")])
    assert news.of([failed], by_ours) == [failed]
    assert news.of([job(JobStatus.PENDING, is_quasi=True)], by_ours) == []


def test_a_job_in_words_has_no_sign_and_nothing_hostile() -> None:
    failed = job(JobStatus.FAILED, name="a\x1b[31m", owner="vn9m", model="anim", error="no such\nbreed")
    words = job_words(failed, NOW)
    assert words == "failed: a␛[31m anim, of vn9m, no such␊breed. Id u1-s1-m"


def test_changes_are_told_line_by_line_and_nothing_is_painted(tmp_path: Path) -> None:
    records = tmp_path / "supervisor-job"
    shutil.copytree(CAPTURE / "supervisor-job", records)
    kept = sorted(records.glob("*.json"))[0].read_bytes()
    with PtyProgram(["-m", "jobtui", "--plain", "--srdb", str(tmp_path)]) as program:
        program.wait_seen(b"line by line; ctrl+c ends it.")
        assert b" jobs: " in program.seen
        name = "VUlhaMOD-aaaaaaaa-animation"
        text = kept.decode()
        old = sorted(records.glob("*.json"))[0].stem
        assert old in text
        (records / f"{name}.json").write_text(text.replace(old, name))
        program.wait_seen(f"Id {name}".encode())
        program.press(b"\x03")
        wait_for(lambda: program.code() is not None)
        assert b"\x1b" not in program.seen
        assert program.seen.count(b"Id " + name.encode()) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_a_signal_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "supervisor-job").mkdir()
    with PtyProgram(["-m", "jobtui", "--plain", "--srdb", str(tmp_path)]) as program:
        program.wait_seen(b"No jobs.")
        import os

        os.kill(program.pid, number)
        wait_for(lambda: program.code() == 0)
