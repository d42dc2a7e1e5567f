"""Where a pasted text leads: to a job at once when only one can be meant, else to a choice."""

from collections.abc import Iterator
from typing import NamedTuple

from jobtui.analysis.find import Candidate, find, is_ambiguous
from jobtui.analysis.references import Target, references
from jobtui.model.ids import JobId, split_container
from jobtui.store.store import Store

SURE = 0.35
"""A candidate with a lower score is only spelled nearly so."""
WHOLE = frozenset({Target.JOB})
NEAR = "spelled nearly so"
"""How `find` ends the reason of what is only spelled alike, which is never gone to unasked."""
LONGEST = 4_096
"""Of a longer text only so much is looked at."""


class Goal(NamedTuple):
    """Where to go: to a job, or to the jobs under a filter; what it is, and why it is offered."""

    words: str
    why: str
    job: JobId | None = None
    filter: str | None = None


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
    if not goals:
        return NOWHERE
    is_exact = not likely[0].why.endswith(NEAR)
    is_clear = is_exact and (len(goals) == 1 or (not is_ambiguous(likely) and goals[0].job is not None))
    return Jump(goals, is_clear)


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
