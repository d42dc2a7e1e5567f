"""Which trace a pasted thing means: an id, a line, an address, a file, a job. Asks for what that takes."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobtui.commands.named_file import LONGEST_NAME, file_named, read_too
from jobtui.commands.reading import Reader
from jobtui.formats.trace_text import begins_with_spans
from jobtui.model.condor_ids import condor_id, find_condor_id
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.model.trace_desk import JOB_ATTRIBUTES
from jobtui.model.trace_growth import is_waited_for
from jobtui.model.trace_ids import TraceId, TraceRef, find_trace
from jobtui.model.trace_jobs import is_same_job
from jobtui.store.trace_book import TraceBook

if TYPE_CHECKING:
    from jobtui.analysis.traces.candidates import TraceCandidate
    from jobtui.analysis.traces.ways import Way
    from jobtui.backends.trace_files import TraceFile

HEAD_BYTES = 4_096
"""Bytes by which a file of spans is told from others."""
FETCHED = 5
"""Traces that are fetched of those that are found for a job."""


class Found(NamedTuple):
    """The trace that was meant, or several that may be; and what is to be said of how it was found.

    Without any, `candidates` are those that could be. `job_id` is the job that was named, `job` what is
    known of it.
    """

    ids: tuple[TraceId, ...] = ()
    notes: tuple[str, ...] = ()
    candidates: "tuple[TraceCandidate, ...]" = ()
    job_id: str = ""
    job: Job | None = None


def job_attributes(reader: Reader) -> tuple[str, ...]:
    """The attributes in which spans may name a job: those that are configured, else the usual ones."""
    return reader.context.config.job_attributes or JOB_ATTRIBUTES


async def look_for(reader: Reader, thing: str) -> Found:
    """The traces that a text may mean; the store knows them then."""
    text = thing.strip()
    ref = find_trace(text)
    found = Found() if ref is None else await _by_id(reader, ref, text)
    if not found.ids and (path := file_named(text)) is not None:
        found = await _by_file(reader, path)
    if not found.ids and (ref is None or text.isdigit()):
        found = await _by_job(reader, text)
    return found


async def _by_id(reader: Reader, ref: TraceRef, text: str) -> Found:
    """The trace of an id, or of the beginning of one. A line may name the job, too."""
    named = find_condor_id(text)
    book = reader.session.store.traces
    ids = (ref.trace_id, *ref.others)
    said = await _fetch(reader, ids)
    known = tuple(one for one in ids if book.trace(one) is not None)
    if known or len(ref.trace_id.lstrip("0")) == len(ref.trace_id):
        return Found(known, (*_notes(book, ref), *said), job_id=named.job_id if named else "")
    beginning = ref.trace_id.lstrip("0")
    known = tuple(one for one in book.ids() if one.startswith(beginning))
    return Found(known, (f"its id begins with {beginning}",) if known else ref.notes)


async def _fetch(reader: Reader, ids: Iterable[TraceId]) -> list[str]:
    """Have everything asked for traces; what is to be said of them."""
    notes = []
    for trace_id in ids:
        answer = await reader.session.traces.fetch(trace_id)
        if answer.growing and answer.trace is not None and is_waited_for(answer.trace, reader.now):
            notes.append(f"more of it may come: {answer.growing}")
    return notes


def _notes(book: TraceBook, ref: TraceRef) -> tuple[str, ...]:
    trace = book.trace(ref.trace_id)
    if trace is None or ref.span_id is None or any(span.span_id == ref.span_id for span in trace.spans):
        return ref.notes
    return (*ref.notes, f"span {ref.span_id}, which is named as the parent, was not received")


async def _by_file(reader: Reader, path: Path) -> Found:
    """The traces that a file names, as the output of a job does, else those whose spans it holds."""
    from jobtui.backends.condor_files import CondorFile  # few name a file
    from jobtui.backends.trace_files import TraceFile

    store = reader.session.store
    if begins_with_spans(_head(path)):
        return await _held_in(reader, TraceFile(path), path)
    await read_too(reader, CondorFile(path))
    traces = store.traces_named_in(str(path))
    if traces:
        ids = tuple(map(TraceId, traces))
        jobs = {job for of_trace in traces.values() for job in of_trace if job}
        job_id = JobId(jobs.pop() if len(jobs) == 1 else "")
        notes = (f"{path} names it", *await _fetch(reader, ids))
        return Found(ids, notes, job_id=job_id, job=store.jobs.get(job_id))
    if jobs_told := store.jobs_told_in(str(path)):
        return await _by_job(reader, jobs_told[0]) if len(jobs_told) == 1 else Found()
    return await _held_in(reader, TraceFile(path), path)


def _head(path: Path) -> bytes:
    """The beginning of a file, nothing of one that cannot be read: reading it whole says why."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


async def _held_in(reader: Reader, file: "TraceFile", path: Path) -> Found:
    """The traces whose spans a file holds."""
    store = reader.session.store
    await read_too(reader, file)
    held = tuple(one for one in store.traces.ids() if str(path) in store.traces.sources_of(one))
    return Found(held, (f"{path} holds it",) if held else ())


async def _by_job(reader: Reader, text: str) -> Found:
    """The trace of the job that a text names."""
    from jobtui.analysis.traces.ways import Ways, ways_by_attribute, ways_from_job  # a trace id needs none

    names, desk = job_attributes(reader), reader.session.traces
    job = await _job(reader, text)
    named = condor_id(text) or find_condor_id(text)
    job_id = job.id if job is not None else named.job_id if named is not None else text
    ways = Ways()
    if job is not None:
        ways = await ways_from_job(desk, job, names)
    elif 0 < len(job_id) <= LONGEST_NAME:
        ways = await ways_by_attribute(desk, job_id, names)
    if not ways.found and not ways.candidates and named is not None:
        ways = ways._replace(found=_by_process(reader.session.store.traces, job_id, names))
    ids = tuple(way.trace_id for way in ways.found)[:FETCHED]
    said = [note for note in ways.notes if not any(source.error == note for source in reader.sources)]
    notes = (*(way.why for way in ways.found), *said, *await _fetch(reader, ids))
    return Found(ids, notes, ways.candidates, job_id, job)


def _by_process(book: TraceBook, job_id: str, names: tuple[str, ...]) -> "tuple[Way, ...]":
    """The known traces in which a process names a job with more than was asked for, such as its schedd."""
    from jobtui.analysis.traces.processes import processes_in
    from jobtui.analysis.traces.ways import Way

    known = ((one, book.trace(one)) for one in book.ids())
    return tuple(
        Way(one, f"its spans name the job as {written}")
        for one, trace in known
        if trace is not None
        for written in [next((w for w in processes_in(trace, names) if is_same_job(w, job_id)), None)]
        if written is not None
    )


async def _job(reader: Reader, text: str) -> Job | None:
    """The job that a text names; of several that were handed one trace any. None when it names none."""
    from jobtui.analysis.find import find
    from jobtui.backends.registry import gives_jobs
    from jobtui.commands.resolve import SURE

    if not any(gives_jobs(spec) for spec in reader.specs) and not reader.session.store.jobs:
        return None
    await reader.read_jobs()
    jobs = reader.session.store.jobs
    likely = [one for one in find(text, jobs) if one.job in jobs and one.score >= SURE]
    best = [jobs[one.job] for one in likely if one.job is not None and one.score == likely[0].score]
    handed = {job.trace for job in best}
    return best[0] if len(best) == 1 or (len(handed) == 1 and handed != {""}) else None
