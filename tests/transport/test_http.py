"""Requests go on to their end, and servers that misbehave cost each client a clear line in time."""

import asyncio
import gzip
import json
import re
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from email.utils import formatdate
from functools import partial
from html import escape
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

import httpx
import pytest

from jobtui.backends.balsam import login
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.login import LoginServer
from jobtui.backends.balsam.records import JobRow
from jobtui.backends.elastic.client import ElasticClient
from jobtui.backends.engine import Doubts, RowQuery
from jobtui.backends.fetchlog import FetchLog
from jobtui.backends.journal.gatewayd import GatewayJournal
from jobtui.backends.loki import LokiEngine
from jobtui.backends.loki import parse as parse_loki
from jobtui.backends.traces.client import TraceServer
from jobtui.backends.traces.jaeger import Jaeger
from jobtui.backends.traces.tempo import Tempo
from jobtui.formats.json_values import as_dict, decoded
from jobtui.model.health import SourceDenied, SourceError, SourceUnreachable
from jobtui.model.job_reader import Unreadable
from jobtui.model.journal import Begin
from jobtui.model.specs import Access
from jobtui.model.traces import TraceSearch
from jobtui.transport.http import HttpLimits, Requests
from tests.backends.journal.answering import Answer, answering, raw, reply, self_signed
from tests.loopback import Client, carried, response
from tests.offenders import each
from tests.waiting import LONG_S, stop, wait_until


async def test_cancel_lets_running_requests_end_and_drops_the_waiting() -> None:
    requests, gate = Requests(2), asyncio.Event()
    begun: list[int] = []
    ended: list[int] = []

    async def ask(number: int) -> int:
        begun.append(number)
        await gate.wait()
        ended.append(number)
        return number

    askers = [asyncio.create_task(requests.run(partial(ask, n))) for n in range(4)]
    await wait_until(lambda: begun == [0, 1])
    for asker in askers:
        asker.cancel()
    await asyncio.gather(*askers, return_exceptions=True)
    gate.set()
    await wait_until(lambda: ended == [0, 1])
    assert await requests.run(lambda: ask(4)) == 4
    assert begun == [0, 1, 4]


async def test_closing_cancels_the_running_requests() -> None:
    requests = Requests(1)
    asker = asyncio.create_task(requests.run(asyncio.Event().wait))
    await asyncio.sleep(0)
    await requests.aclose()
    await requests.aclose()
    with pytest.raises(asyncio.CancelledError):
        await asker


async def test_an_answer_is_read_to_its_end_when_its_caller_is_gone() -> None:
    is_asked, may_answer, is_heard = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        is_asked.set()
        await may_answer.wait()
        is_heard.set()
        return httpx.Response(200, content=b'{"hits": {"hits": []}}')

    async with aclosing(carried(ElasticClient("http://elastic.test/scripts"), answer)) as client:
        asker = asyncio.ensure_future(client.search({}))
        async with asyncio.timeout(LONG_S):
            await is_asked.wait()
            await stop(asker)
            may_answer.set()
            await is_heard.wait()
            await client.search({})


SECRET = 's3cr3t:t0k3n/of+an&oper"ator%41='
BASIC = b64encode(f"ann:{SECRET}".encode()).decode()
WRITTEN = {SECRET, json.dumps(SECRET)[1:-1], escape(SECRET), *(quote(SECRET, safe) for safe in ("", "/:"))}
HEADER = re.compile(rb"(?im)^authorization: (?:\w+ )?(\S+)")


def passwords(asked: bytes) -> bytes:
    """What a server finds in a request that logs in with a password."""
    basic = re.findall(rb"(?i)basic (\S+)", asked)
    return b" ".join((*map(b64decode, basic), *map(unquote_to_bytes, re.findall(rb"&password=(\S+)", asked))))


def in_all_ways(asked: bytes) -> bytes:
    """The secret of a login, where there was one, in the ways in which answers write texts."""
    return " ".join(sorted(WRITTEN)).encode() if HEADER.search(asked) or passwords(asked) else b"no"


LIMITS = HttpLimits(connections=2, body_bytes=1 << 20)
JSON = "application/json"
PAGE = b"<!doctype html><title>Sign in</title><form action=/login>Password</form>"
BOMB = gzip.compress(b" " * (64 << 20), 1)


