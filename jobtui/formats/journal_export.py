"""The journal export format: bytes in chunks of any size to fields of entries, and these to records.

Names and meaning: systemd.journal-fields(7).

The format: systemd's JOURNAL_EXPORT_FORMATS document. An entry is fields up to an empty line; a field is
`NAME=value`, or `NAME`, a newline, the length as 8 bytes little-endian, the value and a newline. A value may
hold anything, blank lines and what looks like another entry included. What cannot be read is counted and
skipped up to the next entry that begins with its cursor, as all entries of journalctl and gatewayd do.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jobtui.model.clock import LATEST_S, Nanos
from jobtui.model.numbers import whole

if TYPE_CHECKING:
    from jobtui.model.journal import JournalEntry

MESSAGE_LIMIT = 64 << 10
"""Bytes of a message that are decoded."""

FieldValue = bytes | list[bytes]
LATEST_US = LATEST_S * 1_000_000


def number(value: FieldValue | None) -> int | None:
    """A field that is a plain decimal number of 64 bits; None for anything else."""
    return whole(value) if type(value) is bytes and value.isdigit() else None


def text(value: FieldValue | None) -> str:
    """A field decoded, errors replaced; the first value of several, "" when absent."""
    if value is None:
        return ""
    return (value[0] if isinstance(value, list) else value).decode("utf-8", "replace")


_TEXTS = (
    b"_HOSTNAME", b"_MACHINE_ID", b"_BOOT_ID", b"_SYSTEMD_UNIT", b"SYSLOG_IDENTIFIER", b"CONTAINER_NAME",
    b"CONTAINER_ID_FULL", b"CONTAINER_ID",
)  # fmt: skip


def entry_of_export(raw: Mapping[bytes, FieldValue]) -> "JournalEntry | None":
    """The record of an entry as an ExportParser gives it; None without a cursor or a time."""
    from jobtui.model.journal import Cursor, JournalEntry  # `logs CONTAINER` does without

    get = raw.get
    cursor, at_us = text(get(b"__CURSOR")), number(get(b"__REALTIME_TIMESTAMP"))
    if at_us is None or at_us > LATEST_US or not cursor:
        return None
    try:
        texts = [get(each, b"").decode() for each in _TEXTS]  # type: ignore[union-attr]
    except (AttributeError, UnicodeDecodeError):
        texts = [text(get(each)) for each in _TEXTS]
    host, machine, boot, unit, identifier, container, full_id, short_id = texts
    said = get(b"MESSAGE", b"")
    said = b"\n".join(said) if isinstance(said, list) else said
    sent_us = number(get(b"_SOURCE_REALTIME_TIMESTAMP"))
    return JournalEntry(
        cursor=Cursor(cursor),
        at=Nanos(at_us * 1_000),
        message=said[:MESSAGE_LIMIT].decode("utf-8", "replace"),
        size=len(said),
        sent_at=None if sent_us is None or sent_us > LATEST_US else Nanos(sent_us * 1_000),
        host=host,
        machine=machine,
        unit=unit,
        identifier=identifier,
        container=container,
        container_id=full_id or short_id,
        pid=number(get(b"_PID")),
        priority=number(get(b"PRIORITY")),
        boot=boot,
        monotonic_us=number(get(b"__MONOTONIC_TIMESTAMP")),
        is_begun=get(b"CONTAINER_PARTIAL_MESSAGE") == b"true",
    )


ENTRY_LIMIT = 8 << 20
"""Bytes kept of one entry, all values together; an entry with more is skipped."""

FIELDS_LIMIT = 1024
"""Fields of one entry: systemd's own limit, ENTRY_FIELD_COUNT_MAX."""

CLAIM_LIMIT = 64 << 20
"""A length above this is taken as broken, so that a stream is not skipped forever."""

Raw = dict[bytes, FieldValue]
"""An entry's fields as they came; a list where one occurs several times."""

_CURSOR, _REALTIME = b"__CURSOR", b"__REALTIME_TIMESTAMP"
_NAME = re.compile(rb"[A-Z_][A-Z0-9_]{0,63}")
_NAMES_KNOWN = 4096
"""How many valid names of fields are remembered: a lookup is faster than a match."""
_NAME_LIMIT = 64
_NEXT_ENTRY = b"\n\n__CURSOR="
_LENGTH_BYTES = 8


def not_understood(pieces: int) -> str:
    return f"parts of the output that could not be read: {pieces}" if pieces else ""


