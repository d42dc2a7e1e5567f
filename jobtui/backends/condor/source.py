"""Files of HTCondor and jobsub jobs: user event logs, job ads, submit files, the output of jobs.

What a file is, its beginning tells. Event logs and outputs are read on where reading ended, as they grow;
what is rewritten as a whole, as job ads are, is read again when it changed. Of a file that is larger than
`MOST_BYTES` the beginning and the end are read, and that is said. Reads only.

A log that was rotated is read to its end under its new name before the next one. Of a schedd's own log, which
tells by its first event that it is one, the older files are read first. What was gone before it was read is
told as a fact (`LOG_GAP`), so that jobs in it are not taken to go on for ever.
"""

import itertools
import re
import zlib
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.base import Batch, skipping
from jobtui.backends.polled_file import PolledFile
from jobtui.formats.condor_events import GROWING, HEAD_BYTES, EventReader, Form, form_of
from jobtui.formats.job_output import FactsRead
from jobtui.model.clock import Nanos
from jobtui.model.condor import LOG_GAP, CondorFact, Origin
from jobtui.model.health import Skip, SourceError
from jobtui.model.specs import SourceSpec, Window
from jobtui.transport.files import FileStat, OpenFile, open_file, rotated
from jobtui.transport.files import look as look_at

PIECE_BYTES = 1 << 20
"""Read at a time of a file that grows. A larger event is skipped."""
LARGEST_BYTES = 64 << 20
"""A file that is not one piece after the other may be so large."""
MOST_BYTES = 64 << 20
"""Of a larger file its first piece and as many bytes of its end are read."""
HEAD_KNOWN_BYTES = 1280
"""By so much of its beginning a log is known again: a copy begins alike, one that was rotated does not."""
GLOBAL_HEAD = b"Global JobLog:"
"""What the first event of a schedd's own log says. It is rewritten when the log is rotated."""
GLOBAL_HEAD_BYTES = 1024
"""The first event of such a log is shorter."""
_PACKED = frozenset({".gz", ".xz", ".bz2", ".zst"})
_ENDS: Mapping[Form, bytes] = {
    Form.CLASSIC: b"\n...\n",
    Form.XML: b"</c>\n",
    Form.JSON: b"\n}",
    Form.OUTPUT: b"\n",
}
"""What stands at the end of each piece."""
_CLOSING = re.compile(rb"[\s\0,\]]|</classads>")
"""What may follow the last piece."""


class ReadPlace(NamedTuple):
    """Where reading ended: which file as it then was, how far, and how many lines that are.

    `is_all` when the file was read to the end that it had, `skips` is how much of what will be read again
    made no sense. `rotation` counts the logs that were here before, `head` is the check sum of the first
    `head_size` bytes of this one, `part` counts the files from which the log went on.
    """

    look: FileStat | None = None
    offset: int = 0
    line: int = 1
    is_all: bool = False
    skips: int = 0
    rotation: int = 0
    head_size: int = 0
    head: int = 0
    part: int = 0


_Read = tuple[Batch, ReadPlace]