def limited(client: Client) -> Client:
    return carried(client, limits=LIMITS)


async def jaeger(url: str, access: Access | None = None) -> None:
    source = Jaeger(limited(TraceServer(url, "Jaeger", access or Access(bearer=SECRET))))
    async with aclosing(source):
        await source.services()


async def tempo(url: str) -> None:
    async with aclosing(Tempo(limited(TraceServer(url, "Tempo", Access(bearer=SECRET))))) as source:
        await source.search(TraceSearch())


async def ask_elastic(url: str) -> None:
    login = Access(user="ann", password=SECRET)
    async with aclosing(limited(ElasticClient(f"{url}/scripts", login))) as client:
        await client.search({})


async def ask_balsam(url: str) -> None:
    async with aclosing(limited(BalsamClient(url, lambda: SECRET))) as client:
        async for _ in client.pages("/jobs/", JobRow, {}):
            pass


async def balsam_login(url: str) -> None:
    # it asks outside of any event loop
    await asyncio.to_thread(LoginServer(url).by_password, "ann", lambda: SECRET)


async def gatewayd(url: str) -> None:
    async with aclosing(limited(GatewayJournal(url))) as journal:
        await journal.forward(Begin(), (), 5)


async def loki(url: str) -> None:
    spec = parse_loki(url)._replace(access=Access(bearer=SECRET))
    async with aclosing(limited(LokiEngine(spec, Doubts()))) as engine:
        await engine.rows(RowQuery(None, None, ()))


async def ask_fetchlog(url: str) -> None:
    async with aclosing(limited(FetchLog(url, Access(bearer=SECRET)))) as server:
        try:
            await server.list_files(f"{url}/job/1.0@schedd.example.org")
        except Unreadable as error:
            raise SourceUnreachable(f"{url}: {error}") from error


Ask = Callable[[str], Awaitable[None]]
CLIENTS: tuple[Ask, ...] = (
    jaeger, tempo, ask_elastic, ask_balsam, loki, balsam_login, gatewayd, ask_fetchlog,
)  # fmt: skip


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {JSON}", *lines, "", ""]).encode()


def dribbling(fast: bytes, slow: bytes) -> Answer:
    """Some bytes at once, then one at a time without end."""

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(fast)
        at = 0
        while True:
            writer.write(slow[at % len(slow) :][:1])
            at += 1
            await writer.drain()
            await asyncio.sleep(0.01)

    return answer


def endless(first: bytes, again: bytes) -> Answer:
    """These bytes, and then others over and over as fast as they are taken."""

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(again)
            await writer.drain()

    return answer


def packed(body: bytes, packing: str) -> Answer:
    return raw(head(f"Content-Encoding: {packing}", f"Content-Length: {len(body)}") + body)


