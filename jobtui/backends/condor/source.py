"""Files of HTCondor and jobsub jobs: user event logs, job ads, submit files, the output of jobs.

What a file is, its beginning tells. Event logs and outputs are read on where reading ended, as they grow;
what is written anew as a whole, as job ads are, is read again when it changed. Of a file that is larger than
`MOST_BYTES` the beginning and the end are read, and that is said. Reads only.

A log that was rotated is read to its end under its new name before the next one. Of a schedd's own log, which
tells by its first event that it is one, the older files are read first. What was gone before it was read is
told as a fact (`LOG_GAP`), so that jobs in it are not taken to go on for ever.
"""

import itertools
import os
import re
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.base import Batch
from jobtui.backends.polled_file import PolledFile, cursor_of, place_in
from jobtui.formats.condor_events import HEAD_BYTES, EventReader, Form, form_of, frames_of
from jobtui.formats.job_output import OutputReader
from jobtui.model.clock import Nanos
from jobtui.model.condor import LOG_GAP, CondorFact, Teller
from jobtui.model.health import Skip
from jobtui.model.source_errors import SourceError
from jobtui.transport.files import Look, OpenFile, open_file
from jobtui.transport.files import look as look_at

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
GLOBAL_HEAD = b"Global JobLog:"
"""What the first event of a schedd's own log says. It is written anew when the log is rotated."""
GLOBAL_HEAD_BYTES = 1024
"""The first event of such a log is shorter."""
_OLDER = re.compile(r"[.-](?:old|\d+)(?P<packed>\.(?:gz|xz|bz2|zst))?")
"""What follows the name of a log that was rotated, and perhaps packed."""
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

    `skips` is how much of what will be read again made no sense. `rotation` counts the logs that were here
    before, `head` is the check sum of the first `head_size` bytes of this one, `part` counts the files from
    which the log went on.
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
    part: int = 0


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
        place = place_in(cursor, ReadPlace)
        if place[:3] == (look.id.inode, look.size, look.mtime_ns):
            return Batch(cursor=cursor_of(place))
        if not _goes_on(opened, look, place) and (found := self._read_older(place, opened, look)) is not None:
            return found
        form = form_of(opened.source.read(0, HEAD_BYTES))
        if form is None:
            nothing = place._replace(
                inode=look.id.inode, size=look.size, mtime_ns=look.mtime_ns, offset=0, line=1, skips=0
            )
            return Batch(cursor=cursor_of(nothing), recovered=place.skips)
        if opened.packed is not None or not form.grows:
            return self._read_whole(opened, look, form, place)
        return self._read_on(opened, look, form, place)

    def _read_older(self, place: ReadPlace, opened: OpenFile, look: Look) -> Batch | None:
        """What a log says that was rotated away before its end was read; None where there is none.

        A schedd's own log, and one with packed files, go on over several: reading begins with the oldest.
        """
        older = self._older_logs()
        at = next((at for at, (path, seen) in enumerate(older) if _ended_in(path, seen, place)), None)
        is_gap, note = False, None
        if at is None:
            is_global = GLOBAL_HEAD in opened.source.read(0, GLOBAL_HEAD_BYTES)
            if not older or not (is_global or any(one.suffix in _PACKED for one, _ in older)):
                return None
            is_gap = bool(place.inode)
            place, at = ReadPlace(rotation=place.rotation + is_gap), _first_within(older, self._most_bytes)
            note = f"its {at} oldest files are not read" if at else None
        path, _ = older[at]
        successor = older[at + 1][1].id.inode if at + 1 < len(older) else look.id.inode
        next_log = ReadPlace(successor, rotation=place.rotation, part=place.part + 1)
        try:
            rotated = open_file(path)
        except SourceError as error:
            return self._unread(path, str(error), next_log)
        try:
            seen = rotated.look()
            form = form_of(rotated.source.read(0, HEAD_BYTES))
            if form is None or form not in _ENDS:
                broken = rotated.packed.broken if rotated.packed is not None else None
                nothing = Batch(cursor=cursor_of(next_log), more=True)
                return self._unread(path, broken, next_log) if broken else nothing
            read = self._read_on if rotated.packed is None else self._read_whole
            batch = read(rotated, seen, form, place)
        finally:
            rotated.close()
        gaps = (self._gap(place.rotation),) if is_gap else ()
        cursor = batch.cursor if batch.more else cursor_of(next_log)
        return msgspec.structs.replace(
            batch, cursor=cursor, condor=gaps + batch.condor, more=True, note=batch.note or note
        )

    def _unread(self, path: Path, why: str, next_log: ReadPlace) -> Batch:
        gap = self._gap(next_log.rotation, next_log.part)
        piece = _Piece([gap], [Skip(str(path), f"rotated file not read: {why}")], 0, 0)
        return _batch(piece, next_log, 0, more=True, note=f"{path.name}: {why}")

    def _older_logs(self) -> list[tuple[Path, Look]]:
        """The files beside this one that had its name before, the oldest first."""
        found = []
        names = {name for name in os.listdir(self._path.parent) if name.startswith(self._path.name)}
        for name in names:
            older = _OLDER.fullmatch(name, len(self._path.name))
            if older and not (older["packed"] and name.removesuffix(older["packed"]) in names):
                with suppress(SourceError):
                    found.append((path := self._path.with_name(name), look_at(path)))
        return sorted(found, key=lambda one: one[1].mtime_ns)

    def _gap(self, rotation: int, part: int = 0) -> CondorFact:
        text = f"{self.name} was rotated or cut short, and a part was gone before it was read"
        return CondorFact(
            "", Teller.EVENT, LOG_GAP, None, text, self.name, 0, -1, rotation=rotation, part=part
        )

    def _read_whole(self, opened: OpenFile, look: Look, form: Form, place: ReadPlace) -> Batch:
        """A file that is no log, or packed: the next of its facts. The cursor counts those before."""
        goes_on = place.size == 0 and (place.inode, place.mtime_ns) == (look.id.inode, look.mtime_ns)
        begin = place.offset if goes_on else 0
        if self._whole is None or begin == 0:
            self._whole = self._interpret_whole(opened, look, form, place)
        piece = self._whole
        facts = piece.facts[begin : begin + FACTS_AT_ONCE]
        end = begin + len(facts)
        more = end < len(piece.facts)
        skips = [] if more else piece.skips
        cursor = ReadPlace(
            look.id.inode, 0 if more else look.size, look.mtime_ns, end, 1, len(skips),
            rotation=place.rotation, part=place.part,
        )  # fmt: skip
        note = opened.packed.broken if opened.packed is not None else None
        if not more and opened.source.read(LARGEST_BYTES, 1):
            note = f"is larger than {LARGEST_BYTES >> 20} MiB: only so much of it is read"
        if not more:
            self._whole = None
        return _batch(_Piece(facts, skips, end, 0), cursor, place.skips, more=more, note=note)

    def _interpret_whole(self, opened: OpenFile, look: Look, form: Form, place: ReadPlace) -> _Piece:
        data = opened.source.read(0, LARGEST_BYTES)
        readers = _Readers(EventReader(self.name), OutputReader(self.name))
        begin = ReadPlace(rotation=place.rotation, part=place.part)
        return _interpret(readers, form, data, begin, look, is_all=True)

    def _read_on(self, opened: OpenFile, look: Look, form: Form, place: ReadPlace) -> Batch:
        """The next piece of a file that grows. The cursor stays before what is not whole yet."""
        begin, goes_on = _begin(opened, look, place)
        readers = self._readers_for(begin)
        size = self._piece_bytes if form is not Form.OUTPUT else max(self._piece_bytes, LARGE_PIECE_BYTES)
        for most in (size, max(size, LARGE_PIECE_BYTES)):
            data = opened.source.read(begin.offset, most)
            at_end = begin.offset + len(data) >= look.size
            piece = _interpret(readers, form, data, begin, look)
            if piece.taken or at_end:
                break
        else:
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
        if begin.rotation > place.rotation:
            piece.facts.insert(0, self._gap(begin.rotation))
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

    def _readers_for(self, place: ReadPlace) -> _Readers:
        known = self._readers.get(f"{place.inode}:{place.offset}")
        if known is None or place.offset == 0:
            return _Readers(EventReader(self.name), OutputReader(self.name))
        return _Readers(known.events.copy(), known.output.copy())

    def _keep(self, place: ReadPlace, readers: _Readers) -> None:
        self._readers[f"{place.inode}:{place.offset}"] = readers
        while len(self._readers) > STATES_KEPT:
            self._readers.popitem(last=False)


