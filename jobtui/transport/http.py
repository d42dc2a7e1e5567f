"""The one HTTP client: limits, logins, TLS, and each failure in one line that says what to do.

Redirects are not followed, as a login would be sent along. Every question has a deadline for all of its
answer besides the one for its next byte. httpx is imported when the first question is asked.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import socket
import ssl
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, quote, quote_plus, unquote, urlsplit

from jobtui.model.clock import time_of_mail, to_seconds
from jobtui.model.health import KINDS, SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.numbers import read_json, whole
from jobtui.model.secret_words import MASK
from jobtui.model.secrets import mask_text
from jobtui.model.specs import NO_ACCESS, Access
from jobtui.model.tables import tables_of
from jobtui.transport.files import read_given
from jobtui.transport.unpacking import TooLarge, Unpacker, UnpackError

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Params = Sequence[tuple[str, str]]
Headers = Mapping[str, str]

REASON_CHARACTERS = 200
NOTHING = "nothing"
_REASON = re.compile(
    r'(?:"type"\s*:\s*"(\w+)"\s*,\s*)?"(?:reason|[mM]essage|msg|detail|error)"\s*:\s*("(?:[^"\\]|\\.)*")'
)
"""Where errors in JSON say why; Elasticsearch says their kind before it, and the first cause first."""
PAGE_BYTES = 20_000
"""How much is read of an answer that is not a document."""
TOKEN_BYTES = 1 << 16
AUTHORITY_BYTES = 16 << 20
LONGEST_PAUSE_S = 10.0
LONGEST_WAIT_S = 600
"""A server that asks for a longer wait is asked again after this time, as it may be back earlier."""
LONGEST_RETRY_S = 86_400
KEEP_ALIVE_S, KEEP_ALIVE_MISSES = 5, 3
READ_BYTES = 1 << 16


class Silence(SourceUnreachable):
    """No answer came in time."""


class HttpLimits(NamedTuple):
    """What one client spends on its server; times in seconds.

    `whole_s` is for all of an answer and for waiting until a connection is free. An answer larger than
    `body_bytes` is refused, it takes some times as much memory when it is decoded. A server that is busy is
    asked again after each of `pauses_s`, unless it says when.
    """

    connect_s: float = 5.0
    silence_s: float = 20.0
    whole_s: float = 60.0
    connections: int = 4
    body_bytes: int = 64 << 20
    pauses_s: tuple[float, ...] = ()


class Response(NamedTuple):
    """What a server answered. Names of headers are in lower case, `body` is unpacked."""

    status: int
    headers: Headers
    body: bytes

    def __repr__(self) -> str:
        """Without what it says, which may be a login and must not get into a traceback."""
        return f"Response({self.status})"

    @property
    def kind(self) -> str:
        """The content type, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_page(self) -> bool:
        return "html" in self.kind or self.body[:PAGE_BYTES].lstrip()[:1] == b"<"

    @property
    def is_login(self) -> bool:
        return self.is_page and _LOGIN.search(self.body[:PAGE_BYTES].decode("utf-8", "replace")) is not None


class ServerKind(NamedTuple):
    """What to say when something is wrong with one kind of server. `{host}` stands for its host.

    `explain` knows answers that only this kind gives.
    """

    product: str
    login: str
    forbidden: str
    address: str
    down: str = "check that it runs, or open a tunnel to it"
    authority: str = "--ca-file FILE"
    explain: Callable[[Response], tuple[type[SourceError], str] | None] = lambda answer: None


BUSY = frozenset({429, 503})

_LOGIN = re.compile(r"log-?\s?in|sign-?\s?in|sso\b|saml|oauth|openid|password|account", re.IGNORECASE)


