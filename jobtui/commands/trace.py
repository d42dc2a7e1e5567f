"""`trace THING`: a trace as a waterfall, where it failed, and what it spent its time on."""

import sys
from typing import NamedTuple

from jobtui.analysis.traces.findings import Findings, study_trace
from jobtui.backends.registry import gives_spans
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_csv, print_document, print_lines
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.streams import complain
from jobtui.model.trace_desk import JOB_ATTRIBUTES, TraceSearch
from jobtui.model.trace_growth import is_waited_for
from jobtui.model.trace_ids import SEARCHED, TraceId, TraceRef, find_trace
from jobtui.store.trace_book import TraceBook

CSV_COLUMNS = ("trace_id", "span_id", "name", "service", "message", "handled", "started_at")
FETCHED = 5
"""Traces that are fetched of those that a server finds for a job."""


class Found(NamedTuple):
    """The trace that was meant, or several that may be; and what is to be said of how it was found."""

    ids: tuple[TraceId, ...] = ()
    notes: tuple[str, ...] = ()


def run(context: Context) -> Exit:
    """Print the trace; FAILED when something failed in it, ATTENTION when it never came to its end."""
    return in_session(context, _trace)


async def _trace(reader: Reader) -> Exit:
    if not any(gives_spans(spec) for spec in reader.specs):
        complain("no source of traces is configured: --trace-file FILE, --jaeger URL or --tempo URL")
        return _nothing(reader, Exit.NO_SOURCE)
    thing = " ".join(reader.context.words)
    if thing == "-":
        thing = sys.stdin.buffer.read(SEARCHED).decode("utf-8", "replace")
    await reader.read_traces()
    notes: list[str] = []
    await reader.watched(_ask(reader, thing, notes))
    book = reader.session.store.traces
    found = look_for(book, thing)
    if len(found.ids) != 1:
        _complain_of(thing, found, book)
        return _nothing(reader, Exit.NOT_FOUND)
    trace = book.trace(found.ids[0])
    assert trace is not None
    return _print(reader, study_trace(trace), (*found.notes, *notes))


async def _ask(reader: Reader, thing: str, notes: list[str]) -> None:
    """Have servers tell of what is meant; add what is to be said of it to the notes."""
    desk = reader.session.traces
    ref = find_trace(thing)
    if ref is not None:
        wanted = [ref.trace_id, *ref.others]
    else:
        listed = await desk.search(TraceSearch(names=JOB_ATTRIBUTES, value=thing.strip()))
        notes += [note for note in listed.notes if not _is_of_a_source(note, reader)]
        wanted = [one.trace_id for one in listed.traces[:FETCHED]]
    for trace_id in wanted:
        answer = await desk.fetch(trace_id)
        if answer.growing and is_waited_for(answer.trace, reader.now) and answer.trace is not None:
            notes.append(f"more of it may come: {answer.growing}")


def _is_of_a_source(note: str, reader: Reader) -> bool:
    """Whether a note is the error of a source, which is told at the end."""
    return any(source.error == note for source in reader.sources)


def _nothing(reader: Reader, code: Exit) -> Exit:
    """Print the document of no trace where JSON is wanted."""
    if reader.context.format is OutputFormat.JSON:
        from jobtui.render.trace_json import EMPTY

        print_document("trace", EMPTY, reader)
    return reader.settle(code)


def _complain_of(thing: str, found: Found, book: TraceBook) -> None:
    said = "; ".join(found.notes)
    what = thing.strip()[:200]
    if len(found.ids) > 1:
        several = ", ".join(found.ids[:5]) + (", ..." if len(found.ids) > 5 else "")
        complain(f"{what!r} is ambiguous, it may be {several}")
    else:
        complain(
            f"no trace for {what!r} among {len(book.ids())} that were read{f' ({said})' if said else ''}"
        )


def look_for(book: TraceBook, thing: str) -> Found:
    """The known traces that a text may mean."""
    ref = find_trace(thing)
    if ref is not None:
        known = [one for one in (ref.trace_id, *ref.others) if book.trace(one) is not None]
        if known or len(ref.trace_id.lstrip("0")) == len(ref.trace_id):
            return Found(tuple(known), _notes(book, ref))
        return _by_prefix(book, ref)
    return _by_job(book, thing.strip())


def _notes(book: TraceBook, ref: TraceRef) -> tuple[str, ...]:
    trace = book.trace(ref.trace_id)
    if trace is None or ref.span_id is None or any(span.span_id == ref.span_id for span in trace.spans):
        return ref.notes
    return (*ref.notes, f"span {ref.span_id}, which is named as the parent, was not received")


def _by_prefix(book: TraceBook, ref: TraceRef) -> Found:
    """An id of which only the beginning was pasted."""
    beginning = ref.trace_id.lstrip("0")
    known = tuple(one for one in book.ids() if one.startswith(beginning))
    return Found(known, (f"its id begins with {beginning}",) if known else ref.notes)


def _by_job(book: TraceBook, job_id: str) -> Found:
    """Traces of which a process says in an attribute that it is this job."""
    if not job_id:
        return Found()
    known: dict[TraceId, str] = {}
    for trace_id in book.ids():
        trace = book.trace(trace_id)
        for span in trace.spans if trace else ():
            for name in JOB_ATTRIBUTES:
                if job_id in (span.resource.attributes.get(name), span.attributes.get(name)):
                    known.setdefault(trace_id, name)
    return Found(tuple(known), tuple(f"found by attribute {name}" for name in known.values()))


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
            from jobtui.render.trace_view import MOST_ROWS, trace_lines

            most = None if context.format is OutputFormat.PLAIN else MOST_ROWS
            print_lines(trace_lines(found, notes, context.width, context.colour, most))
    if found.has_failed:
        return reader.settle(Exit.FAILED)
    return reader.settle(Exit.ATTENTION if found.is_unfinished else Exit.FINE)
