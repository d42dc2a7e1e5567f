"""Reads what the programs of jobs wrote: the end of each file, at once or as it grows."""

import asyncio
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from time import monotonic
from typing import TYPE_CHECKING

from jobtui.analysis.paths import OUTPUT_ENDS, OUTPUT_NAMES, output_dirs, reached, run_dirs_of
from jobtui.analysis.timeline import JobLine
from jobtui.analysis.times import age
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.ids import condor_id, jid_of_run_dir
from jobtui.model.job_reader import FileKind, FilePart, Unreadable
from jobtui.model.jobs import SLURM, Job, JobDetail, JobStatus
from jobtui.model.ops import Certainty, Component, Op
from jobtui.model.secrets import masked_lines
from jobtui.model.settings import ClusterAccess
from jobtui.model.state_runs import last_error

if TYPE_CHECKING:
    from jobtui.backends.job_reader import JobReader
    from jobtui.store.store import Store

SCRIPT_ENDS = (".sbatch", ".slurm", ".sh", ".bash", ".pbs", ".sub")
ROTATED_ENDS = (".1", ".gz", ".1.gz")
MOST_OUTPUTS, MOST_SCRIPTS = 6, 3
LISTED_EVERY_S = 30.0
"""How often new files of a job are searched for while the known ones are followed."""
CLOCKS_APART_S = 60
"""A file last written this long before a run began is of an earlier run."""


class Outputs:
    """Reads the end of each file that the program of one job wrote to, MOST_OUTPUTS at most.

    `parts` are these with their directories, `problems` say why a named file cannot be read, `notes` what may
    be missing in the list of a directory, `shared` why a file may be of another run, by its path: it was last
    written before this run or, in a directory that jobs share and without the number in its path, after it.
    """

    def __init__(self, job_reader: "JobReader", job: Job, reach: ClusterAccess) -> None:
        self._reader, self._job, self._reach = job_reader, job, reach
        self._begin = 0 if job.started_at is None else job.started_at - CLOCKS_APART_S * SECOND
        self._number = job.id.rpartition("/")[2].partition("@")[0].partition(".")[0]
        self._is_own = re.compile(rf"(?<!\d)(?<!\d_){re.escape(self._number)}(?!\d|[_-]\d)").search
        self.shared: dict[str, str] = {}
        self.parts: list[tuple[str, FilePart]] = []
        self.problems: list[str] = []
        self.notes: list[str] = []

    async def read_all(self, detail: JobDetail | None, ops: Sequence[Op]) -> None:
        """Read the files its record names, else those in its run directory, and what scripts there write."""
        for name, dirs in output_dirs(detail, self._reach).items():
            await self.read_named(name, dirs)
        faults, directories = list[str](), run_dirs_of(self._job, detail, ops, self._reach)
        command = dict(detail.facts).get("command", "") if detail is not None else ""
        for directory in directories:
            try:
                await self.read_in(directory, command)
                break
            except Unreadable as error:
                faults.append(str(error))
        if len(faults) == len(directories) and self._job.started_at is not None:
            self.problems += [] if self.parts or self.problems else faults[:1]

    async def read(self, directory: str, name: str, since: Nanos | int = 0) -> None:
        """Read a file unless its name was read, it is older, or there are enough. Raises Unreadable."""
        if len(self.parts) < MOST_OUTPUTS and all(name != known.name for _, known in self.parts):
            part = await self._reader.read_file(directory, name, tail=True)
            self.parts += [(directory, part)] if part.written_at >= since else []
            path, at, end = posixpath.join(directory, name), part.written_at, self._job.ended_at
            if self._is_shared(directory) and not self._is_own(path):
                if at < self._begin:
                    self.shared[path] = f"{path} was last written before this job began"
                elif end is not None and (late_s := seconds_between(end, at)) > CLOCKS_APART_S:
                    when = f"{age(late_s)} after this job, perhaps by another"
                    self.shared[path] = f"{path} was last written {when}"

    def _is_shared(self, directory: str) -> bool:
        """Whether other jobs may write to a directory."""
        is_batch = self._job.system == SLURM or condor_id(self._job.id) is not None
        is_own = jid_of_run_dir(directory) is not None or posixpath.basename(directory) == self._job.id
        return is_batch and not is_own

    async def read_named(self, name: str, directories: Sequence[str]) -> None:
        """Read a file from the first directory that has it; if none does, the first problem is kept."""
        faults = []
        for directory, end in product(directories, ("", *ROTATED_ENDS)):
            try:
                await self.read(directory, f"{name}{end}")
                return
            except Unreadable as error:
                faults.append(f"{name}: {error}")
        self.problems += faults[:1]

    async def read_in(self, directory: str, command: str) -> None:
        """Read files that look like output, if none is named, and those scripts write. Raises Unreadable.

        In a directory that other jobs may share only files with the job's number in their name count, and
        those to which its own script writes.
        """
        from jobtui.analysis.scripts import redirected  # few look so far

        listing = await self._reader.list_files(directory)
        self.notes += [f"{directory}: {listing.note}"] if listing.note else []
        files = [one for one in listing.files if one.kind is FileKind.FILE]
        own, is_shared = self._job.allocation.partition(" ")[0] or self._number, self._is_shared(directory)
        outputs = [one for one in files if one.name.endswith(OUTPUT_ENDS)]
        outputs = [one for one in outputs if not is_shared or self._is_own(one.name)]
        fresh = [] if self.parts else [one.name for one in outputs if one.written_at >= self._begin]
        for one in () if self.parts else outputs:
            if one.written_at < self._begin and one.name in OUTPUT_NAMES:
                path = posixpath.join(directory, one.name)
                self.shared[path] = f"{path} was last written before this run began"
        for name in sorted(fresh, key=lambda name: (name not in OUTPUT_NAMES, name))[:MOST_OUTPUTS]:
            with suppress(Unreadable):
                await self.read(directory, name)
        # A command comes with its arguments
        scripts = [one.name for one in files if f"/{one.name} " in f"{command} "]
        if not command and not is_shared:
            scripts = [one.name for one in files if one.name.endswith(SCRIPT_ENDS)]
        for script in scripts[:MOST_SCRIPTS]:
            with suppress(Unreadable):
                text = (await self._reader.read_file(directory, script, tail=False)).text
                above, user, _ = f"{directory}/".partition(f"/{self._job.owner or None}/")
                home = f"{above}{user}"[:-1] if user and above[:1] == "/" else ""
                names = own, self._number, self._job.name or "", self._job.owner, home
                for path in redirected(text, *names):
                    for place in (path,) if path[0] != "/" else reached(path, self._job.host, self._reach):
                        with suppress(Unreadable):
                            file = posixpath.split(posixpath.join(directory, place))
                            await self.read(*file, since=self._begin)


