"""Spans and log records from a file: OTLP as JSON or protobuf, or Jaeger's JSON, one per line or all in one.

A file with one document per line is read on from where reading ended, as such files grow; any other is read
again when it changes. A last line without its end is read, and read again when there is more. Only reads.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jobtui.backends.base import Batch, batch_of, merged
from jobtui.backends.polled_file import PolledFile
from jobtui.formats.otlp_protobuf import read_telemetry
from jobtui.formats.spans import is_line_of_json
from jobtui.model.health import Skip, SourceUnreachable
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.model.traces import Telemetry
from jobtui.transport.files import FileStat, OpenFile, PackedBytes

LARGEST_BYTES = 256 << 20
"""The largest file that is not one of lines."""
PIECE_BYTES = 1 << 20
"""Lines are read in pieces of about this size: the store takes in some thousand spans in one go."""
PACKED_BYTES = 64 << 20
"""The most that is unpacked of a packed file; the rest is reported as left out."""
FIRST_BYTES = 1 << 20
"""The first line must end within these for a file to be one of lines."""


class _Position(NamedTuple):
    """Where reading ended: the stat of the file, and the offset.

    `is_all`: the unfinished line after that was read, too; `skips` counts parts that will be read again.
    """

    look: FileStat | None = None
    offset: int = 0
    is_all: bool = False
    skips: int = 0


class TraceFile(PolledFile[_Position]):
    kind = "trace_file"

    def __init__(self, path: Path, piece_bytes: int = PIECE_BYTES) -> None:
        super().__init__(path, "spans", _Position())
        self._piece_bytes = piece_bytes

    def _read_since(self, since: _Position, opened: OpenFile, look: FileStat) -> tuple[Batch, _Position]:
        if since.is_all and since.look == look:
            return Batch(), since
        if opened.packed is not None:
            return self._read_packed(opened.packed, look, since)
        if is_line_of_json(opened.plain.read(0, FIRST_BYTES)):
            return self._read_lines(opened, look, since)
        return self._read_whole(opened, look, since)

    def _read_lines(self, opened: OpenFile, look: FileStat, since: _Position) -> tuple[Batch, _Position]:
        """The next lines. What is read next begins before a last line without an end."""
        goes_on = since.look is not None and since.look.id == look.id and since.offset <= look.size
        offset = since.offset if goes_on else 0
        data = opened.plain.read(offset, self._piece_bytes)
        whole = data.rfind(b"\n") + 1
        at_end = offset + len(data) >= look.size
        if not whole and not at_end:  # a line longer than a piece
            data = opened.plain.read(offset, LARGEST_BYTES)
            whole = data.rfind(b"\n") + 1 or len(data)
            at_end = offset + len(data) >= look.size
        done = read_telemetry(data[:whole], self.name)
        last = read_telemetry(data[whole:] if at_end else b"", self.name)
        recovered = since.skips if goes_on else 0
        batch = _batch((done, last), recovered=recovered, more=not at_end)
        return batch, _Position(look, offset + whole, at_end, last.skip_count)

    def _read_packed(self, packed: PackedBytes, look: FileStat, since: _Position) -> tuple[Batch, _Position]:
        """All of a packed file up to a limit, lines in pieces: reading on would start again."""
        are_lines = is_line_of_json(packed.read(0, FIRST_BYTES))
        size = self._piece_bytes if are_lines else PACKED_BYTES
        found: list[Telemetry] = []
        offset = 0
        while offset < PACKED_BYTES and (data := packed.read(offset, size)):
            end = data.rfind(b"\n") + 1 if are_lines and len(data) == size else 0
            found.append(read_telemetry(data[: end or len(data)], self.name))
            offset += end or len(data)
        why = packed.broken or (packed.read(offset, 1) and f"unpacks to more than {PACKED_BYTES >> 20} MiB")
        if why:
            cut = (Skip(self.name, f"{why}: the rest is left out; unpack it"),)
            found.insert(0, Telemetry(spans=(), logs=(), skipped=cut, skip_count=1))
        batch = _batch(found, recovered=since.skips)
        return batch, _Position(look, 0, is_all=True, skips=batch.skip_count)

    def _read_whole(self, opened: OpenFile, look: FileStat, since: _Position) -> tuple[Batch, _Position]:
        if look.size > LARGEST_BYTES:
            limit = f"{LARGEST_BYTES >> 20} MiB"
            advice = "put each document on one line, or give a part of it"
            raise SourceUnreachable(f"{self.name}: is larger than {limit}; {advice}")
        found = read_telemetry(opened.plain.read(0, look.size), self.name)
        batch = _batch((found,), recovered=since.skips)
        return batch, _Position(look, 0, is_all=True, skips=batch.skip_count)


def _batch(found: Sequence[Telemetry], *, recovered: int, more: bool = False) -> Batch:
    return merged((*map(batch_of, found), Batch(recovered=recovered, more=more)))


def open_source(spec: SourceSpec, window: ReadWindow) -> TraceFile:
    return TraceFile(Path(spec.target))
