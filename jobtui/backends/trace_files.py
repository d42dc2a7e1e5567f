"""Spans and log records out of a file: OTLP as JSON or protobuf, Jaeger's JSON, one a line or all in one.

A file of one document a line is read on where reading ended, as such files grow; any other is read again
when it changed. A last line without its end is a line still being written: it is read, and read again when
there is more. Reads only.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jobtui.backends.base import Batch, SourceError, SourceUnreachable
from jobtui.backends.file_access import Look, OpenFile, open_file, source_error
from jobtui.backends.log_watch import FileState, Watch, state_of
from jobtui.backends.worker import Worker
from jobtui.formats.trace_text import is_line_of_json, read_telemetry

LARGEST_BYTES = 256 << 20
"""A file of another kind than lines may be so large."""
PIECE_BYTES = 1 << 20
"""Lines are read in pieces of about this size: the store takes in some thousand spans in one go."""
FIRST_BYTES = 1 << 20
"""The first line must end within these for a file to be one of lines."""


class _Place(NamedTuple):
    """Where reading ended: which file as it then was, and how far.

    `is_all` when what lies behind that, a line without its end, was read too; `skips` is how much of what
    will be read again made no sense.
    """

    inode: int = 0
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    is_all: int = 0
    skips: int = 0

    def is_up_to(self, look: Look) -> bool:
        """Whether all of a file was read that looks like this."""
        return bool(self.is_all) and self[:3] == (look.id.inode, look.size, look.mtime_ns)

    @classmethod
    def parse(cls, cursor: str | None) -> "_Place":
        """The place that a cursor names, the beginning for any that is none of ours."""
        with suppress(ValueError, TypeError):
            return cls(*map(int, (cursor or "").split(":")))
        return cls()

    def __str__(self) -> str:
        return ":".join(map(str, self))


class TraceFile:
    """One file of spans."""

    def __init__(self, path: Path, piece_bytes: int = PIECE_BYTES) -> None:
        self._path = path
        self._piece_bytes = piece_bytes
        self._worker = Worker(f"spans in {path}")
        self._read_state: FileState = None
        self._watch = Watch(self._worker, [path], self._is_changed)
        self._closing = asyncio.Event()

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self._path)

    @property
    def kind(self) -> str:
        """`trace_file`."""
        return "trace_file"

    async def poll(self, cursor: str | None) -> Batch:
        """What the file holds since `cursor`. Raises SourceError and nothing else."""
        if self._closing.is_set():
            raise SourceError(f"{self.name}: is closed")
        return await self._worker.run(lambda: self._read(_Place.parse(cursor)))

    async def changed(self, timeout_s: float) -> None:
        """Return when the file is another than it was read, at the latest after `timeout_s`."""
        if not self._closing.is_set():
            await self._watch.changed(timeout_s)

    def _is_changed(self) -> bool:
        return state_of(self._path) != self._read_state

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""
        self._closing.set()
        self._watch.close()
        self._worker.close()

    def _read(self, place: _Place) -> Batch:
        self._read_state = state_of(self._path)
        opened = open_file(self._path)
        try:
            look = opened.look()
            if place.is_up_to(look):
                return Batch(cursor=str(place))
            if opened.gzip is None and is_line_of_json(opened.plain.read(0, FIRST_BYTES)):
                return self._read_lines(opened, look, place)
            return self._read_whole(opened, look, place)
        except OSError as error:
            raise source_error(error, self._path) from error
        finally:
            opened.close()

    def _read_lines(self, opened: OpenFile, look: Look, place: _Place) -> Batch:
        """The next lines. The cursor stays before a last line without an end."""
        goes_on = place.inode == look.id.inode and place.offset <= look.size
        offset = place.offset if goes_on else 0
        data = opened.plain.read(offset, self._piece_bytes)
        whole = data.rfind(b"\n") + 1
        at_end = offset + len(data) >= look.size
        if not whole and not at_end:  # a line longer than a piece
            data = opened.plain.read(offset, LARGEST_BYTES)
            whole = data.rfind(b"\n") + 1 or len(data)
            at_end = offset + len(data) >= look.size
        done = read_telemetry(data[:whole], self.name)
        last = read_telemetry(data[whole:] if at_end else b"", self.name)
        return Batch(
            cursor=str(_place(look, offset + whole, is_all=at_end, skips=last.skip_count)),
            spans=done.spans + last.spans,
            span_logs=done.logs + last.logs,
            skipped=done.skipped + last.skipped,
            skip_count=done.skip_count + last.skip_count,
            recovered=place.skips if goes_on else 0,
            count=len(done.spans) + len(last.spans) + len(done.logs) + len(last.logs),
            more=not at_end,
        )

    def _read_whole(self, opened: OpenFile, look: Look, place: _Place) -> Batch:
        if look.size > LARGEST_BYTES:
            limit = f"{LARGEST_BYTES >> 20} MiB"
            raise SourceUnreachable(
                f"{self.name}: is larger than {limit}; give one document a line, or part of it"
            )
        found = read_telemetry(opened.plain.read(0, look.size), self.name)
        return Batch(
            cursor=str(_place(look, 0, is_all=True, skips=found.skip_count)),
            spans=found.spans,
            span_logs=found.logs,
            skipped=found.skipped,
            skip_count=found.skip_count,
            recovered=place.skips,
            count=len(found.spans) + len(found.logs),
        )


def _place(look: Look, offset: int, *, is_all: bool, skips: int) -> _Place:
    return _Place(look.id.inode, look.size, look.mtime_ns, offset, int(is_all), skips)
