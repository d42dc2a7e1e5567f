"""The files of a log: the one at its path, and the rotated ones next to it, by their names and times.

Opens regular files only, all at once, as a rotation may happen at that moment. Reads, and blocks.
"""

import os
import re
from collections.abc import Iterable
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from jobtui.model.health import SourceError
from jobtui.model.numbers import whole
from jobtui.transport.blocks import MARK_BYTES, mark_before
from jobtui.transport.files import FileId, FileStat, OpenFile, look, look_quietly, open_file, packed_allowance
from jobtui.transport.unpacking import UnpackLimit

PACKED_RATIO = 10
"""How much text a packed file holds, about, by its size."""
COMPARED_BYTES = 4_096
"""How much of the beginning, middle and end is compared to see whether one file begins with another."""
TRIES = 20
"""How often files are searched for again while they are being renamed."""


class RotatedFile(NamedTuple):
    """A rotated file with text, kept open: it stays the same whatever is renamed or packed later.

    `problem` says why it could not be opened.
    """

    path: Path
    look: FileStat
    opened: OpenFile | None
    problem: SourceError | None = None

    @property
    def is_packed(self) -> bool:
        return self.opened is not None and self.opened.packed is not None

    @property
    def size(self) -> int:
        return self.look.size * (PACKED_RATIO if self.is_packed else 1)

    @property
    def is_empty(self) -> bool:
        """Whether there is no text in it, packed; not where that cannot be read."""
        packed = None if self.opened is None else self.opened.packed
        with suppress(OSError):
            return packed is not None and not packed.read(0, 1) and packed.broken is None
        return False

    def read(self, offset: int, size: int) -> bytes:
        """Some of its text, none where it could not be opened. Raises OSError."""
        return b"" if self.opened is None else self.opened.source.read(offset, size)


class LogFiles(NamedTuple):
    """The files of a log as they were at one moment, all open: the one at its path, and the rotated ones."""

    present: OpenFile
    older: list[RotatedFile]
    """The oldest first."""

    def before(self, opened: OpenFile) -> RotatedFile | None:
        """The rotated file right before one of the log, by its time if it has no name now. Raises OSError."""
        at, ids = opened.look().mtime_ns, [*(one.look.id for one in self.older), self.present.id]
        written_before = sum(one.look.mtime_ns < at for one in self.older)
        count = ids.index(opened.id) if opened.id in ids else written_before
        return self.older[count - 1] if count else None

    def close(self, kept: Iterable[OpenFile | None] = ()) -> None:
        kept_ids = {id(one) for one in kept}
        for opened in (self.present, *(each.opened for each in self.older)):
            if opened is not None and id(opened) not in kept_ids:
                opened.close()


def find_log_files(path: Path) -> LogFiles:
    """The files of the log at a path. Raises SourceError when there is none at the path, and OSError.

    While they are being renamed or packed they are searched again, as one could be missed or found twice. A
    copy of the present file, which is not truncated yet, is no rotated file.
    """
    for tries in range(TRIES + 1):
        files = _open_all(path)
        size = files.present.look().size
        found = [*((each.path, each.look.id) for each in files.older), (path, files.present.id)]
        is_copied = bool(files.older) and _is_begun_copy(files.older[-1], files.present)
        if tries == TRIES or (_names(path) == found and files.present.look().size >= size):
            break
        files.close()
    older = files.older[:-1] if is_copied and tries < TRIES else files.older
    kept = files._replace(older=[each for each in older if not each.is_empty])
    files.close((files.present, *(each.opened for each in kept.older)))
    return kept


def _names(path: Path) -> list[tuple[Path, FileId]]:
    found = []
    for each in (*rotated(path), path):
        with suppress(SourceError):
            seen = look(each)
            if seen.size or each == path:
                found.append((each, seen.id))
    return found


def _open_all(path: Path) -> LogFiles:
    allowance = packed_allowance()
    present, older = open_file(path, allowance), []
    for each in rotated(path):
        with suppress(SourceError):  # it has another name by now
            seen = look(each)
            if seen.size:
                older.append(_open(each, seen, allowance))
    return LogFiles(present, older)


