"""Files of HTCondor and jobsub jobs: user event logs, job ads, submit files, the output of jobs.

What a file is, its beginning tells. Event logs and outputs are read on where reading ended, as they grow;
what is written anew as a whole, as job ads are, is read again when it changed. Of a file that is larger than
`MOST_BYTES` the beginning and the end are read, and that is said. Reads only.
"""

import re
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.base import Batch
from jobtui.backends.file_access import Look, OpenFile
from jobtui.backends.polled_file import PolledFile, cursor_of, place_in
from jobtui.formats.condor_events import EventReader
from jobtui.formats.condor_frames import HEAD_BYTES, Form, form_of, frames_of
from jobtui.formats.job_output import OutputReader
from jobtui.model.clock import Nanos
from jobtui.model.condor_facts import CondorFact
from jobtui.model.health import Skip

PIECE_BYTES = 64 << 10
"""Events read at a time: some hundreds, so that taking them in holds up nobody."""
LARGE_PIECE_BYTES = 4 << 20
"""Lines of output read at a time, of which few tell anything; and the largest event."""
FACTS_AT_ONCE = 500
LARGEST_BYTES = 64 << 20
"""A file that is not one piece after the other may be so large."""
MOST_BYTES = 64 << 20
"""Of a larger file its first piece and as many bytes of its end are read."""
SKIPS_NAMED = 20
STATES_KEPT = 4
HEAD_KNOWN_BYTES = 256
"""By so much of its beginning a log is known again: a copy begins alike, one that was rotated does not."""
_ENDS: Mapping[Form, bytes] = {
    Form.CLASSIC: b"\n...\n",
    Form.XML: b"</c>",
    Form.JSON: b"\n}",
    Form.OUTPUT: b"\n",
}
"""What stands at the end of each piece."""
_CLOSING = re.compile(rb"[\s\0,\]]|</classads>")
"""What may follow the last piece."""


class Place(NamedTuple):
    """Where reading ended: which file as it then was, how far, and how many lines that are.

    `skips` is how much of what will be read again made no sense. `rotation` counts the logs that were here
    before, `head` is the check sum of the first `head_size` bytes of this one.
    """

    inode: int = 0
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    line: int = 1
    skips: int = 0
    rotation: int = 0
    head_size: int = 0
    head: int = 0


class _Readers(NamedTuple):
    events: EventReader
    output: OutputReader


class _Piece(NamedTuple):
    """What a block gave: facts, what made no sense, how far it was read, and how many lines that are."""

    facts: list[CondorFact]
    skips: list[Skip]
    taken: int
    lines: int


