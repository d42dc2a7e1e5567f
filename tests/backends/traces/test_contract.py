"""What every way to traces answers, whatever is after it: files, the receiver, Jaeger, Tempo."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
import pytest

from jobtui.backends.base import Source
from jobtui.backends.registry import build
from jobtui.backends.traces.receiver import Receiver
from jobtui.model.clock import SECOND, Clock, FixedClock, Nanos
from jobtui.model.ids import TraceId
from jobtui.model.specs import SourceSpec, Window
from jobtui.model.traces import AGED_S, JOB_ATTRIBUTES, QUIET_S, Trace, TraceSearch
from jobtui.session import Session
from jobtui.session.traces import SessionTraces
from tests.backends.traces.sending import send
from tests.jaeger_server import Jaeger
from tests.loopback import served
from tests.rows import ROWS
from tests.tempo_server import Tempo
from tests.trace_servers import ID, NAMES, Site, Spans
from tests.tracing import EXPECTED, captured
from tests.waiting import LONG_S

JOB = "81419552.0@jobsub02.fnal.gov"
FAILED, SUBMIT = TraceId(ID["job-fail"]), "jobsub_submit"
NONE = TraceId("1" * 32)


class Rig:
    """A session with one source of traces, and what asks it. One that is asked is asked again each time."""

    is_exact = True

    def __init__(self, source: Source, clock: Clock) -> None:
        session = self.session = Session([source], clock)
        # who follows a trace in a test does not wait long before it asks again
        self.client = SessionTraces(session.store, lambda: session.sources, clock, period_s=0.01)

    async def update(self) -> None:
        """Let the source know what was sent by now."""


class Asked(Rig):
    def __init__(self, setting: str, site: Site, stack: ExitStack, clock: Clock, *, exact: bool) -> None:
        self.site = site
        self.is_exact = exact
        url = stack.enter_context(served(site))
        super().__init__(build(SourceSpec(setting, url), Window(until=clock.now())), clock)


class Files(Rig):
    def __init__(self, spans: Spans, folder: Path, clock: Clock) -> None:
        self._spans = spans
        self._path = folder / "spans.jsonl"
        self._written: set[str] = set()
        self._path.touch()
        super().__init__(build(SourceSpec("trace_file", str(self._path))), clock)

    async def update(self) -> None:
        with self._path.open("a") as file:
            for document in fresh(self._spans, self._written):
                file.write(json.dumps(document) + "\n")
        await self.session.catch_up()


class Received(Rig):
    def __init__(self, spans: Spans, clock: Clock) -> None:
        self._spans = spans
        self._sent: set[str] = set()
        self._receiver = Receiver("127.0.0.1:0")
        super().__init__(self._receiver, clock)

    async def update(self) -> None:
        await self.session.catch_up()
        for document in fresh(self._spans, self._sent):
            assert (await send(self._receiver, json.dumps(document).encode())).status == 200
        await self.session.catch_up()


def fresh(spans: Spans, known: set[str]) -> list[dict[str, object]]:
    """Documents with the spans that are not known yet, which are known then."""
    found: list[dict[str, object]] = []
    for trace_id in spans.ids:
        for group in spans.groups(trace_id):
            scopes = [
                {**scope, "spans": [one for one in scope["spans"] if one["spanId"] not in known]}
                for scope in group["scopeSpans"]
            ]
            if any(scope["spans"] for scope in scopes):
                found.append({"resourceSpans": [{**group, "scopeSpans": scopes}]})
        known |= {span["spanId"] for span, _ in spans.spans(trace_id)}
    return found


RIGS = (
    "files", "received", "jaeger-v3", "jaeger-v3-old", "jaeger-v1", "jaeger-cassandra", "tempo",
    "tempo-v1",
)  # fmt: skip
"""Every way to traces. Some storages of Jaeger want a service named."""


@asynccontextmanager
async def a_rig(name: str, spans: Spans, folder: Path, clock: Clock) -> AsyncIterator[Rig]:
    with ExitStack() as stack:
        rig: Rig
        if name == "files":
            rig = Files(spans, folder, clock)
        elif name == "received":
            rig = Received(spans, clock)
        elif name.startswith("tempo"):
            site = Site(Tempo(spans, is_old=name == "tempo-v1"), "/tempo")
            rig = Asked("tempo", site, stack, clock, exact=True)
        else:
            versions = ("v1",) if name == "jaeger-v1" else ("v3", "v1")
            jaeger = Jaeger(spans, versions=versions, is_old=name == "jaeger-v3-old")
            jaeger.wants_service = name == "jaeger-cassandra"
            rig = Asked("jaeger", Site(jaeger, "/jaeger"), stack, clock, exact=name != "jaeger-v1")
        async with rig.session:
            await rig.update()
            yield rig


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture(params=RIGS)
async def rig(
    request: pytest.FixtureRequest, spans: Spans, tmp_path: Path, clock: FixedClock
) -> AsyncIterator[Rig]:
    async with a_rig(request.param, spans, tmp_path, clock) as made:
        yield made


def facts(trace: Trace | None, *, exact: bool) -> set[tuple[object, ...]]:
    """What all ways must agree about; Jaeger's own JSON has microseconds."""
    assert trace is not None
    unit = 1 if exact else 1_000
    return {
        (
            span.span_id, span.parent_id, span.name, span.service, span.kind, span.status, span.message,
            span.started_at // unit, frozenset(span.attributes), tuple(event.name for event in span.events),
            tuple((link.trace_id, link.span_id) for link in span.links),
        )
        for span in trace.spans
    }  # fmt: skip