NOT_WHOLE = "no complete answer within 1 s"
WRONG: dict[str, tuple[Answer, str]] = {
    "says nothing": (raw(b"", hangs=True), "no answer within 0.5 s"),
    "dribbles in the head": (dribbling(b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n"), NOT_WHOLE),
    "dribbles in the body": (dribbling(head("Content-Length: 99999"), b" "), NOT_WHOLE),
    "dribbles in chunks": (dribbling(head("Transfer-Encoding: chunked"), b"1\r\n \r\n"), NOT_WHOLE),
    "dribbles in an error": (dribbling(head("Content-Length: 99", status="500 Oops"), b" "), NOT_WHOLE),
    "has endless headers": (endless(b"HTTP/1.1 200 OK\r\n", b"x-a: " + b"b" * 500 + b"\r\n"), "was lost"),
    "says 100 Continue without end": (dribbling(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), NOT_WHOLE),
    "hangs up": (raw(b""), "closed the connection without an answer; if it speaks TLS, write https://"),
    "speaks something else": (raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "the connection was lost"),
    "breaks off in the body": (raw(head("Content-Length: 99") + b'{"a":'), "ended half-way; ask again"),
    "breaks off in a chunk": (raw(head("Transfer-Encoding: chunked") + b"ff\r\n{"), "ended half-way"),
    "redirects to a login": (
        reply("302 Found", Location=f"https://sso.example/login?next={SECRET}"),
        "redirects to a login page (https://sso.example/login)",
    ),
    "wants a login": (reply("401 Unauthorized"), "(401)"),
    "quotes a login": (lambda *asked: reply("402 No", b" ".join(HEADER.findall(asked[0])))(*asked), "(402)"),
    "prints a password": (lambda *asked: reply("402 No", passwords(asked[0]))(*asked), "(402)"),
    "writes a login in all ways": (lambda *asked: reply("402 No", in_all_ways(asked[0]))(*asked), "(402)"),
    "says that a login is odd": (lambda *asked: reply("400 No", in_all_ways(asked[0]))(*asked), "(400)"),
    "sends a password on": (
        lambda *asked: reply("307 On", Location="/for/" + passwords(asked[0]).decode())(*asked),
        "redirects (307)",
    ),
    "forbids it": (reply("403 Forbidden"), "forbidden (403)"),
    "is not there": (reply("404 Not Found", b"nothing"), "(404)"),
    "is asked too much": (reply("429 Slow down", Retry_After="70"), "requests (429): wait 70 s"),
    "names a date": (
        reply("429 Slow down", Retry_After=formatdate(time.time() + 3_650, usegmt=True)),
        "requests (429): wait ",
    ),
    "is not ready": (reply("503 Unavailable", Retry_After="soon"), "is not ready (503)"),
    "answers with a login page": (reply("200 OK", PAGE, Content_Type="text/html"), "a login page"),
}
"""What a server does, and a part of the line on it."""

WRONG_JSON: dict[str, tuple[Answer, str]] = {
    "has an endless body": (endless(head("Connection: close"), b" " * 9999), "more than 1 MiB; ask for less"),
    "is small and becomes large": (packed(BOMB, "gzip"), "more than 1 MiB; ask for less"),
    "packs twice": (packed(gzip.compress(BOMB), "gzip, gzip"), "'gzip, gzip'; only gzip is accepted"),
    "packs twice in two headers": (
        packed(gzip.compress(BOMB), "gzip\r\nContent-Encoding: gzip"),
        "only gzip is accepted, and only once",
    ),
    "packs in its own way": (packed(b"x", "br"), "'br'; only gzip is accepted"),
    "packs badly": (packed(b"x" * 50, "gzip"), "cannot be unpacked"),
    "packs a half": (
        packed(gzip.compress(b"{}" * 99)[:20], "gzip"),
        "ended half-way (the packed data is cut",
    ),
    "says bytes": (reply("500 No", bytes(range(128, 256))), "(500): binary data"),
    "says nothing in its answer": (reply("200 OK"), "answered with nothing"),
    "says half a document": (reply("200 OK", b'{"a": ['), "ended half-way, after 7 bytes"),
    "says no document": (reply("200 OK", b"hello\x1b[31m", Content_Type="text/plain"), "text/plain, not"),
    "nests without end": (reply("200 OK", b"[" * 500_000), "not as "),
}
"""The same of clients that read documents."""

WRONG_PASSWORD = "no such user, or the password is wrong"


@pytest.mark.parametrize("name", [*WRONG, *WRONG_JSON])
async def test_each_wrong_answer_is_one_line_in_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, words = {**WRONG, **WRONG_JSON}[name]
    # One limit alone, so that a busy machine does not reach another one first
    short = {"no answer within 0.5 s": {"silence_s": 0.5}, NOT_WHOLE: {"whole_s": 1.0}}.get(words, {})
    for module in (login, sys.modules[__name__]):
        monkeypatch.setattr(module, "LIMITS", LIMITS._replace(**short))  # type: ignore[arg-type]

    async def told(ask: Ask) -> str:
        async with answering(answer) as url:
            with pytest.raises(SourceError) as raised:
                await asyncio.wait_for(ask(url), LONG_S / 2)
        line = str(raised.value)
        assert (WRONG_PASSWORD if (ask, name) == (balsam_login, "wants a login") else words) in line
        assert line.startswith(url)
        assert line.isprintable()
        assert not [one for one in (*WRITTEN, BASIC) if one in line]
        assert type(raised.value) is not SourceError
        return line

    clients = CLIENTS if name in WRONG else CLIENTS[:-3]
    # What takes too long is waited for together; else one by one, so that none takes the time of another
    rounds = [clients] if words.startswith("no ") else [[ask] for ask in clients]
    lines = [one for asks in rounds for one in await asyncio.gather(*map(told, asks), return_exceptions=True)]
    offenders = {ask: line for ask, line in zip(clients, lines, strict=True) if not isinstance(line, str)}
    assert not offenders


async def test_a_certificate_is_verified(tmp_path: Path) -> None:
    context, ask = self_signed(tmp_path), jaeger
    async with answering(reply("200 OK", b'{"data": []}'), context) as url:
        with pytest.raises(SourceUnreachable, match="certificate is not trusted"):
            await ask(url)
        await ask(url, Access(ca_file=str(tmp_path / "cert.pem")))
        (tmp_path / "other").mkdir()
        self_signed(tmp_path / "other")
        with pytest.raises(SourceUnreachable, match="certificate is not trusted"):
            await ask(url, Access(ca_file=str(tmp_path / "other" / "cert.pem")))
        with pytest.raises(SourceDenied, match=r"none\.pem: cannot be used as ca_file: No such file"):
            await ask(url, Access(ca_file=str(tmp_path / "none.pem")))


NINES = "9" * 5_000
ODD_VALUES = {"many digits": NINES, "half a character": '"\\ud800"', "no number": "NaN", "too large": "1e999"}


@pytest.mark.parametrize("value", ODD_VALUES.values(), ids=ODD_VALUES)
async def test_one_bad_row_costs_that_row_at_most(value: str) -> None:
    def answers(text: str) -> AbstractAsyncContextManager[str]:
        return answering(reply("200 OK", text.encode()))

    good = '{"id": 1, "state": "RUNNING", "app_id": 1, "last_update": "2026-11-20T19:31:00"}'
    odd = f'{{"id": 2, "state": {value}, "app_id": {value}, "last_update": {value}}}'
    rows = f'{{"count": 2, "results": [{good}, {odd}]}}'
    async with answers(rows) as url, aclosing(limited(BalsamClient(url, lambda: None))) as client:
        page = await client.rows("/jobs/", JobRow, {})
    assert ([row.id for row in page.rows], page.received, len(page.skips)) == ([1], 2, 1)

    hits = f'{{"hits": {{"hits": [{{"_id": "a", "_source": {good}}}, {{"_id": {value}, "x": {value}}}]}}}}'
    async with answers(hits) as url, aclosing(limited(ElasticClient(f"{url}/scripts"))) as elastic:
        found = (await elastic.search({})).hits
    assert (found[0]["_id"], len(found)) == ("a", 2)

    bad = f'{{"traceID": [{value}], "durationMs": {value}}}'
    listed = f'{{"traces": [{{"traceID": "a1", "durationMs": 5}}, {bad}]}}'
    async with answers(listed) as url, aclosing(Tempo(limited(TraceServer(url, "Tempo")))) as source:
        traces = await source.search(TraceSearch())
    assert [one.trace_id[-2:] for one in traces.traces] == ["a1"]


@each(b'{"id": "\xff\xfe"}', b'{"a": "\\ud83d\\ude00 \\\\ud800 \\ud800"}')
def test_only_invalid_text_is_repaired(data: bytes) -> None:
    text = next(iter(as_dict(decoded(data)).values()))
    assert text in ("\ufffd\ufffd", "😀 \\ud800 \ufffd")


async def test_a_login_that_no_header_may_have_is_not_shown() -> None:
    login = Access(headers=(("X-Key", f"{SECRET}\n{SECRET} b"),))
    async with answering(reply("200 OK")) as url, aclosing(ElasticClient(f"{url}/a", login)) as client:
        with pytest.raises(SourceError, match="its login, which has a line end") as raised:
            await client.ask("/a")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again_and_left_alone_while_it_says_so(status: int) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return response(200 if request.url.path == f"/{len(asked)}" else status, b"{}", {"retry-after": wait})

    client, wait = carried(ElasticClient("http://elastic.test/logs"), answer), "0"
    assert (await client.ask("/4")).body == b"{}"
    with pytest.raises(SourceUnreachable, match=rf"\({status}\)"):
        await client.ask("/1")
    assert len(asked) == 4 + 5
    wait = "70"
    for _ in range(2):
        with pytest.raises(SourceUnreachable, match=rf"\({status}\).*wait 70 s"):
            await client.ask("/1")
    assert len(asked) == 4 + 5 + 1
    client._free_at -= 70
    await client.ask("/11")
