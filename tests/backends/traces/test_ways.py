"""Ways to traces: what files, the receiver, Jaeger and Tempo give alike, and what each says that is wrong."""

import asyncio
import gzip
import json
import os
import re
import socket
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from operator import attrgetter
from pathlib import Path

import msgspec
import pytest
from google.rpc import status_pb2  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends.base import Batch, Source
from jobtui.backends.registry import build
from jobtui.backends.traces import receiver as receiver_module
from jobtui.backends.traces.client import TraceServer
from jobtui.backends.traces.files import TraceFile
from jobtui.backends.traces.jaeger import Jaeger
from jobtui.backends.traces.receiver import Receiver, Refusal, refuse_browsers
from jobtui.backends.traces.tempo import Tempo
from jobtui.model.clock import SECOND, Clock, FixedClock, Nanos
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.ids import TraceId
from jobtui.model.specs import NO_ACCESS, Access, ReadWindow, SourceSpec
from jobtui.model.traces import AGED_S, JOB_ATTRIBUTES, QUIET_S, Trace, TraceList, TraceSearch
from jobtui.session import Session
from jobtui.session.traces import SessionTraces
from tests.backends.traces import sending
from tests.backends.traces.sending import PROTOBUF, SPAN, export, listening, raw, send, taken
from tests.loopback import carried, served, timed
from tests.polling import polled, read_on
from tests.rows import ROWS
from tests.trace_servers import ID, JSON, NAMES, TEXT, Answer, Site, Spans
from tests.trace_servers import Jaeger as JaegerServer
from tests.trace_servers import Tempo as TempoServer
from tests.tracing import CAPTURES, EXPECTED, capture_file, captured
from tests.waiting import LONG_S, wait_until

JOB = "81419552.0@jobsub02.fnal.gov"
SUBMIT = "jobsub_submit"
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
        super().__init__(build(SourceSpec(setting, url), ReadWindow(until=clock.now())), clock)


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
        found += [{"resourceSpans": [group]} for group in spans.groups(trace_id, known)]
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
            site = Site(TempoServer(spans, is_old=name == "tempo-v1"), "/tempo")
            rig = Asked("tempo", site, stack, clock, exact=True)
        else:
            versions = ("v1",) if name == "jaeger-v1" else ("v3", "v1")
            jaeger = JaegerServer(spans, versions=versions, is_old=name == "jaeger-v3-old")
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
async def test_a_trace_that_grows_is_followed_until_it_is_quiet(
    name: str, spans: Spans, tmp_path: Path, clock: FixedClock
) -> None:
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


async def test_an_abandoned_trace_is_not_read_again(spans: Spans, tmp_path: Path, clock: FixedClock) -> None:
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


async def test_a_silent_server_delays_no_other(spans: Spans, tmp_path: Path, clock: FixedClock) -> None:
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


FAILED = TraceId(ID["job-fail"])
HOUR = 3_600 * SECOND
URL = "http://traces.test"
SECRET = "s3cr3t-t0k3n-of-an-operator"
WHOLE = json.dumps({"result": {"resourceSpans": [{"scopeSpans": []}]}}).encode()


@pytest.fixture
def site() -> Site:
    return Site(JaegerServer(Spans()), "/jaeger")


async def told(source: Jaeger | Tempo, trace_id: TraceId = FAILED) -> SourceError:
    with pytest.raises(SourceError) as raised:
        await source.trace(trace_id)
    await source.aclose()
    text = str(raised.value)
    assert text.isprintable()
    assert SECRET not in text
    return raised.value


def asked(site: Site, product: str, access: Access = NO_ACCESS) -> TraceServer:
    return carried(TraceServer(f"{URL}{site.base}", product, access), site.answer)


def jaeger(site: Site, access: Access = NO_ACCESS) -> Jaeger:
    return Jaeger(asked(site, "Jaeger", access))


async def test_a_missing_path_and_too_long_an_answer_are_said(site: Site) -> None:
    server = jaeger(site)
    await server.services()
    padded = b" " * (9 << 20) + WHOLE
    site.instead = Answer(200, gzip.compress(padded), JSON, {"Content-Encoding": "gzip"})
    assert await server.trace(TraceId(ID["job-fail"])) is not None
    await server.aclose()
    assert "an answer is refused: it has more than 8 MiB" in str(await told(jaeger(site)))
    site.instead = None
    elsewhere = carried(TraceServer(URL, "Jaeger"), site.answer)
    error = await told(Jaeger(elsewhere))
    assert "the path it is served at is missing, such as /jaeger" in str(error)


