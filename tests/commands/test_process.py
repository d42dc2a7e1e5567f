"""The program among others: pipes, terminals, signals, closed streams; `wait` and `status` on changes."""

import asyncio
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobtui.analysis.alerts import JobAlerts
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.commands.logs import _follow
from jobtui.commands.reader import Reader, until_ended
from jobtui.commands.streams import termination_signals
from jobtui.commands.watch import job_words
from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.jobs import Job, JobStatus
from jobtui.render.text import width
from jobtui.session import Session
from tests.analysis.explain.cases import played
from tests.builders import a_job, ago
from tests.commands.running import AT, CAPTURES, Runner, environment, jobtui, on_terminal, sources_of, started
from tests.demo.sites import DriverName
from tests.fakes import fail_later
from tests.rows import ROWS
from tests.terminals import PtyProgram
from tests.waiting import LONG_S, has_ended, wait_for

FAILED = "DJouDZ9T-4F4EUZjI-heightWeightReport"
ESCAPE = re.compile(rb"\x1b\[[\d;]*m")


def test_colour_is_for_terminals_that_want_it_and_a_table_keeps_to_their_width() -> None:
    arguments = ["jobs", "--at", AT, *sources_of("local")]
    coloured = on_terminal(*arguments)
    lines = ESCAPE.sub(b"", coloured).decode().splitlines()
    assert ESCAPE.search(coloured)
    assert max(map(width, lines)) <= 80
    assert any(FAILED in line for line in lines)
    for words, environ in ((["--plain"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})):
        assert not ESCAPE.search(on_terminal(*arguments, *words, **environ))
    piped = jobtui(*arguments).out
    assert "\x1b" not in piped
    assert max(map(width, piped.splitlines())) > 80