class OutputLines:
    """What the program of a job writes, line by line: the end of each file, then new lines; masked.

    `problems` say what may be missing, `skipped` how many bytes of which files were not read. With `follows`
    a line of a live job is given when it is complete. Files that were found are read by name, and others are
    searched for every LISTED_EVERY_S, when the record has changed and while there are problems.
    """

    def __init__(self, job: Job, detail: JobDetail | None, *, follows: bool) -> None:
        self.job, self.detail, self._follows = job, detail, follows
        self._listed: Job | None = None
        self._listed_at = 0.0
        self._ends: dict[str, int] = {}
        self.files: Sequence[tuple[str, FilePart]] = ()
        self.problems: list[str] = []
        self.skipped: list[tuple[str, int]] = []

    async def fresh(
        self, store: "Store", job_reader: "JobReader", reach: ClusterAccess, *, again: bool = False
    ) -> list[JobLine]:
        """The lines that are new since the last call; with `again` all, as for a file that was rewritten."""
        listed = store.job(self.job.id) or self.job
        is_due = bool(self.problems) or monotonic() >= self._listed_at + LISTED_EVERY_S
        known = () if is_due or self._listed != listed else self.files
        self._listed_at = self._listed_at if known else monotonic()
        self._ends = {} if again else self._ends
        if self._listed not in (None, listed):
            with suppress(Unreadable):
                self.detail = await job_reader.detail(listed.id)
            self.job = listed
        self._listed, ops = listed, store.correlation.ops_of(listed.id)
        outputs = Outputs(job_reader, store.with_agent(self.job), reach)
        with suppress(Unreadable):
            for directory, part in known:
                await outputs.read(directory, part.name)
        if not known or len(outputs.parts) < len(known):
            outputs = Outputs(job_reader, store.with_agent(self.job), reach)
            await outputs.read_all(self.detail, ops)
        self.files, self.skipped = outputs.parts, []
        self.problems = [*outputs.problems, *outputs.notes, *outputs.shared.values()]
        if self.job.status is JobStatus.PENDING and not outputs.parts:
            self.problems.append(f"does not exist yet: {self.job.id} is pending")
        waits, parts = self._follows and listed.status.is_live, outputs.parts
        if not parts:
            return [*self._of_event()]
        return await asyncio.to_thread(lambda: [line for part in parts for line in self._lines(*part, waits)])

    def _of_event(self) -> Iterator[JobLine]:
        """The end of its output that the event of its last error has, once; masked."""
        end = last_error(self.detail.changes) if self.detail is not None else None
        if end is None or self._ends.get(end.source) == end.id:
            return
        self._ends[end.source] = end.id
        texts = masked_lines(str((end.detail or {}).get("error") or "").splitlines())
        for nth, text in enumerate(texts, 1):
            origin, sure = (f"{end.source} event {end.id}", nth, nth), Certainty.FULL_ID
            yield JobLine("", end.at, Component.JOB, text, *origin, sure, job_id=self.job.id)

    def _lines(self, directory: str, part: FilePart, waits: bool) -> Iterator[JobLine]:
        path = f"{directory}/{part.name}"
        if part.is_binary:
            self.problems.append(f"{part.name}: {path}: not text; it is left out")
            return
        known = self._ends.get(path, 0)
        known = known if part.size >= known else 0  # else it was rewritten
        if part.begin > known:
            self.skipped.append((path, part.begin - known))
        offset, texts = part.begin, part.text.splitlines(keepends=True)
        masked = masked_lines(text.rstrip("\r\n") for text in texts)
        for nth, (text, shown) in enumerate(zip(texts, masked, strict=True), 1):
            if waits and not text.endswith("\n"):
                break
            if offset >= known:
                number = 0 if part.lines_before is None else part.lines_before + nth
                origin, sure = (path, number, offset), Certainty.FULL_ID
                yield JobLine("", None, Component.JOB, shown, *origin, sure, job_id=self.job.id)
            offset += len(text.encode())
        self._ends[path] = offset
