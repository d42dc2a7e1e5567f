"""Lines of a log as one reads them on a screen: by position, some at a time, without loading the log.

A position is a number that grows from line to line and stays with its line while the log grows. In a file
it is a byte offset. A view needs only a `LineSource`, and nothing else of where lines come from.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from jobtui.model.clock import Nanos

if TYPE_CHECKING:
    from jobtui.model.secret_blocks import SecretBlocks


class LogUnreadable(Exception):
    """A log could not be read; the text says what failed, where, and what to do."""


class Level(StrEnum):
    """How much a line matters; the value is the letter that marks it."""

    ERROR = "E"
    WARNING = "W"
    PLAIN = ""


class LogLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One line. `end` is the position right after it, `size` its length in bytes without the newline.

    `text` is decoded with errors replaced, perhaps cut: not masked, not safe for a terminal. `note` says in
    words what of the line is not in `text`. `origin` names its source where lines of several are mixed.
    `stamped`: the time is not in the text, it comes from the system that kept the line. `is_gap`: it is no
    line, but says that lines are missing here. `unproven`: the clocks of two hosts do not tell whether it
    comes after the line before it. `folded`: how many lines after it, up to `end`, are folded into it.
    """

    position: int
    end: int
    text: str
    size: int
    level: Level = Level.PLAIN
    at: Nanos | None = None
    origin: str = ""
    note: str = ""
    stamped: bool = False
    is_gap: bool = False
    unproven: bool = False
    folded: int = 0


class Page(NamedTuple):
    """Lines next to each other, in their order. `at_edge`: the log has no more on the side asked for."""

    lines: tuple[LogLine, ...]
    at_edge: bool


class Extent(NamedTuple):
    """Where the log begins and ends. `event` says in words what happened to the file last, if anything.

    `revision` changes when lines come between others.
    """

    begin: int
    end: int
    event: str = ""
    revision: int = 0


class FilePosition(NamedTuple):
    """Where a line is: its file, its first byte there, and its number, None while lines are not counted."""

    path: str
    offset: int
    line: int | None


class Stretch(NamedTuple):
    """A part of a log for the histogram: where and when it begins, how many lines and errors are in it."""

    position: int
    at: Nanos | None
    lines: int
    errors: int


class Overview(NamedTuple):
    """What is known of a log, `complete` when all of it was looked through, up to its newest line's time."""

    stretches: tuple[Stretch, ...]
    lines: int
    errors: int
    complete: bool
    until: Nanos | None = None


STRETCH_LINES = 50


def stretches_of(lines: Sequence[LogLine]) -> list[Stretch]:
    parts = [lines[at : at + STRETCH_LINES] for at in range(0, len(lines), STRETCH_LINES)]
    errors = (sum(line.level is Level.ERROR for line in part) for part in parts)
    times = (next((line.at for line in part if line.at is not None), None) for part in parts)
    whole = zip(parts, times, errors, strict=True)
    return [Stretch(part[0].position, at, len(part), bad) for part, at, bad in whole]


def overview_of(stretches: Iterable[Stretch], until: Nanos | None, *, complete: bool) -> Overview:
    known = tuple(stretches)
    lines, errors = sum(one.lines for one in known), sum(one.errors for one in known)
    return Overview(known, lines, errors, complete, until)


class Query(NamedTuple):
    """What to search for in lines: a text or a regular expression."""

    text: str
    is_regex: bool
    ignores_case: bool


REGEX_SIGN = "~"
"""What a search begins with that is a regular expression, as in the filter language."""


def query_of(typed: str) -> Query | None:
    """The query that somebody typed: lower case matches upper case too. None for no text."""
    is_regex = typed.startswith(REGEX_SIGN) and len(typed) > 1
    text = typed[1:] if is_regex else typed
    letters = text
    if is_regex:  # without the letters after backslashes: the one of `\\S` is not a capital
        first, *parts = text.replace("\\\\", "").split("\\")
        letters = first + "".join(part[1:] for part in parts)
    return Query(text, is_regex, letters == letters.lower()) if text else None


class Hits:
    """Positions found by a search, in order, and how far was searched. Grows at both ends while it runs.

    With `wide` positions may have more than 63 bits. Written by one thread, read by another: the reader may
    lag behind, and is never wrong.
    """

    def __init__(self, around: int, *, wide: bool = False) -> None:
        self.low = around
        self.high = around
        # Small numbers are kept in little room
        self._all: list[int] | array[int] = [] if wide else array("q")

    def __len__(self) -> int:
        return len(self._all)

    def add_above(self, positions: Sequence[int], high: int) -> None:
        """Add ascending positions after all others; searched up to `high`."""
        self._all.extend(positions)
        self.high = high

    def add_below(self, positions: Sequence[int], low: int) -> None:
        """Add ascending positions before all others; searched down to `low`."""
        if isinstance(self._all, list):
            self._all[:0] = positions
        else:
            self._all[:0] = array("q", positions)
        self.low = low

    def forget_from(self, position: int) -> None:
        del self._all[self.rank(position) :]
        self.high = min(self.high, position)

    def next_after(self, position: int) -> int | None:
        at = self.rank(position)
        return self._all[at] if at < len(self._all) else None

    def last_before(self, position: int) -> int | None:
        at = self.rank(position)
        return self._all[at - 1] if at else None

    def rank(self, position: int) -> int:
        """How many are before this position."""
        return bisect_left(self._all, position)


