"""The lines that continue a log record in its file: tracebacks, scripts, output of programs."""

from collections.abc import Sequence
from contextlib import suppress

from jobtui.analysis.job_lines import JobLine
from jobtui.backends.base import SourceError
from jobtui.backends.job_desk import HasEntries
from jobtui.backends.window import unwrapped
from jobtui.formats.parser import LINE
from jobtui.model.job_desk import JobDesk, Unreadable
from jobtui.model.lines import RawLine
from jobtui.model.ops import Certainty
from jobtui.session import Session

CONTINUATION_LINES = 100
"""How many lines that follow a record, and are part of it, are given at most."""


async def with_continuations(lines: Sequence[JobLine], session: Session) -> list[JobLine]:
    """The lines, each followed by those that continue it in its file: tracebacks, output of programs.

    Where a file can no longer be read, or holds something else there now, its lines stand alone.
    """
    desk = session.desk()
    journals = [source for source in map(unwrapped, session.sources) if isinstance(source, HasEntries)]
    entries = await _in_journals(journals, lines)
    found: list[JobLine] = []
    for line in lines:
        found.append(line)
        if line.cursor is not None and journals:
            found += [_continuing(line, RawLine(None, 0, text)) for text in entries.get(line.cursor, ())]
        else:
            found += await _continuation(desk, line)
    return found


async def _in_journals(journals: Sequence[HasEntries], lines: Sequence[JobLine]) -> dict[str, list[str]]:
    """What continues lines out of journals, by their cursors."""
    streams: dict[str, dict[str, int]] = {}
    for line in lines:
        if line.cursor is not None:
            streams.setdefault(line.source, {})[line.cursor] = line.offset
    found: dict[str, list[str]] = {}
    for source, wanted in streams.items():
        for journal in journals:
            with suppress(SourceError):
                found |= await journal.continuations(source, wanted, _begins_record)
    return found


def _begins_record(text: str) -> bool:
    return LINE.match(text) is not None


def _continuing(line: JobLine, raw: RawLine) -> JobLine:
    offset = line.offset if line.cursor is not None else raw.offset
    return line._replace(
        line=raw.line or 0, offset=offset, text=raw.text, certainty=Certainty.ADJACENT, continues=True
    )


async def _continuation(desk: JobDesk, line: JobLine) -> list[JobLine]:
    try:
        record = await desk.lines_behind(line, 1 + CONTINUATION_LINES)
    except Unreadable:
        return []
    return [_continuing(line, raw) for raw in record[1:]]