class HttpClient:
    """Asks one server. `login` gives the headers that log in, for each request, as tokens are renewed;
    without it they are those of `access`.

    `is_direct` goes past proxies and notices a host that is gone while it listens.
    """

    transport: "httpx.AsyncBaseTransport | None" = None
    """What carries requests; None for the network."""

    def __init__(
        self,
        url: str,
        kind: ServerKind,
        *,
        name: str = "",
        access: Access = NO_ACCESS,
        login: Callable[[], Headers] | None = None,
        headers: Headers | None = None,
        limits: HttpLimits | None = None,
        is_direct: bool = False,
    ) -> None:
        self.url = url.rstrip("/")
        self.name = name or self.url
        self.kind = kind
        self.limits = limits or HttpLimits()
        self._login = login or (lambda: login_headers(access, self.name))
        self._headers = headers or {}
        self._ca_file = access.ca_file
        self._is_direct = is_direct
        self._http: httpx.AsyncClient | None = None
        self._requests = Requests(self.limits.connections)
        self._busy, self._free_at = "", 0.0
        """What it said when it was too busy, and until when by the monotonic clock it is not asked."""
        self._is_closed = False

    async def ask(
        self,
        path: str,
        params: Params = (),
        *,
        method: str = "GET",
        content: bytes | None = None,
        headers: Headers | None = None,
        fine: Sequence[int] = (200,),
        most_bytes: int | None = None,
    ) -> Response:
        """The answer, when its status is one of `fine`. Raises SourceError for any other.

        An answer of more than `most_bytes` is refused, too.
        """

        most = min(self.limits.body_bytes, most_bytes or self.limits.body_bytes)

        async def send() -> Response:
            response = self._response(method, path, params, content, headers or {}, self.limits.silence_s)
            async with self.deadline(), response as got:
                unpacker = Unpacker.of_body(got.headers.get("content-encoding", ""), most)
                parts: list[bytes] = []
                async with contextlib.aclosing(_pieces(got)) as pieces:
                    async for piece in pieces:
                        parts.extend(unpacker.feed(piece))
                unpacker.end()
                return Response(got.status_code, dict(got.headers), b"".join(parts))

        if time.monotonic() < self._free_at:
            raise SourceUnreachable(self._busy)
        async with self.deadline():
            for pause_s in (*self.limits.pauses_s, None):
                answer = await self._requests.run(send)
                if answer.status in fine:
                    return answer
                wait_s = _seconds_in(answer.headers.get("retry-after")) if answer.status in BUSY else None
                if answer.status not in BUSY or pause_s is None or (wait_s or 0) > LONGEST_PAUSE_S:
                    break
                await asyncio.sleep(pause_s if wait_s is None else wait_s)
        is_form = (headers or {}).get("Content-Type", "").endswith("form-urlencoded")
        refusal = self.refusal(answer, content or b"" if is_form else b"")
        if wait_s:
            self._busy, self._free_at = str(refusal), time.monotonic() + min(wait_s, LONGEST_WAIT_S)
        raise refusal

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, params: Params, headers: Headers, silence_s: float | None = None
    ) -> AsyncIterator[tuple[Response, AsyncGenerator[bytes, None]]]:
        """The head of an answer and its body in pieces, as they come. Raises SourceError."""
        silence_s = self.limits.silence_s if silence_s is None else silence_s
        async with self._response("GET", path, params, None, headers, silence_s) as got:
            pieces = _pieces(got)
            async with contextlib.aclosing(pieces):
                head = Response(got.status_code, dict(got.headers), b"")
                if head.status >= 300:
                    raise await self.refused(head, pieces)
                yield head, pieces

    async def messages(self, path: str, params: Params, headers: Headers) -> AsyncGenerator[bytes, None]:
        """Messages of a WebSocket, first an empty one when it is open. Raises SourceError, also at an end."""
        from wsproto.utilities import generate_accept_token, generate_nonce

        key = generate_nonce()
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        sent = {**headers, **upgrade, "Sec-WebSocket-Key": key.decode()}
        async with self._response("GET", path, params, None, sent, self.limits.silence_s) as got:
            head = Response(got.status_code, dict(got.headers), b"")
            accepted = head.headers.get("sec-websocket-accept") == generate_accept_token(key).decode()
            if head.status != 101 or not accepted:
                raise await self.refused(head, _pieces(got))
            yield b""
            async with contextlib.aclosing(_messages(got.extensions["network_stream"], self.limits)) as wire:
                async for message in wire:
                    yield message
        raise SourceUnreachable(f"{self.name}: it ended the stream")

    async def refused(self, head: Response, pieces: AsyncIterator[bytes]) -> SourceError:
        """What an unwanted answer means, of which only the head is read."""
        data = b""
        async with self.deadline():
            async for piece in pieces:
                data += piece
                if len(data) >= PAGE_BYTES:
                    break
        return self.refusal(head._replace(body=data[:PAGE_BYTES]))

    @contextlib.asynccontextmanager
    async def _response(
        self,
        method: str,
        path: str,
        params: Params,
        content: bytes | None,
        headers: Headers,
        silence_s: float,
    ) -> "AsyncIterator[httpx.Response]":
        sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # its command line needs rich
        import httpcore
        import httpx

        client = self._open()
        sent = {**self._login(), **headers}
        timeout = httpx.Timeout(silence_s, connect=self.limits.connect_s, pool=None)
        url = self.url + path
        try:
            async with client.stream(
                method, url, params=list(params), content=content, headers=sent, timeout=timeout
            ) as got:
                yield got
        except (
            httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnpackError, UnicodeError,
            httpcore.NetworkError, httpcore.TimeoutException,
        ) as error:  # fmt: skip
            raise self._fault(error) from error

    @contextlib.asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """A block in which every request ends within `whole_s`. Raises SourceUnreachable."""
        try:
            async with asyncio.timeout(self.limits.whole_s):
                yield
        except TimeoutError as error:
            raise self._fault(error) from error

    def _login_pattern(self, form: bytes = b"") -> re.Pattern[bytes]:
        """What a server may quote of a login: as it was sent, or the password that was in it."""
        sent = {part for value in self._sent.values() for part in (value, value.rpartition(" ")[2])}
        sent.update((unquote(urlsplit(self.url).password or ""),), *parse_qs(form.decode()).values())
        for one in tuple(sent):
            with contextlib.suppress(ValueError):
                sent.add(base64.b64decode(one, validate=True).decode().partition(":")[2])
        words = []
        for one in sorted(sent - {""}, key=len, reverse=True):
            edge = "" if len(one) > 4 else r"\b"
            words.append(f"{edge}{''.join(map(_as_written, one))}{edge}")
        return re.compile("|".join(words).encode() or b"(?!)")

    @property
    def _sent(self) -> Headers:
        with contextlib.suppress(SourceError):
            return self._login()
        return {}

    def in_words(self, body: bytes) -> str:
        """The beginning of what a server says in one line, without what is secret or quoted of a login."""
        return in_words(self._login_pattern().sub(MASK.encode(), body[: 2 * PAGE_BYTES]))

    def refusal(self, answer: Response, form: bytes = b"") -> SourceError:
        hide = partial(self._login_pattern(form).sub, MASK.encode())
        headers = {name: hide(value.encode()).decode() for name, value in answer.headers.items()}
        answer = answer._replace(headers=headers, body=hide(answer.body))
        if explained := self.kind.explain(answer):
            kind, line = explained
        elif 300 <= answer.status < 400:
            kind, line = _sent_elsewhere(answer)
        elif 200 <= answer.status < 300 or (answer.status in (400, 404, 500) and answer.is_page):
            kind, line = _no_document(answer)
        else:
            statuses = tables_of("jobtui.transport", "faults")["statuses"]
            named, line = statuses.get(str(answer.status), statuses["other"])
            kind = KINDS[named]
        wait_s = _seconds_in(answer.headers.get("retry-after"))
        words = in_words(answer.body)
        says = "" if answer.is_page or words == NOTHING else f"it says: {words}"
        return self._error(
            kind, line, status=answer.status, told=words, bytes=len(answer.body),
            says=says and f", {says}", also=says and f"; {says}",
            wait="a while" if wait_s is None else f"{wait_s} s",
            login_is="it refused the login, which may have expired" if self._sent else "it requires a login",
        )  # fmt: skip

    def _fault(self, error: Exception) -> SourceError:
        words = self.in_words(reason_of(error).encode("utf-8", "replace"))
        kinds = {kind.__name__ for kind in type(error).__mro__}
        faults = tables_of("jobtui.transport", "faults")["http"]
        line = next(line for kind, what, line in faults if kind in kinds and re.search(what, words, re.I))
        words = words if words != NOTHING else type(error).__name__
        kind = Silence if "ReadTimeout" in kinds else SourceUnreachable
        return self._error(kind, str(line), told=words, **self.limits._asdict())

    def _error(self, kind: type[SourceError], line: str, **values: object) -> SourceError:
        host = self.host
        known = {key: text.format(host=host) for key, text in self.kind._asdict().items() if key != "explain"}
        return kind(f"{self.name}: {line.format_map({**known, 'host': host, **values})}")

    @property
    def host(self) -> str:
        with contextlib.suppress(ValueError):
            return in_words((urlsplit(self.url).hostname or "").encode("utf-8", "replace"))
        return ""

    def _open(self) -> "httpx.AsyncClient":
        import httpx

        if self._is_closed:
            raise SourceError(f"{self.name}: is closed")
        if self._http is None:
            count = self.limits.connections
            most = httpx.Limits(max_connections=count, max_keepalive_connections=count)
            transport = self.transport
            if transport is None and self._is_direct:
                # A host that goes away without a word is noticed while nothing is sent
                options = [
                    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
                    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_S),
                    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEP_ALIVE_S),
                    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEP_ALIVE_MISSES),
                ]
                transport = httpx.AsyncHTTPTransport(
                    verify=self._verify(), limits=most, socket_options=options
                )
            self._http = httpx.AsyncClient(
                transport=transport,
                verify=self._verify() if transport is None else False,
                follow_redirects=False,
                headers={
                    "User-Agent": "jobtui",
                    "Accept": "application/json",
                    "Accept-Encoding": "gzip",
                    **self._headers,
                },
                limits=most,
            )
        return self._http

    def _verify(self) -> ssl.SSLContext | bool:
        """The authorities that vouch for the server. Reading those of the system takes 20 ms."""
        if not self.url.startswith("https:"):
            return False
        if not self._ca_file:
            return True
        try:
            # Only the certificates count, and OpenSSL is not handed a path: it would wait for a pipe
            text = read_given(self._ca_file, AUTHORITY_BYTES).decode("ascii", "ignore")
            return ssl.create_default_context(cadata=text)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it holds no certificate"
            raise SourceDenied(f"{self._ca_file}: cannot be used as ca_file: {why}") from error

    async def aclose(self) -> None:
        self._is_closed = True
        await self._requests.aclose()
        client, self._http = self._http, None
        if client is not None:
            await client.aclose()


