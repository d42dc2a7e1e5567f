"""The timeline of a job: its ops, steps, lines and changes of state in the order of time, run by run.

Jobs of Balsam, Slurm and HTCondor have no messages: their timeline is made of events or records.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from jobtui.analysis.times import duration
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos, Window, seconds_between
from jobtui.model.ids import JobId, OpPrefix, condor_id, numbered
from jobtui.model.jobs import SLURM, Job, JobStatus, Run
from jobtui.model.ops import Certainty, Component, Op, OpStatus, Step, Unlinked, in_order
from jobtui.model.patterns import regex
from jobtui.model.state_runs import FAILED, FAILURES, RUN_ERROR, RUNNING, by_run, error_of
from jobtui.model.tables import tables_of

SLACK = 2 * SECOND
"""A request is logged shortly before the queue time in the record, and logs cut off fractions."""


def window_of(runs: Sequence[Run], number: int) -> Window:
    """The window of the run with this number; anything before the first run belongs to it."""
    starts: list[tuple[int, Nanos | None]] = []
    for run in runs:
        at = run.queued_at if run.queued_at is not None else run.started_at
        starts.append((run.number, None if at is None else Nanos(at - SLACK)))
    begin = next((at for known, at in starts if known == number), None)
    end = next((Nanos(at - 1) for known, at in starts if known > number and at is not None), None)
    is_first = all(known >= number for known, _ in starts)
    return Window(None if is_first else begin, end)


def ops_in(window: Window, ops: Iterable[Op]) -> tuple[Op, ...]:
    return tuple(op for op in ops if window.holds(began_at(op)))


def unlinked_in(window: Window, lines: Iterable[Unlinked]) -> tuple[Unlinked, ...]:
    return tuple(line for line in lines if window.holds(line.step.at))


def began_at(op: Op) -> Nanos | None:
    if op.created_at is not None:
        return op.created_at
    return next((step.at for step in op.steps if step.at is not None), None)


BEGINNING = Nanos(0)


def states_of(job: Job) -> Iterator[tuple[Nanos, Job]]:
    """The states of its last run with their begin; the record comes last, with the time of its writing.

    A state without a stored time is left out.
    """
    over_at = job.ended_at if not job.status.is_live else None
    if job.queued_at is not None and _is_before(job.queued_at, job.started_at, over_at, job.written_at):
        yield job.queued_at, _reset(job, JobStatus.PENDING, started_at=None)
    if job.started_at is not None and _is_before(job.started_at, over_at):
        yield job.started_at, _reset(job, JobStatus.RUNNING, started_at=job.started_at)
    written = (job.written_at, over_at, job.updated_at, job.started_at, job.queued_at)
    yield next((at for at in written if at is not None), BEGINNING), job


def _is_before(at: Nanos, *later: Nanos | None) -> bool:
    known = [one for one in later if one is not None]
    return bool(known) and at < min(known)


def _reset(job: Job, status: JobStatus, started_at: Nanos | None) -> Job:
    return msgspec.structs.replace(
        job, status=status, native_status=str(status), started_at=started_at, ended_at=None, percent=None,
        frames=None, message=None, error=None, alert=None, passed="", written_at=None, updated_at=None,
    )  # fmt: skip


BY_LAUNCHER = frozenset({RUNNING, "RUN_DONE", RUN_ERROR, "RUN_TIMEOUT"})
BY_SERVER = frozenset({"", "CREATED", "AWAITING_PARENTS", "READY", "STAGED_IN"})
STATES = tables_of("jobtui.model", "states")
RESULTS: Mapping[str, str] = {state: "error" for state in FAILURES} | STATES["results"]
"""The end of a run in the words of ops, by the state that followed."""
LOST = "IDLE"
"""The state to which a job of HTCondor returns if its run was lost."""
RETURN_CODE = "returncode"


def ops_of_changes(job: Job | None, changes: Iterable[StateChange]) -> tuple[Op, ...]:
    """An op for each run, oldest first. `job` says whether the last one continues."""
    runs = by_run(changes)
    before: StateChange | None = None
    ops: list[Op] = []
    for number, run in enumerate(runs, 1):
        is_last = number == len(runs)
        ops.append(_op(number, run, before, job, is_open=is_last and (job is None or job.status.is_live)))
        before = run[-1]
    return tuple(ops)


def is_of_states(op: Op) -> bool:
    """Whether an op represents a run known by its states, and not messages."""
    return op.key < 0


def _op(
    number: int, run: Sequence[StateChange], before: StateChange | None, job: Job | None, *, is_open: bool
) -> Op:
    left = [one for one in run if one.after in RESULTS or (one.before, one.after) == (RUNNING, LOST)]
    errors = [text for change in run if (text := error_of(change)) is not None]
    start = next((change for change in run if change.after == RUNNING), None)
    befores = chain((before,), run)
    result = RESULTS.get(left[-1].after, "canceled") if left else None
    # A running job writes nothing while it runs; a waiting one waits since its last change
    open_status = OpStatus.REPLIED if run[-1].after == RUNNING else OpStatus.WAITING
    return Op(
        key=-number,
        op=OpPrefix(f"#{number}"),
        name="run",
        status=open_status if is_open else OpStatus.ENDED,
        jid=run[0].job_id,
        uid=job.owner if job else None,
        result=None if is_open else result or (job.status.value if job else None),
        error=errors[-1] if errors and result == "error" else None,
        created_at=run[0].at,
        sent_at=None if start is None else start.at,
        replied_at=left[0].at if left else None,
        ended_at=None if is_open else run[-1].at,
        certainty=Certainty.JID,
        steps=tuple(_step(change, earlier) for change, earlier in zip(run, befores, strict=False)),
    )


def _step(change: StateChange, before: StateChange | None) -> Step:
    since = ""
    if before is not None:
        since = f" after {duration(seconds_between(before.at, change.at))}"
    detail = change.detail or {}
    shown = ", ".join(f"{name}: {value}" for name, value in detail.items())
    words = change.after or JobStatus.UNKNOWN.value
    if change.after == RUNNING and change.nodes is not None:
        words = f"{change.after} on {change.nodes:g} node{'s' * (change.nodes != 1)}"
    elif change.after == RUN_ERROR and RETURN_CODE in detail:
        words = f"{change.after}, return code {detail[RETURN_CODE]}"
    return Step(
        step=words,
        at=change.at,
        component=_component(change),
        text=f"{change.before} to {change.after}".lstrip() + f"{since}{f'; {shown}' if shown else ''}",
        source=change.source,
        line=change.id,
        offset=change.id,
        certainty=Certainty.JID,
    )


def _component(change: StateChange) -> Component:
    if condor_id(change.job_id) is not None:
        return Component(STATES["components"].get(str((change.detail or {}).get("what")), Component.SCHEDD))
    if (parts := numbered(change.job_id)) is not None and parts.system == SLURM:
        return Component.NODES if change.before == RUNNING else Component.SLURM
    if change.after in BY_LAUNCHER or (change.after == FAILED and change.before == RUNNING):
        return Component.LAUNCHER
    return Component.BALSAM if change.after in BY_SERVER else Component.SITE


GAP_S = 5.0
"""A step at least this many seconds after the one before it is marked as a gap."""
LEAST_TIMES = 4
MOST_TOGETHER = 3


BAD = regex(
    r"\b(error|fail\w*|destroyed|lost|time ?out|time limit|given up|killed|no reply|never|restart\w*"
    r"|exception|run_error|run_timeout)\b",
    re.IGNORECASE,
)
"""Words of steps that are never folded."""


class TimelineRow(NamedTuple):
    """One row. Times in seconds are None if a line has none; so is `since_prev_s` of the first row."""

    step: Step
    from_start_s: float | None
    since_prev_s: float | None

    @property
    def is_gap(self) -> bool:
        return self.since_prev_s is not None and self.since_prev_s >= GAP_S

    @property
    def is_bad(self) -> bool:
        return BAD.search(self.step.step) is not None


def timeline_rows(op: Op) -> tuple[TimelineRow, ...]:
    start = next((step.at for step in op.steps if step.at is not None), None)
    rows: list[TimelineRow] = []
    before: Nanos | None = None
    for step in op.steps:
        rows.append(TimelineRow(step, _seconds(start, step.at), _seconds(before, step.at)))
        before = step.at if step.at is not None else before
    return tuple(rows)


def _seconds(since: Nanos | None, at: Nanos | None) -> float | None:
    return None if since is None or at is None else seconds_between(since, at)


class Fold(NamedTuple):
    """Rows from `first` to `last` that repeat the same `together` steps, `times` in all.

    `longest_s` is the longest wait between two of them, None where no line carries a time.
    """

    first: int
    last: int
    together: int
    times: int
    longest_s: float | None


def folds_in(rows: Sequence[TimelineRow]) -> Iterator[Fold]:
    """The repeats in the rows, from the first on; a failure is never folded.

    With more rows at the end the folds stay the same, but the last one may grow.
    """
    at = 0
    while at < len(rows):
        fold = max(
            (_fold_at(rows, at, each) for each in range(1, MOST_TOGETHER + 1)),
            key=lambda fold: (fold.times >= LEAST_TIMES, fold.last),
        )
        if fold.times >= LEAST_TIMES:
            yield fold
            at = fold.last + 1
        else:
            at += 1


def _fold_at(rows: Sequence[TimelineRow], first: int, together: int) -> Fold:
    end = first
    if not any(row.is_bad for row in rows[first : first + together]):
        while end < len(rows) and _is_same(rows[end].step, rows[first + (end - first) % together].step):
            end += 1
    times = (end - first) // together
    last = first + times * together - 1
    waits = [row.since_prev_s for row in rows[first + 1 : last + 1] if row.since_prev_s is not None]
    return Fold(first, last, together, times, max(waits, default=None))


def _is_same(one: Step, other: Step) -> bool:
    return (one.component, one.step) == (other.component, other.step)


def op_duration_s(op: Op, now: Nanos) -> float | None:
    """Seconds from an op's creation, or its first known time, to its end, or to now while it is open."""
    start = began_at(op)
    if start is None:
        return None
    if op.status.is_open:
        return max(0.0, seconds_between(start, now))
    end = op.ended_at if op.ended_at is not None else op.replied_at
    return None if end is None else max(0.0, seconds_between(start, end))


