"""A log file as a source, and the questions about its raw lines. Follows it by name; never blocks the loop.

All reading is done in threads: one follows, and a question about lines opens the file again, in a thread of
its own. A file system that hangs delays neither others nor the end of the program.

Line numbers are true ones, except that in a file so large that the lines before the tail are not counted
they are provisional (see `model.logs`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from jobtui.backends import log_start
from jobtui.backends.base import Batch, PolledSource, RecordReader, Source
from jobtui.backends.log_follow import Follower
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, LogClock, Nanos
from jobtui.model.health import SourceError, contained
from jobtui.model.ids import JobId, jid_of_run_dir
from jobtui.model.logs import LogRecord
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.transport.blocks import Limits
from jobtui.transport.files import FileStat, look_quietly, opened_file, written_at
from jobtui.transport.log_files import begins_with, rotated
from jobtui.transport.watch import Watch
from jobtui.transport.worker import Worker

T = TypeVar("T")
OVERLAP = 2 * SECOND
"""How much of what another log gave is read again by a log that is now read itself: lines are in pairs."""

PROBE_BYTES = 1 << 20
RUNS_COMPARED = 12
"""With the records of how many jobs the lines of one batch are compared."""


def _job_dated(record: LogRecord) -> JobId | None:
    """The job of a line that a record dates, too: a run is requested, begins or ends."""
    fields = record.fields
    if record.shape == "status_update":
        return JobId(fields["jid"] or "")
    is_run = fields.get("name") == "run" or fields.get("api") == "api_runSimulation"
    return jid_of_run_dir(fields.get("run_dir") or "") if is_run else None


def _moments(readers: Iterable[RecordReader], job_id: JobId) -> Iterator[Nanos]:
    """When the runs of a job were requested, began, and last gave news, by its records."""
    details = (reader.read_record(job_id) for reader in readers)
    for run in (run for detail in details if detail is not None for run in detail.runs):
        yield from filter(None, (run.queued_at, run.started_at, run.updated_at))


class LogFile(PolledSource):
    """A growing log file. `name` is the path as it was given.

    `start` says where to begin reading. `limits` bound what is held at once. The parser factory is called
    with the name whenever reading begins.
    """

    kind = "logfile"

    parser_factory: Callable[[str], log_start.BlockParser[LogRecord]] = LogParser
    limits = Limits()

    def __init__(self, path: Path, *, start: log_start.Start | None = None) -> None:
        super().__init__(str(path))
        self._path = path
        self.clock_of_lines = LogClock()
        begins = start or log_start.TailBytes()
        self._follower = Follower(path, self._make_parser, begins, self.limits, self.timer)
        self._worker = Worker(f"logfile {path}")
        self._watch = Watch(self._worker, [path], lambda: look_quietly(path) != self._looked)
        self._looked: FileStat | None = None
        self.others: Callable[[], Iterable[Source]] = tuple
        """All logs that are read; this one is not read if one before it is the same file."""
        self._led_by: LogFile | None = None
        """The log that gives what is in this one; until it ends, this one is not read."""
        self._since = Nanos(0)
        self._read_to: Nanos | None = None
        """The time of the last record that it, or the log in its place, has given."""
        self._leader: tuple[LogFile, float] | None = None
        """The log that was the same file at the last look, and the time of that look."""
        self._compared: tuple[tuple[str, FileStat, FileStat] | None, bool] = None, False
        self._kept: Batch | None = None
        """What a failed poll had read. The next one gives it once, as it may be the reason."""

    @property
    def beginning(self) -> log_start.Beginning | None:
        return self._follower.beginning

    @property
    def measured(self) -> tuple[int, int]:
        return self._follower.measured

    def _make_parser(self) -> log_start.BlockParser[LogRecord]:
        parser = self.parser_factory(self.name)
        if isinstance(parser, LogParser):
            parser.clock = self.clock_of_lines
        return parser

    def _learn_clock(self, records: Sequence[LogRecord], readers: Sequence[RecordReader]) -> None:
        """Learn the zone of lines from the records of the jobs that some of them name."""
        own = [one for one in records if readers and one.at is not None and one.container is None]
        own = [one for one in own if one.shape != "op_arrived"] or own  # an agent may have a zone of its own
        dated = [(one.at or Nanos(0), job_id) for one in own if (job_id := _job_dated(one)) is not None]
        some = dated[:: len(dated) // RUNS_COMPARED + 1]
        self.clock_of_lines.learn((at, _moments(readers, job_id)) for at, job_id in some)

    def begins_after(self, at: Nanos) -> bool:
        beginning = self.beginning
        if self.until is not None or beginning is None or beginning.whole or beginning.timeless:
            return False
        return beginning.at is None or beginning.at > at

    def starting_at(self, at: Nanos) -> "LogFile":
        fresh = type(self)(self._path, start=log_start.FromTime(at))
        fresh.others, fresh.until = self.others, self.until
        return fresh

    async def read(self, *, begins: bool) -> Batch:
        batch = await self._worker.run(lambda: self._poll(begins=begins))
        self._kept = None
        return batch

    def _poll(self, *, begins: bool) -> Batch:
        again = None if begins else self._kept
        self._looked = look_quietly(self._path)
        readers = [one for one in self.others() if isinstance(one, RecordReader)]
        if begins:
            self._follower.restart()
        if begins and readers:  # from its end: a time may be sought in it before it is read
            with contained("reading a log"), suppress(SourceError, OSError), opened_file(self._path) as log:
                begin = max(0, log.look().size - PROBE_BYTES) if log.packed is None else 0
                block, newest = log.source.read(begin, PROBE_BYTES), written_at(log, log.look())
                self._learn_clock(LogParser(self.name).parse(block, begin, 0, newest).records, readers)
        if (note := self._read_elsewhere()) is not None:
            self._read_to = self._led_by._read_to if self._led_by is not None else None
            return Batch(note=note)
        leader, self._led_by = self._led_by, None
        if leader is not None and not self._follower.files and leader.beginning is not None:
            # from where the other has read to: an old line would no longer be recognized
            at = self._read_to
            self._since = Nanos(0) if at is None else Nanos(at - OVERLAP)
            self._follower.start = log_start.TailBytes(0) if at is None else log_start.FromTime(self._since)
        batch = self._follower.poll() if again is None else structs.replace(again, more=True)
        self._learn_clock(batch.records, readers)
        self._kept = batch if again is None else None
        self._read_to = next((one.at for one in reversed(batch.records) if one.at is not None), self._read_to)
        if self._since:  # packed files are read from their start
            kept = tuple(one for one in batch.records if one.at is None or one.at >= self._since)
            batch = structs.replace(batch, records=kept)
        notes = "; ".join(filter(None, (batch.note, self.clock_of_lines.words)))
        if leader is not None or notes:
            batch = structs.replace(batch, note=notes)  # a note about the leader is no longer true
        return batch

    def _read_elsewhere(self) -> str | None:
        """The note while another log holds all that this one does; None when none does.

        A path given twice, a link, a copy, a log and a file that was rotated away from it. What is read again
        after that is recognized line by line, as in copies that are both read.
        """
        mine, is_before = self._looked, True
        if mine is None:
            return None
        others = [one for one in self.others() if isinstance(one, LogFile)]
        for other in others:
            if self._path.parent == other._path.parent and self._path in rotated(other._path):
                self._led_by = other
                return f"rotated file of {other.name}, read with it: its lines count once"
        for other in others:
            if other.name == self.name:
                is_before = False
                continue
            theirs = look_quietly(other._path)
            is_same = mine.id in other._follower.files or (theirs is not None and mine.id == theirs.id)
            if is_same:
                self._leader = other, self.timer()
            if is_same or self._is_just_parted(other):
                # the one with the rotated files next to it is read
                has_rotated, others_has = bool(rotated(self._path)), bool(rotated(other._path))
                if others_has if has_rotated != others_has else is_before:
                    self._led_by = other
                    return f"same file as {other.name}, read there: its lines count once"
            is_open = bool(self._follower.files) or other._led_by is not None
            if not is_open and self._is_copy_of(other, mine, is_before):
                self._led_by = other
                return f"same lines as {other.name}, read there: they count once"
        return None

    def _is_just_parted(self, other: "LogFile") -> bool:
        """Whether another log was the same file just now, and may not have read all before this one.

        It is being rotated, and read before or after that is done.
        """
        if self._leader is None or self._leader[0] is not other:
            return False
        seen, follower, (read, size) = look_quietly(other._path), other._follower, other.measured
        is_here = follower.is_missing if seen is None else seen.id in follower.files
        return not is_here or read != size or self.timer() - self._leader[1] < self.limits.gone_s

    def _is_copy_of(self, other: "LogFile", mine: FileStat, is_before: bool) -> bool:
        """Whether another file begins with all that is in this one; of two that are the same, the later."""
        theirs = look_quietly(other._path)
        if theirs is None or not 0 < mine.size <= theirs.size or (mine.size == theirs.size and not is_before):
            return False
        key = (other.name, mine, theirs)
        if self._compared[0] != key:
            self._compared = key, False
            with suppress(SourceError), opened_file(other._path) as whole, opened_file(self._path) as part:
                self._compared = key, begins_with(whole, part, mine.size)
        return self._compared[1]

    async def changed(self, timeout_s: float) -> None:
        rest_s = self._follower.rest_s
        await self._watch.changed(timeout_s if rest_s is None else min(timeout_s, rest_s))

    async def aclose(self) -> None:
        await super().aclose()
        self._watch.close()
        await self._worker.finish(self._follower.close)


def open_source(spec: SourceSpec, window: ReadWindow) -> LogFile:
    from_time = None if window.since is None else log_start.FromTime(window.since)
    return LogFile(Path(spec.target), start=log_start.FromStart(window.since) if window.whole else from_time)