class Requests:
    """Lets `most` requests run at once, each to its end, also when who asked is gone.

    A request that is cut short while others wait may cost the pool of httpcore a connection for good; when
    all are lost nothing is answered any more (https://github.com/encode/httpcore/issues/1093). Waiting for a
    turn can be cut short.
    """

    def __init__(self, most: int) -> None:
        self._turns = asyncio.Semaphore(most)
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of a request. Raises what it raises."""
        await self._turns.acquire()
        task = asyncio.get_running_loop().create_task(ask())
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._turns.release()
        if not task.cancelled():
            task.exception()  # who asked has it, or wants to hear nothing of it


def _as_written(sign: str) -> str:
    """What finds a sign of a login as texts, addresses, JSON and pages write it."""
    if sign.isalnum() and sign.isascii():
        return sign
    forms = {sign, quote(sign, ""), quote_plus(sign), json.dumps(sign)[1:-1], escape(sign)}
    forms |= {f"\\{sign}", f"\\u{ord(sign):04x}", f"&#{ord(sign)};"}
    return f"(?i:{'|'.join(map(re.escape, forms))})"


def _no_document(answer: Response) -> tuple[type[SourceError], str]:
    if answer.is_page:
        if answer.is_login:
            return SourceDenied, "answers with a login page; {login}"
        return SourceMissing, "answers with a web page, not as {product} does; {address}"
    if not answer.body.strip():
        return SourceUnreachable, "answered with nothing; {address}"
    if _is_cut_off(answer.body):
        return SourceUnreachable, "the answer ended half-way, after {bytes} bytes; ask again"
    kind = _plain(mask_text(answer.kind[:50])) or "something unnamed"
    return (SourceMissing, f"answers with {kind}, not as {{product}} does ({{told}}); {{address}}")


def _sent_elsewhere(answer: Response) -> tuple[type[SourceError], str]:
    try:
        parts = urlsplit(answer.headers.get("location", ""))
        to = f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else parts.path
    except ValueError:
        to = ""
    shown = _plain(in_words(to.encode("utf-8", "replace")))
    if _LOGIN.search(to):
        return SourceDenied, f"redirects to a login page ({shown}); {{login}}"
    return SourceMissing, f"redirects ({{status}}) to {shown}; give that address"


async def _pieces(response: "httpx.Response") -> AsyncGenerator[bytes, None]:
    assert not isinstance(response.stream, str)
    async for piece in response.stream:  # type: ignore[union-attr]  # it is asynchronous here
        yield piece


async def _messages(wire: Any, limits: HttpLimits) -> AsyncGenerator[bytes, None]:
    """Messages of an open WebSocket until it is closed. Raises what the wire raises, and TooLarge."""
    from wsproto.connection import Connection, ConnectionState, ConnectionType
    from wsproto.events import CloseConnection, Message, Ping

    ours, parts, size = Connection(ConnectionType.CLIENT), list[bytes](), 0
    try:
        while True:
            ours.receive_data(await wire.read(READ_BYTES, limits.silence_s) or None)
            for event in ours.events():
                if isinstance(event, Ping):
                    await wire.write(ours.send(event.response()), limits.silence_s)
                elif isinstance(event, CloseConnection):
                    return
                elif isinstance(event, Message):
                    data = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
                    parts, size = [*parts, data], size + len(data)
                    if size > limits.body_bytes:
                        raise TooLarge(f"a message has more than {limits.body_bytes} bytes")
                    if event.message_finished:
                        yield b"".join(parts)
                        parts, size = [], 0
    finally:
        if ours.state is ConnectionState.OPEN:
            with contextlib.suppress(Exception):  # it may be broken
                await wire.write(ours.send(CloseConnection(code=1000)), 1.0)


def login_headers(access: Access, name: str) -> dict[str, str]:
    """What to send along. Raises SourceError where a file of a token cannot be used."""
    headers = dict(access.headers)
    if access.user:
        password = _token_in(access.password_file, name) if access.password_file else access.password
        both = base64.b64encode(f"{access.user}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {both}"
    elif token := access.bearer or (_token_in(access.bearer_file, name) if access.bearer_file else ""):
        headers["Authorization"] = f"Bearer {token}"
    elif access.api_key_file:
        headers["Authorization"] = f"ApiKey {_token_in(access.api_key_file, name)}"
    return headers


def _token_in(path: str, name: str) -> str:
    path = os.path.expanduser(path)
    try:
        text = read_given(path, TOKEN_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError as error:
        raise SourceMissing(f"{name}: {path}, the file of its login, does not exist") from error
    except OSError as error:
        raise SourceDenied(f"{name}: {path}, the file of its login: {error.strerror}") from error
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise SourceDenied(f"{name}: {path} holds no login")
    return text


def reason_of(error: BaseException) -> str:
    """What the system says of a failure, where it does; else the words of the error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, OSError) and cause.errno is not None and cause.strerror:
            own = isinstance(cause, ssl.SSLError | socket.gaierror)
            return cause.strerror if own else os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return str(error)


