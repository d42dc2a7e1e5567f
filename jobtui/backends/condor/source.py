"""Files of HTCondor and jobsub jobs: user event logs, job ads, submit files, the output of jobs.

The beginning of a file shows what it is. Event logs and outputs are followed like all logs, through rotation;
files that are rewritten as a whole, such as job ads, are read again when they change. Of a log that is larger
than `MOST_BYTES` the end is read, and the beginning, which may name its job. Reads only.

A part that was gone before it was read gives a fact (`LOG_GAP`): a job whose end was in it may be over.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.base import Batch, skipping
from jobtui.backends.log_follow import Follower, OpenLog, Read
from jobtui.backends.log_start import TailBytes
from jobtui.backends.polled_file import PolledFile
from jobtui.formats.condor_events import GROWING, HEAD_BYTES, HEADER, EventReader, Form, form_of
from jobtui.formats.parser import Parsed
from jobtui.model.clock import Nanos
from jobtui.model.condor import LOG_GAP, reason_in
from jobtui.model.health import Skip
from jobtui.model.jobs import ReasonSeen
from jobtui.model.logs import CondorFact, Origin
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.transport.blocks import Limits, Position, skip_at
from jobtui.transport.files import FileStat, OpenFile

LARGEST_BYTES = 64 << 20
"""The largest file that is read as a whole."""
MOST_BYTES = 64 << 20
"""How much of the end of a larger log is read."""
PIECE_BYTES = 1 << 20
"""How much of its beginning is read, too. A larger event is skipped."""
LIMITS = Limits(hold_s=float("inf"))
"""An unfinished line is not part of an event yet, however long that takes."""
GLOBAL_HEAD = b"Global JobLog:"
"""The text of the first event in a schedd's own log, which is rewritten at each rotation."""
GLOBAL_HEAD_BYTES = 1024
"""The first event of such a log is shorter."""
_ENDS: Mapping[Form, bytes] = {Form.CLASSIC: b"\n...\n", Form.XML: b"</c>\n", Form.JSON: b"\n}"}
_BEGINS = {Form.CLASSIC: HEADER, Form.XML: re.compile(b"<c>"), Form.JSON: re.compile(b"{")}
NOT_WRITTEN = "its end is not written yet"
_BLANK = b" \t\r\n\0"
_CLOSING = re.compile(rb"[\s\0,\]]|</classads>")
"""What may follow the last piece."""


class EventParser:
    """Makes facts of one file of a log, block by block. An unfinished event waits for the next block.

    `rotation` and `part` are those of its facts. Where reading begins later its beginning is read, too: it
    names the job of all that follows.
    """

    def __init__(
        self, name: str, read: Read = lambda begin, size: b"", rotation: int = 0, part: int = 0
    ) -> None:
        self._name = name
        self._read = read
        self._form: Form | None = None
        self._log_part = {"rotation": rotation, "part": part} if rotation or part else {}
        self._reader = EventReader(name)
        self._rest, self._at, self._line = b"", 0, 1

    @property
    def unfinished(self) -> tuple[Skip, ...]:
        """The piece that waits for its end."""
        is_blank = not self._rest.strip(_BLANK)
        return () if is_blank else (skip_at(self._name, Position(self._at, 0), NOT_WRITTEN),)

    @property
    def torn(self) -> list[CondorFact]:
        """The fact that an event is not complete, about its job or, with none or a hole, about any."""
        data = self._read(self._at, HEAD_BYTES)
        gap = self._reader.gap(b"" if b"\0" in data else data, self._line, self._at)
        return [msgspec.structs.replace(gap, **self._log_part)] if gap.job or self._form in _ENDS else []

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None:
        return None

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed[CondorFact]:
        facts, skips = list[CondorFact](), list[Skip]()
        if offset and not (self._at or self._rest):
            facts += self._facts(self._read(0, min(PIECE_BYTES, offset)), newest, skips)
            self._rest = b""
        if offset != self._at + len(self._rest):
            skips += self.unfinished
            if self._form in _ENDS:
                gap, words = self._reader.gap(b"", line, offset), f"has a gap before byte {offset}"
                facts.append(msgspec.structs.replace(gap, text=f"{self._name} {words}"))
            end = _ENDS.get(self._form, b"") if self._form else b""
            if self._form in _BEGINS and _BEGINS[self._form].match(block.lstrip(b"\r\n\0")):
                end = b""  # the first event after a hole is whole
            cut = block.find(end) + len(end) if end in block else 0
            self._rest, self._at, self._line = b"", offset + cut, line + block.count(b"\n", 0, cut)
            block = block[cut:]
        facts += self._facts(self._rest + block, newest, skips)
        if self._log_part:
            facts = [msgspec.structs.replace(fact, **self._log_part) for fact in facts]
        return Parsed(facts, block.count(b"\n"), skips)

    def _facts(self, data: bytes, newest: Nanos, skips: list[Skip]) -> list[CondorFact]:
        facts, taken = list[CondorFact](), 0
        if not self._at:  # while nothing was complete
            self._form = form_of(self._read(0, HEAD_BYTES))
        if self._form in GROWING:
            read = self._reader.read(self._form, data, self._at, max(0, self._line), newest)
            facts, taken = read.facts, read.taken
            skips += read.skips
        if len(data) - taken > PIECE_BYTES:
            why = f"bytes without a whole record: {len(data) - taken}"
            skips.append(skip_at(self._name, Position(self._at + taken, 0), why))
            taken = len(data)
        self._rest, self._at = data[taken:], self._at + taken
        self._line += data.count(b"\n", 0, taken)
        return facts