class CondorFile(PolledFile[ReadPlace]):
    """One file about jobs of HTCondor."""

    kind = "condor_log"

    def __init__(self, path: Path, piece_bytes: int = PIECE_BYTES, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(path, "jobs", ReadPlace())
        self._piece_bytes = piece_bytes
        self._most_bytes = most_bytes
        self._reader = EventReader(self.name)

    def _read_since(self, place: ReadPlace, opened: OpenFile, look: FileStat) -> _Read:
        if place.is_all and place.look == look:
            return Batch(), place
        if not _goes_on(opened, look, place) and (found := self._read_older(place, opened, look)) is not None:
            return found
        form = form_of(opened.source.read(0, HEAD_BYTES))
        if form is None:
            nothing = place._replace(look=look, offset=0, line=1, is_all=True, skips=0)
            return Batch(recovered=place.skips), nothing
        if opened.packed is not None or form not in GROWING:
            return self._read_whole(opened, look, form, place)
        return self._read_on(opened, look, form, place)

    def _read_older(self, place: ReadPlace, opened: OpenFile, look: FileStat) -> _Read | None:
        """What a log says that was rotated away before its end was read; None where there is none.

        A schedd's own log, and one with packed files, go on over several: reading begins with the oldest.
        """
        older: list[tuple[Path, FileStat]] = []
        for path in rotated(self._path):
            with suppress(SourceError):
                older.append((path, look_at(path)))
        at = next((at for at, (path, seen) in enumerate(older) if _ended_in(path, seen, place)), None)
        is_gap, note = False, None
        if at is None:
            is_global = GLOBAL_HEAD in opened.source.read(0, GLOBAL_HEAD_BYTES)
            if not older or not (is_global or any(one.suffix in _PACKED for one, _ in older)):
                return None
            is_gap = place.look is not None
            sizes = itertools.accumulate(seen.size for _, seen in reversed(older))
            at = len(older) - max(1, sum(size <= self._most_bytes for size in sizes))
            place = ReadPlace(rotation=place.rotation + is_gap)
            note = f"its {at} oldest files are not read" if at else None
        path, _ = older[at]
        successor = older[at + 1][1] if at + 1 < len(older) else look
        next_log = ReadPlace(successor, rotation=place.rotation, part=place.part + 1)
        batch, end = self._read_rotated(path, place, next_log)
        gaps = (self._gap(place.rotation),) if is_gap else ()
        batch = msgspec.structs.replace(batch, condor=gaps + batch.condor, more=True, note=batch.note or note)
        return batch, end

    def _read_rotated(self, path: Path, place: ReadPlace, next_log: ReadPlace) -> _Read:
        """The next of a log under the name that it got; the place is in the next log when that was all."""
        why: str | None
        try:
            with closing(open_file(path)) as opened:
                form = form_of(opened.source.read(0, HEAD_BYTES))
                if form is not None and form in _ENDS:
                    read = self._read_on if opened.packed is None else self._read_whole
                    batch, end = read(opened, opened.look(), form, place)
                    return batch, end if batch.more else next_log
                why = opened.packed.broken if opened.packed is not None else None
        except SourceError as error:
            why = str(error)
        if not why:
            return Batch(), next_log
        gap = self._gap(next_log.rotation, next_log.part)
        skips = [Skip(str(path), f"rotated file not read: {why}")]
        return _batch([gap], skips, note=f"{path.name}: {why}"), next_log

    def _gap(self, rotation: int, part: int = 0) -> CondorFact:
        text = f"{self.name} was rotated or cut short, and a part was gone before it was read"
        return CondorFact(
            "", Origin.EVENT, LOG_GAP, None, text, self.name, 0, -1, rotation=rotation, part=part
        )

    def _read_whole(self, opened: OpenFile, look: FileStat, form: Form, place: ReadPlace) -> _Read:
        self._reader = EventReader(self.name)
        data = opened.source.read(0, LARGEST_BYTES)
        begin = ReadPlace(look, is_all=True, rotation=place.rotation, part=place.part)
        facts, skips, taken = self._interpret(form, data, begin, is_all=True)
        if _CLOSING.sub(b"", data[taken:]):
            skips.append(self._skip(taken, "its end was never written"))
        note = opened.packed.broken if opened.packed is not None else None
        if opened.source.read(LARGEST_BYTES, 1):
            note = f"is larger than {LARGEST_BYTES >> 20} MiB: only so much of it is read"
        return _batch(facts, skips, recovered=place.skips, note=note), begin._replace(skips=len(skips))

    def _read_on(self, opened: OpenFile, look: FileStat, form: Form, place: ReadPlace) -> _Read:
        """The next piece of a file that grows. The place stays before what is not whole yet."""
        recovered, begin = place.skips, place
        if not _goes_on(opened, look, place):
            recovered, begin = 0, ReadPlace(rotation=place.rotation + (not _begins_alike(opened, place)))
        begin = begin._replace(look=look)
        if begin.offset == 0:
            self._reader = EventReader(self.name)
        data = opened.source.read(begin.offset, self._piece_bytes)
        at_end = begin.offset + len(data) >= look.size
        facts, skips, taken = self._interpret(form, data, begin)
        if not taken and not at_end:
            taken = len(data)
            skips = [self._skip(begin.offset, f"{taken} bytes hold nothing that is whole")]
        unfinished = at_end and bool(data[taken:].strip(b" \t\r\n\0"))
        lines = data.count(b"\n", 0, taken) if begin.line else 0
        end = begin._replace(
            offset=begin.offset + taken, line=begin.line + lines, is_all=at_end, skips=int(unfinished)
        )
        if (size := min(HEAD_KNOWN_BYTES, end.offset)) != end.head_size:
            end = end._replace(head_size=size, head=_sum_of(opened, size))
        note = None
        if begin.offset == 0 and look.size > self._most_bytes + len(data):
            note = f"is large: of {look.size >> 20} MiB only the beginning and the end are read"
            offset = look.size - self._most_bytes
            found = opened.source.read(offset, self._piece_bytes).find(_ENDS[form])
            offset += found + len(_ENDS[form]) if found >= 0 else 0  # where a new piece begins
            end = end._replace(offset=offset, line=0)
        if begin.rotation > place.rotation:
            facts.insert(0, self._gap(begin.rotation))
        if unfinished:
            skips.append(self._skip(end.offset, "its end was not written yet"))
        return _batch(facts, skips, recovered=recovered, more=not at_end, note=note), end

    def _skip(self, offset: int, why: str) -> Skip:
        return Skip(f"{self.name}, byte {offset}", why)

    def _interpret(self, form: Form, data: bytes, begin: ReadPlace, *, is_all: bool = False) -> FactsRead:
        newest = Nanos(begin.look.mtime_ns if begin.look is not None else 0)
        read = self._reader.read(form, data, begin.offset, begin.line, newest, to_end=is_all)
        if not begin.rotation and not begin.part:
            return read
        place = {"rotation": begin.rotation, "part": begin.part}
        return read._replace(facts=[msgspec.structs.replace(fact, **place) for fact in read.facts])


def _goes_on(opened: OpenFile, look: FileStat, place: ReadPlace) -> bool:
    is_same = place.look is not None and place.look.id == look.id
    return is_same and place.offset <= look.size and _begins_alike(opened, place)


def _ended_in(path: Path, look: FileStat, place: ReadPlace) -> bool:
    if place.look is not None and place.look.id == look.id:
        with suppress(SourceError), closing(open_file(path)) as opened:
            return _goes_on(opened, opened.look(), place)
    return False


def _begins_alike(opened: OpenFile, place: ReadPlace) -> bool:
    return _sum_of(opened, place.head_size) == place.head


def _sum_of(opened: OpenFile, size: int) -> int:
    data = opened.source.read(0, GLOBAL_HEAD_BYTES + size) if size else b""
    begin = 0
    if GLOBAL_HEAD in data[:GLOBAL_HEAD_BYTES]:
        ends = (found + len(end) for end in _ENDS.values() if len(end) > 1 and (found := data.find(end)) >= 0)
        begin = min(ends, default=0)
    return zlib.crc32(data[begin:size])


def _batch(
    facts: list[CondorFact],
    skips: list[Skip],
    *,
    recovered: int = 0,
    more: bool = False,
    note: str | None = None,
) -> Batch:
    batch = Batch(condor=tuple(facts), recovered=recovered, count=len(facts), more=more, note=note)
    return skipping(batch, skips)


def open_source(spec: SourceSpec, window: Window) -> CondorFile:
    return CondorFile(Path(spec.target))
