"""What is wrong: how a source as a whole fails, the health of each source, and faults of jobtui itself.

A fault is an unexpected exception, counted by where it was raised. It costs the line, record, job,
pane or command in work; everything else continues. The text of an exception may hold data of the watched
systems. It is never kept, only its kind and its location.

RecursionError and MemoryError are faults too: the memory is freed where they are caught. KeyboardInterrupt,
SystemExit and the cancelling of a task end what they are meant to end.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from jobtui.model.clock import Nanos, from_seconds, seconds_between, since_s, to_rfc3339
from jobtui.model.numbers import counted


class SourceError(Exception):
    """A source as a whole could not be read. The text says what failed, where, and what to do."""


class SourceMissing(SourceError):
    """The source is not there."""


class SourceDenied(SourceError):
    """The source is there and may not be read."""


class SourceUnreachable(SourceError):
    """The source did not answer, or broke off."""


KINDS: Mapping[str, type[SourceError]] = {
    "denied": SourceDenied, "missing": SourceMissing, "unreachable": SourceUnreachable, "error": SourceError,
}  # fmt: skip
"""By their words in tables."""

MOST_NEWS = 5
"""From how many of the last polls with news it is measured how late news comes."""
GRAIN_S = 2.0
"""Servers give whole seconds: a clock that is off by less than this may be right."""
QUIET_S = 60.0
"""A source without a successful poll for this many seconds does not show the present."""
SKIPS_NAMED = 20
"""How many of the things that were skipped are named; all are counted."""
FEWEST_NEWS, LEAST_PAUSE_S, USUAL_PAUSES = 10, 120.0, 5.0
"""A silence is unusual after so much news, if it is so long, and as long as so many usual pauses."""
FADING = 0.95
"""What a pause still counts for at each one after it."""


class SourceState(StrEnum):
    STARTING = "starting"
    OK = "ok"
    PARTIAL = "partial"
    DOWN = "down"


class Skip(msgspec.Struct, frozen=True):
    """One piece of input that could not be read: where it is and why it was left out."""

    where: str
    why: str


class FailingPart(msgspec.Struct, frozen=True):
    """A part that cannot be read, and last was at `since`. Without one that `is_main` others say nothing."""

    name: str
    why: str
    since: Nanos | None = None
    is_main: bool = False

    @property
    def words(self) -> str:
        read = "never read" if self.since is None else f"last read at {to_rfc3339(self.since)}"
        return f"{self.name} cannot be read: {self.why}; {read}"


class SourceHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one source.

    `asked_at` is when it was first asked, `read_at` when it was last read. `records` and `skipped` count
    since the start; `last_skips` are the newest of the skipped. `note` says what was left out on purpose, and
    `begins_at` is the time from which it was read if its beginning was not. `is_behind`: there is more to
    read now, `left` records where that is known. `was_at_end`: it was read to its end once. `ahead_s` is how
    far its clock is ahead of ours. `newest_at` is the time of its newest record, by its own clock.
    `news_late` is how many seconds old its newest record was when it came, for the last few polls. Something
    new came `news` times since it was read to its end, last at `news_at`; `pause_s` is the usual pause.
    `failing` are its parts that cannot be read.
    """

    name: str
    kind: str
    state: SourceState = SourceState.STARTING
    asked_at: Nanos | None = None
    read_at: Nanos | None = None
    records: int = 0
    skipped: int = 0
    last_skips: tuple[Skip, ...] = ()
    error: str | None = None
    note: str | None = None
    begins_at: Nanos | None = None
    is_behind: bool = False
    left: int = 0
    ahead_s: float = 0.0
    was_at_end: bool = False
    newest_at: Nanos | None = None
    news_late: tuple[float, ...] = ()
    news: int = 0
    news_at: Nanos | None = None
    pause_s: float = 0.0
    failing: tuple[FailingPart, ...] = ()
    profile: str = ""
    """The profile that names it, where several are read side by side."""

    @property
    def is_first_read(self) -> bool:
        return self.is_behind and not self.was_at_end

    @property
    def is_unread(self) -> bool:
        """Whether nothing that it is read for could be read: it is down, or its main part never came."""
        never_came = any(one.is_main and one.since is None for one in self.failing)
        return self.state is SourceState.DOWN or never_came

    @property
    def skipped_words(self) -> str:
        """How much of its input cannot be read, "" for under 1 %: a torn record is read again."""
        of = max(self.records, self.skipped)
        return f"{self.skipped:,} of {of:,} records cannot be read" if self.skipped > 0.01 * of else ""

    @property
    def reason(self) -> str:
        """`error` without the name of the source, "" if there is none."""
        return (self.error or "").removeprefix(f"{self.name}: ")

    def silent_s(self, now: Nanos) -> float:
        """For how many seconds it has neither been read nor failed since it was first asked."""
        return (since_s(self.asked_at, now) or 0.0) if self.state is SourceState.STARTING else 0.0

    def nothing_new_s(self, now: Nanos) -> float:
        """For how many seconds nothing new came; 0 where that is not unusually long, or not known."""
        if self.news < FEWEST_NEWS or self.news_at is None or self.read_at is None:
            return 0.0
        seconds = seconds_between(self.news_at, min(now, self.read_at))
        return seconds if seconds > max(LEAST_PAUSE_S, USUAL_PAUSES * self.pause_s) else 0.0

    def with_news(self, now: Nanos) -> Self:
        """The health once something new came. The longest pause counts, and less with each one after it."""
        pause_s = 0.0 if self.news_at is None else seconds_between(self.news_at, now)
        longest_s = max(pause_s, self.pause_s * FADING)
        return msgspec.structs.replace(self, news=self.news + 1, news_at=now, pause_s=longest_s)

    def now_at(self, now: Nanos, *parts: str) -> Nanos:
        """The time by its own clock when it was last read, with all of these parts. What it said then is
        judged by this time."""
        ends = [one.since or Nanos(0) for one in self.failing if one.name in parts]
        return self.shifted(min(now, now if self.read_at is None else self.read_at, *ends))

    def shifted(self, at: Nanos) -> Nanos:
        return Nanos(at + from_seconds(self.ahead_s)) if abs(self.ahead_s) > GRAIN_S else at

    def is_quiet(self, now: Nanos) -> bool:
        """Whether it was not read for longer than the time between two polls, or not at all."""
        return max(self.lag_s(now) or 0.0, self.silent_s(now)) > QUIET_S

    def newest_s(self, now: Nanos) -> float | None:
        """The age of its newest record in seconds; None where no record has a time."""
        return since_s(self.newest_at, self.shifted(now))

    def lag_s(self, now: Nanos) -> float | None:
        """The age of what it shows in seconds; None if it was never read."""
        return since_s(self.read_at, now)


