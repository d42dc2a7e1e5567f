"""The lines that continue a log record in its file: tracebacks, scripts, output of programs."""

from collections.abc import Iterable, Sequence

from jobtui.analysis.job_lines import JobLine
from jobtui.backends.base import Source, SourceError
from jobtui.backends.logfile import LogFile
from jobtui.backends.window import Until
from jobtui.formats.parser import LINE
from jobtui.model.ops import Certainty

CONTINUATION_LINES = 100
"""How many lines that follow a record, and are part of it, are given at most."""


async def with_continuations(lines: Sequence[JobLine], sources: Iterable[Source]) -> list[JobLine]:
    """The lines, each followed by those that continue it in its file: tracebacks, output of programs.

    Where a file can no longer be read, its lines stand alone.
    """
    files = {source.name: source for source in map(_unwrapped, sources) if isinstance(source, LogFile)}
    found: list[JobLine] = []
    for line in lines:
        found.append(line)
        if file := files.get(line.source):
            found += await _continuation(file, line)
    return found


def _unwrapped(source: Source) -> Source:
    return source.source if isinstance(source, Until) else source


async def _continuation(file: LogFile, line: JobLine) -> list[JobLine]:
    number = line.line or None
    try:
        around = await file.lines_around(line.offset, 0, CONTINUATION_LINES, line=number)
    except SourceError:
        return []
    found = []
    for raw in around[1:]:
        if LINE.match(raw.text):
            break
        found.append(
            line._replace(
                line=raw.line or 0,
                offset=raw.offset,
                text=raw.text,
                certainty=Certainty.ADJACENT,
                continues=True,
            )
        )
    return found