class ExportParser:
    """Parses one stream. Never raises, whatever it is fed.

    `skipped` counts the parts that were no entry, or were too long for one.
    """

    def __init__(self) -> None:
        self.skipped = 0
        self._step: Callable[[list[Raw]], bool] = self._between
        self._pieces: list[bytes] = []
        self._held = 0
        self._needed = 0
        self._buffer = b""
        self._at = 0
        self._entry: Raw = {}
        self._fields = self._size = 0
        self._left = 0
        self._began = False
        self._known_names: set[bytes] = set()

    @property
    def pending(self) -> bool:
        """Whether the stream is inside an entry: if it ends here, that entry is lost."""
        return self._held > 0 or self._step != self._between

    def feed(self, data: bytes) -> list[Raw]:
        """The entries that became complete with `data`, in order."""
        self._pieces.append(data)
        self._held += len(data)
        found: list[Raw] = []
        if self._held < self._needed:
            return found
        self._needed = 0
        self._buffer, self._at = b"".join(self._pieces), 0
        while self._step(found):
            pass
        rest = self._buffer[self._at :]
        self._buffer, self._pieces, self._held = b"", [rest] if rest else [], len(rest)
        return found

    def _between(self, found: list[Raw]) -> bool:
        """Whole entries of text fields only, fast; the first other entry is parsed field by field.

        A binary field's name is a line without `=` and comes before its value, so where every line up to a
        blank one has its `=`, that blank line is not inside a value.
        """
        buffer, at, known = self._buffer, self._at, self._known_names
        find = buffer.find
        entry: Raw
        while True:
            while buffer[at : at + 1] == b"\n":
                at += 1
            end = find(b"\n\n", at)
            if end < 0 or end - at > ENTRY_LIMIT:
                break
            lines = buffer[at:end].split(b"\n")
            try:
                entry = dict([line.split(b"=", 1) for line in lines])  # type: ignore[assignment]
            except ValueError:
                break
            if len(entry) != len(lines) or len(lines) > FIELDS_LIMIT:
                break
            if not known.issuperset(entry):
                if not all(map(_NAME.fullmatch, entry)):
                    break
                if len(known) > _NAMES_KNOWN:
                    known.clear()
                known.update(entry)
            at = end + 2
            self._accept(entry, found)
        self._at = at
        if at == len(buffer):
            return False
        self._step, self._entry, self._fields, self._size = self._inside, {}, 0, 0
        return True

    def _accept(self, entry: Raw, found: list[Raw]) -> None:
        time = entry.get(_REALTIME)
        if _CURSOR in entry and type(time) is bytes and time.isdigit() and len(time) < 20:
            self._began = True
            found.append(entry)
        else:
            self.skipped += 1

    def _inside(self, found: list[Raw]) -> bool:
        buffer, at = self._buffer, self._at
        end = buffer.find(b"\n", at)
        if end == at:
            self._at = at + 1
            self._step = self._between
            self._accept(self._entry, found)
            return True
        line, newline, _ = buffer[at : at + _NAME_LIMIT + 1].partition(b"\n")
        name, equals, _ = line.partition(b"=")
        if not equals and not newline and len(line) <= _NAME_LIMIT:
            return False
        full = self._fields >= FIELDS_LIMIT or self._size > ENTRY_LIMIT
        if full or not _NAME.fullmatch(name):
            return self._give_up()
        if equals:
            return self._text(name, at + len(name) + 1, end)
        return self._binary(name, end + 1)

    def _text(self, name: bytes, start: int, end: int) -> bool:
        if (end if end >= 0 else len(self._buffer)) - start > ENTRY_LIMIT:
            return self._give_up()
        if end < 0:
            return False
        self._keep(name, self._buffer[start:end], end + 1)
        return True

    def _binary(self, name: bytes, at: int) -> bool:
        start = at + _LENGTH_BYTES
        if len(self._buffer) < start:
            return False
        length = int.from_bytes(self._buffer[at:start], "little")
        if length > CLAIM_LIMIT:
            return self._give_up()
        if length > ENTRY_LIMIT:
            self._at, self._left, self._step = start, length, self._past_value
            return True
        end = start + length
        if len(self._buffer) <= end:
            self._needed = end + 1 - self._at
            return False
        if self._buffer[end] != 10:
            return self._give_up()
        self._keep(name, self._buffer[start:end], end + 1)
        return True

    def _keep(self, name: bytes, value: bytes, at: int) -> None:
        known = self._entry.get(name, [])
        before = known if isinstance(known, list) else [known]
        self._entry[name] = [*before, value] if before else value
        self._fields += 1
        self._size += len(value)
        self._at = at

    def _past_value(self, found: list[Raw]) -> bool:
        """Skip a value that is too long: what looks like an entry in it is none."""
        taken = min(self._left, len(self._buffer) - self._at)
        self._left -= taken
        self._at += taken
        return not self._left and self._give_up()

    def _give_up(self) -> bool:
        self.skipped += 1
        self._step = self._seek_entry
        return True

    def _seek_entry(self, found: list[Raw]) -> bool:
        """Look for the next entry. Before the very first there may be a banner instead of a blank line."""
        mark = _NEXT_ENTRY if self._began else _NEXT_ENTRY[1:]
        next_entry = self._buffer.find(mark, self._at)
        if next_entry < 0:
            self._at = max(self._at, len(self._buffer) - len(mark) + 1)
            return False
        self._at = next_entry + len(mark) - len(_CURSOR) - 1
        self._step = self._between
        return True
