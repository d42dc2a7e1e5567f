"""What every test runs under: its own home, one locale, size and time, and no configuration found."""

import asyncio
import gc
import os
import signal
import subprocess
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
import textual.app
import textual.pilot
from hypothesis import settings
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import FAULTS, Fault, Faults
from jobtui.transport.worker import Worker
from tests.backends.journal.make import make_journal
from tests.commands.running import Runner
from tests.journal_memory import container_rows, exported, supervisor_rows
from tests.slurm_stand_in import StandIn

settings.register_profile("jobtui", deadline=None, max_examples=60)
settings.load_profile("jobtui")
gc.set_threshold(50_000, 20, 20)  # by default it takes a tenth of the time

NOW = Nanos(1_795_208_400 * SECOND)
"""2026-11-20T21:00:00Z, shortly after the captures of the fixtures were taken."""

FOREIGN = ("SIREPO_", "JOBTUI_", "BALSAM_", "PYKERN_", "SLURM_", "XDG_", "LC_", "TEXTUAL", "SSH_", "TMUX")
"""Beginnings of variables of the machine that would change what the program finds or how it looks."""

FIXED = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "COLUMNS": "120",
    "LINES": "40",
    "TEXTUAL_ANIMATIONS": "none",
}

LONGEST_NAME = 60
"""Characters of a value that are part of the name of its test."""
QUIET_ROUNDS = 3
"""So many rounds of the event loop must find nothing to do before the program under test is at rest."""
SOON_S = 0.02
"""Seconds: a pause lets the timers ring that are to ring within these, as Textual's own does."""

_asked_threads: "set[object]" = set()


def _counted(run: Callable[..., Awaitable[object]]) -> Any:
    """What asks a thread, noted while that has not answered."""

    async def counted(*given: Any, **named: Any) -> object:
        asked = object()
        _asked_threads.add(asked)
        try:
            return await run(*given, **named)
        finally:
            _asked_threads.discard(asked)

    return counted


async def _rest(min_sleep: float = 0.0, max_sleep: float = 5.0) -> None:
    """Wait until the event loop has nothing to do and no thread owes it an answer; `max_sleep` at most.

    Textual does this after each key, and judges by the time of the processor, which other programs change.
    """
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    until = time.monotonic() + max_sleep
    quiet = 0
    while quiet < QUIET_ROUNDS and time.monotonic() < until:
        await asyncio.sleep(0.001 if _asked_threads else 0)
        quiet = 0 if ready or _asked_threads else quiet + 1


async def _rest_and_timers(min_sleep: float = 0.0, max_sleep: float = 5.0) -> None:
    """`_rest`, also from the timers that are to ring at once: for a pause of the test itself."""
    await _rest()
    loop = asyncio.get_running_loop()
    waits = [one.when() - loop.time() for one in loop._scheduled if not one.cancelled()]  # type: ignore[attr-defined]
    await asyncio.sleep(max((wait for wait in waits if wait < SOON_S), default=0.0))
    await _rest()


_parse = Stylesheet._parse_rules
_parsed: dict[object, list[RuleSet]] = {}


def _parsed_once(sheet: Stylesheet, *given: Any, **more: Any) -> list[RuleSet]:
    """What Textual made of a stylesheet with the same colours, for whichever app."""
    known = (*given, *more.items(), *sheet._variables.items())
    if known not in _parsed:
        _parsed[known] = _parse(sheet, *given, **more)
    return _parsed[known]


Stylesheet._parse_rules = _parsed_once  # type: ignore[assignment, method-assign]
asyncio.to_thread = _counted(asyncio.to_thread)
Worker.run = _counted(Worker.run)  # type: ignore[method-assign]
textual.app.wait_for_idle = _rest  # type: ignore[attr-defined]
textual.pilot.wait_for_idle = _rest_and_timers  # type: ignore[attr-defined]

