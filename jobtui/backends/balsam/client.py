"""Asking a Balsam server: only GETs, faults as errors of a source, lists page by page.

What it works around (seen with Balsam 0.7.0a24):

- collections end with a slash; without it the answer is a redirect, behind a proxy to the wrong scheme;
- events by the scheduler's id are those of all jobs of the site: what is to narrow asks for the batch job;
- events by batch job come in pages in which each takes as many places as its site has batch jobs: `offset`
  goes on by `limit`, short pages are not the end, and repeats are dropped by id;
- parameters it does not know are ignored without a word, so only those in `PARAMETERS` are sent;
- a token that has expired is answered like one that is wrong.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from jobtui.backends.balsam.rows import SYSTEM, Decoded, decode_page
from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.finishing import Finishing
from jobtui.backends.http_body import body_of
from jobtui.model.secrets import mask_text
from jobtui.model.servers import named

if TYPE_CHECKING:
    import httpx

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 40.0
"""Longer than the slowest answer that is none of a fault: a server may take 30 s."""
WHOLE_ANSWERS = 5
"""How many times as long a whole answer may take as its next part: one that only trickles comes to an end."""
CONNECTIONS = 2
"""One for polls, one for what a person asks for meanwhile."""
PAGE_ROWS = 5_000
"""Rows asked for at once: half a second of the server's time at most, and little enough to decode at once."""
MOST_BYTES = 256 << 20
"""An answer larger than this is refused."""
LARGE_BYTES = 1 << 16
"""A body from this size on is decoded in a thread."""
SAID_CHARACTERS = 200

PARAMETERS: Mapping[str, frozenset[str]] = {
    "/events/": frozenset(
        {
            "id", "job_id", "batch_job_id", "scheduler_id", "tags", "from_state", "to_state",
            "timestamp_after", "timestamp_before", "ordering", "limit", "offset",
        }
    ),
    "/jobs/": frozenset(
        {
            "id", "parent_id", "app_id", "site_id", "last_update_before", "last_update_after", "state",
            "tags", "ordering", "limit", "offset",
        }
    ),
    "/batch-jobs/": frozenset({"id", "site_id", "state", "scheduler_id", "ordering", "limit", "offset"}),
    "/sites/": frozenset({"id", "limit", "offset"}),
    "/apps/": frozenset({"id", "site_id", "limit", "offset"}),
    "/sessions/": frozenset(),
}  # fmt: skip
"""What may be asked of each list. Others would be ignored, and all rows come back."""

Parameters = Mapping[str, str | int | Sequence[str] | Sequence[int]]
Row = TypeVar("Row")
GetToken = Callable[[], str | None]