def in_words(body: bytes) -> str:
    """The beginning of a text in one line, without what is secret; of an error in JSON what it says."""
    text = body[:PAGE_BYTES].decode("utf-8", "replace")
    if text.count("\ufffd") > len(text) // 8:
        return "binary data"
    if text.lstrip()[:1] == "{" and (found := _REASON.search(text)):
        with contextlib.suppress(ValueError):
            text = f"{found[1] or ''}{': ' if found[1] else ''}{read_json(found[2])}"
    text = mask_text(re.sub(r"<[^>]*>", " ", text))
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(shown.split())[:REASON_CHARACTERS] or NOTHING


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _seconds_in(text: str | None) -> int | None:
    """The seconds in a Retry-After header, given as a number or a date; None for anything else."""
    seconds = whole((text or "").strip())
    if text and seconds is None and (until := time_of_mail(text)) is not None:
        seconds = max(0, round(to_seconds(until) - time.time()))
    return seconds if seconds is not None and 0 <= seconds <= LONGEST_RETRY_S else None


def _is_cut_off(body: bytes) -> bool:
    text = body.lstrip()
    if text[:1] in (b"{", b"["):
        try:
            read_json(text.decode("utf-8", "replace"))
        except json.JSONDecodeError as error:
            return error.pos >= len(error.doc.rstrip()) - len("false") or "Unterminated" in error.msg
        except ValueError:
            pass
    return False
