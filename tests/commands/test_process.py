"""The program among others: pipes, terminals, locales, signals, closed streams."""

import asyncio
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobtui.commands.logs import _follow
from jobtui.commands.reader import Reader, until_ended
from jobtui.commands.streams import termination_signals
from jobtui.render.text import width
from jobtui.session import Session
from tests.commands.running import AT, CAPTURES, Runner, environment, jobtui, on_terminal, sources_of
from tests.fakes import fail_later
from tests.waiting import is_zombie, wait_for

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


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"LC_ALL": "C"}, "--plain"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "--plain"),
        ({"PYTHONIOENCODING": "ascii"}, "--csv"),
        ({"PYTHONIOENCODING": "latin-1"}, "--json"),
    ],
)
def test_any_locale_will_do_and_signs_keep_their_width(
    settings: dict[str, str], flag: str, run: Runner
) -> None:
    words = ("jobs", flag, "--at", AT, *sources_of("local"))
    ran = jobtui(*words, env=environment(**settings))
    assert (ran.code, ran.err) == (0, "")
    assert [*map(len, ran.out.splitlines())] == [*map(len, run(*words).out.splitlines())]
    assert FAILED in ran.out


@pytest.mark.parametrize(
    ("words", "streams", "codes", "said"),
    [
        ("jobs", ">/dev/full", {2}, b"No space left"),
        ("jobs", "1</dev/null", {2}, b""),
        ("find -", "<&-", {4, 5}, b""),
        ("trace -", "<&-", {4, 5}, b""),
        *((f"show {FAILED}", closed, {1}, b"") for closed in (">&-", ">&- 2>&- <&-")),
    ],
)
def test_streams_that_are_full_or_closed_are_no_fault(
    words: str, streams: str, codes: set[int], said: bytes
) -> None:
    program = shlex.join([sys.executable, "-m", "jobtui", *words.split(), *sources_of("local")])
    done = subprocess.run(["bash", "-c", f"{program} {streams}"], env=environment(), capture_output=True)
    assert done.returncode in codes
    assert said in done.stderr
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
    assert b"interrupted: what is printed is partial" in seen


SSH = """\
#!/bin/sh
[ "$1" = -G ] && exit 0
echo $$ >> {pids}
exec sleep 1000
"""


OUTLIVING = (
    ("logs EPRSqtUW-IVh7w74d-heightWeightReport -f", 15, signal.SIG_DFL),
    ("logs EPRSqtUW-IVh7w74d-heightWeightReport -f", 2, signal.SIG_DFL),
    ("record kept", 1, signal.SIG_DFL),
    ("record kept", 2, signal.SIG_IGN),
    ("jobs", 9, signal.SIG_DFL),
    ("jobs", 2, signal.SIG_IGN),
    ("show slurm/22", 2, signal.SIG_DFL),
    ("show slurm/22", 15, signal.SIG_IGN),
    ("doctor", 2, signal.SIG_DFL),
    ("doctor", 15, signal.SIG_IGN),
)
"""A command, the signal that ends it, and what it was started to do with SIGINT."""


@pytest.mark.parametrize(("words", "number", "interrupt"), OUTLIVING)
def test_no_program_outlives_the_command_that_started_it(
    words: str, number: int, interrupt: signal.Handlers, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    (ssh := tmp_path / "ssh").write_text(SSH.format(pids=pids))
    ssh.chmod(0o755)
    command = [sys.executable, "-m", "jobtui", "--journal", "ssh://far", "--slurm", "ssh://far"]
    path = f"{tmp_path}:{os.environ['PATH']}"

    def heed_signals() -> None:
        signal.signal(signal.SIGINT, interrupt)
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
    wait_for(lambda: all(not Path(f"/proc/{pid}").exists() or is_zombie(pid) for pid in children))


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
    await _follow(reader, None, fail_later, context, has_log=True)


async def test_what_goes_on_does_not_end_with_a_signal_that_is_ignored() -> None:
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
