"""Asking a server of traces: one GET at a time, and everything that is no answer told apart in one line.

Redirections are not followed, as a login would be sent along. httpx is imported when the first question is
asked.
"""

import asyncio
import json
import re
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.finishing import Finishing
from jobtui.backends.http_body import body_of
from jobtui.backends.http_reason import reason_of
from jobtui.backends.traces.login import login_headers
from jobtui.formats.telemetry import Document, decoded
from jobtui.model.access import NO_ACCESS, Access
from jobtui.model.secrets import mask_text

if TYPE_CHECKING:
    import httpx

CONNECT_S = 5.0
SILENCE_S = 20.0
"""No answer for so long is none."""
CONNECTIONS = 4
MOST_BYTES = 256 << 20
"""An answer larger than this is refused."""
LARGE_BYTES = 1 << 16
"""A body from this size on is decoded in a thread."""
SAID_CHARACTERS = 200
GO = "check the address: perhaps the path it is served at is missing, such as /{kind}"

Params = Sequence[tuple[str, str]]

_LOGIN = re.compile(r"log-?\s?in|sign-?\s?in|sso\b|saml|oauth|openid|password", re.IGNORECASE)

FAILURES = (
    (
        "ConnectTimeout",
        "",
        f"no answer within {CONNECT_S:g} s; check that {{host}} is up and no firewall between",
    ),
    ("TimeoutException", "", f"no answer within {SILENCE_S:g} s; check its load, or ask for less"),
    (
        "HTTPError",
        "CERTIFICATE|certificate",
        "its certificate is not trusted ({told}); name its authority: --ca-file FILE",
    ),
    ("ConnectError", "name|resolv|getaddrinfo", "no host is called {host}; check the name"),
    ("ConnectError", "", "cannot be connected to ({told}); check that it runs, or open a tunnel to it"),
    (
        "RemoteProtocolError",
        "without sending a response",
        "it hung up without an answer; if it speaks TLS, write https://",
    ),
    ("RemoteProtocolError", "peer closed|incomplete", "the answer broke off half-way; ask again"),
    ("DecodingError", "", "the answer cannot be unpacked ({told})"),
    ("Exception", "", "the connection broke off ({told})"),
)
"""What httpx raises (the name of a class), what is said (a pattern), and the line to show."""

BUSY: Mapping[int, str] = {
    429: "is asked too much (429): wait a while",
    502: "the proxy before it does not reach it (502)",
    503: "is not ready (503): it starts, or is too busy",
    504: "the proxy before it got no answer (504)",
}


class Refused(SourceError):
    """The server is there and does not want to answer this question."""


class Answer(NamedTuple):
    """What a server answered: the status, the document when it is JSON, the body, and what it is called."""

    status: int
    document: Document | None
    body: bytes
    kind: str

    @property
    def is_page(self) -> bool:
        """Whether it is a page for people."""
        return "html" in self.kind or self.body.lstrip()[:1] == b"<"