async def test_a_trace_is_the_same_wherever_it_is_from(rig: Rig) -> None:
    for name in NAMES:
        answer = await rig.client.fetch(TraceId(ID[name]))
        assert facts(answer.trace, exact=rig.is_exact) == facts(captured(name), exact=rig.is_exact)
        assert (answer.notes, answer.growing) == ((), "")
    health = rig.session.store.sources()[0]
    assert (health.error, health.skipped) == (None, 0)


async def test_a_trace_that_is_not_there_is_none_and_reading_twice_changes_nothing(rig: Rig) -> None:
    answer = await rig.client.fetch(NONE)
    assert (answer.trace, answer.notes) == (None, ())
    assert rig.session.store.sources()[0].error is None
    first = await rig.client.fetch(FAILED)
    records = rig.session.store.sources()[0].records
    second = await rig.client.fetch(FAILED)
    assert (second, rig.session.store.sources()[0].records) == (first, records)


async def test_traces_are_found(rig: Rig) -> None:
    for search, found in ROWS["searches for traces"]:
        listed = await rig.client.search(msgspec.convert(search, TraceSearch))
        assert {one.trace_id for one in listed.traces} == {ID[name] for name in found}, search
        assert listed.notes == ()


async def test_the_submission_of_a_job_is_found_by_its_time(rig: Rig) -> None:
    root = min(captured("job-fail").spans, key=lambda span: span.started_at)
    since = Nanos(root.started_at - 60 * SECOND)
    window = TraceSearch(service="fife", operation=SUBMIT, since=since, until=Nanos(since + 61 * SECOND))
    (one,) = (await rig.client.search(window)).traces
    assert (one.trace_id, one.service, one.name) == (FAILED, "fife", "jobsub_submit")
    before = TraceSearch(since=Nanos(since - 3600 * SECOND), until=since)
    assert FAILED not in {one.trace_id for one in (await rig.client.search(before)).traces}


async def test_recent_traces_come_newest_first_with_what_is_known_of_them(rig: Rig) -> None:
    listed = (await rig.client.search(TraceSearch())).traces
    begins = [one.started_at for one in listed if one.started_at is not None]
    assert (len(begins), begins) == (len(NAMES), sorted(begins, reverse=True))
    by_id = {one.trace_id: one for one in listed}
    for name in NAMES:
        one, expected = by_id[TraceId(ID[name])], EXPECTED[name]
        assert one.spans in (None, expected["spans"])
        assert one.errors in (None, len(expected["error_spans"]))
        assert one.started_at is not None
        assert one.ended_at is not None
        assert abs(one.ended_at - one.started_at - expected["duration_ns"]) < 1_100_000
        assert one.source == rig.session.store.sources()[0].name
    assert len((await rig.client.search(TraceSearch(most=2))).traces) == 2


