"""What goes wrong on the way to gatewayd is one clear line that names the remedy."""

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.journal import gateway_http
from jobtui.backends.journal.gateway_questions import VALUES_ASKED, questions
from jobtui.backends.journal.gatewayd import GatewayJournal
from jobtui.model.journal import Cursor, Head, Matches, Tail
from tests.backends.journal.answering import Answer, answering, raw, reply, then_hang
from tests.backends.journal.make import entry
from tests.backends.journal.ssh_rig import free_port
from tests.waiting import LONG_S

EXPORT = "application/vnd.fdo.journal"
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: {EXPORT}\r\n".encode()
HTML = b"<html><form action=/login>Password: <input></form></html>"


async def fault_of(spec: str) -> SourceError:
    """What reading raises; one line that begins with the source."""
    journal = GatewayJournal(spec)
    try:
        with pytest.raises(SourceError) as raised:
            await asyncio.wait_for(journal.forward(Head(), (), 10), LONG_S)
    finally:
        await journal.aclose()
    text = str(raised.value)
    assert text.startswith(f"{journal.name}: ")
    assert text.isprintable()
    return raised.value


ODD: dict[str, tuple[Answer, type[SourceError], str]] = {
    "login page": (reply("200 OK", HTML, Content_Type="text/html; charset=utf-8"), SourceDenied, "ssh -N -L"),
    "sent to a login": (
        reply("302 Found", Location="https://sso.example/login?next=secret"),
        SourceDenied,
        "sends to a login page (https://sso.example/login)",
    ),
    "sent elsewhere": (
        reply("301 Moved", Location="https://ann:pw@other.example:19531/entries"),
        SourceMissing,
        "to https://other.example/entries; if gatewayd is there",
    ),
    "login wanted": (
        reply("401 Unauthorized", HTML),
        SourceDenied,
        "a login is wanted before gatewayd (401)",
    ),
    "forbidden": (reply("403 Forbidden"), SourceDenied, "forbidden (403)"),
    "not there": (reply("404 Not Found", b"Not found."), SourceMissing, "no gatewayd at this address (404)"),
    "no permission": (
        reply("500 Oops", b"Failed to open journal: Permission denied"),
        SourceDenied,
        "usermod -aG systemd-journal systemd-journal-gateway",
    ),
    "proxy": (reply("502 Bad Gateway", HTML), SourceUnreachable, "does not reach it (502)"),
    "refused": (
        reply("400 Bad", b"Failed to seek\x1b[31m in journal."),
        SourceUnreachable,
        "(400: Failed to seek",
    ),
    "something else": (reply("200 OK", b"hello", Content_Type="text/plain"), SourceMissing, "19531"),
    "half an entry": (
        raw(HEAD + b"Connection: close\r\n\r\n" + entry(0, "m")[:-20]),
        SourceUnreachable,
        "in the middle of an entry",
    ),
    "half a body": (
        raw(HEAD + b"Content-Length: 9999\r\n\r\n" + entry(0, "m")),
        SourceUnreachable,
        "broke off",
    ),
    "half a chunk": (
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\n__CURSOR=x"),
        SourceUnreachable,
        "broke off",
    ),
    "no http": (raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), SourceUnreachable, "the connection broke off"),
    "hung up": (raw(b""), SourceUnreachable, "https://"),
}


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_answer_becomes_one_line(name: str) -> None:
    answer, kind, part = ODD[name]
    async with answering(answer) as spec:
        fault = await fault_of(spec)
    assert type(fault) is kind
    assert part in str(fault), str(fault)


@pytest.mark.parametrize("data", [b"", HEAD + b"Transfer-Encoding: chunked\r\n\r\n"], ids=["head", "body"])
async def test_one_that_hangs_is_given_up(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_http.Gateway.entries, "__kwdefaults__", {"silence_s": 0.3})
    async with answering(then_hang(data)) as spec, asyncio.timeout(LONG_S):
        fault = await fault_of(spec)
    assert isinstance(fault, SourceUnreachable)
    assert "stopped answering" in str(fault)


async def test_nobody_there() -> None:
    fault = await fault_of(f"http://127.0.0.1:{free_port()}")
    assert isinstance(fault, SourceUnreachable)
    assert "connected to (Connection refused); on 127.0.0.1: systemctl status" in str(fault)


async def test_a_host_that_nobody_knows() -> None:
    assert "no host is called nowhere.invalid" in str(await fault_of("http://nowhere.invalid:19531"))


async def test_no_body_is_no_hit() -> None:
    async with answering(reply("200 OK", b"", Content_Type=EXPORT)) as spec:
        journal = GatewayJournal(spec)
        for found in (await journal.forward(Head(), (), 5), await journal.backward(Tail(), (), 5)):
            assert (found.entries, found.cursor, found.at_edge) == ((), None, True)
        await journal.aclose()


