"""Reading journals in tests: all that there is, both ways, and following until enough has come."""

import asyncio

from jobtui.backends.journal.client import Following, JournalReader
from jobtui.model.journal import At, Beside, Head, JournalEntry, Matches, Tail
from tests.waiting import LONG_S


async def all_forward(
    reader: JournalReader, matches: Matches = (), most: int = 97, start: Head | At | Beside | None = None
) -> list[JournalEntry]:
    found: list[JournalEntry] = []
    start = Head() if start is None else start
    while True:
        part = await reader.forward(start, matches, most)
        found += part.entries
        if part.at_edge or part.cursor is None:
            return found
        assert len(part.entries) == most
        start = Beside(part.cursor)


async def all_backward(
    reader: JournalReader, matches: Matches = (), most: int = 97, start: Tail | At | Beside | None = None
) -> list[JournalEntry]:
    """Everything before `start`, slice by slice; oldest first."""
    found: list[JournalEntry] = []
    start = Tail() if start is None else start
    while True:
        part = await reader.backward(start, matches, most)
        found[:0] = part.entries
        if part.at_edge or part.cursor is None:
            return found
        assert len(part.entries) == most
        start = Beside(part.cursor)


def of(**fields: str) -> Matches:
    return (tuple(fields.items()),)


def messages(entries: list[JournalEntry]) -> list[str]:
    return [entry.message for entry in entries]


AFTERWARDS_S = 0.1
"""So long it is looked whether something comes that should not."""


class Follower:
    """Takes what a following gives, until enough has come."""

    def __init__(self, following: Following) -> None:
        self.following = following
        self.found: list[JournalEntry] = []
        self.losses = 0

    async def take(self, most: int = 200) -> None:
        while True:
            part = await self.following.take(most)
            self.found += part.entries
            self.losses += part.lost
            if part.at_edge:
                return

    async def until(self, count: int) -> list[JournalEntry]:
        """All that came, once it is `count` entries and nothing more waits."""
        async with asyncio.timeout(LONG_S):
            while len(self.found) < count:
                await self.following.changed(0.3)
                await self.take()
        await self.take()
        return self.found

    async def end(self) -> None:
        """Close it. What nobody waited for may not come after all, as what came before would come twice."""
        count = len(self.found)
        await self.following.changed(AFTERWARDS_S)
        await self.take()
        assert len(self.found) == count, messages(self.found[count:])
        await self.following.aclose()
