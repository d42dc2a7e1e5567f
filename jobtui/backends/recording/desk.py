"""What is asked about one job, answered out of a recording, and kept for one.

The answers are kept as they were given, secrets masked, under a key that holds all of the question.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from jobtui.backends.base import Source
from jobtui.backends.job_desk import SessionDesk, Told, nothing_told
from jobtui.backends.recording.codec import What
from jobtui.backends.recording.replayed import ReplayClock
from jobtui.backends.recording.tape import Tape
from jobtui.backends.worker import Worker
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.job_desk import FilePart, JobDesk, LinePlace, Noted, Reached, RunListing, Unreadable
from jobtui.model.jobs import JobDetail
from jobtui.model.lines import RawLine
from jobtui.model.scripts import Answer, Wanted

DESK = "desk"
"""What stands for a source with answers that are of no source alone."""
NOT_KEPT = "is not in the recording"
BETWEEN = "\t"
MOST_LINES = 101
"""Lines behind a step that are kept."""

Keep = Callable[[What, str, object], None]
T = TypeVar("T")


def key_of_step(step: LinePlace) -> str:
    """What the lines behind a step are kept under."""
    return BETWEEN.join((step.source, str(step.offset), step.cursor or ""))


class KeepingDesk:
    """A desk whose answers are kept."""

    def __init__(self, desk: JobDesk, keep: Keep) -> None:
        self._desk = desk
        self._keep = keep

    def begins_after(self, at: Nanos) -> bool:
        """As the desk says."""
        return self._desk.begins_after(at)

    async def reach_back(self, at: Nanos, progress: Callable[[Reached], None]) -> bool:
        """As the desk does."""
        return await self._desk.reach_back(at, progress)

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """As the desk says; kept by who knows from which source it is."""
        return await self._desk.detail(job_id)

    async def lines_behind(self, step: LinePlace, most: int) -> tuple[RawLine, ...]:
        """As many as are kept, of which `most` are given."""
        lines = await self._desk.lines_behind(step, max(most, MOST_LINES))
        self._keep(What.LINES, key_of_step(step), lines)
        return lines[:most]

    async def list_files(self, path: str) -> RunListing:
        """The entries of a run directory."""
        return await self._kept(What.LISTING, path, self._desk.list_files(path))

    async def read_file(self, path: str, name: str, *, tail: bool) -> FilePart:
        """A part of a file of a run directory."""
        key = BETWEEN.join((path, name, str(tail)))
        return await self._kept(What.FILE, key, self._desk.read_file(path, name, tail=tail))

    async def noted_on_cluster(self, paths: Iterable[str]) -> Noted | None:
        """What the agent on a cluster noted of a run."""
        named = tuple(paths)
        return await self._kept(What.NOTED, BETWEEN.join(named), self._desk.noted_on_cluster(named))

    async def script(self, wanted: Wanted) -> Answer:
        """As the desk says; a script is not kept, as it may hold secrets of any form."""
        return await self._desk.script(wanted)

    async def _kept(self, what: What, key: str, asking: Awaitable[T]) -> T:
        """An answer, or why there is none, which is kept too."""
        try:
            answer = await asking
        except Unreadable as error:
            self._keep(what, key, str(error))
            raise
        self._keep(what, key, answer)
        return answer


class TapeDesk(SessionDesk):
    """Answers as they were given when the recording was made."""

    def __init__(
        self,
        sources: Callable[[], Sequence[Source]],
        tape: Tape,
        worker: Worker,
        clock: ReplayClock,
        told: Told = nothing_told,
    ) -> None:
        super().__init__(sources, _stays, told)
        self._tape = tape
        self._worker = worker
        self._clock = clock

    async def lines_behind(self, step: LinePlace, most: int) -> tuple[RawLine, ...]:
        """The lines that were kept; the one of the step itself where they were not."""
        found = await self._answer(What.LINES, key_of_step(step))
        if found is None:
            return (RawLine(step.line if step.line > 0 else None, step.offset, step.text),)
        lines: tuple[RawLine, ...] = found
        return lines[:most]

    async def list_files(self, path: str) -> RunListing:
        """The entries of a run directory. Raises Unreadable."""
        listing: RunListing = self._given(await self._answer(What.LISTING, path), path)
        return listing

    async def read_file(self, path: str, name: str, *, tail: bool) -> FilePart:
        """A part of a file of a run directory. Raises Unreadable."""
        key = BETWEEN.join((path, name, str(tail)))
        part: FilePart = self._given(await self._answer(What.FILE, key), f"{path}/{name}")
        return part

    async def noted_on_cluster(self, paths: Iterable[str]) -> Noted | None:
        """What the agent on a cluster noted of a run, None when that was not kept."""
        noted: Noted | None = await self._answer(What.NOTED, BETWEEN.join(paths))
        return noted

    async def _answer(self, what: What, key: str) -> Any:
        number = self._tape.source(DESK, "")
        if number is None:
            return None
        until = self._clock.now()
        found = await self._worker.run(lambda: self._tape.answer(what, number, key, until))
        return None if found is None else found.value

    @staticmethod
    def _given(answer: object, what: str) -> Any:
        """The answer. Raises Unreadable when there is none, or it says why there was none."""
        if answer is None or isinstance(answer, str):
            raise Unreadable(answer or f"{what}: {NOT_KEPT}")
        return answer


async def _stays(at: Nanos, progress: Callable[[Reached], None]) -> bool:
    """Everything that was kept is read already."""
    return False
