"""Asking a Balsam server: only GETs, lists page by page.

Problems that it works around (seen with Balsam 0.7.0a24):

- collections end with a slash; without it the answer is a redirect, behind a proxy to the wrong scheme;
- events by the scheduler's id are those of all jobs of the site: ask for the batch job to get fewer;
- events by batch job come in pages in which each takes as many places as its site has batch jobs: `offset`
  goes on by `limit`, short pages are not the end, and repeats are dropped by id;
- it ignores parameters that it does not know, and gives all rows: the tests refuse such parameters;
- it answers an expired token as it answers a wrong one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from jobtui.backends.balsam.records import SYSTEM, DecodedList, decode_page
from jobtui.model.clock import SystemClock, seconds_between, time_of_mail
from jobtui.model.ids import named
from jobtui.model.tables import tables_of
from jobtui.transport.http import HttpClient, HttpLimits, ServerKind

LIMITS = HttpLimits(silence_s=40.0, whole_s=80.0, connections=2)
"""A working server may take 30 s. One connection is for polls, one for requests of a person meanwhile."""
PAGE_ROWS = 5_000
"""Rows in one request: they take half a second of the server's time at most, and are decoded at once."""

BALSAM = ServerKind(**tables_of("jobtui.backends.balsam", "server"))

Parameters = Mapping[str, str | int | Sequence[str] | Sequence[int]]
Row = TypeVar("Row")


class BalsamClient:
    """Asks one server. `token` is called again for each request, as it may be renewed meanwhile.

    `label` distinguishes it from other watched servers, "" for the only one.
    """

    def __init__(self, url: str, token: Callable[[], str | None], *, label: str = "") -> None:
        self.name = shown_address(url)
        self.label = label
        self.system = named(SYSTEM, label)
        """What the ids of its jobs begin with."""
        self._http = HttpClient(
            url,
            BALSAM,
            name=self.name,
            login=lambda: {"Authorization": f"Bearer {found}"} if (found := token()) else {},
            limits=LIMITS,
        )
        self.ahead_s = 0.0
        """How far the server's clock is ahead of this one, to a second, by its newest answer."""

    async def rows(self, path: str, kind: type[Row], parameters: Parameters) -> DecodedList[Row]:
        """One page of a list. Raises SourceError."""
        lists = ((key, [one] if isinstance(one, str | int) else one) for key, one in parameters.items())
        said = [(key, str(value)) for key, given in lists for value in given]
        answer = await self._http.ask(path, said)
        server_at = time_of_mail(answer.headers.get("date") or "")
        if server_at is not None:
            self.ahead_s = seconds_between(SystemClock().now(), server_at)
        try:
            # Other tasks can run meanwhile
            return await asyncio.to_thread(decode_page, kind, answer.body, f"{self.name}{path}")
        except ValueError as error:
            raise self._http.refusal(answer) from error

    async def pages(
        self, path: str, kind: type[Row], parameters: Parameters, most: int = PAGE_ROWS
    ) -> AsyncIterator[DecodedList[Row]]:
        """Every page of a list. Raises SourceError."""
        offset = 0
        while True:
            page = await self.rows(path, kind, {**parameters, "limit": most, "offset": offset})
            yield page
            offset, places = offset + most, 1  # that each row takes
            if path == "/events/" and parameters.keys() & {"batch_job_id", "scheduler_id"}:
                places = max(1, -(-min(most, page.count) // max(1, page.received))) + 1
            if not page.received or offset >= page.count * places:
                return

    async def aclose(self) -> None:
        await self._http.aclose()


def shown_address(url: str) -> str:
    parts = urlsplit(url.rstrip("/"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