def waits_since(op: Op) -> Nanos | None:
    """The time of an open op's last step; None if it has ended or no line has a time."""
    if not op.status.is_open or op.status is OpStatus.REPLIED:
        return None
    return next((step.at for step in reversed(op.steps) if step.at is not None), None)


_LEVEL = regex(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL)(?::[\w.]+:| \| )", re.ASCII)


class JobLine(Step, frozen=True, gc=False):
    """One line of a log, as written. `line` is 0 if the lines before it are not counted."""

    job_id: JobId = JobId("")
    op: Op | None = None
    continues: bool = False

    @property
    def key(self) -> tuple[str, int, str]:
        """Its identity; output of a container can hold several records in one line."""
        return self.source, self.offset, self.text

    @property
    def level(self) -> str | None:
        """The level of a line of Python's logging in the formats of Sirepo and Balsam; None for others."""
        found = _LEVEL.match(self.text)
        return found[1].lower() if found else None


def job_lines(job_id: JobId, ops: Iterable[Op], unlinked: Iterable[Unlinked]) -> list[JobLine]:
    """Every line of a job once, with its surest link, in order of time and in order within each source."""
    surest: dict[tuple[str, int, str], JobLine] = {}
    of_ops = (_line(job_id, step, op) for op in ops for step in op.steps)
    for line in chain(of_ops, (_line(job_id, one.step, None) for one in unlinked)):
        before = surest.get(line.key)
        if before is None or line.certainty.rank < before.certainty.rank:
            surest[line.key] = line
    return in_time_order(surest.values())


def _line(job_id: JobId, step: Step, op: Op | None) -> JobLine:
    values = msgspec.structs.asdict(step) | {"line": max(0, step.line)}
    return JobLine(**values, job_id=job_id, op=op)


def masked(lines: Iterable[JobLine]) -> list[JobLine]:
    """Lines without what is secret by the lines above them in their source; the rest is not masked."""
    from jobtui.model.secret_blocks import SecretBlocks

    blocks = defaultdict[str, SecretBlocks](SecretBlocks)
    return [msgspec.structs.replace(line, text=blocks[line.source].hide(line.text)) for line in lines]


def in_time_order(lines: Iterable[JobLine]) -> list[JobLine]:
    """Lines of several sources by time, those of each in its own order; see `model.ops.in_order`."""
    return list(in_order(sorted(lines, key=lambda line: line.offset)))