def progress(sources: Iterable[SourceHealth]) -> str:
    """How many records were read, and of how many where that is known."""
    read = left = 0
    for source in sources:
        read, left = read + source.records, left + source.left
    return f"{read:,} of {read + left:,}" if left else f"{read:,}"


ClockOf = Callable[[str, Nanos], Nanos]
"""Gives the time by the clock of a source, as of when it was last read, for a time of ours."""


def here(source: str, now: Nanos) -> Nanos:
    return now


def now_at(sources: Iterable[SourceHealth], name: str, now: Nanos, *parts: str) -> Nanos:
    """The time by the clock of a source when it was last read, with all of these parts."""
    found = next((one for one in sources if one.name == name), None)
    return now if found is None else found.now_at(now, *parts)


def unread(sources: Iterable[SourceHealth]) -> list[str]:
    """A text for each source that cannot be read: which, and why."""
    return [f"{one.name} cannot be read: {one.reason}" for one in sources if one.state is SourceState.DOWN]


PACKAGE = "jobtui"
FAULTS_KIND = "faults"
MOST_LOCATIONS = 100
"""The most locations and kinds that are counted separately. Faults beyond are counted as one."""
SEE = "docs/when-something-is-wrong.md says what to send"

Item = TypeVar("Item")
Result = TypeVar("Result")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault at one location: the module and line, the kind of exception, and the stage of work."""

    location: str
    kind: str
    stage: str
    first: Nanos
    last: Nanos
    count: int = 1

    @property
    def words(self) -> str:
        return f"a fault of jobtui: {self.kind} at {self.location} ({self.stage})"

    @property
    def line(self) -> str:
        """The fault with its count and last time, as text for a report to the developers."""
        return f"{self.words}, {counted(self.count, 'time')}, last {to_rfc3339(self.last)}"


class Faults:
    """The faults of this process. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Fault] = {}

    def __len__(self) -> int:
        return sum(fault.count for fault in self.all())  # others may be counted meanwhile

    def all(self) -> tuple[Fault, ...]:
        return tuple(self._known.values())

    def note(self, error: BaseException, stage: str) -> Fault:
        """Count an exception that was caught in a stage of work; of a group the first in it."""
        try:
            return self._count(error, stage)
        except Exception:  # noqa: BLE001 - what cannot be counted is still told, and ends nothing
            return _uncounted(error, stage)

    def _count(self, error: BaseException, stage: str) -> Fault:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        now = Nanos(time.time_ns())
        location, kind = location_of(error), type(error).__name__
        with self._lock:
            if (location, kind) not in self._known and len(self._known) >= MOST_LOCATIONS:
                location, kind, stage = "elsewhere", "Exception", "any"
            before = self._known.get((location, kind))
            fault = Fault(location=location, kind=kind, stage=stage, first=now, last=now)
            if before is not None:
                fault = msgspec.structs.replace(before, last=now, count=before.count + 1)
            self._known[location, kind] = fault
        return fault

    def each(self, stage: str, items: Iterable[Item], work: Callable[[Item], Result]) -> Iterator[Result]:
        """The result of `work` for each item. An item for which it raises is left out."""
        for item in items:
            with contained(stage):
                yield work(item)

    def in_loop(self, loop: object, context: dict[str, Any]) -> None:
        """Count what a task or callback raised that nobody awaits. This is the loop's exception handler."""
        if (error := context.get("exception")) is not None:
            self.note(error, "in the background")

    def unseen(self, raised: "threading.ExceptHookArgs | sys.UnraisableHookArgs") -> None:
        """Count what ended a thread or was raised in closing something, where Python would print it raw."""
        if isinstance(raised.exc_value, Exception):
            self.note(raised.exc_value, "in the background")

    def health(self) -> SourceHealth | None:
        """The faults as an entry in the list of sources; None if there are none."""
        if not (faults := self.all()):
            return None
        said = f"{counted(len(self), 'fault')} of jobtui itself; their results are missing; {SEE}"
        return SourceHealth(
            name=PACKAGE,
            kind=FAULTS_KIND,
            state=SourceState.PARTIAL,
            read_at=max(fault.last for fault in faults),
            skipped=len(self),
            last_skips=tuple(Skip(fault.location, fault.line) for fault in faults),
            error="\n".join((said, *(fault.line for fault in faults))),
        )