class TraceServer:
    """One server. `product` is how it is called; `transport` is instead of the network, for tests."""

    def __init__(
        self,
        url: str,
        product: str,
        access: Access = NO_ACCESS,
        transport: "httpx.AsyncBaseTransport | None" = None,
    ) -> None:
        self.name = url.rstrip("/")
        self.product = product
        self._access = access
        self._transport = transport
        self._client: httpx.AsyncClient | None = None
        self._requests = Finishing(CONNECTIONS)
        self._is_closed = False

    async def ask(self, path: str, params: Params = ()) -> Answer:
        """The answer to a question, also that there is nothing (404) or what is wrong with it (400).

        Raises SourceError for all others.
        """
        return await self._requests.run(lambda: self._asked(path, params))

    async def _asked(self, path: str, params: Params) -> Answer:
        import httpx

        client = self._open()
        headers = login_headers(self._access, self.name)
        try:
            async with client.stream("GET", self.name + path, params=list(params), headers=headers) as got:
                body = await body_of(got, self.name, MOST_BYTES)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise self._fault(error) from error
        kind = got.headers.get("content-type", "").partition(";")[0].strip().lower()
        if got.status_code not in (200, 400, 404, 500, 501):
            raise self._refusal(got.status_code, got.headers.get("location", ""), body)
        return await self._read(got.status_code, kind, body)

    async def _read(self, status: int, kind: str, body: bytes) -> Answer:
        """Jaeger labels what it says in JSON as text, so that the label tells nothing."""
        try:
            if len(body) < LARGE_BYTES:
                document = decoded(body)
            else:
                document = await asyncio.to_thread(decoded, body)
        except ValueError:
            return Answer(status, None, body, kind)
        return Answer(status, document if isinstance(document, dict) else None, body, kind)

    def document(self, answer: Answer) -> Document:
        """The document of an answer that must have one. Raises SourceError."""
        if answer.status == 200 and answer.document is not None:
            return answer.document
        raise self.no_document(answer)

    def no_document(self, answer: Answer) -> SourceError:
        """What an answer is that is none."""
        go = GO.format(kind=self.product.lower())
        if answer.is_page:
            if answer.status == 200 and _LOGIN.search(answer.body[:MOST_PAGE].decode("utf-8", "replace")):
                return SourceDenied(f"{self.name}: answers with a login page; {self._how_to_log_in}")
            return SourceMissing(f"{self.name}: answers with a web page and not with traces; {go}")
        if answer.status in (404, 501):
            return SourceMissing(f"{self.name}: there is no {self.product} there ({answer.status}); {go}")
        if answer.status in (400, 500):
            return Refused(f"{self.name}: refused what was asked ({answer.status}): {said(answer)}")
        if not answer.body.strip():
            return SourceUnreachable(f"{self.name}: answered with nothing; {go}")
        if _is_cut_off(answer.body):
            return SourceUnreachable(
                f"{self.name}: the answer broke off half-way, after {len(answer.body)} bytes; ask again"
            )
        kind = mask_text(answer.kind[:50]) or "something unnamed"
        return SourceMissing(f"{self.name}: answers with {kind} and not with JSON ({said(answer)}); {go}")

    async def aclose(self) -> None:
        """Let go of all connections. May be called twice."""
        self._is_closed = True
        await self._requests.aclose()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _open(self) -> "httpx.AsyncClient":
        import httpx

        if self._is_closed:
            raise SourceError(f"{self.name}: is closed")
        if self._client is None:
            self._client = httpx.AsyncClient(
                transport=self._transport,
                verify=self._verify(),
                timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S, pool=None),
                follow_redirects=False,
                headers={"User-Agent": "jobtui", "Accept": "application/json"},
                limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
            )
        return self._client

    def _verify(self) -> ssl.SSLContext | bool:
        """By whom the server is vouched for. Reading the authorities of the system takes 20 ms."""
        if not self.name.startswith("https:"):
            return False
        if not self._access.ca_file:
            return True
        try:
            return ssl.create_default_context(cafile=self._access.ca_file)
        except OSError as error:
            why = error.strerror or "it holds no certificate"
            raise SourceDenied(f"{self._access.ca_file}: cannot be used as ca_file: {why}") from error

    def _refusal(self, status: int, location: str, body: bytes) -> SourceError:
        if status in (401, 407):
            return SourceDenied(f"{self.name}: {self._no_login(status, body)}")
        if status == 403:
            return SourceDenied(f"{self.name}: the login may not read traces there (403)")
        if status < 400:
            return self._sent_elsewhere(status, location)
        if status in BUSY:
            return SourceUnreachable(f"{self.name}: {BUSY[status]}")
        return SourceUnreachable(f"{self.name}: failed ({status}): {in_words(body)}")

    def _no_login(self, status: int, body: bytes) -> str:
        told = "" if b"<" in body or not body.strip() else f", it says: {in_words(body)}"
        if self._access.has_login:
            return f"the login is refused ({status}{told}): it may have expired; {self._how_to_log_in}"
        return f"a login is wanted ({status}{told}); {self._how_to_log_in}"

    @property
    def _how_to_log_in(self) -> str:
        kind = self.product.upper()
        return f"put a login into [servers] of the configuration file, or into JOBTUI_{kind}_BEARER"

    def _sent_elsewhere(self, status: int, location: str) -> SourceError:
        parts = urlsplit(location)
        to = in_words(
            f"{parts.scheme}://{parts.hostname}{parts.path}".encode()
            if parts.hostname
            else parts.path.encode()
        )
        if _LOGIN.search(f"{parts.hostname or ''}{parts.path}"):
            return SourceDenied(f"{self.name}: sends to a login page ({to}); {self._how_to_log_in}")
        return SourceMissing(f"{self.name}: sends elsewhere ({status}), to {to}; give that address")

    def _fault(self, error: Exception) -> SourceError:
        told = in_words(reason_of(error).encode("utf-8", "replace"))
        kinds = {kind.__name__ for kind in type(error).__mro__}
        fits = (line for kind, what, line in FAILURES if kind in kinds and re.search(what, told, re.I))
        host = ""
        with suppress(ValueError):
            host = urlsplit(self.name).hostname or ""
        values = {"host": host, "told": told or type(error).__name__}
        return SourceUnreachable(f"{self.name}: {next(fits).format_map(values)}")


MOST_PAGE = 20_000
"""How much of a page is looked at for a login."""


def _is_cut_off(body: bytes) -> bool:
    """Whether a document begins and does not end."""
    text = body.lstrip()
    if text[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(text.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return error.pos >= len(error.doc.rstrip()) - len("false") or "Unterminated" in error.msg
    except RecursionError:
        return False
    return False


def said(answer: Answer) -> str:
    """What a server says in an answer, for a person."""
    for keys in (("error", "message"), ("message",), ("error",)):
        value: object = answer.document
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return in_words(value.encode("utf-8", "replace"))
    errors = (answer.document or {}).get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return in_words(str(errors[0].get("msg", "")).encode("utf-8", "replace"))
    return in_words(answer.body)


def in_words(body: bytes) -> str:
    """The beginning of a text in one line, without what is secret."""
    text = mask_text(re.sub(r"<[^>]*>", " ", body[:MOST_PAGE].decode("utf-8", "replace")))
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(shown.split())[:SAID_CHARACTERS] or "nothing"