async def test_a_half_trace_of_a_tempo_is_kept_and_that_is_said() -> None:
    trace = {"resourceSpans": Spans().groups(ID["job-fail"])[:2]}
    told_of = {"trace": trace, "status": "PARTIAL", "message": "trace exceeds max size"}
    site = Site(TempoServer(Spans()))
    site.instead = Answer(200, json.dumps(told_of).encode())
    source = Tempo(asked(site, "Tempo"))
    found = await source.trace(FAILED)
    await source.aclose()
    assert found is not None
    assert found.spans
    assert (found.skip_count, found.skipped[0].why) == (1, "trace exceeds max size")


async def test_a_tempo_is_asked_for_the_newest_as_far_as_it_searches(clock: FixedClock) -> None:
    site = Site(TempoServer(Spans()))
    source = timed(Tempo(asked(site, "Tempo"), ReadWindow(since=Nanos(0))), clock)
    for _ in range(2):
        listed = await source.search(TraceSearch())
        assert {one.trace_id for one in listed.traces} == set(ID.values())
        assert re.fullmatch(rf"{URL}: it searches 168 h at most: from 20\d\d-\S+Z on", "".join(listed.notes))
    before = clock.now() - 100 * HOUR
    listed = await source.search(TraceSearch(since=Nanos(before - HOUR), until=Nanos(before)))
    assert listed == TraceList()
    await source.aclose()


BASIC = b64encode(f"ann:{SECRET}".encode()).decode()
LOGINS = [
    (Access(bearer=SECRET), {"Authorization": f"Bearer {SECRET}"}),
    (Access(user="ann", password=SECRET), {"Authorization": f"Basic {BASIC}"}),
    (Access(headers=(("X-Scope-OrgID", "t1"), ("X-Key", SECRET))), {"X-Scope-OrgID": "t1", "X-Key": SECRET}),
    (NO_ACCESS, {}),
]  # fmt: skip


@pytest.mark.parametrize(("access", "headers"), LOGINS, ids=repr)
async def test_a_login_is_only_sent(access: Access, headers: dict[str, str], site: Site) -> None:
    source = jaeger(site, access)
    assert await source.trace(FAILED) is not None
    await source.aclose()
    for _, sent in site.requests:
        assert {name: sent.get(name) for name in headers} == headers
        assert ("Authorization" in sent, sent["User-Agent"]) == ("Authorization" in headers, "jobtui")
    assert SECRET not in repr((source, access, vars(source)))