LONG = (
    "tests/hostile", "tests/fuzz", "tests/commands/test_open", "tests/commands/test_secrets", "tests/memory",
    "tests/analysis/test_cause", "tests/screens/test_pictures", "tests/screens/test_walks", "tests/web",
)  # fmt: skip
"""Tests that take seconds each: short ones should be left at the end, when workers share what is left."""

ALLOWED_SKIPS = {
    "another C library": "glibc is what Debian has",
    "it has to be asked": "a source that reports no change by itself",
    "no tmpfs can be mounted here": "a container may forbid it; a full disk is tried where it does not",
    "root may read everything": "where the suite runs as root, a file cannot be denied",
    "what there is stays as it is": "a rig that cannot mend what it tore",
}
"""Reasons for which a test may be skipped where nothing may be missing, and why that loses nothing."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--only-allowed-skips", action="store_true", help="fail on a skip not in ALLOWED_SKIPS")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Long values are named by their beginning: names pass between workers several times for each test."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_NAME:
        return f"{val[:LONGEST_NAME]!a}..."
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let each worker, which gets an equal stretch of the list, begin with its share of the long tests."""
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    long = [item for item in items if item.nodeid.startswith(LONG)]
    short = iter([item for item in items if not item.nodeid.startswith(LONG)])
    share = -(-(len(items) - len(long)) // workers)
    items[:] = [one for turn in range(workers) for one in (*long[turn::workers], *islice(short, share))]


def pytest_collection_finish() -> None:
    """Let the collector pass over modules and tests.

    The program freezes too, when it has started: what tests before left behind would then stay to the end.
    """
    gc.collect()
    gc.freeze()
    gc.freeze = lambda: None


def skip_reasons(config: pytest.Config) -> Counter[str]:
    """Why tests were skipped, and how many for each reason; empty unless skips are looked at."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not config.getoption("--only-allowed-skips"):
        return Counter()
    reports = reporter.getreports("skipped")
    return Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)


def pytest_sessionstart() -> None:
    """Signals end what they should, also where the suite was begun with `nohup` or `&`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if skip_reasons(session.config).keys() - ALLOWED_SKIPS.keys():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for reason, number in sorted(skip_reasons(config).items()):
        terminalreporter.line(f"{number:5} skipped, {ALLOWED_SKIPS.get(reason, 'NOT ALLOWED')}: {reason}")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Ever new directories: one for each test, made without looking through those there are."""
    place = tmp_path_factory.mktemp("homes")
    return (place / str(number) for number in count())


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, homes: Iterator[Path]) -> Iterator[Path]:
    """A home without any settings, and none of the machine's own; gives that home."""
    home = next(homes)
    home.mkdir()
    for name in [*os.environ]:
        if name.startswith(FOREIGN) or name == "NO_COLOR":
            monkeypatch.delenv(name)
    for name, value in FIXED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))
    time.tzset()
    yield home
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def no_unexpected_fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A fault of jobtui fails the test in which it happens, unless that asks for `expected_faults`."""
    traces: list[str] = []
    note = Faults.note

    def noted(self: Faults, error: BaseException, stage: str) -> Fault:
        traces.extend(traceback.format_exception(error))
        return note(self, error, stage)

    monkeypatch.setattr(Faults, "note", noted)
    FAULTS._known.clear()
    yield
    left = FAULTS.all()
    FAULTS._known.clear()
    if "expected_faults" not in request.fixturenames:
        assert not left, "".join(traces)


@pytest.fixture
def expected_faults() -> Faults:
    return FAULTS


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Slurm, whose commands are the first that are found."""
    made = StandIn(tmp_path)
    monkeypatch.setenv("PATH", made.search_path)
    return made


def resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory that is a disk of 64 KB."""
    (place := tmp_path / "disk").mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="session")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of what the supervisor's host and the docker host have."""
    directory = tmp_path_factory.mktemp("journals")
    make_journal(directory, [exported(supervisor_rows("docker"))], "remote-v3.journal")
    make_journal(directory, [exported(container_rows("docker"))], "remote-docker7.journal")
    return directory
