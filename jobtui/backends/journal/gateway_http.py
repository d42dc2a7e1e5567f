"""Talking to systemd-journal-gatewayd: one connection pool, and each failure in one clear line.

httpx is imported when the first question is asked.
"""

import contextlib
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.http_reason import reason_of
from jobtui.backends.journal.faults import in_words
from jobtui.model.secrets import mask_text

if TYPE_CHECKING:
    import httpx

EXPORT = "application/vnd.fdo.journal"
CONNECT_S = 10.0
SILENCE_S = 30.0
ALIVE_EVERY_S = 5
ALIVE_MISSES = 3
ERROR_BYTES = 2_000

Params = Sequence[tuple[str, str]]

_STATUS = "on {host}: systemctl status systemd-journal-gatewayd.socket"
FAILURES = (
    (
        "ConnectTimeout",
        "",
        f"no answer within {CONNECT_S:g} s; check that {{host}} is up and no firewall between",
    ),
    ("TimeoutException", "", "it stopped answering; check its load and the network"),
    (
        "HTTPError",
        "CERTIFICATE",
        "its certificate is not trusted ({told}); name its authority: SSL_CERT_FILE=/path/to/ca.pem",
    ),
    ("ConnectError", "name|resolv|getaddrinfo", "no host is called {host}; check the name"),
    ("ConnectError", "", "cannot be connected to ({told}); " + _STATUS),
    (
        "RemoteProtocolError",
        "without sending a response",
        "it hung up without an answer; if it speaks TLS, write https://; " + _STATUS,
    ),
    ("RemoteProtocolError", "peer closed", "the connection broke off; " + _STATUS),
    (
        "HTTPError",
        "timed out",
        "it gives no answer any more; check that {host} is up and its network is, too; " + _STATUS,
    ),
    ("InvalidURL", "", "is no address of a gatewayd; expected http://host:port"),
    ("UnsupportedProtocol", "", "is no address of a gatewayd; expected http://host:port"),
    ("Exception", "", "the connection broke off ({told}); " + _STATUS),
)
"""What httpx raises (the name of a class), what is said (a pattern), and the line to show."""

_LOGIN = re.compile(r"log-?in|sign-?in|sso|saml|oauth|openid|auth|account", re.IGNORECASE)
_ABSENT = re.compile(r"No such file|error -2\b")
_FORBIDDEN = re.compile(r"Permission denied|error -13\b")
"""gatewayd 252 gives error numbers for their texts."""
_BY_TUNNEL = "go round it: ssh -N -L 19531:localhost:19531 {host}, then http://localhost:19531"


