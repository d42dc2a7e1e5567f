"""Which traces could be a job's that names none: submissions shortly before it came into the queue, ranked.

Every candidate says what speaks for it and what against. None is ever taken for the right one here: many
submit at the same time, and the same thing again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from jobtui.analysis.time_words import duration
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.condor_ids import CondorId, condor_id
from jobtui.model.jobs import Job
from jobtui.model.trace_desk import TraceSearch
from jobtui.model.trace_ids import TraceId
from jobtui.model.trace_jobs import is_same_job, names_job
from jobtui.model.traces import Span, Trace

SERVICE, OPERATION = "fife", "jobsub_submit"
"""What jobsub_lite calls itself and its submission."""
BEFORE_S, AFTER_S = 90.0, 5.0
"""A submission begins so long before its job is in the queue, or after it as clocks differ."""
USUAL_S = 60.0
MOST = 20

_START = 0.5
"""What a submission in time is worth by itself; nothing that is found here is certain."""


class TraceCandidate(NamedTuple):
    """A trace that could be a job's. `score` goes from 0 to 1, `why` says what speaks for it and against."""

    trace_id: TraceId
    score: float
    why: tuple[str, ...]
    started_at: Nanos


def submission_search(job: Job) -> TraceSearch | None:
    """The search for submissions that could be a job's; None where it is not known when it was submitted."""
    queued = job.queued_at
    if queued is None:
        return None
    return TraceSearch(
        service=SERVICE,
        operation=OPERATION,
        since=Nanos(queued - round(BEFORE_S * SECOND)),
        until=Nanos(queued + round(AFTER_S * SECOND)),
        most=MOST,
    )


def candidates(traces: Iterable[Trace], job: Job, names: tuple[str, ...]) -> tuple[TraceCandidate, ...]:
    """The traces that could be of a job, likeliest first. `names` are attributes that hold a job's id."""
    found = (one for trace in traces if (one := _candidate(trace, job, names)) is not None)
    return tuple(sorted(found, key=lambda one: (-one.score, -one.started_at, one.trace_id)))


def _candidate(trace: Trace, job: Job, names: tuple[str, ...]) -> TraceCandidate | None:
    root = next((span for span in trace.spans if span.name == OPERATION and span.parent_id is None), None)
    if root is None or job.queued_at is None:
        return None
    before_s = seconds_between(root.started_at, job.queued_at)
    if not -AFTER_S <= before_s <= BEFORE_S:
        return None
    told = [
        _of_time(before_s),
        *_of_command(root, job),
        *_of_parts(trace, job),
        *_of_others(trace, job, names),
    ]
    score = min(0.95, max(0.01, _START + sum(weight for weight, _ in told)))
    return TraceCandidate(trace.trace_id, round(score, 2), tuple(why for _, why in told), root.started_at)


_Told = tuple[float, str]


def _of_time(before_s: float) -> _Told:
    if before_s < 0:
        return -0.1, f"it was submitted {duration(-before_s)} after the job was in the queue"
    return -0.3 * min(
        1.0, before_s / USUAL_S
    ), f"submitted {duration(before_s)} before the job was in the queue"


def _of_command(root: Span, job: Job) -> Iterator[_Told]:
    """What the command line of a submission says."""
    argv = str(root.attributes.get("argv", ""))
    if job.name and job.name in argv:
        yield 0.2, f"its command names {job.name}"
    elif job.name and argv:
        yield -0.25, f"its command does not name {job.name}"
    if job.app and argv:
        named = job.app in argv
        yield 0.1 if named else -0.1, f"its command {'names' if named else 'does not name'} group {job.app}"


def _of_parts(trace: Trace, job: Job) -> Iterator[_Told]:
    """What the parts of a submission say."""
    submit = next((span for span in trace.spans if span.name == "submit"), None)
    if submit is None:
        yield -0.2, "nothing in it was handed to a schedd"
        return
    if str(submit.attributes.get("returns", "True")) != "True":
        yield -0.2, "its submission was refused"
    known = condor_id(job.id)
    schedd = known.schedd if known is not None else ""
    if schedd and (args := str(submit.attributes.get("args", ""))):
        yield (0.15, f"it went to {schedd}") if schedd in args else (-0.3, f"it did not go to {schedd}")


def _of_others(trace: Trace, job: Job, names: tuple[str, ...]) -> Iterator[_Told]:
    """What the jobs say that it is of."""
    written = {name for span in trace.spans if (name := _job_of(span, names)) is not None}
    if any(is_same_job(one, job.id) for one in written):
        yield 0.4, "spans in it name the job"
        return
    clusters: Mapping[str, CondorId] = {
        one: known for one in written if (known := condor_id(one)) is not None
    }
    mine = condor_id(job.id)
    others = [one for one, known in clusters.items() if mine is None or known.cluster != mine.cluster]
    if others:
        yield -0.4, f"spans in it name another job, {min(others)}"


def _job_of(span: Span, names: tuple[str, ...]) -> str | None:
    return names_job(span.attributes, names) or names_job(span.resource.attributes, names)
