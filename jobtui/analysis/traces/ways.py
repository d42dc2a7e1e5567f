"""From a job to its trace, the surest way first: what it was handed, what spans say, when it was submitted.

Asks for traces through the desk it is given; reads nothing itself.
"""

from collections.abc import Iterable
from typing import NamedTuple

from jobtui.analysis.traces.candidates import TraceCandidate, candidates, submission_search
from jobtui.model.jobs import Job
from jobtui.model.trace_desk import TraceDesk, TraceSearch, TraceSummary
from jobtui.model.trace_ids import TraceId
from jobtui.model.trace_jobs import spellings
from jobtui.model.traces import Trace

MOST_LOOKED_AT = 12
"""Submissions that are looked into, the nearest in time: each is a question to a server."""


class Way(NamedTuple):
    """A trace that is a job's, and how that is known."""

    trace_id: TraceId
    why: str


class Ways(NamedTuple):
    """The traces of a job; without one those that could be, ranked. `notes` say what could not be asked."""

    found: tuple[Way, ...] = ()
    candidates: tuple[TraceCandidate, ...] = ()
    notes: tuple[str, ...] = ()


async def ways_from_job(desk: TraceDesk, job: Job, names: tuple[str, ...]) -> Ways:
    """The traces of a job. `names` are the attributes in which spans may hold its id."""
    if job.trace:
        return Ways((Way(TraceId(job.trace), "it was handed this trace, its files say"),))
    by_attribute = await ways_by_attribute(desk, job.id, names)
    if by_attribute.found:
        return by_attribute
    search = submission_search(job)
    if search is None:
        return by_attribute
    told = await desk.search(search)
    traces = [trace for one in _nearest(told.traces, job) if (trace := await _fetched(desk, one)) is not None]
    return Ways((), candidates(traces, job, names), (*by_attribute.notes, *told.notes))


async def ways_by_attribute(desk: TraceDesk, job_id: str, names: tuple[str, ...]) -> Ways:
    """The traces of which spans say that they are of a job."""
    found: dict[TraceId, Way] = {}
    notes: dict[str, None] = {}
    for value in spellings(job_id):
        told = await desk.search(TraceSearch(names=names, value=value))
        notes.update(dict.fromkeys(told.notes))
        for one in told.traces:
            found.setdefault(one.trace_id, Way(one.trace_id, f"its spans name the job as {value}"))
        if found:
            break  # what is written more shortly may be another job's
    return Ways(tuple(found.values()), (), tuple(notes))


def _nearest(summaries: Iterable[TraceSummary], job: Job) -> list[TraceSummary]:
    queued = job.queued_at or 0
    return sorted(summaries, key=lambda one: abs((one.started_at or 0) - queued))[:MOST_LOOKED_AT]


async def _fetched(desk: TraceDesk, summary: TraceSummary) -> Trace | None:
    return (await desk.fetch(summary.trace_id)).trace