class EventFollower(Follower[CondorFact]):
    """Follows a log of events. Each file has a parser of its own; `parser` is that of the present one."""

    gives = "condor"

    def __init__(self, path: Path, most_bytes: int, limits: Limits) -> None:
        self._name = str(path)
        super().__init__(path, lambda: EventParser(self._name), TailBytes(most_bytes), limits)

    def restart(self) -> None:
        super().restart()
        self.parts = 0
        self.parser = EventParser(self._name)

    def parser_of(self, opened: OpenFile) -> EventParser:
        self.parser = EventParser(self._name, opened.source.read, self.gaps, self.parts)
        self.parts += 1
        return self.parser

    def begin_of(self, read: Read) -> int:
        """After the first event of a schedd's own log."""
        data = read(0, GLOBAL_HEAD_BYTES)
        if GLOBAL_HEAD not in data:
            return 0
        found = (data.find(end) + len(end) for end in _ENDS.values() if end in data)
        return min(found, default=len(data))

    @property
    def unfinished(self) -> tuple[Skip, ...]:
        """The unfinished event in the present file."""
        if self.parser.unfinished or self._current is None or not self._current.unread:
            return self.parser.unfinished
        return (skip_at(self._name, self._current.position, NOT_WRITTEN),)

    def _leave(self, log: OpenLog[CondorFact], how: str) -> None:
        if isinstance(log.parser, EventParser):
            self._gathered.skip(log.parser.unfinished)
            self._gathered.records += log.parser.torn if log.parser.unfinished else []
        super()._leave(log, how)


class WholeRead(NamedTuple):
    """The stat of a file when it was read as a whole, and how much of it could not be read."""

    look: FileStat | None = None
    skips: int = 0


class CondorFile(PolledFile[WholeRead]):
    kind = "condor_log"

    def __init__(self, path: Path, limits: Limits = LIMITS, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(path, "jobs", WholeRead())
        self._follower = EventFollower(path, most_bytes, limits)
        self._gaps = 0
        self._unfinished: tuple[Skip, ...] = ()

    def reasons_in(self, batch: Batch) -> Iterator[ReasonSeen]:
        found = (reason_in(fact) for fact in batch.condor if fact.origin is Origin.AD)
        return (seen for seen in found if seen is not None)

    def _read_since(self, since: WholeRead, opened: OpenFile, look: FileStat) -> tuple[Batch, WholeRead]:
        if since is self._begin:
            self._follower.restart()
            self._gaps, self._unfinished = 0, ()
        form = form_of(opened.source.read(0, HEAD_BYTES))
        if opened.packed is None and (form is None or form in GROWING):
            return self._poll_follower(Nanos(look.mtime_ns)), WholeRead()
        if since.look == look:
            return Batch(), since
        self._follower.restart()
        return self._read_whole(opened, look, form or Form.OUTPUT, since)

    def _poll_follower(self, written_at: Nanos) -> Batch:
        batch = self._follower.poll()
        facts = list(batch.condor)
        before, self._unfinished = self._unfinished, () if batch.more else self._follower.unfinished
        torn = self._unfinished if before != self._unfinished else ()
        ends = [facts.pop()] if facts and not batch.more else []
        ends += self._follower.parser.torn if torn else []
        facts += (msgspec.structs.replace(fact, written_at=written_at) for fact in ends)
        if (gaps := self._follower.gaps) > self._gaps:
            self._gaps = gaps
            why = f"{self.name} was rotated or truncated, and a part was gone before it was read"
            gap = CondorFact("", Origin.EVENT, LOG_GAP, None, why, self.name, 0, -1, rotation=gaps)
            facts.insert(0, gap)
        return msgspec.structs.replace(
            batch, condor=tuple(facts), count=len(facts),
            skipped=(*batch.skipped, *torn), skip_count=batch.skip_count + len(torn),
            recovered=int(bool(before) and before != self._unfinished),
        )  # fmt: skip

    def _read_whole(
        self, opened: OpenFile, look: FileStat, form: Form, since: WholeRead
    ) -> tuple[Batch, WholeRead]:
        data = opened.source.read(0, LARGEST_BYTES)
        read = EventReader(self.name).read(form, data, 0, 1, Nanos(look.mtime_ns), to_end=True)
        skips = list(read.skips)
        if _CLOSING.sub(b"", data[read.taken :]):
            skips.append(skip_at(self.name, Position(read.taken, 0), "its end was never written"))
        note = opened.packed.broken if opened.packed is not None else None
        if opened.source.read(LARGEST_BYTES, 1):
            note = f"is larger than {LARGEST_BYTES >> 20} MiB: the rest is not read"
        batch = Batch(condor=tuple(read.facts), recovered=since.skips, count=len(read.facts), note=note)
        return skipping(batch, skips), WholeRead(look, len(skips))


def open_source(spec: SourceSpec, window: ReadWindow) -> CondorFile:
    return CondorFile(Path(spec.target))