@pytest.mark.parametrize("name", RIGS)
async def test_a_trace_that_grows(name: str, spans: Spans, tmp_path: Path, clock: FixedClock) -> None:
    whole = captured("job-good").spans
    middle = whole[len(whole) // 2]
    spans.hidden = {span.span_id for span in whole if span.parent_id is None} | {middle.span_id}
    sizes, reasons = [], []
    async with a_rig(name, spans, tmp_path, clock) as rig:
        async for answer in rig.client.follow(TraceId(ID["job-good"])):
            sizes.append(len(answer.trace.spans) if answer.trace else 0)
            reasons.append(answer.growing)
            if spans.hidden:
                spans.hidden.pop()
            else:
                clock.advance(QUIET_S)
            await rig.update()
    assert sizes == [len(whole) - 2, len(whole) - 1, len(whole), len(whole)]
    assert "not received" in reasons[0]
    assert reasons[2:] == ["its last span came 0s ago", ""]


async def test_one_that_was_given_up_is_read_no_more(spans: Spans, tmp_path: Path, clock: FixedClock) -> None:
    spans.hidden = {span.span_id for span in captured("job-good").spans if span.parent_id is None}
    clock.advance(AGED_S)
    async with a_rig("jaeger-v3", spans, tmp_path, clock) as rig:
        answers = [answer async for answer in rig.client.follow(TraceId(ID["job-good"]))]
    assert [answer.growing for answer in answers] == ["its root was not received"]


async def test_a_trace_is_followed_while_more_is_due(spans: Spans, tmp_path: Path, clock: FixedClock) -> None:
    job = {span.span_id for span in captured("job-good").spans if span.service == "tracingJob"}
    spans.hidden = set(job)
    sizes: list[int] = []
    async with a_rig("tempo", spans, tmp_path, clock) as rig:
        async for answer in rig.client.follow(TraceId(ID["job-good"]), lambda: len(sizes) < 2):
            sizes.append(len(answer.trace.spans) if answer.trace else 0)
            spans.hidden = set()
            clock.advance(QUIET_S)
    assert sizes[0] == len(captured("job-good").spans) - len(job)
    assert sizes[-1] == len(captured("job-good").spans)


async def test_a_server_that_is_down_is_named(spans: Spans, tmp_path: Path, clock: FixedClock) -> None:
    async with a_rig("tempo", spans, tmp_path, clock) as rig:
        rig.session.add(build(SourceSpec("jaeger", "http://127.0.0.1:1")))
        answer = await rig.client.fetch(FAILED)
        assert answer.trace is not None
        (note,) = answer.notes
        assert note.startswith("http://127.0.0.1:1: cannot be connected to")
        listed = await rig.client.search(TraceSearch())
        assert (len(listed.traces), listed.notes) == (len(NAMES), (note,))
        up, down = rig.session.store.sources()
        assert (up.error, down.error) == (None, note)


@contextmanager
def a_silent_server(rig: Rig) -> Iterator[str]:
    """One more server, which takes what is asked and does not answer until it is gone."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        rig.session.add(build(SourceSpec("jaeger", url)))
        yield url


async def test_what_others_know_is_shown_at_once(spans: Spans, tmp_path: Path, clock: FixedClock) -> None:
    clock.advance(AGED_S)
    async with a_rig("tempo", spans, tmp_path, clock) as rig, asyncio.timeout(LONG_S):
        with a_silent_server(rig) as url:
            answers = rig.client.follow(FAILED)
            first = await anext(answers)
        assert first.trace is not None
        assert (len(first.trace.spans), first.notes) == (len(captured("job-fail").spans), ())
        second = await anext(answers)
        assert second.trace == first.trace
        (note,) = second.notes
        assert note.startswith(url)


async def test_a_list_tells_jobs_and_errors_as_far_as_its_server_does(rig: Rig, spans: Spans) -> None:
    told = {one.trace_id: one for one in (await rig.client.search(TraceSearch(names=JOB_ATTRIBUTES))).traces}
    if isinstance(rig, Asked):
        is_v3 = any("trace-summaries" in path for path, _ in rig.site.requests)
        is_short = is_v3 and not getattr(rig.site.server, "is_old", False)
        assert told[FAILED].jobs == (() if is_short else (JOB,))  # summaries of Jaeger have no attributes
    assert told[TraceId(ID["jobsub-ok"])].jobs == ()
    assert (told[FAILED].errors, told[TraceId(ID["jobsub-ok"])].errors) == (3, 0)
