"""All that Slurm knows of one job: from slurmctld while that still knows it, from accounting for ever."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from jobtui.backends.base import SourceError
from jobtui.backends.slurm.commands import Commands
from jobtui.backends.slurm.faults import INVALID_JOB, NoAccounting
from jobtui.backends.slurm.known import joined
from jobtui.backends.slurm.rows import OF_SIREPO, canceled_words, error_of, job_of, signal_name
from jobtui.formats.slurm_json import jobs_of_text
from jobtui.formats.slurm_scontrol import shown_jobs
from jobtui.formats.slurm_tables import SACCT, STEP_FIELDS, is_job_id, jobs_with_steps, rows_of
from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.jobs import Job, JobDetail, JobStatus, Run
from jobtui.model.slurm import SYSTEM, SlurmJob
from jobtui.model.words import counted

MOST_STEPS = 20
"""Steps that are told one by one."""
MOST_TASKS = 10_000
CHOSEN = ("name", "user", "comment", "dependency", "command", "directory")
PATHS = ("stdout", "stderr")
"""What of a record a user chose, so that text alone may be taken for something else."""


async def fetch_detail(commands: Commands, native: str, label: str = SYSTEM) -> JobDetail | None:
    """Everything about a job, a task or a whole array; None when Slurm knows none. Raises SourceError."""
    if not is_job_id(native) or "[" in native:
        return None
    shown, fault = await _shown(commands, native)
    try:
        accounted = await _accounted(commands, native)
    except NoAccounting:
        accounted = []
    except SourceError as error:
        accounted, fault = [], fault or error
    known = {job.id: job for job, _ in shown} | {job.id: job for job in accounted}
    wanted = _meant(native, list(known.values()))
    if not wanted:
        if fault is not None:
            raise fault
        return None
    if len(wanted) > 1:
        return _array_detail(native, wanted, commands.name, label)
    runs = [job for job in accounted if job.id == wanted[0].id]
    said = next(((job, fields) for job, fields in shown if job.id == wanted[0].id), None)
    return _detail(said, runs, commands.name, label)


async def _shown(
    commands: Commands, native: str
) -> tuple[list[tuple[SlurmJob, dict[str, str]]], SourceError | None]:
    """What slurmctld knows, nothing when it knows it no more; and why it could not be asked."""
    try:
        answer = await commands.shown_job(native)
    except SourceError as error:
        return [], None if INVALID_JOB.lower() in str(error).lower() else error
    exact = await _exact(commands, native)
    shown = shown_jobs(answer.printed.decode("utf-8", "replace"))
    return [(_with(job, exact.get(job.id)), fields) for job, fields in islice(shown, MOST_TASKS)], None


async def _exact(commands: Commands, native: str) -> dict[str, SlurmJob]:
    """What JSON says of the same jobs, nothing where there is none: the text alone does then."""
    try:
        answer = await commands.shown_json(native)
        return {job.id: job for job in jobs_of_text(answer.printed)} if answer is not None else {}
    except (SourceError, ValueError):
        return {}


def _with(job: SlurmJob, exact: SlurmJob | None) -> SlurmJob:
    """A job with the texts that a user chose as JSON has them; paths only where its patterns are resolved."""
    if exact is None or exact.submitted_at != job.submitted_at:
        return job
    chosen = {name: text for name in CHOSEN if (text := getattr(exact, name))}
    paths = {name: text for name in PATHS if (text := getattr(exact, name)) and "%" not in text}
    return msgspec.structs.replace(job, **chosen, **paths)


async def _accounted(commands: Commands, native: str) -> list[SlurmJob]:
    answer = await commands.accounted_job(native)
    table = rows_of(answer.printed, answer.separator, (*SACCT, *STEP_FIELDS), commands.name)
    return jobs_with_steps(table.rows)


def _meant(native: str, known: Sequence[SlurmJob]) -> list[SlurmJob]:
    """The one job of this id or number, else the tasks of the array: the last task has the array's number."""
    tasks = [job for job in known if job.array == native]
    if len(tasks) > 1:
        return tasks
    exact = [job for job in known if job.id == native] or [job for job in known if job.raw == native]
    return (exact or tasks)[:1]


def _detail(
    said: tuple[SlurmJob, dict[str, str]] | None, runs: Sequence[SlurmJob], source: str, label: str
) -> JobDetail:
    """A job out of what both know; `runs` are its runs that accounting tells of, oldest first."""
    last = runs[-1] if runs else None
    if said is None:
        assert last is not None
        job = last
    elif last is None or last.status.is_live or said[0].status.is_live:
        job = said[0]
    else:
        job = joined(said[0], last)
    if last is not None:
        job = msgspec.structs.replace(
            job, steps=last.steps, cluster=job.cluster or last.cluster, memory=job.memory or last.memory
        )
    record = job_of(job, source, label)
    record = msgspec.structs.replace(record, runs=max(record.runs, len(runs)))
    told = [*runs[:-1], job]
    made = tuple(_run(number, one) for number, one in enumerate(told, 1))
    return JobDetail(
        job=record,
        runs=made,
        history=made,
        native={
            "slurm": msgspec.to_builtins(job),
            "scontrol": said[1] if said is not None else None,
            "sacct": [msgspec.to_builtins(one) for one in runs],
        },
        path=f"{source}: scontrol show job {job.id}",
        changes=tuple(_changes(told, record)),
        directory=job.directory or None,
        facts=(*_of_sirepo(record), *_facts(job)),
    )