FAULTS = Faults()


def _uncounted(error: BaseException, stage: str) -> Fault:
    return Fault(location="?", kind=type(error).__name__, stage=stage, first=Nanos(0), last=Nanos(0))


class contained:
    """A block whose exception is counted and not raised. `fault` is the fault, None without one.

    A class and not a generator, so that tracebacks have no frame of contextlib.
    """

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self.fault: Fault | None = None

    @property
    def words(self) -> str:
        return self.fault.words if self.fault is not None else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            return False
        is_ours = isinstance(error, Exception)
        try:
            if is_ours := is_fault(error):
                self.fault = FAULTS.note(error, self._stage)
        except Exception:  # noqa: BLE001 - what cannot be judged or counted is still told, and ends nothing
            self.fault = _uncounted(error, self._stage)
        return is_ours


def rows_of(
    items: Iterable[Item],
    make: Callable[[Item], Result],
    skip: Callable[[Item, str], object],
    expected: type[Exception] | tuple[type[Exception], ...] = (),
) -> Iterator[Result]:
    """What `make` returns for each record from outside. If it raises, `skip` gets the record and why.

    An exception of an `expected` kind says what is wrong with the record. Any other one is a fault.
    """
    for item in items:
        try:
            made = make(item)
        except expected as error:
            skip(item, str(error))
        except Exception as error:  # noqa: BLE001 - it costs the record
            skip(item, FAULTS.note(error, "reading a record").words)
        else:
            yield made


def is_fault(error: BaseException) -> bool:
    if isinstance(error, Exception):
        return True
    from asyncio import CancelledError, current_task  # completion in a shell does without

    if not isinstance(error, CancelledError):
        return False
    try:
        task = current_task()
    except RuntimeError:  # in a thread
        return False
    return task is not None and not task.cancelling()


def location_of(error: BaseException) -> str:
    """Module and line of the innermost frame of jobtui that the exception came through.

    If the only frame of jobtui is the one that caught it, this is the location in the library that raised it.
    """
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_globals.get("__name__", "?"), trace.tb_lineno))
        trace = trace.tb_next
    if not frames:
        return "?"
    ours = [frame for frame in frames[1:] if frame[0].partition(".")[0] == PACKAGE]
    module, line = (ours or frames)[-1]
    return f"{module}:{line}"
