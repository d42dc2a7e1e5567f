"""Where a pasted text leads: to a job or a trace at once when only one can be meant, else to a choice."""

from collections.abc import Iterator
from typing import NamedTuple

from jobtui.analysis.find import Candidate, find, is_ambiguous
from jobtui.analysis.references import Target, references
from jobtui.model.ids import JobId, split_container
from jobtui.model.trace_ids import TRACE_DIGITS, TraceRef, find_trace
from jobtui.store.store import Store

SURE = 0.35
"""A candidate with a lower score is only spelled nearly so."""
WHOLE = frozenset({Target.JOB})
NEAR = "spelled nearly so"
"""How `find` ends the reason of what is only spelled alike, which is never gone to unasked."""
LONGEST = 4_096
"""Of a longer text only so much is looked at."""


class Goal(NamedTuple):
    """Where to go: to a job, a trace, or the jobs under a filter; what it is, and why it is offered."""

    words: str
    why: str
    job: JobId | None = None
    filter: str | None = None
    trace: TraceRef | None = None


class Jump(NamedTuple):
    """What a text may mean, likeliest first, and whether the first is clearly the likeliest."""

    goals: tuple[Goal, ...]
    is_clear: bool


NOWHERE = Jump((), False)


def names_a_job(text: str) -> bool:
    """Whether a text holds a whole id, a run directory or the like, so that no filter can be meant."""
    return any(reference.target in WHOLE for reference in references(text[:LONGEST].strip()))


def jump_to(text: str, store: Store) -> Jump:
    """Where a text leads."""
    correlation = store.correlation
    found = find(text[:LONGEST], store.jobs, correlation.ops(), correlation.agents())
    likely = tuple(candidate for candidate in found if candidate.score >= SURE)
    goals = tuple(_distinct(goal for candidate in likely for goal in _goals(candidate, store)))
    if traces := tuple(trace_goals(text, store)):
        return Jump((*traces, *goals), len(traces) == 1 and not goals)
    if not goals:
        return NOWHERE
    is_exact = not likely[0].why.endswith(NEAR)
    is_clear = is_exact and (len(goals) == 1 or (not is_ambiguous(likely) and goals[0].job is not None))
    return Jump(goals, is_clear)


def trace_goals(text: str, store: Store) -> Iterator[Goal]:
    """The traces that a text names: by a whole id, a TRACEPARENT, an address, or the beginning of an id."""
    ref = find_trace(text[:LONGEST])
    if ref is None:
        return
    is_short = len(text.strip()) < TRACE_DIGITS
    known = [one for one in store.traces.ids() if one.startswith(text.strip().lower())] if is_short else []
    for trace_id in known:
        yield Goal(f"trace {trace_id}", "its id begins so", trace=TraceRef(trace_id))
    if not known and (not is_short or store.traces.trace(ref.trace_id) is not None):
        yield Goal(f"trace {ref.trace_id}", "; ".join(ref.notes) or "the text names it", trace=ref)
        for other in ref.others:
            if store.traces.trace(other) is not None:
                yield Goal(f"trace {other}", "it may be meant", trace=TraceRef(other))


def _goals(candidate: Candidate, store: Store) -> Iterator[Goal]:
    kind, id_, _, why, job = candidate
    if job is not None:
        yield Goal(job if kind == "job" else f"{kind} {id_} of {job}", why, job=job)
    elif kind == "user":
        yield Goal(f"user {id_}", why, filter=f"user:{id_}")
    elif kind == "container" and (container := split_container(id_)) is not None:
        yield Goal(f"container {id_}, jobs of its user", why, filter=f"user:{container.uid}")
    elif kind == "agent":
        jobs = {op.jid for op in store.correlation.ops() if op.agent == id_ and op.jid is not None}
        for job_id in sorted(jobs):
            yield Goal(f"{job_id}, held by agent {id_}", why, job=job_id)


def _distinct(goals: Iterator[Goal]) -> Iterator[Goal]:
    seen: set[tuple[JobId | None, str | None]] = set()
    for goal in goals:
        if (goal.job, goal.filter) not in seen:
            seen.add((goal.job, goal.filter))
            yield goal