class BalsamClient:
    """Asks one server. `token` is asked for anew for each request, as it may be renewed meanwhile.

    `label` is what tells it from other servers that are watched, "" for the only one.
    """

    def __init__(
        self,
        url: str,
        token: GetToken,
        transport: "httpx.AsyncBaseTransport | None" = None,
        *,
        label: str = "",
        patience_s: float = READ_TIMEOUT_S,
    ) -> None:
        self._url = url.rstrip("/")
        self._patience_s = patience_s
        self.label = label
        self.system = named(SYSTEM, label)
        """What the ids of its jobs begin with."""
        self._token = token
        self._transport = transport
        self._http: httpx.AsyncClient | None = None
        self._requests = Finishing(CONNECTIONS)
        self.ahead_s = 0.0
        """How far the server's clock is ahead of this one, to a second, by its newest answer."""

    @property
    def name(self) -> str:
        """The server without what may be secret in its address."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    async def rows(self, path: str, kind: type[Row], parameters: Parameters) -> Decoded[Row]:
        """One page of a list. Raises SourceError."""
        unknown = parameters.keys() - PARAMETERS[path]
        if unknown:
            raise ValueError(f"{path} takes no {', '.join(sorted(unknown))}")
        body = await self.get(path, parameters)
        try:
            if len(body) < LARGE_BYTES:
                return decode_page(kind, body, f"{self.name}{path}")
            # Others have their turn meanwhile
            return await asyncio.to_thread(decode_page, kind, body, f"{self.name}{path}")
        except ValueError as error:
            raise SourceUnreachable(f"{self.name}{path}: {self._no_list(body, error)}") from error

    async def pages(
        self, path: str, kind: type[Row], parameters: Parameters, most: int = PAGE_ROWS
    ) -> AsyncIterator[Decoded[Row]]:
        """Every page of a list. Raises SourceError."""
        offset = 0
        while True:
            page = await self.rows(path, kind, {**parameters, "limit": most, "offset": offset})
            yield page
            offset += most
            if not page.received or offset >= page.count * self._places(path, parameters, page, most):
                return

    @staticmethod
    def _places(path: str, parameters: Parameters, page: Decoded[Row], most: int) -> int:
        """How many places of a page each row may take."""
        if path != "/events/" or not parameters.keys() & {"batch_job_id", "scheduler_id"}:
            return 1
        return max(1, -(-min(most, page.count) // max(1, page.received))) + 1

    async def get(self, path: str, parameters: Parameters) -> bytes:
        """The body of an answer that is fine. Raises SourceError for any other."""
        return await self._requests.run(lambda: self._got(path, parameters))

    async def _got(self, path: str, parameters: Parameters) -> bytes:
        import httpx

        client = self._client()
        token = self._token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            async with (
                asyncio.timeout(WHOLE_ANSWERS * self._patience_s),
                client.stream("GET", path, params=dict(parameters), headers=headers) as response,
            ):
                body = await body_of(response, self.name, MOST_BYTES)
                self._note_clock(response.headers.get("date"))
        except (httpx.TimeoutException, TimeoutError) as error:
            raise SourceUnreachable(f"{self.name}: no answer within {self._patience_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise SourceUnreachable(
                f"{self.name}: {mask_text(str(error) or type(error).__name__)}"
            ) from error
        if response.status_code != 200:
            raise self._refusal(path, response.status_code, body)
        return body

    def _note_clock(self, date: str | None) -> None:
        try:
            told = parsedate_to_datetime(date or "")
        except ValueError:
            return
        if told.tzinfo is not None:
            self.ahead_s = (told - datetime.now(UTC)).total_seconds()

    def _client(self) -> "httpx.AsyncClient":
        import httpx

        if self._http is None:
            timeout = httpx.Timeout(self._patience_s, connect=CONNECT_TIMEOUT_S)
            self._http = httpx.AsyncClient(
                base_url=self._url,
                timeout=timeout,
                transport=self._transport,
                headers={"Accept": "application/json"},
                limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
            )
        return self._http

    def _refusal(self, path: str, status: int, body: bytes) -> SourceError:
        """An answer that is no list, as an error that says what to do."""
        where = f"{self.name}{path}"
        if status == 401:
            return SourceDenied(
                f"{self.name}: the login is not valid, or has expired (401): `jobtui login balsam`, or "
                "`balsam login`"
            )
        if status == 403:
            return SourceDenied(f"{where}: not permitted (403)")
        if status == 404:
            return SourceMissing(f"{where}: there is none (404): is this the address of a Balsam server?")
        if 300 <= status < 400:
            return SourceUnreachable(f"{where}: redirected ({status}): give the address it goes to")
        return SourceUnreachable(f"{where}: answered {status}: {_said(body)}")

    @staticmethod
    def _no_list(body: bytes, error: Exception) -> str:
        if body.lstrip()[:1] == b"<":
            return "answered with a web page and no JSON: a login page, or another server?"
        return f"the answer breaks off or is no list ({_said(str(error).encode())})"

    async def aclose(self) -> None:
        """Close the connection."""
        await self._requests.aclose()
        if self._http is not None:
            await self._http.aclose()
            self._http = None


def _said(body: bytes) -> str:
    text = mask_text(body[:SAID_CHARACTERS].decode("utf-8", "replace"))
    return " ".join(text.split()) or "nothing"