async def test_a_token_in_a_file_is_read_again(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first\n")
    site.login = "Bearer first"
    source = jaeger(site, Access(bearer_file=str(path)))
    assert await source.trace(FAILED) is not None
    path.write_text("second\n")
    site.login = "Bearer second"
    assert await source.trace(FAILED) is not None
    path.write_bytes(b"two words\n")
    with pytest.raises(SourceDenied, match="holds no login"):
        await source.trace(FAILED)
    path.unlink()
    with pytest.raises(SourceMissing, match="does not exist"):
        await source.trace(FAILED)
    await source.aclose()


async def test_a_jaeger_that_becomes_a_newer_one_is_asked_in_the_new_way() -> None:
    server = JaegerServer(Spans(), versions=("v1",))
    site = Site(server)
    source = jaeger(site)
    assert "Jaeger v1" in str((await source.poll(None)).note)
    server.versions = ("v3",)
    with pytest.raises(SourceMissing):
        await source.poll(None)
    assert "Jaeger v3" in str((await source.poll(None)).note)
    await source.aclose()


async def test_a_search_without_a_service_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.traces.jaeger.MOST_QUESTIONS", 2)
    server = JaegerServer(Spans(), versions=("v1",))
    site = Site(server)
    source = jaeger(site)
    listed = await source.search(TraceSearch(names=("a", "jobsub.job.id"), value="1"))
    await source.aclose()
    assert server.asked.count("/api/traces") == 2
    assert "2 of 6 questions were asked; name a service" in listed.notes[0]


@pytest.mark.parametrize("wants_service", [False, True])
async def test_a_jaeger_that_failed_for_a_while_is_asked_afterwards_as_before(wants_service: bool) -> None:
    server = JaegerServer(Spans())
    server.wants_service = wants_service
    site = Site(server)
    source = jaeger(site)
    await source.search(TraceSearch())
    server.asked.clear()
    await source.search(TraceSearch())
    before = server.asked.copy()
    for status in (500, 503):
        site.instead = Answer(status, b"storage is gone", TEXT)
        with pytest.raises(SourceError):
            await source.search(TraceSearch())
    site.instead = None
    server.asked.clear()
    await source.search(TraceSearch())
    await source.aclose()
    assert server.asked == before
    assert {path.rpartition("/")[2] for path in before} <= {"trace-summaries", "services"}


HEAD = (
    b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with listening() as made:
        yield made


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("form", "kind", "empty"), [("otlp.pb", PROTOBUF, b""), ("otlp.json", JSON, b"{}")])
async def test_every_encoding_is_received(
    receiver: Receiver, form: str, kind: str, empty: bytes, chunked: bool, packed: bool
) -> None:
    data = capture_file("job-fail", form).read_bytes()
    body = gzip.compress(data) if packed else data
    headers = {"Content_Encoding": "gzip"} if packed else {}
    pieces = [body[:300], body[300:]] if chunked else body
    sent = await send(receiver, pieces, f"{kind}; charset=utf-8", **headers)
    assert (sent.status, sent.body, sent.headers["content-type"]) == (200, empty, kind)
    assert (await taken(receiver)).spans == captured("job-fail").spans


async def test_the_exports_of_a_job_arrive_one_after_the_other(receiver: Receiver) -> None:
    exports = sorted((CAPTURES / "job-fail").glob("*.pb"))
    assert exports
    for path in exports:
        signal = path.name.split(".")[1]
        assert (await send(receiver, path.read_bytes(), PROTOBUF, f"/v1/{signal}")).status == 200
    found = await taken(receiver)
    expected = EXPECTED["job-fail"]
    assert {span.trace_id for span in found.spans} == {expected["traceID"]}
    by_time = attrgetter("at")
    assert sorted(found.span_logs, key=by_time) == sorted(captured("job-fail").logs, key=by_time)


async def test_bad_spans_are_left_out_and_counted_on_both_sides(receiver: Receiver) -> None:
    sent = await send(receiver, export(SPAN, {"name": "x"}, {"name": "y"}))
    partial = sent.json["partialSuccess"]
    assert partial == {"rejectedSpans": "2", "errorMessage": "no trace id: ''"}
    batch = await receiver.poll("x")
    assert ([span.trace_id for span in batch.spans], batch.skip_count) == (["ab" * 16], 2)


async def test_a_partial_success_as_protobuf_is_one_that_others_read(receiver: Receiver) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    message = TracesData()
    for _ in range(300):
        message.resource_spans.add().scope_spans.add().spans.add(name="no id")
    sent = await send(receiver, message.SerializeToString(), PROTOBUF)
    answer = ExportTraceServiceResponse.FromString(sent.body)
    assert answer.partial_success.rejected_spans == 300
    assert answer.partial_success.error_message == "no trace id: ''"


@pytest.mark.parametrize("kind", [JSON, PROTOBUF])
async def test_metrics_are_declined_politely(receiver: Receiver, kind: str) -> None:
    sent = await send(receiver, b"\xff\xff", kind, "/v1/metrics")
    assert sent.status == 200
    assert b"metrics are not kept" in sent.body
    assert (await receiver.poll("x")).skip_count == 0


BROKEN = capture_file("job-fail", "otlp.pb").read_bytes()[:-10]
CUT = gzip.compress(export(SPAN), mtime=0)[:-9]
LIMIT = 1 << 16
BIG = b" " * 70_000
GZIP = {"Content_Encoding": "gzip"}
ERRORS = [
    ({"body": b"{", "kind": JSON}, 400, 3, "is not JSON"),
    ({"body": b"[]", "kind": JSON}, 400, 3, "is not a JSON object"),
    ({"body": b"[" * 5000, "kind": JSON}, 400, 3, "is not JSON"),
    ({"body": BROKEN, "kind": PROTOBUF}, 400, 3, "is not a protobuf message of traces"),
    ({"body": b"{}", "kind": PROTOBUF}, 400, 3, "is not a protobuf message of traces"),
    ({"body": b"{}", "kind": "text/plain"}, 415, 3, "content type text/plain"),
    ({"body": b"{}", "kind": JSON, "Content_Encoding": "br"}, 415, 3, "packed as 'br'; only gzip"),
    ({"body": b"{}", "kind": JSON, "Content_Encoding": "gzip, gzip"}, 415, 3, "only gzip is accepted"),
    ({"body": b"{}", "kind": JSON, "Origin": "http://evil.example"}, 403, 7, "from web pages"),
    ({"body": b"{}", "kind": JSON, "Origin": "null"}, 403, 7, "from web pages are refused"),
    ({"body": b"{}", "kind": JSON, "Host": "evil.example:4318"}, 403, 7, "evil.example is not a name of"),
    ({"body": b"{}", "kind": JSON, **GZIP}, 400, 3, "it cannot be unpacked"),
    ({"body": CUT, "kind": JSON, **GZIP}, 400, 3, "the packed data is cut off"),
    ({"body": b"{}", "kind": JSON, "path": "/v1/other"}, 404, 5, "/v1/other is not served"),
    ({"body": b"{}", "kind": JSON, "method": "PUT"}, 405, 12, "PUT is not supported, only POST"),
    ({"body": BIG, "kind": PROTOBUF}, 413, 8, "the body has 70000 bytes, more than 65536"),
    ({"body": [b" " * 40_000] * 2, "kind": JSON}, 413, 8, "it has more than 65536 bytes"),
    ({"body": gzip.compress(BIG, mtime=0), "kind": PROTOBUF, **GZIP}, 413, 8, "more than 65536"),
    ({"body": zlib.compress(BIG), "kind": JSON, "Content_Encoding": "deflate"}, 413, 8, "than 65536"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "status", "code", "words"), ERRORS, ids=lambda one: str(one)[:30])
async def test_errors_say_why_in_the_encoding_of_the_request(
    receiver: Receiver,
    request_: dict[str, object],
    status: int,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiver_module, "BODY_BYTES", LIMIT)
    sent = await send(receiver, **request_)  # type: ignore[arg-type]
    assert sent.status == status
    if request_["kind"] == PROTOBUF:
        told = status_pb2.Status.FromString(sent.body)
        assert told.code == code
        assert words in told.message
    else:
        assert sent.json["code"] == code
        assert words in str(sent.json["message"])
    batch = await receiver.poll("x")
    assert batch.skip_count == 1
    assert f"a request was refused ({status}): " in batch.skipped[0].why
    assert (await send(receiver, export(SPAN))).status == 200


@pytest.mark.parametrize("limit", ["MOST_WAITING", "WAITING_BYTES"])
async def test_too_much_is_refused(receiver: Receiver, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(receiver_module, limit, 1)
    assert (await send(receiver, export(SPAN))).status == 200
    sent = await send(receiver, export(SPAN))
    assert (sent.status, sent.headers["retry-after"], sent.json["code"]) == (503, "2", 14)
    batch = await receiver.poll("x")
    assert (len(batch.spans), batch.skip_count) == (1, 0)
    assert (await send(receiver, export(SPAN))).status == 200


async def test_bytes_that_are_not_http_get_an_error(receiver: Receiver) -> None:
    assert b"400 Bad Request" in await raw(receiver, b"hello\r\n\r\n")
    assert b"HTTP/1.1 4" in await raw(receiver, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"HTTP/1.1 431" in await raw(receiver, b"POST /v1/traces HTTP/1.1\r\nX: " + b"x" * 40_000)
    assert await raw(receiver, b"") == b""
    assert await raw(receiver, HEAD + b"\r\n{")
    assert (await send(receiver, export(SPAN))).status == 200


async def test_a_sender_gets_100_continue_and_a_connection_carries_many_requests() -> None:
    async with listening() as receiver:
        reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
        writer.write(HEAD + b"Expect: 100-continue\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(b"{}")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()
    request = HEAD + b"\r\n{}"
    async with listening() as receiver:
        assert (await raw(receiver, request * 5)).count(b"HTTP/1.1 200 OK") == 5


async def test_the_receiver_listens_on_loopback_and_says_so(receiver: Receiver) -> None:
    note = (await receiver.poll("x")).note
    assert note == f"listens at http://127.0.0.1:{receiver.port}, for this machine only"
    again = Receiver(f"127.0.0.1:{receiver.port}")
    with pytest.raises(SourceUnreachable, match="the address is in use, perhaps by another jobtui"):
        await again.poll(None)
    await again.aclose()
    everywhere = Receiver("0.0.0.0:0")
    batch = await everywhere.poll(None)
    assert "anybody who reaches this machine may send" in str(batch.note)
    await everywhere.aclose()
    with pytest.raises(SourceError, match="is closed"):
        await everywhere.poll(None)
    nowhere = Receiver("192.0.2.1:4318")
    with pytest.raises((SourceMissing, SourceDenied), match=r"192\.0\.2\.1:4318: cannot listen there"):
        await nowhere.poll(None)
    await nowhere.aclose()


@pytest.mark.parametrize(("host", "listens_at", "is_refused"), ROWS["names of this host"])
def test_other_names_are_refused(
    host: str, listens_at: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "this-host")
    with pytest.raises(Refusal) if is_refused else nullcontext():
        refuse_browsers({"host": host}, listens_at)


async def test_a_new_connection_replaces_an_idle(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "GIVES_WAY_S", 0.0)
    monkeypatch.setattr(receiver_module, "MOST_CONNECTIONS", 5)
    silent = [await asyncio.open_connection("127.0.0.1", receiver.port) for _ in range(20)]
    for _, writer in silent[::2]:
        writer.write(b"POST /v1/traces HT")
    assert (await send(receiver, export(SPAN))).status == 200
    assert receiver.connections <= 5
    for _, writer in silent:
        writer.close()


async def test_one_too_many_is_turned_away(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "MOST_CONNECTIONS", 2)
    held = [await asyncio.open_connection("127.0.0.1", receiver.port) for _ in range(2)]
    await wait_until(lambda: receiver.connections == 2)
    assert await raw(receiver, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") == b""
    for _, writer in held:
        writer.close()
    await wait_until(lambda: receiver.connections == 0)
    assert (await send(receiver, export(SPAN))).status == 200


@pytest.mark.parametrize("limit", ["SILENCE_S", "REQUEST_S"])
async def test_slow_senders_are_cut(receiver: Receiver, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, limit, 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
    await wait_until(lambda: receiver.connections == 1)

    async def drip() -> None:
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.01)

    dripping = asyncio.create_task(drip()) if limit == "REQUEST_S" else None
    await wait_until(lambda: receiver.connections == 0)
    if dripping is not None:
        dripping.cancel()
    assert receiver.held_bytes == 0
    writer.close()
    del reader


async def test_all_bodies_are_bounded(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "HELD_BYTES", 100_000)
    first, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    writer.write(HEAD.replace(b": 2", b": 90001") + b"\r\n" + b" " * 90_000)
    await wait_until(lambda: receiver.held_bytes == 90_000)
    sent = await send(receiver, b" " * 60_000, JSON)
    assert (sent.status, sent.headers["retry-after"]) == (503, "2")
    writer.close()
    await wait_until(lambda: receiver.held_bytes == 0)
    assert (await send(receiver, export(SPAN))).status == 200
    del first


async def test_a_compression_bomb_is_refused_before_it_is_unpacked(receiver: Receiver) -> None:
    inner = gzip.compress(b"\0" * (70 << 20), 1)
    assert (await send(receiver, b"{}")).status == 200
    before = sending.resident_kb()
    for kind in (PROTOBUF, JSON):
        assert (await send(receiver, inner, kind, Content_Encoding="gzip")).status == 413
    assert receiver.held_bytes == 0
    assert sending.resident_kb() - before < 4 * receiver_module.BODY_BYTES >> 10


@settings(max_examples=15)
@given(st.lists(st.binary(max_size=200), max_size=4))
def test_no_bytes_on_the_wire_make_it_fail(pieces: list[bytes]) -> None:
    async def ask() -> None:
        async with listening() as receiver:
            await raw(receiver, *pieces)
            assert (await send(receiver, export(SPAN))).status == 200

    asyncio.run(ask())


async def test_the_receiver_ends_at_once_while_senders_are_connected() -> None:
    receiver = Receiver("127.0.0.1:0")
    await receiver.poll(None)
    _, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    writer.write(b"POST /v1/traces HTTP/1.1\r\n")
    await wait_until(lambda: receiver.connections)
    await receiver.aclose()
    await receiver.aclose()
    assert receiver.connections == 0
    writer.close()


async def whole(path: Path) -> list[Batch]:
    source = TraceFile(path)
    batches = await polled(source)
    await source.aclose()
    return batches


@pytest.mark.parametrize("name", ["job-fail.otlp.pb", "job-fail.otlp.json", "job-fail.jaeger.json"])
async def test_a_file_of_any_kind_is_read_once_until_it_changes(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes((CAPTURES / name).read_bytes())
    source = TraceFile(path)
    cursor, (batch,) = await read_on(source)
    assert (len(batch.spans), batch.count, batch.skip_count) == (29, 29, 0)
    cursor, (again,) = await read_on(source, cursor)
    assert (again.spans, again.count) == ((), 0)
    os.utime(path, ns=(1, 1))
    (changed,) = await polled(source, cursor)
    await source.aclose()
    assert len(changed.spans) == 29


@pytest.mark.parametrize("piece_bytes", [1, 100, 1_000, 1 << 20])
@pytest.mark.parametrize("end", [b"", b"\n", b'\n{"resourceSpans": [{"sc'])
async def test_lines_are_read_in_pieces_of_any_size(piece_bytes: int, end: bytes, tmp_path: Path) -> None:
    document = (CAPTURES / "node-sdk.otlp.json").read_bytes().strip()
    path = tmp_path / "spans.jsonl"
    path.write_bytes(b"\n".join([document] * 7) + end)
    source = TraceFile(path, piece_bytes)
    cursor, batches = await read_on(source)
    assert sum(len(batch.spans) for batch in batches) == 21
    assert sum(batch.skip_count - batch.recovered for batch in batches) == (len(end) > 1)
    (again,) = await polled(source, cursor)
    await source.aclose()
    assert (again.spans, again.skip_count, again.recovered) == ((), 0, 0)


async def test_an_unreadable_trace_file_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceMissing, match="no such file"):
        await whole(tmp_path / "none")
    with pytest.raises(SourceError, match="is a directory"):
        await whole(tmp_path)
    monkeypatch.setattr("jobtui.backends.traces.files.LARGEST_BYTES", 10)
    with pytest.raises(SourceError, match="is larger than"):
        await whole(CAPTURES / "job-fail.otlp.json")


def lines_of_spans(count: int, name: str = "") -> bytes:
    span = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%s","spanId":"%016x","name":"%s"}]}]}]}'
    return "".join(f"{span % ('ab' * 16, number, name)}\n" for number in range(1, count + 1)).encode()


async def test_a_packed_file_is_read_in_pieces_and_a_torn_one_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl.gz"
    packed = gzip.compress(lines_of_spans(300)) + gzip.compress(lines_of_spans(400))
    path.write_bytes(packed)
    file = TraceFile(path, piece_bytes=2_000)
    batch = await file.poll(None)
    await file.aclose()
    assert (len(batch.spans), batch.skip_count, batch.more) == (700, 0, False)
    path.write_bytes(packed[: len(packed) // 3])
    (torn,) = await whole(path)
    assert 0 < len(torn.spans) < 400
    assert "the rest is left out" in torn.skipped[0].why


@pytest.mark.parametrize("text", [lines_of_spans(300, "x" * 9_000), b" " * (3 << 20) + lines_of_spans(1)])
async def test_a_trace_file_that_unpacks_to_too_much_is_cut(
    text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobtui.backends.traces.files.PACKED_BYTES", 1 << 20)
    path = tmp_path / "spans.jsonl.gz"
    path.write_bytes(gzip.compress(text))
    (batch,) = await whole(path)
    assert "unpacks to more than 1 MiB: the rest is left out; unpack it" in batch.skipped[0].why
    assert len(batch.spans) < 250
