import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.correlate import Correlator
from jobtui.backends.base import Batch, SourceError, SourceUnreachable, next_delay
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.health import SourceState
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.builders import a_job
from tests.fakes import ScriptedSource

JOB = a_job()


def a_store() -> Store:
    return Store(Correlator(), FixedClock(Nanos(1_000)))


async def test_catching_up_reads_until_there_is_no_more() -> None:
    store = a_store()
    script = [
        Batch(cursor="1", jobs=(JOB,), more=True),
        Batch(cursor="2", count=7, more=True),
        Batch(cursor="3"),
    ]
    await Poller(ScriptedSource(script), store, strict=True).catch_up()
    assert store.job(JOB.id) == JOB
    assert store.sources()[0].records == 7


async def test_a_source_that_breaks_off_comes_back() -> None:
    store = a_store()
    script: list[Batch | SourceError] = [
        Batch(cursor="1", jobs=(JOB,)),
        SourceUnreachable("refused"),
        Batch(cursor="2"),
    ]
    poller = Poller(ScriptedSource(script), store, strict=True)
    states = []
    for _ in script:
        await poller.poll_once()
        states.append(store.sources()[0].state)
    assert states == [SourceState.OK, SourceState.DOWN, SourceState.OK]


class Broken(ScriptedSource):
    async def poll(self, cursor: str | None) -> Batch:
        raise ZeroDivisionError("a fault of ours")


async def test_a_fault_of_ours_is_one_sources_trouble_and_raised_in_tests() -> None:
    store = a_store()
    await Poller(Broken([]), store).poll_once()
    (health,) = store.sources()
    assert health.state is SourceState.DOWN
    assert "internal error: ZeroDivisionError" in (health.error or "")
    with pytest.raises(ZeroDivisionError):
        await Poller(Broken([]), store, strict=True).poll_once()


@given(st.floats(0.01, 600), st.integers(0, 10_000))
def test_the_delay_grows_to_its_cap_and_not_beyond(period_s: float, failures: int) -> None:
    delay = next_delay(period_s, failures)
    assert period_s <= delay <= max(60.0, period_s)
    assert delay <= next_delay(period_s, failures + 1)
