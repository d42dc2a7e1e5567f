"""A recording in place of the systems that it was made of: what is asked of them, it answers."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from jobtui.backends.base import DetailSource, Source, TraceSource
from jobtui.backends.job_desk import Told
from jobtui.backends.recording.asked import ReplayedScripts, ReplayedTraces
from jobtui.backends.recording.desk import TapeDesk
from jobtui.backends.recording.logs import TapeLogs
from jobtui.backends.recording.player import TapePlayer
from jobtui.backends.recording.replayed import ReplayClock, ReplayedJobs, ReplayedSource
from jobtui.backends.recording.tape import Tape
from jobtui.backends.registry import LOG_KINDS
from jobtui.backends.worker import Worker
from jobtui.model.clock import Nanos
from jobtui.model.job_desk import JobDesk
from jobtui.model.pages import LogBook
from jobtui.model.playing import Player
from jobtui.model.scripts import ScriptPlace


@runtime_checkable
class Scheduler(DetailSource, ScriptPlace, Protocol):
    """A source that tells of jobs and has their scripts."""


class ReplayedScheduler(ReplayedJobs, ReplayedScripts):
    """A scheduler as it was, and as it answered."""


KINDS: tuple[tuple[type, type[ReplayedSource]], ...] = (
    (Scheduler, ReplayedScheduler),
    (ScriptPlace, ReplayedScripts),
    (TraceSource, ReplayedTraces),
    (DetailSource, ReplayedJobs),
)
"""What stands for a source that can do more than deliver."""


class TapeStage:
    """See `backends.staging.Stage`. `clock` is the time the recording is at: at first when it was made."""

    def __init__(self, path: Path, at: Nanos | None = None) -> None:
        self.tape = Tape(path)
        self.clock = ReplayClock(self._present() if at is None else at)
        self._worker = Worker(f"replay {path}")

    def _present(self) -> Nanos:
        """When a bundle was made; the end of a recording."""
        about = self.tape.about
        return about.at if about.job_id else self.tape.ends_at or about.at

    def cast(self, source: Source) -> Source:
        """What is polled in place of a source, which itself is never opened."""
        make = next((kind for known, kind in KINDS if isinstance(source, known)), ReplayedSource)
        number = self.tape.source(source.kind, source.name)
        return make(self.tape, self._worker, self.clock, source.kind, source.name, number)

    def desk(self, sources: Callable[[], Sequence[Source]], told: Told) -> JobDesk:
        """What answers questions about one job."""
        return TapeDesk(sources, self.tape, self._worker, self.clock, told)

    def logs(self, sources: Callable[[], Sequence[Source]]) -> LogBook:
        """The logs that can be read line by line."""
        return TapeLogs(self.tape, self._worker, self.clock, lambda: _numbers(sources()))

    def player(self, begin_anew: Callable[[], Awaitable[None]]) -> Player:
        """What goes through its time."""
        return TapePlayer(self.tape, self._worker, self.clock, begin_anew)

    def close(self) -> None:
        """Let the recording go."""
        self._worker.close(self.tape.close)


def _numbers(sources: Sequence[Source]) -> tuple[int, ...]:
    """The numbers of the logs among these."""
    return tuple(
        source.number
        for source in sources
        if isinstance(source, ReplayedSource) and source.kind in LOG_KINDS and source.number is not None
    )