class Gateway:
    """One gatewayd. `transport` instead of the network, for tests."""

    def __init__(self, spec: str, transport: "httpx.AsyncBaseTransport | None" = None) -> None:
        self.name = mask_text(spec)
        self._base = spec.rstrip("/")
        self._transport = transport
        self._client: httpx.AsyncClient | None = None
        self._is_closed = False
        self._host, self._wrong = _host_of(spec)

    async def text(self, path: str, accept: str, most: int) -> str:
        """An answer that is text, up to `most` bytes of it. Raises SourceError."""
        data = b""
        async with self._asked(path, (), {"Accept": accept}, SILENCE_S) as response:
            self._check(response, accept)
            async with contextlib.aclosing(self._pieces(response)) as pieces:
                async for piece in pieces:
                    data += piece
                    if len(data) >= most:
                        break
        return data[:most].decode("utf-8", "replace")

    async def entries(
        self, params: Params, place: str | None, *, silence_s: float | None = SILENCE_S
    ) -> AsyncGenerator[bytes, None]:
        """Entries in the export format, in pieces; the first is empty. Raises SourceError.

        `place` is a value of the header `Range` in the units of gatewayd.
        """
        headers = {"Accept": EXPORT} | ({"Range": f"entries={place}"} if place is not None else {})
        async with self._asked("/entries", params, headers, silence_s) as response:
            self._check(response, EXPORT)
            yield b""
            async with contextlib.aclosing(self._pieces(response)) as pieces:
                async for piece in pieces:
                    yield piece

    async def aclose(self) -> None:
        """Let go of all connections."""
        self._is_closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @contextlib.asynccontextmanager
    async def _asked(
        self, path: str, params: Params, headers: dict[str, str], silence_s: float | None
    ) -> "AsyncIterator[httpx.Response]":
        import httpx

        client = self._open()
        timeout = httpx.Timeout(CONNECT_S, read=silence_s)
        asked = client.stream("GET", self._base + path, params=list(params), headers=headers, timeout=timeout)
        try:
            async with asked as response:
                if response.status_code >= 300:
                    raise self._refusal(response, await self._beginning(response))
                yield response
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise self._fault(error) from error
        except UnicodeError as error:
            raise SourceError(f"{self.name}: cannot be asked for what is no text") from error

    def _open(self) -> "httpx.AsyncClient":
        if self._is_closed:
            raise SourceError(f"{self.name}: is closed")
        if self._wrong:
            raise SourceError(f"{self.name}: {self._wrong}")
        if self._client is None:
            self._client = _client(self._transport, verify=self._base.startswith("https"))
        return self._client

    async def _pieces(self, response: "httpx.Response") -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(response.aiter_raw()) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                yield piece

    async def _beginning(self, response: "httpx.Response") -> str:
        """The first words of an answer that is an error."""
        data = b""
        async with contextlib.aclosing(self._pieces(response)) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) >= ERROR_BYTES:
                    break
        return data[:ERROR_BYTES].decode("utf-8", "replace")

    def _check(self, response: "httpx.Response", accept: str) -> None:
        """Raise SourceError for an answer that gatewayd does not give."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == accept:
            return
        if "html" in kind:
            raise SourceDenied(f"{self.name}: answers with a web page, likely a login; {self._tunnel}")
        raise SourceMissing(
            f"{self.name}: answers with {in_words(kind) or 'something unnamed'} and not with a journal; "
            "check the port, gatewayd's own is 19531"
        )

    def _refusal(self, response: "httpx.Response", text: str) -> SourceError:
        code = response.status_code
        if code < 400:
            return self._sent_elsewhere(response.headers.get("location", ""))
        if code in (401, 407):
            return SourceDenied(
                f"{self.name}: a login is wanted before gatewayd ({code}), jobtui does none; {self._tunnel}"
            )
        if code == 403:
            return SourceDenied(
                f"{self.name}: access is forbidden (403) by what is before gatewayd; {self._tunnel}"
            )
        if code == 404:
            return SourceMissing(
                f"{self.name}: there is no gatewayd at this address (404); its port is 19531, without a path"
            )
        if _ABSENT.search(text):
            return SourceMissing(
                f"{self.name}: gatewayd finds none of the files it is to read; on {self._host}: "
                "systemctl cat systemd-journal-gatewayd"
            )
        if _FORBIDDEN.search(text):
            return SourceDenied(
                f"{self.name}: gatewayd may not read the journal; as root on {self._host}: "
                "usermod -aG systemd-journal systemd-journal-gateway, then restart it"
            )
        if code in (502, 503, 504):
            return SourceUnreachable(
                f"{self.name}: the proxy before gatewayd does not reach it ({code}); on {self._host}: "
                "systemctl status systemd-journal-gatewayd.socket"
            )
        told = in_words(re.sub(r"<[^>]*>", " ", text))
        return SourceUnreachable(f"{self.name}: refused what was asked ({code}{f': {told}' if told else ''})")

    def _sent_elsewhere(self, location: str) -> SourceError:
        parts = urlsplit(location)
        to = in_words(f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else parts.path)
        if _LOGIN.search(f"{parts.hostname or ''}{parts.path}"):
            return SourceDenied(f"{self.name}: sends to a login page ({to}); {self._tunnel}")
        return SourceMissing(
            f"{self.name}: sends elsewhere, to {to}; if gatewayd is there, give that address"
        )

    def _fault(self, error: Exception) -> SourceError:
        told = in_words(reason_of(error))
        kinds = {kind.__name__ for kind in type(error).__mro__}
        line = next(line for kind, said, line in FAILURES if kind in kinds and re.search(said, told, re.I))
        values = {"host": self._host, "told": told or type(error).__name__}
        return SourceUnreachable(f"{self.name}: {line.format_map(values)}")

    @property
    def _tunnel(self) -> str:
        return _BY_TUNNEL.format(host=self._host)


def _host_of(spec: str) -> tuple[str, str]:
    """The host an address names, and what is wrong with the address, "" when nothing is."""
    wrong = "is no address of a gatewayd; expected http://host:port"
    try:
        parts = urlsplit(spec)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return "", wrong
    if not good or parts.query or parts.fragment:
        return "", wrong
    return in_words(parts.hostname or ""), ""


def _client(transport: "httpx.AsyncBaseTransport | None", *, verify: bool) -> "httpx.AsyncClient":
    import httpx

    if transport is None:
        transport = httpx.AsyncHTTPTransport(verify=verify, socket_options=_keep_alive())
    return httpx.AsyncClient(
        transport=transport,
        follow_redirects=False,
        headers={"User-Agent": "jobtui", "Accept-Encoding": "identity"},
    )


def _keep_alive() -> list[tuple[int, int, int]]:
    """A host that goes away without a word is noticed while nothing is sent."""
    return [
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, ALIVE_EVERY_S),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, ALIVE_EVERY_S),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, ALIVE_MISSES),
    ]
