"""`trace THING`: a trace as a waterfall, where it failed, and where its time went."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobtui.analysis.find import SURE
from jobtui.analysis.traces.failures import Findings, study_trace
from jobtui.backends.registry import CONDOR_LOG, OTLP, TRACE_FILE, Gives, gives
from jobtui.commands.context import OutputFormat
from jobtui.commands.find import SHOWN, candidates_for, of_its_jobs
from jobtui.commands.printing import Report, lowered
from jobtui.commands.reader import Reader, file_named
from jobtui.commands.streams import Exit, complain
from jobtui.formats.spans import begins_with_spans
from jobtui.model.ids import SEARCHED, JobId, TraceId, TraceRef, condor_id, find_condor_id, find_trace
from jobtui.model.jobs import Job
from jobtui.model.numbers import counted
from jobtui.model.traces import Trace, is_waited_for
from jobtui.store.traces import TraceStore
from jobtui.transport.files import read_small

if TYPE_CHECKING:
    from jobtui.analysis.traces.job_traces import TraceCandidate

HEAD_BYTES = LONGEST_ID = 4_096
"""How many bytes are read to recognize a file of spans; the longest id that servers are asked for."""
FETCHED = 5
"""How many of the traces found for a job are fetched."""


class FoundTrace(NamedTuple):
    """The trace that was meant, or several that may be meant; and notes on how it was found.

    Without any, `candidates` are those that could be. `job_id` is the job that was named, `job` what is
    known of it.
    """

    ids: tuple[TraceId, ...] = ()
    notes: tuple[str, ...] = ()
    candidates: "tuple[TraceCandidate, ...]" = ()
    job_id: str = ""
    job: Job | None = None


async def look_for(reader: Reader, thing: str) -> FoundTrace:
    text = thing.strip()
    ref = find_trace(text)
    found = FoundTrace() if ref is None else await _by_id(reader, ref, text)
    if not found.ids and (path := file_named(text)) is not None:
        found = await _by_file(reader, path)
    if not found.ids and (ref is None or text.isdigit()):
        found = await _by_job(reader, text)
    return found


async def _by_id(reader: Reader, ref: TraceRef, text: str) -> FoundTrace:
    """The trace of an id, or of the beginning of one. A line may name the job, too."""
    named = find_condor_id(text)
    book = reader.session.store.traces
    ids = (ref.trace_id, *ref.others)
    said = await _fetch(reader, ids)
    known = tuple(one for one in ids if book.trace(one) is not None)
    if known or len(ref.trace_id.lstrip("0")) == len(ref.trace_id):
        notes, trace = list(ref.notes), book.trace(ref.trace_id)
        if trace is not None and ref.span_id not in (None, *(span.span_id for span in trace.spans)):
            notes.append(f"span {ref.span_id}, named as the parent, was not received")
        return FoundTrace(known, (*notes, *said), job_id=named.job_id if named else "")
    alike = book.called(text)
    return FoundTrace(tuple(alike), tuple(dict.fromkeys(alike.values())) or ref.notes)


async def _fetch(reader: Reader, ids: Iterable[TraceId]) -> list[str]:
    notes = []
    for trace_id in ids:
        answer = await reader.session.traces.fetch(trace_id)
        if answer.growing and answer.trace is not None and is_waited_for(answer.trace, reader.now):
            notes.append(f"more spans may follow: {answer.growing}")
    return notes


async def _by_file(reader: Reader, path: Path) -> FoundTrace:
    """The traces that a file, such as a job's output, names; else those whose spans it holds."""
    store = reader.session.store
    with suppress(OSError):  # reading it whole says why
        if begins_with_spans(read_small(path, HEAD_BYTES)):
            return await _held_in(reader, path)
    await reader.read_too(CONDOR_LOG, path)
    traces = store.condor.traces_named_in(str(path))
    if traces:
        ids = tuple(map(TraceId, traces))
        jobs = {job for of_trace in traces.values() for job in of_trace if job}
        job_id = JobId(jobs.pop() if len(jobs) == 1 else "")
        notes = (f"{path} names it", *await _fetch(reader, ids))
        return FoundTrace(ids, notes, job_id=job_id, job=store.jobs.get(job_id))
    if job_ids := store.condor.jobs_of_source(str(path)):
        return await _by_job(reader, job_ids[0]) if len(job_ids) == 1 else FoundTrace()
    return await _held_in(reader, path)


async def _held_in(reader: Reader, path: Path) -> FoundTrace:
    store = reader.session.store
    await reader.read_too(TRACE_FILE, path)
    held = tuple(one for one in store.traces.ids() if str(path) in store.traces.sources_of(one))
    return FoundTrace(held, (f"{path} holds it",) if held else ())


async def _by_job(reader: Reader, text: str) -> FoundTrace:
    from jobtui.analysis.traces.job_traces import TraceLink, TraceMatches
    from jobtui.session.traces import ways_by_attribute, ways_from_job

    names, client = reader.session.store.traces.job_attributes, reader.session.traces
    job = await _job(reader, text)
    named = condor_id(text) or find_condor_id(text)
    job_id = job.id if job is not None else named.job_id if named is not None else text
    ways = TraceMatches()
    if job is not None:
        ways = await ways_from_job(client, job, names)
    elif 0 < len(job_id) <= LONGEST_ID:
        ways = await ways_by_attribute(client, job_id, names)
    if not ways.found and not ways.candidates and named is not None:
        named_in = reader.session.store.traces.naming(job_id)
        found = tuple(TraceLink(one, f"its spans name the job as {written}") for one, written in named_in)
        ways = ways._replace(found=found)
    ids = tuple(way.trace_id for way in ways.found)[:FETCHED]
    said = [note for note in ways.notes if not any(source.error == note for source in reader.sources)]
    notes = (*(way.why for way in ways.found), *said, *await _fetch(reader, ids))
    return FoundTrace(ids, notes, ways.candidates, job_id, job)