def _begin(opened: OpenFile, look: Look, place: ReadPlace) -> tuple[ReadPlace, bool]:
    """Where to begin in a log, and whether that goes on where reading ended."""
    if _goes_on(opened, look, place):
        return place, True
    return ReadPlace(rotation=place.rotation + (not _begins_alike(opened, place))), False


def _goes_on(opened: OpenFile, look: Look, place: ReadPlace) -> bool:
    """Whether reading goes on in this file where it ended."""
    return place.inode == look.id.inode and place.offset <= look.size and _begins_alike(opened, place)


def _ended_in(path: Path, look: Look, place: ReadPlace) -> bool:
    if place.inode != look.id.inode:
        return False
    try:
        opened = open_file(path)
    except SourceError:
        return False
    try:
        return _goes_on(opened, opened.look(), place)
    finally:
        opened.close()


def _begins_alike(opened: OpenFile, place: ReadPlace) -> bool:
    return _sum_of(opened, place.head_size) == place.head


def _with_head(opened: OpenFile, place: ReadPlace) -> ReadPlace:
    """A place in a log, with what the log is known by again."""
    size = min(HEAD_KNOWN_BYTES, place.offset)
    return place if size == place.head_size else place._replace(head_size=size, head=_sum_of(opened, size))


def _sum_of(opened: OpenFile, size: int) -> int:
    data = opened.source.read(0, GLOBAL_HEAD_BYTES + size) if size else b""
    begin = 0
    if GLOBAL_HEAD in data[:GLOBAL_HEAD_BYTES]:
        ends = (found + len(end) for end in _ENDS.values() if len(end) > 1 and (found := data.find(end)) >= 0)
        begin = min(ends, default=0)
    return zlib.crc32(data[begin:size])