class CondorFile(PolledFile):
    """One file about jobs of HTCondor."""

    kind = "condor_log"

    def __init__(self, path: Path, piece_bytes: int = PIECE_BYTES, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(path, "jobs")
        self._piece_bytes = piece_bytes
        self._most_bytes = most_bytes
        self._readers: OrderedDict[str, _Readers] = OrderedDict()
        self._whole: _Piece | None = None

    def _read_since(self, cursor: str | None, opened: OpenFile, look: Look) -> Batch:
        place = place_in(cursor, Place)
        if place[:3] == (look.id.inode, look.size, look.mtime_ns):
            return Batch(cursor=cursor_of(place))
        form = form_of(opened.source.read(0, HEAD_BYTES))
        if form is None:
            nothing = place._replace(
                inode=look.id.inode, size=look.size, mtime_ns=look.mtime_ns, offset=0, line=1, skips=0
            )
            return Batch(cursor=cursor_of(nothing), recovered=place.skips)
        if opened.gzip is not None or not form.grows:
            return self._read_whole(opened, look, form, place)
        return self._read_on(opened, look, form, place)

    def _read_whole(self, opened: OpenFile, look: Look, form: Form, place: Place) -> Batch:
        """A file that is no log, or packed: the next of its facts. The cursor counts those before."""
        goes_on = place.size == 0 and (place.inode, place.mtime_ns) == (look.id.inode, look.mtime_ns)
        begin = place.offset if goes_on else 0
        if self._whole is None or begin == 0:
            self._whole = self._interpret_whole(opened, look, form)
        piece = self._whole
        facts = piece.facts[begin : begin + FACTS_AT_ONCE]
        end = begin + len(facts)
        more = end < len(piece.facts)
        skips = [] if more else piece.skips
        cursor = Place(look.id.inode, 0 if more else look.size, look.mtime_ns, end, 1, len(skips))
        note = None
        if look.size > LARGEST_BYTES:
            note = f"is larger than {LARGEST_BYTES >> 20} MiB: only so much of it is read"
        if not more:
            self._whole = None
        return _batch(_Piece(facts, skips, end, 0), cursor, place.skips, more=more, note=note)

    def _interpret_whole(self, opened: OpenFile, look: Look, form: Form) -> _Piece:
        data = opened.source.read(0, LARGEST_BYTES)
        readers = _Readers(EventReader(self.name), OutputReader(self.name))
        return _interpret(readers, form, data, Place(), look, is_all=True)

    def _read_on(self, opened: OpenFile, look: Look, form: Form, place: Place) -> Batch:
        """The next piece of a file that grows. The cursor stays before what is not whole yet."""
        begin, goes_on = _begin(opened, look, place)
        readers = self._readers_for(begin)
        size = self._piece_bytes if form is not Form.OUTPUT else max(self._piece_bytes, LARGE_PIECE_BYTES)
        data = opened.source.read(begin.offset, size)
        at_end = begin.offset + len(data) >= look.size
        piece = _interpret(readers, form, data, begin, look)
        if not piece.taken and not at_end:
            data = opened.source.read(begin.offset, max(size, LARGE_PIECE_BYTES))
            at_end = begin.offset + len(data) >= look.size
            piece = _interpret(readers, form, data, begin, look)
        if not piece.taken and not at_end:
            skip = self._skip(begin.offset, f"{len(data)} bytes hold nothing that is whole")
            piece = _Piece([], [skip], len(data), data.count(b"\n"))
        unfinished = at_end and bool(data[piece.taken :].strip(b" \t\r\n\0"))
        end = begin._replace(
            inode=look.id.inode, offset=begin.offset + piece.taken, line=begin.line + piece.lines,
            size=look.size if at_end else 0, mtime_ns=look.mtime_ns if at_end else 0, skips=int(unfinished),
        )  # fmt: skip
        end = _with_head(opened, end)
        note = None
        if begin.offset == 0 and look.size > self._most_bytes + len(data):
            note = f"is large: of {look.size >> 20} MiB only the beginning and the end are read"
            end = end._replace(offset=self._near_end(opened, look, form), line=0)
        if unfinished:
            piece.skips.append(self._skip(end.offset, "its end was not written yet"))
        self._keep(end, readers)
        return _batch(piece, end, place.skips if goes_on else 0, more=not at_end, note=note)

    def _near_end(self, opened: OpenFile, look: Look, form: Form) -> int:
        """Where the last bytes that are read of a large file begin with a new piece."""
        offset = look.size - self._most_bytes
        found = opened.source.read(offset, self._piece_bytes).find(_ENDS[form])
        return offset + (found + len(_ENDS[form]) if found >= 0 else 0)

    def _skip(self, offset: int, why: str) -> Skip:
        return Skip(f"{self.name}, byte {offset}", why)

    def _readers_for(self, place: Place) -> _Readers:
        """Readers that have read as far as a place."""
        known = self._readers.get(f"{place.inode}:{place.offset}")
        if known is None or place.offset == 0:
            return _Readers(EventReader(self.name), OutputReader(self.name))
        return _Readers(known.events.copy(), known.output.copy())

    def _keep(self, place: Place, readers: _Readers) -> None:
        self._readers[f"{place.inode}:{place.offset}"] = readers
        while len(self._readers) > STATES_KEPT:
            self._readers.popitem(last=False)


def _begin(opened: OpenFile, look: Look, place: Place) -> tuple[Place, bool]:
    """Where to begin in a log, and whether that goes on where reading ended."""
    is_known = _sum_of(opened, place.head_size) == place.head
    if is_known and place.inode == look.id.inode and place.offset <= look.size:
        return place, True
    return Place(rotation=place.rotation + (not is_known)), False


def _with_head(opened: OpenFile, place: Place) -> Place:
    """A place in a log, with what the log is known by again."""
    size = min(HEAD_KNOWN_BYTES, place.offset)
    return place if size == place.head_size else place._replace(head_size=size, head=_sum_of(opened, size))


def _sum_of(opened: OpenFile, size: int) -> int:
    return zlib.crc32(opened.source.read(0, size)) if size else 0


def _interpret(
    readers: _Readers, form: Form, data: bytes, begin: Place, look: Look, *, is_all: bool = False
) -> _Piece:
    """What a block says. With `is_all` nothing follows it."""
    framed = frames_of(form, data, to_end=is_all)
    lines = data.count(b"\n", 0, framed.taken) if begin.line else 0
    if form is Form.OUTPUT:
        facts = readers.output.read(data[: framed.taken], begin.offset, begin.line)
        return _Piece(_rotated(facts, begin), [], framed.taken, lines)
    found = readers.events.read(form, framed.frames, begin.offset, begin.line, Nanos(look.mtime_ns))
    skips = found.skips
    if is_all and _CLOSING.sub(b"", data[framed.taken :]):
        skips = [*skips, Skip(f"{readers.events.source}, byte {framed.taken}", "its end was never written")]
    return _Piece(_rotated(found.facts, begin), skips, framed.taken, lines)


def _rotated(facts: list[CondorFact], begin: Place) -> list[CondorFact]:
    """Facts with the count of the logs before theirs."""
    rotation = begin.rotation
    return [msgspec.structs.replace(fact, rotation=rotation) for fact in facts] if rotation else facts


def _batch(piece: _Piece, end: Place, recovered: int, *, more: bool, note: str | None) -> Batch:
    return Batch(
        cursor=cursor_of(end),
        condor=tuple(piece.facts),
        skipped=tuple(piece.skips[-SKIPS_NAMED:]),
        skip_count=len(piece.skips),
        recovered=recovered,
        count=len(piece.facts),
        more=more,
        note=note,
    )
