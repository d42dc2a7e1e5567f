"""`script --grep RE`: which archived scripts contain it. Ctrl+c ends it, and what was found is kept."""

import sys
from collections.abc import Iterator

from jobtui.backends.archive.searching import Hit, Query, Tally
from jobtui.backends.archive.searching import search as search_places
from jobtui.commands.context import OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_csv, print_document, print_lines
from jobtui.commands.progress import clear_progress
from jobtui.commands.reading import Reader
from jobtui.commands.script import no_archive
from jobtui.commands.streams import complain
from jobtui.model.clock import to_rfc3339
from jobtui.model.scripts import Span
from jobtui.render.table import paint
from jobtui.render.text import safe, show

SHOWN_LINES = 3
CSV_COLUMNS = ("number", "cluster", "user", "archived_at", "count", "line", "text", "source")


async def search(reader: Reader) -> Exit:
    """Print the scripts that contain it as they are found; NOT_FOUND when there is none."""
    context = reader.context
    if context.words:
        complain("script takes a job or --grep, not both")
        return Exit.USAGE
    if no_archive(reader):
        return Exit.NO_SOURCE
    await reader.open_archives()
    query = Query(context.flag("grep") or "", context.flag("user") or "", Span(context.since, context.until))
    tally, hits = Tally(), list[Hit]()
    searching = _collect(reader, query, tally, hits)
    await reader.watched(searching, lambda: _progress(tally, hits))
    _print(reader, tally, hits)
    for text in (*tally.cuts, *tally.reasons):
        complain(text)
    if tally.unreadable > len(tally.reasons):
        complain(f"{tally.unreadable} in all could not be looked at")
    return reader.settle(Exit.FINE if hits else Exit.NOT_FOUND)


async def _collect(reader: Reader, query: Query, tally: Tally, hits: list[Hit]) -> None:
    is_streamed = reader.context.format not in (OutputFormat.JSON, OutputFormat.CSV)
    async for hit in search_places(reader.session.sources, query, tally):
        hits.append(hit)
        if is_streamed:
            clear_progress()
            print_lines(_lines(hit, reader.context.colour))
            sys.stdout.flush()


def _progress(tally: Tally, hits: list[Hit]) -> str:
    return f"{tally.scripts:,} scripts, {len(hits):,} contain it, in {show(tally.where)}"


def _print(reader: Reader, tally: Tally, hits: list[Hit]) -> None:
    match reader.context.format:
        case OutputFormat.JSON:
            body = {
                "matches": [_record(hit) for hit in hits],
                "scripts": tally.scripts,
                "unreadable": tally.unreadable,
                "left_out": tally.cuts,
            }
            print_document("script", body, reader)
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, (row for hit in hits for row in _rows(hit)))
        case _:
            complain(f"{len(hits):,} of {tally.scripts:,} scripts contain it")


def _lines(hit: Hit, colour: bool) -> Iterator[str]:
    script = hit.script
    number = f"{script.cluster}/{script.number}" if script.cluster else script.number
    at = f"  {to_rfc3339(script.archived_at)}" if script.archived_at is not None else ""
    yield paint(f"{show(number)}  {show(hit.user) or '?'}{at}  {show(script.source)}", "heading", colour)
    for line, text in hit.lines[:SHOWN_LINES]:
        yield f"  {paint(f'{line}:', 'settled', colour)} {show(text)}"
    if hit.total > SHOWN_LINES:
        yield paint(f"  and {hit.total - SHOWN_LINES} more lines", "dim", colour)


def _record(hit: Hit) -> dict[str, object]:
    head = _head(hit)
    return head | {"lines": [{"line": line, "text": show(text)} for line, text in hit.lines]}


def _head(hit: Hit) -> dict[str, object]:
    script, at = hit.script, hit.script.archived_at
    return {
        "number": safe(script.number),
        "cluster": safe(script.cluster) or None,
        "user": show(hit.user) or None,
        "archived_at": None if at is None else to_rfc3339(at),
        "source": show(script.source),
        "count": hit.total,
    }


def _rows(hit: Hit) -> Iterator[dict[str, object]]:
    head = _head(hit)
    return (head | {"line": line, "text": text} for line, text in hit.lines)
