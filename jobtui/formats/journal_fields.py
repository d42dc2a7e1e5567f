"""The fields of a journal entry as stored, and the record made of them.

Names and meaning: systemd.journal-fields(7). Whoever reads the journal has the fields as bytes, under names
that are str (libsystemd) or bytes (export format); the same code makes records of both.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from jobtui.model.clock import Nanos
from jobtui.model.journal import Cursor, Fields, JournalEntry

MESSAGE_LIMIT = 64 << 10
"""Bytes of a message that are decoded; all of it is among the entry's fields."""

Name = TypeVar("Name", str, bytes)


class CutBytes(bytes):
    """The beginning of a value that was too long to be kept; `full_size` is the length it had."""

    full_size: int

    def __new__(cls, kept: bytes, full_size: int) -> "CutBytes":
        """`kept` as a value that was `full_size` bytes long."""
        made = super().__new__(cls, kept)
        made.full_size = full_size
        return made


FieldValue = bytes | list[bytes]


def full_size(value: bytes) -> int:
    """The length of a value as stored, in bytes."""
    return value.full_size if isinstance(value, CutBytes) else len(value)


def number(value: FieldValue | None) -> int | None:
    """A field that is a plain decimal number of 64 bits; None for anything else."""
    if type(value) is bytes and value.isdigit() and len(value) < 20:
        return int(value)
    return None


def text(value: FieldValue | None) -> str:
    """A field decoded, errors replaced; the first value of several, "" when absent."""
    if value is None:
        return ""
    return (value[0] if isinstance(value, list) else value).decode("utf-8", "replace")


_TEXTS = (
    "_HOSTNAME",
    "_MACHINE_ID",
    "_BOOT_ID",
    "_SYSTEMD_UNIT",
    "SYSLOG_IDENTIFIER",
    "CONTAINER_NAME",
    "CONTAINER_ID_FULL",
    "CONTAINER_ID",
)

Make = Callable[[Mapping[Name, FieldValue], str, int, int | None], JournalEntry]
"""Fields, cursor, and the time of receipt and monotonic time in microseconds to a record."""


def record_maker(name: Callable[[str], Name]) -> "Make[Name]":
    """What makes a record of an entry's fields whose names are as `name` gives them."""
    sent, message, priority, pid = map(name, ("_SOURCE_REALTIME_TIMESTAMP", "MESSAGE", "PRIORITY", "_PID"))
    begun = name("CONTAINER_PARTIAL_MESSAGE")
    named = [name(each) for each in _TEXTS]

    def make(
        fields: Mapping[Name, FieldValue], cursor: str, at_us: int, monotonic_us: int | None
    ) -> JournalEntry:
        get = fields.get
        try:
            texts = [get(each, b"").decode() for each in named]  # type: ignore[union-attr]
        except (AttributeError, UnicodeDecodeError):
            texts = [text(get(each)) for each in named]
        host, machine, boot, unit, identifier, container, full_id, short_id = texts
        body, size = _message(get(message))
        sent_us = number(get(sent))
        return JournalEntry(
            cursor=Cursor(cursor),
            at=Nanos(at_us * 1_000),
            message=body,
            size=size,
            sent_at=None if sent_us is None else Nanos(sent_us * 1_000),
            host=host,
            machine=machine,
            unit=unit,
            identifier=identifier,
            container=container,
            container_id=full_id or short_id,
            pid=number(get(pid)),
            priority=number(get(priority)),
            boot=boot,
            monotonic_us=monotonic_us,
            is_begun=get(begun) == b"true",
        )

    return make


record_of = record_maker(str)
"""The record of an entry whose fields have names that are str."""

_record_of_export = record_maker(str.encode)


def entry_of_export(raw: Mapping[bytes, FieldValue]) -> JournalEntry | None:
    """The record of an entry as an ExportParser gives it; None without a cursor or a time."""
    cursor, at_us = text(raw.get(b"__CURSOR")), number(raw.get(b"__REALTIME_TIMESTAMP"))
    if at_us is None or not cursor:
        return None
    return _record_of_export(raw, cursor, at_us, number(raw.get(b"__MONOTONIC_TIMESTAMP")))


def _message(value: FieldValue | None) -> tuple[str, int]:
    if value is None:
        return "", 0
    if isinstance(value, list):
        size = sum(map(full_size, value)) + len(value) - 1
        value = b"\n".join(value)
    else:
        size = full_size(value)
    if len(value) > MESSAGE_LIMIT:
        value = value[:MESSAGE_LIMIT]
    return value.decode("utf-8", "replace"), size


def stored_fields(fields: Mapping[Name, FieldValue]) -> Fields:
    """All of an entry's fields in the form the contract has, whatever its names are."""
    return {
        key if isinstance(key, str) else key.decode("utf-8", "replace"): (
            tuple(value) if isinstance(value, list) else (value,)
        )
        for key, value in fields.items()
    }
