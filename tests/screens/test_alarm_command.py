"""The user's command is run as configured, with facts in its environment; how it ended is noted."""

import sys
from pathlib import Path

import pytest

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.model.clock import FixedClock
from jobtui.model.health import SourceHealth, SourceState
from jobtui.screens.alarm import AlarmCommand
from jobtui.store.store import Store
from tests.conftest import NOW


def a_store() -> Store:
    return Store(Correlator(), FixedClock(NOW))


async def ran(*command: str, timeout_s: float = 30.0, **facts: str) -> SourceHealth:
    store = a_store()
    await AlarmCommand(command, store, timeout_s).run(facts)
    (health,) = store.sources()
    return health


async def test_facts_are_variables_and_no_shell_reads_anything(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = f"import os, sys; open({str(out)!r}, 'w').write(os.environ['TROUBLE_JOB'] + ' ' + sys.argv[1])"
    store, command = a_store(), (sys.executable, "-c", code, "$(touch x); `id`")
    await AlarmCommand(command, store).run({"TROUBLE_JOB": "a; $(touch y) 'b"})
    assert store.sources() == ()
    assert out.read_text() == "a; $(touch y) 'b $(touch x); `id`"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("/no/such/program",), "No such file"),
        ((sys.executable, "-c", "raise SystemExit(3)"), "exit code 3"),
        ((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"), "signal 9"),
    ],
)
async def test_a_command_that_fails_is_a_line_among_the_sources(command: tuple[str, ...], words: str) -> None:
    health = await ran(*command)
    assert health.state is SourceState.DOWN
    assert health.error is not None
    assert words in health.error
    assert "[alarm]" in health.error


async def test_one_that_failed_once_and_is_well_again_is_no_trouble(tmp_path: Path) -> None:
    store, flag = a_store(), tmp_path / "flag"
    alarm = AlarmCommand((sys.executable, "-c", f"open({str(flag)!r})"), store)
    await alarm.run({})
    assert [source.state for source in store.sources()] == [SourceState.DOWN]
    flag.touch()
    await alarm.run({})
    assert [source.state for source in store.sources()] == [SourceState.OK]


async def test_a_command_that_hangs_is_ended() -> None:
    health = await ran(sys.executable, "-c", "import time; time.sleep(600)", timeout_s=0.2)
    assert health.error is not None
    assert "was ended after 0.2 s" in health.error
