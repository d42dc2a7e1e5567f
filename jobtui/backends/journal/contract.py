"""What every way to a journal can do. A transport is one class that does this and nothing else.

All methods raise SourceError and nothing else. None of them blocks the event loop. One call at a time is in
flight per reader; several readers may be open on one journal.
"""

from typing import Protocol

from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
    JournalCondition,
    Matches,
    Slice,
    Start,
    Tail,
)


class Following(Protocol):
    """Entries as they are written, in order, none lost, none twice, also over a break of the connection."""

    async def take(self, most: int) -> Slice:
        """What has come since the last call, up to `most` entries; nothing is waited for.

        After a break it goes on behind the last entry that was given.
        """
        ...

    async def changed(self, timeout_s: float) -> None:
        """Return when `take` may find something, at the latest after `timeout_s`."""
        ...

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""
        ...


class JournalReader(Protocol):
    """A journal that can be read both ways from any place, and followed."""

    @property
    def name(self) -> str:
        """As it was configured: `local`, a directory, `ssh://host`, `http://host:port`."""
        ...

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""
        ...

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`; the slice is still oldest first."""
        ...

    async def fields(self, cursor: Cursor) -> Fields | None:
        """Everything one entry holds; None when it is there no more."""
        ...

    async def values(self, field: str) -> tuple[str, ...]:
        """The values that occur in a field of few ones, such as `_SYSTEMD_UNIT`; never asked of MESSAGE."""
        ...

    async def condition(self) -> JournalCondition:
        """How the journal stands."""
        ...

    def follow(self, start: Start, matches: Matches) -> Following:
        """What is written from `start` on; sound also where nothing matches yet.

        A `Tail` is the end as it is when `take` gives an edge for the first time: what is written after that
        comes. The cursor of its slices is for following from there and for nothing else: it may be a place in
        each of several hosts' entries.
        """
        ...

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""
        ...
