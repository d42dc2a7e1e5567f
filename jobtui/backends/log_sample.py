"""The raw lines at the end of a log, for judging how much of it is understood. Reads a bounded part."""

from collections.abc import Iterator
from pathlib import Path

from jobtui.backends.file_access import look, open_file, source_error
from jobtui.formats.parser import LogParser
from jobtui.model.clock import Nanos

SAMPLE_BYTES = 16 << 20
NEWEST_BYTES = 256 << 10
"""In how much of its end the newest time of a log is looked for."""
LINE_BYTES = 1 << 20
"""A longer line is given in pieces."""
_STEP_BYTES = 1 << 20


def tail_lines(path: Path, size: int = SAMPLE_BYTES) -> Iterator[bytes]:
    """The lines in the last `size` bytes of a log, or in the first of a packed one. Raises SourceError."""
    opened = open_file(path)
    try:
        start = 0 if opened.gzip is not None else max(0, opened.look().size - size)
        end = start + size
        rest = b""
        first_is_cut = start > 0
        while start < end and (data := opened.source.read(start, min(_STEP_BYTES, end - start))):
            start += len(data)
            *lines, rest = (rest + data).split(b"\n")
            if first_is_cut and lines:
                lines.pop(0)
                first_is_cut = False
            yield from lines
            if len(rest) > LINE_BYTES:
                yield rest
                rest = b""
        is_cut = first_is_cut or (opened.gzip is not None and start >= end)
        if rest and not is_cut:
            yield rest
    except OSError as error:
        raise source_error(error, path) from error
    finally:
        opened.close()


def newest_time(path: Path, role: str) -> Nanos | None:
    """The newest time near the end of a log, None when no line there has one. Raises SourceError."""
    newest = Nanos(look(path).mtime_ns)
    parser = LogParser(source=str(path), role=role)
    times = (parser.time_of(line, newest) for line in tail_lines(path, NEWEST_BYTES))
    return max((at for at in times if at is not None), default=None)