def _of_sirepo(record: Job) -> Iterator[tuple[str, str]]:
    """The job of Sirepo that it is, by the directory it was submitted in."""
    if record.tags.startswith(f"{OF_SIREPO}:"):
        yield "Sirepo's job", record.tags.removeprefix(f"{OF_SIREPO}:")


def _run(number: int, job: SlurmJob) -> Run:
    return Run(
        number=number,
        status=job.status,
        native_status=job.state,
        queued_at=job.submitted_at,
        started_at=job.started_at,
        updated_at=job.ended_at or job.started_at or job.submitted_at,
        ended_at=job.ended_at,
        message=canceled_words(job) if job.status is JobStatus.CANCELED else None,
        error=error_of(job),
        limit_s=job.limit_s if job.state == "TIMEOUT" else None,
        host=job.nodes or None,
    )


def _changes(runs: Sequence[SlurmJob], record: Job) -> Iterator[StateChange]:
    """The states that a job's times tell of, oldest first."""
    number, before = 0, ""
    for run in runs:
        for at, state, text in _states(run):
            number += 1
            detail: dict[str, object] | None = {"message": text} if text else None
            yield StateChange(number, record.id, at, before, state, record.source, None, detail)
            before = state


def _states(job: SlurmJob) -> Iterator[tuple[Nanos, str, str]]:
    if job.submitted_at is not None:
        yield job.submitted_at, "PENDING", ""
    if job.started_at is not None:
        yield job.started_at, "RUNNING", f"on {job.nodes}" if job.nodes else ""
    if job.ended_at is not None and not job.status.is_live:
        canceled = canceled_words(job) if job.status is JobStatus.CANCELED else ""
        yield job.ended_at, job.state, error_of(job) or canceled


def _facts(job: SlurmJob) -> Iterator[tuple[str, str]]:
    """What a person asks of a job beside how it stands."""
    texts = {
        "number": job.raw if job.raw != job.id else "",
        "array": f"{job.array}, {'tasks' if job.is_rest else 'task'} {job.task}" if job.array else "",
        "cluster": job.cluster,
        "account": job.account,
        "partition": job.partition,
        "QOS": job.qos,
        "nodes": f"{job.node_count} ({job.nodes})" if job.nodes else job.node_count,
        "CPUs": job.cpus,
        "memory": job.memory,
        "time limit": f"{job.limit_s / 60:g} min" if job.limit_s else "",
        "may begin": to_rfc3339(job.expected_at) if job.expected_at is not None else "",
        "reason": job.reason,
        "exit": _exit_words(job),
        "requeued": counted(job.restarts, "time") if job.restarts else "",
        "depends on": job.dependency,
        "comment": job.comment,
        "command": job.command,
        "work directory": job.directory,
        "output": job.stdout,
        "errors": job.stderr if job.stderr != job.stdout else "",
    }
    yield from ((name, text) for name, text in texts.items() if text)
    for step in job.steps[:MOST_STEPS]:
        exit_ = f", exit {step.exit}" if step.exit is not None else ""
        memory = f", at most {step.max_rss} of memory" if step.max_rss else ""
        yield f"step {step.id}", f"{step.state}{exit_}{memory}"
    if len(job.steps) > MOST_STEPS:
        yield "steps", f"{len(job.steps)}, of which the first {MOST_STEPS} are told"


def _exit_words(job: SlurmJob) -> str:
    if job.exit is None:
        return ""
    return f"{job.exit} (signal {signal_name(job.exit.signal)})" if job.exit.signal else str(job.exit)


def _array_detail(native: str, tasks: Sequence[SlurmJob], source: str, label: str) -> JobDetail:
    """An array as a whole: how many of its tasks are in which state, and which failed."""
    states = Counter(task.state for task in tasks)
    failed = [task.task for task in tasks if task.status is JobStatus.FAILED]
    status = next(
        (one for one in _ARRAY_STATUS if any(task.status is one for task in tasks)), JobStatus.UNKNOWN
    )
    times = [task.submitted_at for task in tasks if task.submitted_at is not None]
    first = msgspec.structs.replace(tasks[0], id=native, raw=native, array="", task="", exit=None)
    job = msgspec.structs.replace(
        job_of(first, source, label),
        status=status,
        native_status=", ".join(f"{count} {state}" for state, count in states.most_common()),
        mode="array",
        model=f"{len(tasks)} tasks",
        queued_at=min(times, default=None),
        error=f"tasks {', '.join(failed[:20])} failed" if failed else None,
        message=None,
        alert=None,
        runs=1,
    )
    return JobDetail(
        job=job,
        runs=(),
        history=(),
        native={"tasks": [msgspec.to_builtins(task) for task in tasks]},
        path=f"{source}: scontrol show job {native}",
        directory=first.directory or None,
        facts=tuple((f"task {task.task}", _task_words(task)) for task in tasks[:MOST_STEPS]),
    )


_ARRAY_STATUS = (
    JobStatus.RUNNING, JobStatus.PENDING, JobStatus.FAILED, JobStatus.CANCELED, JobStatus.COMPLETED,
)  # fmt: skip
"""How an array stands: as the first of these that one of its tasks is in."""


def _task_words(task: SlurmJob) -> str:
    why = error_of(task)
    return f"{task.state}{f': {why}' if why else ''}, number {task.raw}"
