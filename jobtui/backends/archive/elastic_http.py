"""Asking Elasticsearch or OpenSearch over HTTP: one request at a time, faults as errors of a source.

Searches are sent by POST, as these servers document them; nothing that is sent changes anything. A server
that is busy (429, 503) is asked again after a pause.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from jobtui.backends.base import SourceDenied, SourceMissing, SourceUnreachable
from jobtui.backends.finishing import Finishing
from jobtui.backends.http_body import body_of
from jobtui.backends.http_reason import reason_of
from jobtui.backends.traces.login import login_headers
from jobtui.model.access import NO_ACCESS, Access
from jobtui.model.secrets import mask_text

if TYPE_CHECKING:
    import ssl

    import httpx

TIMEOUT_S = 20.0
CONNECT_TIMEOUT_S = 5.0
CONNECTIONS = 1
MOST_BYTES = 256 << 20
PAUSES_S = (0.5, 1.0, 2.0, 4.0)
"""How long a busy server is left alone before it is asked again, unless it says itself."""
LONGEST_PAUSE_S = 10.0
BUSY = frozenset({429, 503})
LOGIN = "put one into [servers] of the configuration file, or into JOBTUI_ELASTIC_BASIC"
SAID_CHARACTERS = 200
NO_INDEX = "index_not_found_exception"

Document = Mapping[str, object]


class ElasticClient:
    """Asks one index, named by its address."""

    def __init__(
        self, url: str, access: Access = NO_ACCESS, transport: "httpx.AsyncBaseTransport | None" = None
    ) -> None:
        self._base, _, self._index = url.rstrip("/").rpartition("/")
        self._access = access
        self._transport = transport
        self._http: httpx.AsyncClient | None = None
        self._requests = Finishing(CONNECTIONS)
        self.name = url.rstrip("/")

    async def document(self, identity: str) -> Document | None:
        """The document with this id, None when the index has none. Raises SourceError."""
        status, body = await self._ask("GET", f"/{self._index}/_doc/{quote(identity, safe='')}", None)
        if status == 404 and body.get("found") is False:
            return None
        self._check(status, body)
        source = body.get("_source")
        return source if isinstance(source, dict) else None

    async def search(self, query: Document) -> list[Document]:
        """The hits of a search, as they stand in its answer. Raises SourceError."""
        status, body = await self._ask("POST", f"/{self._index}/_search", query)
        self._check(status, body)
        hits = body.get("hits")
        found = hits.get("hits") if isinstance(hits, dict) else None
        if not isinstance(found, list):
            raise SourceUnreachable(f"{self.name}: the answer to a search has no hits: another server?")
        return [hit for hit in found if isinstance(hit, dict)]

    async def _ask(self, method: str, path: str, query: Document | None) -> tuple[int, Document]:
        """Status and decoded body; asked again while the server is busy."""
        for pause_s in (*PAUSES_S, None):
            response, body = await self._requests.run(lambda: self._send(method, path, query))
            if response.status_code not in BUSY or pause_s is None:
                # others have their turn while a large answer is decoded
                return response.status_code, await asyncio.to_thread(
                    self._decoded, response.status_code, body
                )
            await asyncio.sleep(_pause(response.headers.get("retry-after"), pause_s))
        raise AssertionError("the last answer is returned")

    async def _send(self, method: str, path: str, query: Document | None) -> "tuple[httpx.Response, bytes]":
        import httpx

        content = None if query is None else json.dumps(query).encode()
        headers = login_headers(self._access, self.name)
        headers |= {"Content-Type": "application/json"} if content is not None else {}
        try:
            async with self._client().stream(method, path, content=content, headers=headers) as response:
                return response, await body_of(response, self.name, MOST_BYTES)
        except httpx.TimeoutException as error:
            raise SourceUnreachable(f"{self.name}: no answer within {TIMEOUT_S:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeError) as error:
            raise SourceUnreachable(
                f"{self.name}: {mask_text(reason_of(error) or type(error).__name__)}; is the address right?"
            ) from error

    def _decoded(self, status: int, body: bytes) -> Document:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            if status == 200:
                raise SourceUnreachable(f"{self.name}: the answer is no JSON: another server?") from error
            return {}
        return document if isinstance(document, dict) else {}

    def _check(self, status: int, body: Document) -> None:
        """Raise SourceError for an answer that is no result."""
        if status == 200:
            return
        error = body.get("error")
        kind = error.get("type") if isinstance(error, dict) else None
        said = mask_text(str(error.get("reason", kind) if isinstance(error, dict) else error or "nothing"))
        if status == 401:
            raise SourceDenied(f"{self.name}: the login is missing or not valid (401): {LOGIN}")
        if status == 403:
            raise SourceDenied(f"{self.name}: not permitted (403); the login needs `read` on the index")
        if kind == NO_INDEX:
            raise SourceMissing(f"{self.name}: there is no such index (404)")
        if status == 404:
            raise SourceMissing(f"{self.name}: there is none (404): is this the address of Elasticsearch?")
        if status in BUSY:
            raise SourceUnreachable(f"{self.name}: the server is too busy ({status}); try again later")
        raise SourceUnreachable(f"{self.name}: answered {status}: {said[:SAID_CHARACTERS]}")

    def _client(self) -> "httpx.AsyncClient":
        import httpx

        if self._http is None:
            self._http = httpx.AsyncClient(
                base_url=self._base,
                timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
                headers={"Accept": "application/json"},
                verify=self._trusted(),
                transport=self._transport,
                limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
            )
        return self._http

    def _trusted(self) -> "bool | ssl.SSLContext":
        """Whom to trust: the authorities of the file, else those of the system."""
        if not self._access.ca_file:
            return True
        import ssl

        try:
            return ssl.create_default_context(cafile=self._access.ca_file)
        except (OSError, ValueError) as error:
            raise SourceDenied(f"{self._access.ca_file}: cannot be used as ca_file: {error}") from error

    async def aclose(self) -> None:
        """Close the connection."""
        await self._requests.aclose()
        if self._http is not None:
            await self._http.aclose()
            self._http = None


def _pause(told: str | None, usual_s: float) -> float:
    """How long to wait: what the server says, in reason, else as usual."""
    seconds = float(told) if told is not None and told.strip().isdecimal() else usual_s
    return min(seconds, LONGEST_PAUSE_S)
