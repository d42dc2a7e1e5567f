"""What sends spans or is asked for traces beside the site of the endurance run, in small: nothing is lost."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from typing import Any, TypeVar

import pytest

from benchmarks import side_receiver
from benchmarks.growing_traces import KEPT, SPANS, GrowingTraces, base64_of
from benchmarks.moody_server import Mood
from benchmarks.otlp_sender import free_port
from benchmarks.side_receiver import ReceiverSide
from benchmarks.side_traces import SAID, JaegerSide, TempoSide, TraceServerSide
from benchmarks.sides import Side
from benchmarks.soak_dashboard import traces_on
from benchmarks.tour import ENTER
from jobtui.backends.registry import build
from jobtui.backends.traces import asking
from jobtui.model.specs import SourceSpec
from jobtui.model.trace_desk import TraceSearch
from jobtui.model.trace_ids import TraceId
from jobtui.session import Session
from jobtui.store.trace_desk import SessionTraces
from tests.waiting import LONG_S

T = TypeVar("T")


class Looked:
    """A session on one of them, which goes on in a thread of its own, and what would be on its screen."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        setting, name = side.flags[0].strip("-").replace("-", "_"), side.flags[1]
        self.session = Session([build(SourceSpec(setting, name))], strict=True)
        self._desk = SessionTraces(self.session.store, lambda: self.session.sources, self.session.clock)
        self._trace: str | None = None
        self._listed: dict[str, int | None] = {}
        self.screen = ""

    def run(self, asked: Coroutine[Any, Any, T]) -> T:
        """What comes of it."""
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(LONG_S)

    def wait(self, seconds: float) -> None:
        """Read what there is, and look where the keys lead."""
        self.run(self.session.catch_up())
        if self.side.keys:
            self.run(self._look(self.side.keys))
            self.side.saw(self.screen)

    async def _look(self, keys: Any) -> None:
        self._trace, self._listed = None, {}
        if keys[0] == "5":
            found = await self._desk.search(TraceSearch(most=200))
            self._listed = {one.trace_id: one.spans for one in found.traces}
            shown, notes = [f"{one[:8]}…{one[-4:]}" for one in self._listed], found.notes
        else:
            self._trace = keys[1].removeprefix("goto ").removesuffix(ENTER)
            answer = await self._desk.fetch(TraceId(self._trace))
            shown, notes = [f"{one[:8]}…{one[-4:]}" for one in (self._trace,) if answer.trace], answer.notes
        self.screen = "\n".join([*shown, *notes])

    def told(self) -> dict[str, Any]:
        """What a dashboard would tell."""
        store = self.session.store
        return {
            "sources": [[one.name, one.state, one.skipped, one.error] for one in store.sources()],
            "records": {one.name: one.records for one in store.sources()},
            "traces": {one: store.traces.size(one) for one in store.traces.ids()},
            "trace": self._trace,
            "listed": self._listed,
        }

    def close(self) -> None:
        """End it."""
        self.run(self.session.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(params=[ReceiverSide, JaegerSide, TempoSide])
def looked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looked]:
    monkeypatch.setattr(asking, "SILENCE_S", 0.5)
    monkeypatch.setattr(side_receiver, "DROPPED", 60)
    monkeypatch.setattr(side_receiver, "HELD", 20)
    with closing(request.param()) as side, closing(Looked(side)) as looked:
        yield looked


def test_what_befalls_traces_costs_no_span_and_doubles_none(looked: Looked) -> None:
    side = looked.side
    looked.wait(0)
    for name, fault in side.faults.items():
        for _ in range(SPANS + 3):
            side.tick()
        before = side.written
        fault(looked.wait)
        looked.wait(0)
        assert (name, side.missed, side.wrong(looked.told())) == (name, [], [])
        assert side.shown in looked.screen
        assert side.written > before or side.keys


@pytest.mark.parametrize("make", [JaegerSide, TempoSide])
def test_a_fault_that_no_question_met_is_told(make: Callable[[], TraceServerSide]) -> None:
    with closing(make()) as side:
        for name, fault in side.faults.items():
            side.missed.clear()
            fault(lambda seconds: None)
            assert [words for words in side.missed if "did not say" in words], name


@pytest.mark.parametrize("make", [JaegerSide, TempoSide])
def test_every_way_not_to_answer_is_among_the_faults(make: Callable[[], TraceServerSide]) -> None:
    with closing(make()) as side:
        moods = [mood for trouble in side.TROUBLES.values() for mood in trouble.moods]
        assert {trouble.of_trace for trouble in side.TROUBLES.values()} == {True, False}
    assert set(moods) == set(SAID) == set(Mood) - {Mood.WELL}


def test_traces_that_are_lost_doubled_or_listed_otherwise_are_told() -> None:
    with closing(JaegerSide()) as side:
        (trace_id,) = {one.trace_id for one in side.traces.kept}
        well: dict[str, Any] = {
            "sources": [[side.source, "ok", 0, None]],
            "traces": {},
            "trace": None,
            "listed": {},
        }
        assert side.wrong(well) == []
        assert side.wrong({**well, "traces": {trace_id: 2}}) == [
            f"jaeger: 2 of 1 spans of {trace_id} are known"
        ]
        assert side.wrong({**well, "trace": trace_id}) == [f"jaeger: 0 of 1 spans of {trace_id} are known"]
        assert side.wrong({**well, "listed": {"other": 1}}) == [
            f"jaeger: {trace_id} has 1 spans, listed None"
        ]
        assert side.wrong({**well, "sources": [[side.source, "partial", 1, None]]}) == [
            "jaeger: it is ['partial']"
        ]


def test_what_is_sent_and_lost_or_counted_twice_is_told() -> None:
    with closing(ReceiverSide()) as side:
        none = {"sources": [[side.source, "ok", 0, None]], "records": {side.source: 0}, "traces": {}}
        side.tick()
        assert (side.written, side.wrong(none)) == (0, [])
        other = {**none, "records": {side.source: 2}, "traces": {f"{side_receiver.IDS_BEGIN}1": 2}}
        assert side.wrong(other) == [
            "receiver: 2 spans and log records known, not 0",
            "receiver: 2 records counted, 0 were taken in",
        ]


def test_nobody_who_listens_is_a_sender_that_tries_again() -> None:
    with closing(ReceiverSide()) as side:
        for _ in range(3):
            side.tick()
        looked = Looked(side)
        looked.wait(0)
        side.tick()
        looked.wait(0)
        assert (side.written, side.wrong(looked.told())) == (2, [])
        looked.close()


def test_traces_grow_to_their_root_and_the_oldest_are_forgotten() -> None:
    traces = GrowingTraces("work", "ab")
    for _ in range(SPANS * (KEPT + 2)):
        traces.grow()
    assert len(traces.kept) == KEPT
    spans = list(traces.newest.otlp(str, 1))
    assert len({span["spanId"] for span in spans}) == SPANS
    assert {span["parentSpanId"] for span in spans[:-1]} == {spans[-1]["spanId"]}
    before = traces.newest._replace(spans=SPANS - 1)
    assert list(before.otlp(str, 1)) == spans[:-1]
    assert base64_of("00ff") == "AP8="
    assert free_port() > 0


def test_a_screen_without_traces_tells_none() -> None:
    from textual.screen import Screen

    assert traces_on(Screen()) == {"trace": None, "listed": {}}