def _first_within(older: Sequence[tuple[Path, Look]], most_bytes: int) -> int:
    """The first of several files that have no more bytes together with those after it; the last at least."""
    sizes = itertools.accumulate(look.size for _, look in reversed(older))
    return len(older) - max(1, sum(size <= most_bytes for size in sizes))


def _interpret(
    readers: _Readers, form: Form, data: bytes, begin: ReadPlace, look: Look, *, is_all: bool = False
) -> _Piece:
    """What a block says. With `is_all` nothing follows it."""
    framed = frames_of(form, data, to_end=is_all)
    lines = data.count(b"\n", 0, framed.taken) if begin.line else 0
    if form is Form.OUTPUT:
        facts = readers.output.read(data[: framed.taken], begin.offset, begin.line)
        return _Piece(_rotated(facts, begin), readers.output.skips, framed.taken, lines)
    found = readers.events.read(form, framed.frames, begin.offset, begin.line, Nanos(look.mtime_ns))
    skips = found.skips
    if is_all and _CLOSING.sub(b"", data[framed.taken :]):
        skips = [*skips, Skip(f"{readers.events.source}, byte {framed.taken}", "its end was never written")]
    return _Piece(_rotated(found.facts, begin), skips, framed.taken, lines)


def _rotated(facts: list[CondorFact], begin: ReadPlace) -> list[CondorFact]:
    """Facts with the counts of the logs and files before theirs."""
    if not (begin.rotation or begin.part):
        return facts
    return [msgspec.structs.replace(fact, rotation=begin.rotation, part=begin.part) for fact in facts]


def _batch(piece: _Piece, end: ReadPlace, recovered: int, *, more: bool, note: str | None) -> Batch:
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
