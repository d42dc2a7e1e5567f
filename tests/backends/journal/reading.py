"""Reading journals in tests: all that there is, both ways, and following until enough has come."""

import time

from jobtui.backends.journal.contract import Following, JournalReader
from jobtui.model.journal import At, Beside, Head, JournalEntry, Matches, Tail


async def all_forward(
    reader: JournalReader, matches: Matches = (), most: int = 97, start: Head | At | Beside | None = None
) -> list[JournalEntry]:
    """Everything from `start` on, slice by slice."""
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
    """One group: every one of these fields."""
    return (tuple(fields.items()),)


def messages(entries: list[JournalEntry]) -> list[str]:
    """What the entries say."""
    return [entry.message for entry in entries]


class Follower:
    """Takes what a following gives, until enough has come."""

    def __init__(self, following: Following) -> None:
        self.following = following
        self.found: list[JournalEntry] = []
        self.losses = 0

    async def take(self, most: int = 200) -> None:
        """Take all that is there now."""
        while True:
            part = await self.following.take(most)
            self.found += part.entries
            self.losses += part.lost
            if part.at_edge:
                return

    async def until(self, count: int, timeout_s: float = 15.0) -> list[JournalEntry]:
        """All that came, once it is `count` entries and nothing more waits."""

        async def more() -> None:
            await self.following.changed(0.3)
            await self.take()

        async def looked() -> bool:
            if len(self.found) < count:
                await more()
            return len(self.found) >= count

        deadline = Deadline(timeout_s)
        while not await looked():
            deadline.check(f"{len(self.found)} of {count} entries came")
        await more()
        return self.found


class Deadline:
    """Fails a test that waits for too long."""

    def __init__(self, timeout_s: float) -> None:
        self._until = time.monotonic() + timeout_s

    def check(self, what: str) -> None:
        """AssertionError, saying `what`, when the time is over."""
        assert time.monotonic() < self._until, what
