"""`trace THING`: a trace as a waterfall, where it failed, and what it spent its time on."""

import asyncio
import os
import sys
from collections.abc import Iterable

from jobtui.analysis.traces.findings import Findings, study_trace
from jobtui.backends.registry import gives_spans
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.named_file import file_named
from jobtui.commands.printing import print_csv, print_document, print_lines
from jobtui.commands.reading import OTLP_LISTEN, Reader, configured, in_session, warn, within
from jobtui.commands.streams import complain
from jobtui.commands.trace_ways import Found, job_attributes, look_for
from jobtui.model.condor_ids import condor_id
from jobtui.model.trace_ids import SEARCHED
from jobtui.model.traces import Trace
from jobtui.model.words import counted
from jobtui.store.trace_book import TraceBook

CSV_COLUMNS = ("trace_id", "span_id", "name", "service", "message", "handled", "started_at")
SHOWN = 5
"""Traces that are named of several that may be meant."""


def run(context: Context) -> Exit:
    """Print the trace; FAILED when something failed in it, ATTENTION when it never came to its end."""
    if file_named(" ".join(context.words)) is None:
        return in_session(context, _trace)
    warn(context)
    return asyncio.run(within(context, configured(context), _trace))  # a file of spans is source enough


async def _trace(reader: Reader) -> Exit:
    thing = " ".join(reader.context.words)
    settings = {spec.setting for spec in reader.specs if gives_spans(spec)}
    if settings <= {OTLP_LISTEN} and file_named(thing) is None:
        complain("no source of traces is configured: --trace-file FILE, --jaeger URL or --tempo URL")
        if settings:
            complain(f"what is sent to --{OTLP_LISTEN.replace('_', '-')} is known to the dashboard alone")
        return _nothing(reader, Found(), Exit.NO_SOURCE)
    if thing == "-":
        thing = sys.stdin.buffer.read(SEARCHED).decode("utf-8", "replace")
    await reader.read_traces()
    looked = [Found()]
    await reader.watched(_look(reader, thing, looked))
    found, book = looked[-1], reader.session.store.traces
    trace = book.trace(found.ids[0]) if len(found.ids) == 1 else None
    if trace is None:
        _complain_of(thing, found, book)
        return _nothing(reader, found, Exit.NOT_FOUND)
    trace, notes = _of_process(reader, trace, found)
    return _print(reader, study_trace(trace), (*found.notes, *notes))


async def _look(reader: Reader, thing: str, looked: list[Found]) -> None:
    """Add what is found; interrupted, nothing."""
    looked.append(await look_for(reader, thing))


def _of_process(reader: Reader, trace: Trace, found: Found) -> tuple[Trace, tuple[str, ...]]:
    """The trace without other processes of a cluster, where one was asked for; and what was left out."""
    known = condor_id(found.job_id)
    if known is None or known.proc is None:
        return trace, ()
    from jobtui.analysis.traces.processes import alone

    mine = alone(trace, known.job_id, job_attributes(reader), found.job.host if found.job else None)
    if not mine.others:
        return trace, ()
    spans, count = sum(mine.others.values()), len(mine.others)
    note = f"process {known.number} alone, told by {mine.why}: {counted(count, 'other')}"
    return mine.trace, (f"{note} with {spans} spans are left out; jobtui trace {trace.trace_id} has all",)


def _nothing(reader: Reader, found: Found, code: Exit) -> Exit:
    """Print the document of no trace where JSON is wanted."""
    if reader.context.format is OutputFormat.JSON:
        from jobtui.render.trace_json import EMPTY, candidate_records

        print_document("trace", {**EMPTY, "candidates": candidate_records(found.candidates)}, reader)
    return reader.settle(code)


def _complain_of(thing: str, found: Found, book: TraceBook) -> None:
    said = f" ({'; '.join(found.notes)})" if found.notes else ""
    what = thing.strip()[:200]
    if len(found.ids) > 1:
        several = ", ".join(found.ids[:SHOWN]) + (", ..." if len(found.ids) > SHOWN else "")
        complain(f"{what!r} is ambiguous, it may be {several}")
    elif found.ids:
        complain(f"{what!r} leads to trace {found.ids[0]}, and nothing of it was received{said}")
    else:
        read = len(book.ids())
        among = f", among {read:,} that were read" if read else ""
        complain(f"no trace was found for {what!r}{among}{said}")
    for one in found.candidates[:SHOWN]:
        complain(f"perhaps {one.trace_id} ({one.score:.2f}: {'; '.join(one.why)})")


def _print(reader: Reader, found: Findings, notes: tuple[str, ...]) -> Exit:
    context = reader.context
    match context.format:
        case OutputFormat.JSON:
            from jobtui.render.trace_json import trace_record

            print_document("trace", trace_record(found, notes), reader)
        case OutputFormat.CSV:
            from jobtui.render.trace_json import cause_records

            print_csv(CSV_COLUMNS, cause_records(found))
        case _:
            from jobtui.render.trace_view import trace_lines
            from jobtui.render.waterfall_text import MOST_ROWS

            most = None if context.format is OutputFormat.PLAIN else MOST_ROWS
            lines = trace_lines(found, notes, context.width, context.colour, most)
            print_lines(lines if context.width is None else _lowered(lines, context))
    if found.has_failed:
        return reader.settle(Exit.FAILED)
    return reader.settle(Exit.ATTENTION if found.is_unfinished else Exit.FINE)


def _lowered(lines: Iterable[str], context: Context) -> Iterable[str]:
    """Lines in signs that the terminal shows: not every one has those that bars are drawn with."""
    from jobtui.render.glyphs import glyphs_for, lowering

    table = lowering(glyphs_for(context.config.looks.glyphs, os.environ, sys.stdout.encoding))
    return lines if table is None else (line.translate(table) for line in lines)
