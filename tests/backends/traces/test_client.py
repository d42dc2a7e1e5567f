"""What a server says instead of a trace, each with its own line; what is sent with it, and never shown."""

import gzip
import json
import re
from base64 import b64encode
from pathlib import Path

import httpx
import pytest

from jobtui.backends.traces.client import TraceServer
from jobtui.backends.traces.jaeger import Jaeger
from jobtui.backends.traces.tempo import Tempo
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.ids import TraceId
from jobtui.model.specs import NO_ACCESS, Access, Window
from jobtui.model.traces import TraceList, TraceSearch
from tests.carried import carried, timed
from tests.jaeger_server import Jaeger as JaegerServer
from tests.tempo_server import Tempo as TempoServer
from tests.trace_servers import ID, JSON, TEXT, Answer, Site, Spans

FAILED = TraceId(ID["job-fail"])
HOUR = 3_600 * SECOND
URL = "http://traces.test"
SECRET = "s3cr3t-t0k3n-of-an-operator"
OTHER_PAGE = b"<!doctype html><html><head><title>Welcome to nginx</title></head></html>"
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
    return carried(TraceServer(f"{URL}{site.base}", product, access), httpx.MockTransport(site.answer))


def jaeger(site: Site, access: Access = NO_ACCESS) -> Jaeger:
    return Jaeger(asked(site, "Jaeger", access))


REPLIES = [
    (Answer(404, OTHER_PAGE, "text/html"), SourceMissing, "answers with a web page"),
    (Answer(401, b"no org id", TEXT), SourceDenied, "a login is wanted (401, it says: no org id)"),
    (Answer(200, b"[1, 2]", JSON), SourceMissing, "not with what Jaeger says ([1, 2])"),
    (Answer(200, b"\x0a\x00\xff", "application/grpc"), SourceMissing, "answers with application/grpc"),
    (Answer(500, json.dumps({"error": {"message": "storage is gone"}}).encode()), SourceError,
     "refused what was asked (500): storage is gone"),
    (Answer(418, b"a teapot", TEXT), SourceUnreachable, "failed (418): a teapot"),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "kind", "words"), REPLIES, ids=lambda one: str(one)[:40])
async def test_every_answer_that_is_none_is_told_apart(
    site: Site, reply: Answer, kind: type[SourceError], words: str
) -> None:
    site.instead = reply
    error = await told(jaeger(site))
    assert type(error) is kind or kind is SourceError
    assert words in str(error)
    assert str(error).startswith(URL)


async def test_without_the_path_it_is_served_at_that_is_said(site: Site) -> None:
    elsewhere = carried(TraceServer(URL, "Jaeger"), httpx.MockTransport(site.answer))
    error = await told(Jaeger(elsewhere))
    assert "the path it is served at is missing, such as /jaeger" in str(error)


async def test_names_have_a_lower_limit_than_traces_and_it_is_said(site: Site) -> None:
    server = jaeger(site)
    await server.services()
    padded = b" " * (9 << 20) + WHOLE
    site.instead = Answer(200, gzip.compress(padded), JSON, {"Content-Encoding": "gzip"})
    assert await server.trace(TraceId(ID["job-fail"])) is not None
    await server.aclose()
    assert "an answer is refused: it has more than 8 MiB" in str(await told(jaeger(site)))


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
    source = timed(Tempo(asked(site, "Tempo"), Window(since=Nanos(0))), clock)
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


async def test_a_token_in_a_file_is_read_anew(site: Site, tmp_path: Path) -> None:
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
    with pytest.raises(SourceMissing, match="is not there"):
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
