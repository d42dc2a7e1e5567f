"""The script and environment with which a batch job was submitted, and the sources that were asked for them.

A job is known here by its number in the scheduler and the label of its cluster. All of it is outside text as
it was found: not masked, not safe for a terminal.
"""

from collections.abc import AsyncGenerator, Callable
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from jobtui.model.clock import Nanos


class Scheduler(StrEnum):
    SLURM = "slurm"
    TORQUE = "torque"


class Variable(NamedTuple):
    """One entry of an environment. `value` is None where there was no `=`."""

    name: bytes
    value: bytes | None = b""


class Environment(msgspec.Struct, frozen=True):
    """What a job was submitted with, in the order in which it is kept.

    `announced` is how many entries the file says it has, None where nothing says so. `mended` are names that
    were kept damaged. With `is_files` the entries are the scheduler's own files about the job, by name.
    """

    variables: tuple[Variable, ...]
    announced: int | None = None
    mended: tuple[bytes, ...] = ()
    is_files: bool = False

    @property
    def is_whole(self) -> bool:
        return self.announced is None or self.announced == len(self.variables)

    def value(self, name: str) -> str | None:
        wanted = name.encode()
        found = next((v.value for v in self.variables if v.name == wanted and v.value is not None), None)
        return None if found is None else text_of(found)


class ArchivedScript(msgspec.Struct, frozen=True, kw_only=True):
    """A script as one source keeps it, byte for byte, and its environment where that is kept too.

    `number` is the job's own, `source` the file or document. `is_lossy` says that bytes which were no text
    had been replaced before it was kept. `notes` are what a reader has to know about it.
    """

    number: str
    script: bytes
    source: str
    cluster: str = ""
    scheduler: Scheduler = Scheduler.SLURM
    environment: Environment | None = None
    archived_at: Nanos | None = None
    is_lossy: bool = False
    notes: tuple[str, ...] = ()


class Outcome(StrEnum):
    """How the search in one source ended, in the words that are shown."""

    FOUND = "found"
    NOT_THERE = "not there"
    DENIED = "not permitted"
    BEGAN_LATER = "archive started later"
    INTERACTIVE = "interactive job has none"
    ARRAY = "array"
    OTHER_CLUSTER = "on another cluster"
    NO_ARCHIVE = "no archive there"
    NO_ANSWER = "no answer"
    REFUSED = "refused"


class Tried(NamedTuple):
    where: str
    outcome: Outcome
    note: str = ""

    @property
    def result(self) -> str:
        return f"{self.outcome}: {self.note}" if self.note else str(self.outcome)


class Wanted(NamedTuple):
    """The job whose script is wanted. `number` is that of the array where `task` is set.

    `server` ends the ids of Torque. `submitted_at` tells apart the jobs that had one number after another;
    without it the newest up to `until` is meant. `is_batch` is False for a job that can have no script.
    """

    number: str
    task: str = ""
    cluster: str = ""
    server: str = ""
    submitted_at: Nanos | None = None
    until: Nanos | None = None
    is_batch: bool = True

    @property
    def shown(self) -> str:
        task = f"_{self.task}" if self.task else ""
        return f"{f'{self.cluster}/' if self.cluster else ''}{self.number}{task}{self.server}"


class Answer(NamedTuple):
    """The script if one source has it, and the outcome of each."""

    script: ArchivedScript | None
    tried: tuple[Tried, ...]


class ScriptPeriod(NamedTuple):
    """Which part of an archive to go through, at most `most` scripts of it."""

    since: Nanos | None = None
    until: Nanos | None = None
    most: int = 100_000


class Walked(NamedTuple):
    """What going through an archive gave next: a script, why one cannot be read, or why it ends early."""

    script: ArchivedScript | None = None
    unreadable: str = ""
    cut: str = ""


@runtime_checkable
class ScriptSource(Protocol):
    """Where scripts are kept. All methods raise `SourceError` and nothing else."""

    @property
    def name(self) -> str: ...

    @property
    def cluster(self) -> str:
        """The label of the cluster whose scripts these are, "" where that is not known or differs."""

    async def find(self, wanted: Wanted) -> Answer: ...


@runtime_checkable
class ScriptArchive(ScriptSource, Protocol):
    """A source whose scripts can be gone through one by one."""

    def walk(self, span: ScriptPeriod, progress: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        """Every script in reach, newest first if the archive has an order. `progress` hears where it is."""


def text_of(data: bytes) -> str:
    """Bytes as text, with each byte that is not UTF-8 written as an escape."""
    return data.decode("utf-8", "backslashreplace")