def _open(path: Path, seen: FileStat, allowance: UnpackLimit) -> RotatedFile:
    try:
        opened = open_file(path, allowance)
    except SourceError as error:
        return RotatedFile(path, seen, None, error)
    return RotatedFile(path, opened.look(), opened)


def _is_begun_copy(copy: RotatedFile, present: OpenFile) -> bool:
    """Whether a file is the beginning of another. Raises OSError.

    One shorter than MARK_BYTES only if it is all of the other: many logs begin with the same line.
    """
    size, most = copy.look.size, present.look().size
    is_likely = copy.opened is not None and size <= most and (size >= MARK_BYTES or size == most)
    return is_likely and begins_with(present, copy.opened, size)


def goes_on(log: OpenFile, mark: bytes, offset: int, other: OpenFile) -> bool:
    """Whether another file holds a log up to `offset`; `mark` is the text before that. Raises OSError."""
    if log.packed is not None or other.packed is not None or len(mark) < MARK_BYTES:
        return False
    return mark_before(other.source.read, offset) == mark


def begins_with(log: OpenFile, part: OpenFile | None, size: int) -> bool:
    """Whether a file begins with the `size` bytes of another, by pieces of both; False for packed ones.

    Raises OSError.
    """
    if part is None or log.packed or part.packed:
        return False
    offsets = (0, size // 2, max(0, size - COMPARED_BYTES))
    pieces = ((at, min(COMPARED_BYTES, size - at)) for at in offsets)
    return all(log.plain.read(*piece) == part.plain.read(*piece) for piece in pieces)


def rotated(path: Path) -> list[Path]:
    """The rotated files of the log at `path`, the oldest first; none when their directory cannot be read.

    They are named as logrotate and Python's logging name them: with a number, the oldest with the largest
    (the smallest where that is what their times say), or with a date, after the name or before its ending.
    One that is just being packed is there twice: then the one that is not packed counts. A packed one of the
    same name may also be another, as after a change of how they are packed; then both count, by their times.
    Those of a link lie beside the file it leads to.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    before_ending = rf"{re.escape(path.stem)}[-._]{_DATE}{re.escape(path.suffix)}"
    name = re.compile(rf"(?:{re.escape(path.name)}{_SUFFIX}|{before_ending}){_PACK}")
    try:
        found = {each: match for each in os.listdir(path.parent) if (match := name.fullmatch(each))}
    except OSError:
        return []
    plain = {each: _PACKED_NAME.sub("", each) for each in found}
    twice = {each for each in found if plain[each] != each and plain[each] in found}
    kept = [each for each in found if each not in twice or not _is_copy(path.parent, each, plain[each])]
    keys = {each: _age(next(filter(None, found[each].groups()))) for each in kept}
    by_name = sorted(kept, key=lambda each: keys[each])
    looks = {each: look_quietly(path.parent / each) for each in kept}
    times = {each: seen.mtime_ns if seen is not None else 0 for each, seen in looks.items()}
    is_mixed = len({is_dated for is_dated, _ in keys.values()}) > 1 or len({*keys.values()}) < len(keys)
    ways = (sorted(by_name, key=lambda each: times[each]),) if is_mixed else (by_name, by_name[::-1])
    in_order = next((way for way in ways if all(times[a] <= times[b] for a, b in pairwise(way))), by_name)
    return [path.parent / each for each in in_order]


def _is_copy(folder: Path, packed: str, plain: str) -> bool:
    """Whether a packed file holds the beginning of one that is not packed, as far as it is written."""
    with suppress(SourceError, OSError), closing(open_file(folder / packed)) as one:
        head = one.source.read(0, 1 << 10)
        with closing(open_file(folder / plain)) as other:
            return one.packed is None or other.source.read(0, len(head)) == head
    return True


_PACK = r"(?:\.(?:gz|xz|bz2|zst))?"
_PACKED_NAME = re.compile(r"\.(?:gz|xz|bz2|zst)\Z")
_DATE = r"(\d{4}[-\d._:T]*\d)"
_SUFFIX = rf"(?:\.(\d{{1,4}}|old)|[-._]{_DATE})"


def _age(suffix: str) -> tuple[bool, tuple[int, str]]:
    if len(suffix) <= len("9999"):
        return False, (0 if suffix == "old" else -whole(suffix, 0), "")
    return True, (0, re.sub(r"\D", "", suffix))
