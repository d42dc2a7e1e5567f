"""Two sources that disagree about a job, each with its fact and its time. Says nothing about who is right."""

from collections.abc import Callable
from typing import NamedTuple

from jobtui.analysis.explain.case import STATUS_WORDS, Case
from jobtui.analysis.explain.flow import FINAL_WORDS, Mark
from jobtui.analysis.slurm_join import ENDS, is_polled
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.ops import Step

SETTLED_S = 10.0
"""What is younger than this may just not have reached the other source yet."""


class Fact(NamedTuple):
    """What one source says, since when. `line` is 0 for a record."""

    text: str
    source: str
    at: Nanos | None
    line: int = 0


class Contradiction(NamedTuple):
    """Two facts that cannot both be so."""

    about: str
    one: Fact
    other: Fact


Check = Callable[[Case], Contradiction | None]


def contradictions(case: Case) -> tuple[Contradiction, ...]:
    """Every disagreement of a job's sources, none when they agree or only one of them tells."""
    if case.job is None or case.is_record_old:
        return ()
    return tuple(found for check in CHECKS if (found := check(case)) is not None)


def _ended_but_live(case: Case) -> Contradiction | None:
    ended = case.ended_in_log
    if ended is None or not case.status.is_live or not _is_settled(case, ended):
        return None
    return Contradiction("the record is live, the log says that it ended", _record(case), _line(ended))


def _agent_gone_but_live(case: Case) -> Contradiction | None:
    gone = case.last(Mark.AGENT_GONE)
    if gone is None or case.last(Mark.SENT) is None or not case.status.is_live or case.is_sbatch:
        return None
    if not _is_settled(case, gone):
        return None
    return Contradiction("the record is live, its agent is gone", _record(case), _line(gone))


def _exited_but_live(case: Case) -> Contradiction | None:
    exited = case.last(Mark.EXITED)
    if exited is None or case.ended_in_log is not None or not case.status.is_live:
        return None
    if not _is_settled(case, exited):
        return None
    return Contradiction("the record is live, its program has exited", _record(case), _line(exited))


def _runs_but_pending(case: Case) -> Contradiction | None:
    running = next((s for s in case.run.steps if s.step == "status running"), None) if case.run else None
    if running is None or case.status is not JobStatus.PENDING or not _is_settled(case, running):
        return None
    return Contradiction("the record is pending, the log says that it runs", _record(case), _line(running))


def _other_end(case: Case) -> Contradiction | None:
    ended = case.ended_in_log
    if ended is None or case.status.is_live or case.job is None:
        return None
    said = STATUS_WORDS[FINAL_WORDS[ended.step]]
    later = case.last(Mark.CANCEL, Mark.TIME_LIMIT, Mark.FOUND_GONE)
    if said is case.status or case.status not in (JobStatus.COMPLETED, JobStatus.FAILED) or later is not None:
        return None
    return Contradiction(f"the record says {case.status}, the log {said}", _record(case), _line(ended))


def _restarted_but_live(case: Case) -> Contradiction | None:
    restart = case.last(Mark.RESTARTED)
    if restart is None or not case.status.is_live or case.is_sbatch or case.later:
        return None
    return Contradiction("the record is live, its supervisor was restarted", _record(case), _line(restart))


def _slurm_ended_but_live(case: Case) -> Contradiction | None:
    slurm = case.slurm
    if slurm is None or not case.status.is_live or slurm.status not in ENDS or not _is_polled(case):
        return None
    about = f"the record is {case.status}, Slurm says {slurm.status}"
    return Contradiction(about, _record(case), _slurm(slurm))


def _slurm_runs_but_pending(case: Case) -> Contradiction | None:
    slurm = case.slurm
    if slurm is None or case.status is not JobStatus.PENDING or slurm.status is not JobStatus.RUNNING:
        return None
    if not _is_polled(case):
        return None
    return Contradiction("the record is pending, Slurm says that it runs", _record(case), _slurm(slurm))


def _slurm_other_end(case: Case) -> Contradiction | None:
    """An end that cannot be: what failed in Slurm completed in Sirepo, what is over there goes on here."""
    slurm = case.slurm
    if slurm is None or case.status not in ENDS or not _is_polled(case):
        return None
    completed = (case.status is JobStatus.COMPLETED, slurm.status is JobStatus.COMPLETED)
    if not slurm.status.is_live and (slurm.status not in ENDS or completed[0] == completed[1]):
        return None
    about = f"the record says {case.status}, Slurm says {slurm.status}"
    return Contradiction(about, _record(case), _slurm(slurm))


CHECKS: tuple[Check, ...] = (
    _ended_but_live,
    _agent_gone_but_live,
    _exited_but_live,
    _runs_but_pending,
    _other_end,
    _restarted_but_live,
    _slurm_ended_but_live,
    _slurm_runs_but_pending,
    _slurm_other_end,
)
"""What two sources may disagree about."""


def _is_polled(case: Case) -> bool:
    assert case.job is not None
    assert case.slurm is not None
    return is_polled(case.job, case.slurm, case.now)


def _slurm(slurm: Job) -> Fact:
    return Fact(f"{slurm.id}: {slurm.native_status}", slurm.source, slurm.updated_at)


def _is_settled(case: Case, step: Step) -> bool:
    since = case.since(step)
    return since is None or since > SETTLED_S


def _record(case: Case) -> Fact:
    assert case.job is not None
    return Fact(f"status: {case.job.native_status}", case.job.source, case.job.written_at)


def _line(step: Step) -> Fact:
    return Fact(step.step, step.source, step.at, step.line)