async def test_what_makes_no_sense_in_the_middle_is_counted() -> None:
    body = entry(0, "m0") + b"\x00garbage\n\xff\n\n" + entry(1, "m1")

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        kind = "application/json" if b"/machine" in head else EXPORT
        await reply("200 OK", b"{}" if b"/machine" in head else body, Content_Type=kind)(head, writer)

    async with answering(answer) as spec:
        journal = GatewayJournal(spec)
        found = await journal.forward(Head(), (), 5)
        assert [each.message for each in found.entries] == ["m0", "m1"]
        assert "made no sense" in (await journal.condition()).note
        await journal.aclose()


def self_signed(root: Path) -> ssl.SSLContext:
    """A certificate for 127.0.0.1 that nobody else signed, in `cert.pem`."""
    key, certificate = root / "key.pem", root / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=here"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl: apt-get install openssl")
async def test_a_certificate_that_nobody_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = self_signed(tmp_path)
    async with answering(reply("200 OK", entry(0, "m"), Content_Type=EXPORT), context) as spec:
        fault = await fault_of(spec)
        assert isinstance(fault, SourceUnreachable)
        assert "certificate is not trusted" in str(fault)
        assert "SSL_CERT_FILE" in str(fault)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        journal = GatewayJournal(spec)
        found = await journal.forward(Head(), (), 5)
        assert [each.message for each in found.entries] == ["m"]
        await journal.aclose()


@pytest.mark.parametrize(
    "spec",
    [
        "http://",
        "http://host:port",
        "http://host:99999",
        "ftp://host",
        "http://host/?x=1",
        "http://[::1",
        "http://a\x1b",
    ],
)
async def test_what_is_no_address_is_refused(spec: str) -> None:
    journal = GatewayJournal(spec)
    with pytest.raises(SourceError):
        await journal.forward(Head(), (), 1)
    await journal.aclose()


async def test_credentials_are_sent_and_never_shown() -> None:
    heads: list[bytes] = []

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        await reply("403 Forbidden", b"ann:hunter2 may not")(head, writer)

    async with answering(answer) as spec:
        fault = await fault_of(spec.replace("http://", "http://ann:hunter2@"))
    assert b"uthorization: Basic YW5uOmh1bnRlcjI=" in heads[0]
    assert "hunter2" not in str(fault)
    fault = await fault_of(f"http://ann:hunter2@127.0.0.1:{free_port()}")
    assert "hunter2" not in f"{fault}{fault.__cause__}"


async def nothing() -> AsyncIterator[bytes]:
    yield b""


async def test_what_is_asked() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, headers={"Content-Type": EXPORT}, content=nothing())

    journal = GatewayJournal("http://host:19531/base/", httpx.MockTransport(answer))
    await journal.forward(Head(), ((("CONTAINER_NAME", "a&b=c d+ü"), ("_HOSTNAME", "h")),), 5)
    request = asked[-1]
    assert request.method == "GET"
    assert request.url.path == "/base/entries"
    assert request.url.params.multi_items() == [("CONTAINER_NAME", "a&b=c d+ü"), ("_HOSTNAME", "h")]
    assert (request.headers["Accept"], request.headers["Range"]) == (EXPORT, "entries=:0:6")
    assert request.headers["Accept-Encoding"] == "identity"
    await journal.aclose()


def test_groups_become_as_few_questions_as_can_be() -> None:
    units: Matches = tuple((("_SYSTEMD_UNIT", f"u{n}"),) for n in range(3))
    both: Matches = ((("A", "1"), ("B", "2")),)
    assert [question.params for question in questions((*units, *both))] == [
        (("_SYSTEMD_UNIT", "u0"), ("_SYSTEMD_UNIT", "u1"), ("_SYSTEMD_UNIT", "u2")),
        (("A", "1"), ("B", "2")),
    ]
    many: Matches = tuple((("_SYSTEMD_UNIT", f"u{n}"),) for n in range(VALUES_ASKED + 1))
    assert [len(question.params) for question in questions(many)] == [VALUES_ASKED, 1]
    assert [question.params for question in questions(())] == [()]


@pytest.mark.parametrize("text", ["\udcff", chr(0xD800), "a\r\nX: y", "\0", "ü"])
async def test_no_cursor_or_value_is_more_than_itself(text: str) -> None:
    heads: list[bytes] = []

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        await reply("200 OK", b"", Content_Type=EXPORT)(head, writer)

    async with answering(answer) as spec:
        journal = GatewayJournal(spec)
        with contextlib.suppress(SourceError):
            await journal.forward(Head(), ((("A", text),),), 1)
        with contextlib.suppress(SourceError):
            await journal.fields(Cursor(text))
        await journal.aclose()
    assert not [head for head in heads if b"\nX:" in head]