class SearchState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    TIMED_OUT = "timed out"
    FULL = "full"
    CANCELED = "canceled"
    FAILED = "failed"


class LineSource(Protocol):
    """Lines by position, in both directions. Both methods raise LogUnreadable."""

    async def before(self, position: int, count: int) -> Page:
        """Up to `count` lines before the one that holds `position`; fewer do not mean the edge."""

    async def after(self, position: int, count: int) -> Page:
        """Up to `count` lines from the one that holds `position` on."""


FEW_ABOVE, MOST_ABOVE = 16, 1_000
"""Lines above a page that are read at first, and after which no more are, to know what is secret in it."""


class MaskedLines:
    """The lines of a source, those masked that are secret by what is above them in their origin, no others.

    For a page, lines above it are read until one says nothing of those below it, which is hardly ever far.
    """

    def __init__(self, source: LineSource) -> None:
        self._source = source

    async def before(self, position: int, count: int) -> Page:
        return await self._mask_page(await self._source.before(position, count))

    async def after(self, position: int, count: int) -> Page:
        return await self._mask_page(await self._source.after(position, count))

    async def _mask_page(self, page: Page) -> Page:
        lines = list(page.lines)
        blocks = await self._said_above(lines) if lines else {}
        for at, line in enumerate(lines):
            if not line.is_gap and (text := blocks[line.origin].hide(line.text)) != line.text:
                lines[at] = msgspec.structs.replace(line, text=text)
        return Page(tuple(lines), page.at_edge)

    async def _said_above(self, lines: Sequence[LogLine]) -> "dict[str, SecretBlocks]":
        from jobtui.model.secret_blocks import SecretBlocks, is_settled

        firsts = {line.origin: line.text for line in reversed(lines)}
        wanted = {origin for origin, text in firsts.items() if not is_settled(text)}
        above, position, count = list[LogLine](), lines[0].position, FEW_ABOVE
        while len(above) < MOST_ABOVE and (wanted or not above):
            page = await self._source.before(position, count)
            if not page.lines:
                break
            above[:0], position, count = page.lines, page.lines[0].position, count * 4
            wanted -= {line.origin for line in page.lines if is_settled(line.text)}
        blocks = {origin: SecretBlocks() for origin in firsts}
        for line in above:
            if line.origin in blocks and not line.is_gap:
                blocks[line.origin].hide(line.text)
        return blocks


class LogSearch(Protocol):
    """A search that runs by itself until it is done or stopped."""

    query: Query
    hits: Hits
    state: SearchState
    problem: str
    """What went wrong, in words; outside text."""

    async def run(self) -> None: ...

    async def extend(self) -> None: ...

    def cancel(self) -> None:
        """Stop it; what was found stays."""


class Log(LineSource, Protocol):
    """A log as a whole: its lines, and what a screen asks about them."""

    async def look(self) -> Extent:
        """Its extent now. Notices what was written, rotated or cut off. Raises LogUnreadable."""

    async def changed(self, timeout_s: float) -> None:
        """Return when a look may find something new, at the latest after `timeout_s`."""

    async def work(self) -> bool:
        """Look through a little more of it; whether there is more to look through. Raises LogUnreadable."""
        return False

    def overview(self) -> Overview: ...

    async def next_error(self, position: int, *, forward: bool) -> int | None:
        """The first error after the line at `position`, or the last before it. Raises LogUnreadable."""

    async def file_position(self, position: int) -> FilePosition | None:
        """Where the line at `position` is, None for one that is not in a file here. Raises LogUnreadable."""
        return None

    async def position_of(self, offset: int, text: str) -> int | None:
        """Where the line is that was at `offset` and holds a text, None without. Raises LogUnreadable."""
        return offset

    async def position_of_line(self, number: int) -> int | None:
        """Where the line with this number begins, or the last line; None where lines have no numbers."""
        return None

    async def position_of_time(self, at: Nanos) -> int | None:
        """Where the first line of this time or later begins, None without any. Raises LogUnreadable."""

    def search(self, query: Query, around: int) -> LogSearch:
        """A search, not yet begun; one that takes long begins at `around`."""

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""


class SourceLogs(Protocol):
    """The logs of a session by the names of their sources."""

    def names(self) -> tuple[str, ...]: ...

    def open(self, name: str) -> Log:
        """The log of a source, to be closed by who opened it."""

    def merged(self, names: Sequence[str] | None = None) -> Log:
        """The ends of these logs, or of all, in the order of time, to be closed by who opened it."""
