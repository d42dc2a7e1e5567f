"""Faults of jobtui itself: unexpected exceptions, counted by the place where they were raised.

A fault costs the line, record, job, pane or command in work; everything else continues. The text of an
exception may hold data of the watched systems. It is never kept, only its kind and its place.

RecursionError and MemoryError are faults too: the memory is freed where they are caught. KeyboardInterrupt,
SystemExit and the cancelling of a task end what they are meant to end.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.health import Skip, SourceHealth, SourceState
from jobtui.model.numbers import counted

PACKAGE = "jobtui"
FAULTS_KIND = "faults"
MOST_PLACES = 100
"""The most places and kinds that are counted separately. Faults beyond are counted as one."""
SEE = "docs/when-something-is-wrong.md says what to send"

Item = TypeVar("Item")
Result = TypeVar("Result")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault at one place: the module and line, the kind of exception, and the stage of work."""

    place: str
    kind: str
    stage: str
    first: Nanos
    last: Nanos
    count: int = 1

    @property
    def words(self) -> str:
        return f"a fault of jobtui: {self.kind} at {self.place} ({self.stage})"

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
        return sum(fault.count for fault in self._known.values())

    def all(self) -> tuple[Fault, ...]:
        return tuple(self._known.values())

    def clear(self) -> None:
        self._known.clear()

    def note(self, error: BaseException, stage: str) -> Fault:
        """Count an exception that was caught in a stage of work; of a group the first in it."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        now = Nanos(time.time_ns())
        place, kind = place_of(error), type(error).__name__
        with self._lock:
            if (place, kind) not in self._known and len(self._known) >= MOST_PLACES:
                place, kind, stage = "elsewhere", "Exception", "any"
            before = self._known.get((place, kind))
            fault = Fault(place=place, kind=kind, stage=stage, first=now, last=now)
            if before is not None:
                fault = msgspec.structs.replace(before, last=now, count=before.count + 1)
            self._known[place, kind] = fault
        return fault

    def each(self, stage: str, items: Iterable[Item], work: Callable[[Item], Result]) -> Iterator[Result]:
        """The result of `work` for each item. An item for which it raises is left out."""
        for item in items:
            with contained(stage):
                yield work(item)

    def in_loop(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Count what a task or callback raised that nobody awaits. This is the loop's exception handler."""
        if (error := context.get("exception")) is not None:
            self.note(error, "in the background")

    def in_thread(self, raised: "threading.ExceptHookArgs") -> None:
        """Count the exception that ended a thread. This is `threading.excepthook`."""
        if isinstance(raised.exc_value, Exception):
            self.note(raised.exc_value, "in a thread")

    def health(self) -> SourceHealth | None:
        """The faults as an entry in the list of sources; None if there are none."""
        if not (faults := self.all()):
            return None
        said = f"{counted(len(self), 'fault')} of jobtui itself; what they concern is missing; {SEE}"
        return SourceHealth(
            name=PACKAGE,
            kind=FAULTS_KIND,
            state=SourceState.PARTIAL,
            read_at=max(fault.last for fault in faults),
            skipped=len(self),
            last_skips=tuple(Skip(fault.place, fault.line) for fault in faults),
            error="\n".join((said, *(fault.line for fault in faults))),
        )


FAULTS = Faults()


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
        if error is None or not is_fault(error):
            return False
        self.fault = FAULTS.note(error, self._stage)
        return True


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
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, Exception)
    try:
        task = asyncio.current_task()
    except RuntimeError:  # in a thread
        return False
    return task is not None and not task.cancelling()


def place_of(error: BaseException) -> str:
    """Module and line of the innermost frame of jobtui that the exception came through.

    If the only frame of jobtui is the one that caught it, this is the place in the library that raised it.
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