def test_a_reader_that_goes_away_is_a_quiet_end(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    program = shlex.join([sys.executable, "-m", "jobtui", "jobs", "--json", *sources_of("local")])
    script = f"{program} 2>{errors} | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], env=environment(), capture_output=True, check=False)
    assert done.stdout == b"{\n"
    assert (done.returncode, errors.read_text()) == (0, "")


@pytest.mark.parametrize(("settings", "flag"), ROWS["locales"])
def test_any_locale_will_do_and_signs_keep_width(settings: dict[str, str], flag: str, run: Runner) -> None:
    words = ("jobs", flag, "--at", AT, *sources_of("local"))
    ran = jobtui(*words, env=environment(**settings))
    assert (ran.code, ran.err) == (0, "")
    assert [*map(len, ran.out.splitlines())] == [*map(len, run(*words).out.splitlines())]
    assert FAILED in ran.out


@pytest.mark.parametrize(("words", "streams", "codes", "said"), ROWS["streams that are full or closed"])
def test_full_or_closed_streams_are_no_fault(words: str, streams: str, codes: list[int], said: str) -> None:
    program = shlex.join([sys.executable, "-m", "jobtui", *words.split(), *sources_of("local")])
    done = subprocess.run(["bash", "-c", f"{program} {streams}"], env=environment(), capture_output=True)
    assert done.returncode in codes
    assert said.encode() in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"fault" not in done.stderr
    if done.returncode == 2:
        assert done.stderr.count(b"\n") == 1


def test_long_reading_shows_itself_and_can_be_stopped(tmp_path: Path) -> None:
    text = (CAPTURES / "local" / "supervisor.log").read_bytes()
    (log := tmp_path / "supervisor.log").write_bytes(text * ((60 << 20) // len(text)))
    arguments = ["timeline", FAILED, "--json", "--srdb", str(CAPTURES / "local"), "--log", str(log)]
    main, worker = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jobtui", *arguments],
        stdout=subprocess.PIPE, stderr=worker, env=environment(), start_new_session=True,
    )  # fmt: skip
    os.close(worker)
    seen = b""

    def told() -> bool:
        nonlocal seen
        seen += os.read(main, 4096)
        return b"reading:" in seen or process.poll() is not None

    try:
        wait_for(told)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        seen += os.read(main, 65536)
    finally:
        process.kill()
        os.close(main)
    # What was not read may say otherwise, so that nothing is sure
    assert process.returncode == 3
    assert b'"partial": true' in out
    assert out.rstrip().endswith(b"}")
    assert b"interrupted: the output is partial" in seen


SSH = """\
#!/bin/sh
[ "$1" = -G ] && exit 0
echo $$ >> {pids}
exec sleep 1000
"""


@pytest.mark.parametrize(("words", "number", "interrupt"), ROWS["what ends a command that started programs"])
def test_no_program_outlives_the_command_that_started_it(
    words: str, number: int, interrupt: int, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    (ssh := tmp_path / "ssh").write_text(SSH.format(pids=pids))
    ssh.chmod(0o755)
    command = [sys.executable, "-m", "jobtui", "--journal", "ssh://far", "--slurm", "ssh://far"]
    path = f"{tmp_path}:{os.environ['PATH']}"

    def heed_signals() -> None:
        signal.signal(signal.SIGINT, signal.Handlers(interrupt))
        if number != signal.SIGKILL:  # what the tests were started with may ignore it
            signal.signal(number, signal.SIG_DFL)

    with subprocess.Popen(
        [*command, *words.split()], cwd=tmp_path, env=environment(PATH=path), stderr=subprocess.PIPE,
        preexec_fn=heed_signals,
    ) as started:  # fmt: skip
        wait_for(lambda: pids.exists() and pids.read_text().endswith("\n"))
        started.send_signal(number)
        _, said = started.communicate(timeout=20)  # a host that hangs is waited for longer
    assert started.returncode in (0, 4, 5, 130, 128 + number, -number), said  # 0 to 5: what it had
    assert b"Traceback" not in said
    children = [int(pid) for pid in pids.read_text().split()]
    wait_for(lambda: all(map(has_ended, children)))


def test_a_signal_is_not_lost_where_python_ignores_what_is_raised() -> None:
    class Ignoring:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    async def work() -> None:
        Ignoring()
        await asyncio.sleep(60)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with termination_signals() as code, pytest.raises(KeyboardInterrupt):
            asyncio.run(work())
        assert code(0) == 128 + signal.SIGTERM
    finally:
        signal.signal(signal.SIGINT, before)


async def test_a_signal_that_comes_as_a_reading_ends_is_not_lost() -> None:
    async def reading() -> None:
        signal.raise_signal(signal.SIGINT)

    context: Any = None
    reader = Reader(context, Session([]), ())
    await reader.watched(reading())
    assert reader.partial
    await reader.watched(asyncio.sleep(1e6))
    await _follow(reader, None, fail_later, context, (), bool)


async def test_an_ignored_signal_does_not_end_the_work() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    rounds = 0

    async def work() -> None:
        nonlocal rounds
        signal.raise_signal(signal.SIGHUP)
        for rounds in range(1, 21):  # noqa: B007 - how far it came
            await asyncio.sleep(0)

    try:
        await until_ended(work())
    finally:
        signal.signal(signal.SIGHUP, before)
    assert rounds == 20


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


def test_a_timeout_is_reported(srdb: Path, run: Runner) -> None:
    change(srdb, status="running")
    ran = run("wait", DONE, "--until", "done", "--timeout", "0s", "--srdb", srdb)
    assert ran.code == 3
    assert f"{DONE} is still running after 0s" in ran.err


def test_wait_ends_when_the_job_does(srdb: Path) -> None:
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


def test_a_run_lost_by_its_logs_is_stuck_whatever_its_record_says(run: Runner, tmp_path: Path) -> None:
    play = played("stale-record", 3, DriverName.LOCAL, 130)
    flags = play.write(tmp_path)
    words = ("wait", play.jid, "--until", "stuck", "--at", to_rfc3339(play.now))
    told = run(*words, "--timeout", "60s", *flags)
    untold = run(*words, "--timeout", "0s", "--srdb", tmp_path)
    assert told.code == untold.code == 3
    assert "The supervisor was restarted after this run was requested" in told.out
    assert f"{play.jid} is still running" in untold.err


def by_ours(job: Job) -> Nanos:
    return ago(0)


def test_only_a_job_whose_state_changed_is_news() -> None:
    news = JobAlerts()
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


def test_changes_are_printed_line_by_line_and_nothing_is_painted(tmp_path: Path) -> None:
    records = tmp_path / "supervisor-job"
    shutil.copytree(CAPTURES / "local" / "supervisor-job", records)
    kept = min(records.glob("*.json"))
    with PtyProgram(["-m", "jobtui", "--plain", "--srdb", str(tmp_path)]) as program:
        program.wait_seen(b"one a line; ctrl+c ends.")
        assert b" jobs: " in program.seen
        name = "VUlhaMOD-aaaaaaaa-animation"
        (records / f"{name}.json").write_text(kept.read_text().replace(kept.stem, name))
        program.wait_seen(f"Id {name}".encode())
        program.press(b"\x03")
        wait_for(lambda: program.code() is not None)
        assert b"\x1b" not in program.seen
        assert program.seen.count(b"Id " + name.encode()) == 1
