"""A journal through libsystemd, by the package systemd-python: one handle, used by one thread.

The low-level reader gives the fields raw, about three times as fast as the public one with its converters. It
is private to the package, so the public one, its converters switched off, stands in where it is missing. A
handle is bound to the process that opened it. Everything here blocks and raises OSError.
"""

import errno
import os
from collections.abc import Iterable
from typing import Any, Protocol

from jobtui.formats.journal_fields import FieldValue, record_of
from jobtui.model.journal import JournalEntry, Match

LOCAL_ONLY = 1
"""sd_journal_open(3): not what other hosts sent here."""

StoredFields = dict[str, FieldValue]


class Handle(Protocol):
    """An open journal: a place in it, and the matches that say which entries are stepped on."""

    def step(self, back: bool = False) -> bool:
        """Go to the next entry, or the one before; False when there is none."""
        ...

    def entry(self) -> JournalEntry:
        """The entry stood on."""
        ...

    def fields(self) -> StoredFields:
        """Its fields as stored, without its address."""
        ...

    def cursor(self) -> str:
        """Its cursor."""
        ...

    def is_at(self, cursor: str) -> bool:
        """Whether it is the one a cursor means."""
        ...

    def seek_head(self) -> None:
        """Stand before the first entry."""
        ...

    def seek_tail(self) -> None:
        """Stand behind the last entry."""
        ...

    def seek_time(self, time_us: int) -> None:
        """Stand at a time of receipt, in microseconds."""
        ...

    def seek_cursor(self, cursor: str) -> None:
        """Stand at an entry, or where it would be: the next step gives it, or its neighbour."""
        ...

    def match(self, groups: Iterable[Iterable[Match]]) -> None:
        """Step on these only: of a group every field, of the groups any. None at all: on every entry."""
        ...

    def unique(self, field: str) -> list[bytes]:
        """The values of a field, whatever the matches."""
        ...

    def fileno(self) -> int:
        """What becomes readable when files change."""
        ...

    def process(self) -> None:
        """Take notice of changes, new files among them."""
        ...

    def usage(self) -> int:
        """The bytes of all files that are open."""
        ...

    def is_reliable(self) -> bool:
        """Whether every change is told of; not so on network file systems."""
        ...

    def close(self) -> None:
        """Let go of the files."""
        ...


class RawHandle:
    """Through the low-level reader. `directory` None for the journal of this host."""

    def __init__(self, directory: str | None) -> None:
        self._reader = self._open(directory)

    def _open(self, directory: str | None) -> Any:
        from systemd import _reader  # as heavy as libsystemd: only who reads a journal pays for it

        return _reader._Reader(LOCAL_ONLY if directory is None else 0, directory)

    def step(self, back: bool = False) -> bool:
        """Go on by one."""
        return bool(self._reader._previous() if back else self._reader._next())

    def entry(self) -> JournalEntry:
        """The entry stood on."""
        reader = self._reader
        return record_of(
            reader._get_all(), reader._get_cursor(), reader._get_realtime(), reader._get_monotonic()[0]
        )

    def fields(self) -> StoredFields:
        """Its fields as stored."""
        found: StoredFields = self._reader._get_all()
        return found

    def cursor(self) -> str:
        """Its cursor."""
        return str(self._reader._get_cursor())

    def is_at(self, cursor: str) -> bool:
        """Whether it is the one a cursor means."""
        return bool(self._reader.test_cursor(cursor))

    def seek_head(self) -> None:
        """Stand before the first entry."""
        self._reader.seek_head()

    def seek_tail(self) -> None:
        """Stand behind the last entry."""
        self._reader.seek_tail()

    def seek_time(self, time_us: int) -> None:
        """Stand at a time."""
        self._reader.seek_realtime(time_us)

    def seek_cursor(self, cursor: str) -> None:
        """Stand at an entry. OSError for what is no cursor."""
        try:
            self._reader.seek_cursor(cursor)
        except ValueError as error:
            raise OSError(errno.EINVAL, f"no place in a journal: {cursor!r:.80}") from error

    def match(self, groups: Iterable[Iterable[Match]]) -> None:
        """Step on these only."""
        reader = self._reader
        reader.flush_matches()
        for number, group in enumerate(groups):
            if number:
                reader.add_disjunction()
            for field, value in group:
                reader.add_match(os.fsencode(f"{field}={value}"))

    def unique(self, field: str) -> list[bytes]:
        """The values of a field."""
        return list(self._reader.query_unique(field))

    def fileno(self) -> int:
        """What becomes readable when files change."""
        return int(self._reader.fileno())

    def process(self) -> None:
        """Take notice of changes."""
        self._reader.process()

    def usage(self) -> int:
        """The bytes of all files that are open."""
        return int(self._reader.get_usage())

    def is_reliable(self) -> bool:
        """Whether every change is told of."""
        return bool(self._reader.reliable_fd())

    def close(self) -> None:
        """Let go of the files."""
        self._reader.close()


class PublicHandle(RawHandle):
    """Through the public reader, its converters switched off."""

    def _open(self, directory: str | None) -> Any:
        from systemd import journal

        as_stored = {
            "_convert_field": lambda reader, name, value: value,
            "_convert_entry": lambda reader, entry: entry,
        }
        self._found: dict[str, Any] = {}
        return type("Unconverted", (journal.Reader,), as_stored)(path=directory)

    def step(self, back: bool = False) -> bool:
        """Go on by one."""
        self._found = {}
        try:
            self._found = self._reader.get_previous() if back else self._reader.get_next()
        except OSError as error:
            if error.errno != errno.EBADMSG:
                raise
            return True  # it stands on an entry that is damaged
        return bool(self._found)

    def entry(self) -> JournalEntry:
        """The entry stood on."""
        found = self._all()
        monotonic: int = found["__MONOTONIC_TIMESTAMP"][0]
        return record_of(found, found["__CURSOR"], found["__REALTIME_TIMESTAMP"], monotonic)

    def fields(self) -> StoredFields:
        """Its fields as stored."""
        return {name: value for name, value in self._all().items() if not name.startswith("__")}

    def cursor(self) -> str:
        """Its cursor."""
        return str(self._found["__CURSOR"] if self._found else self._reader._get_cursor())

    def _all(self) -> dict[str, Any]:
        if not self._found:
            raise OSError(errno.EBADMSG, "a damaged entry")
        return self._found


def open_handle(directory: str | None) -> Handle:
    """The fastest handle that this installation has. Raises ImportError without systemd-python."""
    try:
        return RawHandle(directory)
    except (ImportError, AttributeError):
        return PublicHandle(directory)


def is_installed() -> bool:
    """Whether systemd-python can be used."""
    try:
        from systemd import journal
    except ImportError:
        return False
    return hasattr(journal, "Reader")