async def _job(reader: Reader, text: str) -> Job | None:
    """The job that a text names; any one of several with the same trace. None if it names none."""
    if not any(gives(spec, Gives.JOBS) for spec in reader.specs) and not reader.session.store.jobs:
        return None
    candidates = await candidates_for(reader, text)
    jobs = reader.session.store.jobs
    likely = [one for one in candidates if one.job in jobs and one.score >= SURE]
    best = [jobs[one.job] for one in likely if one.job is not None and one.score == likely[0].score]
    handed = {job.trace for job in best}
    if len(handed) == 1 and handed != {""}:
        return best[0]
    found = await of_its_jobs(reader, text, candidates)
    return found.job if found is not None else None


CSV_COLUMNS = ("trace_id", "span_id", "name", "service", "message", "handled", "started_at")


async def run(reader: Reader) -> Exit:
    """Print the trace; FAILED if something failed in it, ATTENTION if it never ended."""
    thing = " ".join(reader.context.words)
    settings = {spec.setting for spec in reader.specs if gives(spec, Gives.SPANS)}
    is_recorded = reader.context.replay is not None and settings
    if settings <= {OTLP.setting} and not is_recorded and file_named(thing) is None:
        complain("no source of traces is configured: name --trace-file FILE, --jaeger URL or --tempo URL")
        if settings:
            complain(f"only the dashboard receives what is sent to --{OTLP.setting.replace('_', '-')}")
        return _nothing(reader, FoundTrace(), Exit.NO_SOURCE)
    if thing == "-":
        thing = sys.stdin.buffer.read(SEARCHED).decode("utf-8", "replace")
    await reader.read_traces()
    found = await reader.watched(look_for(reader, thing)) or FoundTrace()
    book = reader.session.store.traces
    trace = book.trace(found.ids[0]) if len(found.ids) == 1 else None
    if trace is None:
        _complain_of(thing, found, book)
        return _nothing(reader, found, Exit.NOT_FOUND)
    trace, notes = _of_process(reader, trace, found)
    return _print(reader, study_trace(trace), (*found.notes, *notes))


def _of_process(reader: Reader, trace: Trace, found: FoundTrace) -> tuple[Trace, tuple[str, ...]]:
    """The trace without other processes of a cluster, if one was asked for; and what was left out."""
    known = condor_id(found.job_id)
    if known is None or known.proc is None:
        return trace, ()
    from jobtui.analysis.traces.job_traces import alone

    names, host = reader.session.store.traces.job_attributes, found.job.host if found.job else None
    mine = alone(trace, known.job_id, names, host)
    if not mine.others:
        return trace, ()
    spans, count = sum(mine.others.values()), len(mine.others)
    note = f"process {known.number} only, known by {mine.why}: {counted(count, 'other')}"
    return mine.trace, (f"{note}, {counted(spans, 'span')}, left out; all: jobtui trace {trace.trace_id}",)


def _nothing(reader: Reader, found: FoundTrace, code: Exit) -> Exit:
    from jobtui.render.json_output import fields_of
    from jobtui.render.traces import EMPTY

    candidates = [fields_of(one, "trace_id score why started_at") for one in found.candidates]
    return Report(lambda: {**EMPTY, "candidates": candidates}, command="trace").answer(reader, code)


def _complain_of(thing: str, found: FoundTrace, book: TraceStore) -> None:
    said = f" ({'; '.join(found.notes)})" if found.notes else ""
    what = found.job.id if found.job is not None else thing.strip()[:200]
    if len(found.ids) > 1:
        several = ", ".join(found.ids[:SHOWN]) + (", ..." if len(found.ids) > SHOWN else "")
        complain(f"{what!r} is ambiguous; it may be {several}")
    elif found.ids:
        complain(f"{what!r} leads to trace {found.ids[0]}, of which nothing was received{said}")
    else:
        read = len(book.ids())
        among = f", among {read:,} that were read" if read else ""
        complain(f"no trace was found for {what!r}{among}{said}")
    for one in found.candidates[:SHOWN]:
        complain(f"perhaps {one.trace_id} ({100 * one.score:.0f} % sure: {'; '.join(one.why)})")


def _print(reader: Reader, found: Findings, notes: tuple[str, ...]) -> Exit:
    from jobtui.render import traces

    def lines(width: int | None) -> Iterable[str]:
        context = reader.context
        most = context.most
        if most is None and context.format is not OutputFormat.PLAIN:
            most = traces.MOST_ROWS
        made = traces.trace_lines(found, notes, width, most)
        return made if width is None else lowered(made, context)

    code = Exit.FAILED if found.has_failed else Exit.ATTENTION if found.is_unfinished else Exit.FINE
    return Report(
        lambda: traces.trace_record(found, notes),
        CSV_COLUMNS,
        lambda: ({"trace_id": found.tree.trace_id, **traces.cause_record(one)} for one in found.causes),
        lines,
        command="trace",
    ).answer(reader, code)
