"""What a run will do once its program is started: how long, with what progress, and how it ends."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec


class Ending(StrEnum):
    """How a program ends when nobody interferes."""

    COMPLETED = "completed"
    RAISES = "raises"
    KILLED = "killed"
    PREPARE_FAILS = "prepare_fails"


class Progress(msgspec.Struct, frozen=True):
    """A sign of life: seconds since the start, percent done, frames written."""

    at_s: float
    percent: float
    frames: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One run's program.

    `duration_s` counts from its start, `queued_s` is its wait on a cluster. `whole_s` is how long it would
    take to its end, for one that ends before (0: as long as it takes).
    """

    ending: Ending = Ending.COMPLETED
    duration_s: float = 2.0
    error: str | None = None
    frames: int = 10
    whole_s: float = 0.0
    queued_s: float = 10.0
    log: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """The state it ends in."""
        return "completed" if self.ending is Ending.COMPLETED else "error"

    def progress(self, every_s: float = 2.0) -> Iterator[Progress]:
        """What it reports on the way: at most every `every_s`, and only when there is something new."""
        reported = 0
        steps = int(self.duration_s // every_s)
        for step in range(1, steps + 1):
            progress = self.after(step * every_s)
            if progress.frames > reported or step == 1:
                reported = progress.frames
                yield progress

    def after(self, seconds: float) -> Progress:
        """How far it is so long after its start."""
        share = min(seconds / (self.whole_s or self.duration_s), 1.0)
        return Progress(seconds, round(100 * share, 4), int(self.frames * share))


def parallel_status(percent: float, frames: int, model: str, second: int) -> dict[str, object]:
    """Progress as an agent reports it."""
    reports = [{"modelName": model, "frameCount": frames}] if frames else []
    return {"frameCount": frames, "percentComplete": percent, "lastUpdateTime": second, "reports": reports}
