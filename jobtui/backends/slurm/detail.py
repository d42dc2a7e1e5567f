"""All that Slurm knows about one job: from slurmctld while that knows it, from accounting at any time.

The queue says why a job waits, and so does one command that is run only for this job. The reason that Slurm
gives decides which command, see `question_of`; none is run if the queue and the record say enough.
"""

import posixpath
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import msgspec

from jobtui.backends.slurm import records
from jobtui.backends.slurm.client import INVALID_JOB, Commands, NoAccounting
from jobtui.formats import slurm, slurm_nodes
from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos, seconds_between, to_rfc3339
from jobtui.model.health import SourceError, SourceMissing
from jobtui.model.jobs import (
    MOST_HOLDERS,
    NOT_READ,
    Blocker,
    Category,
    Job,
    JobDetail,
    JobStatus,
    Pending,
    Run,
)
from jobtui.model.numbers import and_more, counted, whole
from jobtui.model.slurm import (
    ALSO_LOST,
    HELD_STATES,
    KNOWN_BY,
    LIMIT,
    NODE_NOT_KNOWN,
    STUCK_PER,
    Partition,
    SlurmJob,
    queued_as,
    reason_of,
)

ASK_NODES = ("show", "node")
MOST_CHAIN = 20
"""Jobs of a chain of dependencies that are followed."""
MOST_LOST = 10
TOGETHER_S = 60.0
"""Jobs that a node lost within this time were lost together."""
_NEEDED = re.compile(r"(\d+(?:_\d+)?)(?:\+\d+)?(?:\((\w+)\))?", re.ASCII)


class Queue(NamedTuple):
    """The queue as of its last reading: its jobs by key, and the priorities of those that wait."""

    jobs: Mapping[str, SlurmJob]
    priorities: Mapping[str, int]


Shown = tuple[SlurmJob, dict[str, str]]
"""A job as `scontrol show job` prints it, and its fields by name."""
QueueOf = Callable[[], Awaitable[Queue]]
"""Gives the queue as of its last reading. Raises SourceError."""


def question_of(job: SlurmJob, said: Mapping[str, str]) -> tuple[str, ...]:
    """The words of scontrol that say more about why a job waits; none if there are none."""
    category = category_of(job)
    if category.is_for_nodes or category is Category.REQUEST:
        return ASK_NODES
    if category is Category.LIMIT:
        return ("show", "assoc_mgr", "flags=qos" if job.reason.startswith("QOS") else "flags=assoc")
    if category is Category.LICENSE:
        return ("show", "licenses")
    if category is Category.PARTITION and job.partition:
        return ("show", "partition", job.partition.partition(",")[0])
    if category is Category.RESERVATION and (name := said.get("Reservation", "(null)")) != "(null)":
        return ("show", "reservation", name)
    return ()


def category_of(job: SlurmJob) -> Category:
    return Category.HELD if job.state in HELD_STATES else reason_of(job.reason or "None").category


async def fetch_pending(
    commands: Commands, key: str, job: SlurmJob, said: Mapping[str, str], queue: Queue
) -> Pending:
    """Why a job waits, with the answer to its question. If that fails, what is known without it."""
    known = pending_of(key, job, queue)
    words = question_of(job, said)
    if not words:
        return known
    begun = time.monotonic()
    try:
        answer = await commands.scontrol("--oneliner", "--details", *words)
    except SourceError as error:
        return msgspec.structs.replace(known, asked=(" ".join(words),), unread=str(error))
    took_s, size = time.monotonic() - begun, len(answer.printed)
    cost = f"scontrol {' '.join(words)}: {took_s * 1000:.0f} ms, {size / 1000:.1f} kB"
    return msgspec.structs.replace(_explain(known, job, said, queue, answer.printed), asked=(cost,))


def pending_of(key: str, job: SlurmJob, queue: Queue) -> Pending:
    known = queued_as(job.state, job.reason, job.submitted_at, job.partition, job.expected_at)
    known, category = msgspec.structs.replace(known, eligible_at=job.eligible_at), known.category
    if category.is_for_nodes and key in queue.priorities:
        mine, own_order = set(queue.jobs[key].partition.split(",")), _order(key, queue)
        rivals = [  # all that wait for nodes of the same partition, itself included
            one
            for one in queue.priorities
            if category_of(other := queue.jobs[one]).is_for_nodes and mine & set(other.partition.split(","))
        ]
        ahead = sorted(order for one in rivals if (order := _order(one, queue)) < own_order)
        last = [_held(queue.jobs[one]) for *_, one in ahead[-MOST_HOLDERS:]]
        known = msgspec.structs.replace(known, ahead=len(ahead), of=len(rivals), next=tuple(last))
        known = msgspec.structs.replace(known, note=_license_note(queue.jobs[key], queue))
    if category is Category.BEGIN_TIME:
        begins_at = job.eligible_at or job.expected_at
        known = msgspec.structs.replace(known, eligible_at=begins_at, scheduler_estimate=None)
    if category is Category.DEPENDENCY:
        known = msgspec.structs.replace(known, needs=chain_of(job, queue.jobs))
    return known


def _license_note(job: SlurmJob, queue: Queue) -> str:
    """That it waits for a license too, which its reason does not say; "" if no other job has that."""
    mine = licenses_of(job.licenses)
    running = (one for one in queue.jobs.values() if one.status is JobStatus.RUNNING)
    if not (having := [one.id for one in running if mine.keys() & licenses_of(one.licenses)]):
        return ""
    names = ", ".join(having[:MOST_HOLDERS]) + and_more(len(having), MOST_HOLDERS)
    return f"it also asks for the license {job.licenses}, which is used by {names}"


def _explain(known: Pending, job: SlurmJob, said: Mapping[str, str], queue: Queue, printed: bytes) -> Pending:
    changed: dict[str, object] = {}
    holders: list[SlurmJob] = []
    running = [one for one in queue.jobs.values() if one.status is JobStatus.RUNNING]
    match known.category:
        case Category.LIMIT:
            changed["limit"] = slurm_nodes.limit_of_reason(
                printed, job.reason, user=job.user, account=job.account, qos=job.qos
            )
            holders = [one for one in running if _counts_for(one, job)]
        case Category.LICENSE:
            names = licenses_of(job.licenses or said.get("Licenses", ""))
            found = [one for name in names if (one := slurm_nodes.license_of(printed, name)) is not None]
            short = (one for one in found if one.most - (one.used or 0.0) < names[one.name])
            changed["limit"] = next(short, None)
            holders = [one for one in running if names.keys() & licenses_of(one.licenses)]
        case Category.PARTITION:
            changed["note"] = "; ".join(map(_partition_words, slurm_nodes.partitions_of(printed)))
        case Category.RESERVATION:
            if (begin := slurm_nodes.reservation_of(printed)) is not None:
                changed |= {"eligible_at": begin, "note": f"it starts at {to_rfc3339(begin)}"}
        case _:
            wants = slurm_nodes.wants_of(said)
            nodes = [node for node in slurm_nodes.nodes_of(printed) if wants.allows(node)]
            changed["nodes"] = slurm_nodes.tally_of(nodes, wants)
            allowed = {node.name for node in nodes}
            partitions = {name for node in nodes for name in node.partitions.split(",")}
            there = (one for one in running if one.partition in partitions)
            holders = [one for one in there if not allowed.isdisjoint(slurm_nodes.expanded(one.nodes))]
    ends = sorted(holders, key=lambda one: one.ended_at or one.started_at or 0)
    changed["holders"] = tuple(map(_held, ends[:MOST_HOLDERS]))
    changed["holder_count"] = len(holders)
    return msgspec.structs.replace(known, **changed)


def _partition_words(partition: Partition) -> str:
    most = partition.most_nodes
    parts = [counted(most, "node")] if most is not None else []
    parts += [f"{partition.limit_s / 60:g} min"] if partition.limit_s else []
    given = f" and gives a job at most {' for '.join(parts)}" if parts else ""
    nodes = counted(partition.nodes, "node")
    return f"partition {partition.name} of {nodes} is {partition.state.lower()}{given}"


def _counts_for(one: SlurmJob, job: SlurmJob) -> bool:
    limit = LIMIT.fullmatch(job.reason)
    if limit is None or limit["each"] in STUCK_PER:
        return False
    is_mine = one.user == job.user
    if job.reason.startswith("QOS"):
        each = {"User": is_mine, "Account": one.account == job.account}.get(limit["each"] or "", True)
        return one.qos == job.qos and each
    return one.account == job.account and (is_mine or limit["whose"] == "AssocGrp")


def licenses_of(text: str) -> dict[str, int]:
    """How many of each license: `matlab:2,abaqus@server:1`."""
    parts = (part.rpartition(":") for part in slurm.text_of(text).split(",") if part)
    return {name or last: whole(last, 1) if name else 1 for name, _, last in parts}


def _held(job: SlurmJob) -> Blocker:
    parts = (counted(whole(job.cpus, 0), "CPU"), counted(whole(job.node_count, 0), "node"), job.licenses)
    return Blocker(
        job=job.id,
        user=job.user,
        has=", ".join(part for part in parts if part and not part.startswith("0 ")),
        since=job.started_at,
        limit_s=job.limit_s,
    )


def _order(key: str, queue: Queue) -> tuple[int, int, str]:
    return -queue.priorities[key], whole(queue.jobs[key].raw, 0), key


def chain_of(job: SlurmJob, jobs: Mapping[str, SlurmJob]) -> tuple[tuple[str, str], ...]:
    """The jobs that one depends on, and those that these depend on, each with its state."""
    by_number = {one.raw: one for one in jobs.values()} | {one.id: one for one in jobs.values()}
    found: dict[str, str] = {}
    waiting = [job]
    while waiting and len(found) < MOST_CHAIN:
        one = waiting.pop(0)
        needs = _NEEDED.findall(one.dependency)
        if "singleton" in one.dependency:
            # it waits for jobs that its user submitted earlier under the same name
            like = (other for other in jobs.values() if (other.user, other.name) == (one.user, one.name))
            earlier = (other for other in like if whole(other.raw, 0) < whole(one.raw, 0))
            needs += [(other.id, "") for other in earlier if other.status.is_live]
        for number, how in needs:
            needed = by_number.get(number)
            if number in found:
                continue
            reason = f" ({needed.reason})" if needed is not None and needed.reason else ""
            found[number] = f"{needed.state}{reason}" if needed is not None else how or "not in the queue"
            waiting += [needed] if needed is not None else []
    return tuple(found.items())


def others_lost(job: SlurmJob, others: Iterable[SlurmJob]) -> list[SlurmJob]:
    """The other jobs that were lost with a failed node: on a node of this job at the same time."""
    nodes, at = set(slurm_nodes.expanded(job.nodes)), job.ended_at
    return [
        one
        for one in others
        if one.state == job.state and one.id != job.id and nodes & set(slurm_nodes.expanded(one.nodes))
        if at is not None and one.ended_at is not None
        if abs(seconds_between(one.ended_at, at)) <= TOGETHER_S
    ]


async def node_facts(commands: Commands, job: SlurmJob, queue_of: QueueOf) -> tuple[tuple[str, str], ...]:
    facts = []
    try:
        answer = await commands.scontrol("--oneliner", "--details", *ASK_NODES, job.nodes)
        for node in slurm_nodes.nodes_of(answer.printed):
            if node.needs_person:
                at = f", since {to_rfc3339(node.since)}" if node.since is not None else ""
                why = node.reason or "no reason is given"
                facts.append((f"node {node.name}", f"{node.states}: {why}{at}"))
        others = others_lost(job, (await queue_of()).jobs.values())
    except SourceError as error:
        return (*facts, (NODE_NOT_KNOWN, str(error)))
    if others:
        names = ", ".join(f"{one.id} of {one.user}" for one in others[:MOST_LOST])
        facts.append((ALSO_LOST, names + and_more(len(others), MOST_LOST)))
    return tuple(facts)


NODE_FAIL = "NODE_FAIL"
REQUEUED = "requeued"
ACCOUNTS_ALONE = "only accounting: slurmctld no longer knows it"
MOST_STEPS = 20
MOST_TASKS = 10_000
OFF_S = 60.0
"""An answer that is this much older than its question, or younger, is doubted."""


async def fetch_detail(
    commands: Commands, native: str, label: str, asked_at: Nanos, queue_of: QueueOf
) -> JobDetail | None:
    """Everything about a job, a task or a whole array; None if Slurm knows none. Raises SourceError.

    For a pending job also why it waits, for a job that was lost with a node also the state of the node.
    """
    if not slurm.is_job_id(native) or "[" in native:
        return None
    shown, away = await _jobs_shown(commands, native)
    accounted, fault = await _runs_accounted(commands, native, shown)
    fault = away or fault
    queue = await queue_of() if isinstance(away, SourceMissing) else None
    if queue is not None and (queued := _jobs_named(native, list(queue.jobs.values()))):
        shown, away = [(job, dict[str, str]()) for job in queued], None  # the queue tells less
    known = {job.id: job for job, _ in shown} | {job.id: job for job in accounted}
    wanted = _jobs_named(native, list(known.values()))
    if not wanted:
        if fault is not None:
            raise fault
        return None
    if len(wanted) > 1:
        detail = _array_detail(native, wanted, commands.name, label)
    else:
        runs = [job for job in accounted if job.id == wanted[0].id]
        runs.sort(key=lambda job: job.submitted_at or 0)
        said = next(((job, fields) for job, fields in shown if job.id == wanted[0].id), None)
        is_gone = not shown and fault is None
        detail = _detail(said, runs, commands.name, label, records.UNSEEN if is_gone else "")
        if said is not None:
            other = records.disputing(said[0], runs[-1], asked_at) if runs else None
            if other is not None:
                detail = msgspec.structs.replace(detail, job=records.disputed(detail.job, other, label))
            detail = await _with_question(_with_age(detail, said, asked_at), said, commands, queue_of)
    return detail if away is None else _not_read(detail, away)


def _not_read(detail: JobDetail, error: SourceError) -> JobDetail:
    """The record, with why the part on the present state of a live job was not read."""
    if not detail.job.status.is_live:
        return detail
    return msgspec.structs.replace(detail, facts=(*detail.facts, (NOT_READ, str(error))))


def _with_age(detail: JobDetail, said: Shown, asked_at: Nanos) -> JobDetail:
    """The record, with a doubt if slurmctld answered as of another time: that is old, or a clock is off."""
    there = slurm.answered_at(*said)
    if there is None or abs(late_s := seconds_between(there, asked_at)) <= OFF_S:
        return detail
    how = f"{abs(late_s) / 60:.0f} min {'before' if late_s > 0 else 'after'} it was asked"
    doubt = f"slurmctld answered as of {to_rfc3339(there)}, {how}"
    return msgspec.structs.replace(detail, facts=(*detail.facts, (NOT_READ, doubt)))


async def _with_question(detail: JobDetail, said: Shown, commands: Commands, queue_of: QueueOf) -> JobDetail:
    job, fields = said
    if detail.job.status is JobStatus.PENDING:
        try:
            queue = await queue_of()
        except SourceError as error:
            return _not_read(detail, error)
        pending = await fetch_pending(commands, records.key_of(job), job, fields, queue)
        return msgspec.structs.replace(detail, pending=pending)
    if job.state == NODE_FAIL:
        facts = await node_facts(commands, job, queue_of)
        return msgspec.structs.replace(detail, facts=(*detail.facts, *facts))
    return detail


async def _runs_accounted(
    commands: Commands, native: str, shown: Sequence[Shown]
) -> tuple[list[SlurmJob], SourceError | None]:
    """The runs of a job, or of its tasks, from accounting, and why it could not be asked."""
    components = {job.raw: job.id for job, _ in shown if "+" in job.id}
    # accounting knows a component that was canceled in the queue by its own number only
    number = next((raw for raw, job_id in components.items() if job_id == native), native)
    try:
        answer = await commands.accounted_job(number)
    except NoAccounting:
        return [], None
    except SourceError as error:
        return [], error
    fields = (*slurm.SACCT, *slurm.STEP_FIELDS)
    found = slurm.jobs_with_steps(slurm.rows_of(answer.printed, answer.separator, fields))
    accounted = [msgspec.structs.replace(job, id=components.get(job.id, job.id)) for job in found]
    if accounted and not shown:
        # The JSON of accounting has whole exit codes, and where output is
        with suppress(SourceError, ValueError):
            ends = slurm.ends_in_json((await commands.sacct("--json", native)).printed)
            accounted = [_with_end(job, ends.get(job.raw)) for job in accounted]
        with suppress(SourceError):
            answer = await commands.submitted(native)
            rows = slurm.rows_of(answer.printed, answer.separator, slurm.SUBMITTED)
            lines = {row["JobIDRaw"]: row["SubmitLine"] for row in rows}
            accounted = [slurm.with_submission(job, lines.get(job.raw, "")) for job in accounted]
    return accounted, None


async def _jobs_shown(commands: Commands, native: str) -> tuple[list[Shown], SourceError | None]:
    try:
        answer = await commands.scontrol("--all", "--local", "show", "job", native)
    except SourceError as error:
        return [], None if INVALID_JOB.search(str(error)) else error
    shown = slurm.shown_jobs(answer.printed.decode("utf-8", "replace"))
    return list(islice(shown, MOST_TASKS)), None


def _with_end(job: SlurmJob, end: SlurmJob | None) -> SlurmJob:
    if end is None or (end.submitted_at, end.state) != (job.submitted_at, job.state):
        return job
    is_same = job.exit and end.exit and records.as_accounted(job.exit) == records.as_accounted(end.exit)
    return msgspec.structs.replace(
        job, exit=end.exit if is_same else job.exit, is_whole=bool(is_same), stdout=end.stdout,
        stderr=end.stderr,
    )  # fmt: skip


def _jobs_named(native: str, known: Sequence[SlurmJob]) -> list[SlurmJob]:
    """The job with this id or number, else the tasks of the array: the last task has the array's number."""
    tasks = [job for job in known if job.array == native]
    if len(tasks) > 1:
        return tasks
    exact = [job for job in known if job.id == native] or [job for job in known if job.raw == native]
    return (exact or tasks)[:1]


def _detail(said: Shown | None, runs: Sequence[SlurmJob], source: str, label: str, left: str) -> JobDetail:
    """A job from both sources; `runs` are those in accounting, oldest first; `left`: slurmctld forgot it."""
    job = _present(said[0] if said is not None else None, runs)
    if said is None or not said[1]:  # scontrol alone counts them
        job = msgspec.structs.replace(job, restarts=max(job.restarts, len(runs) - 1))
    record = records.job_of(job, source, label, left if job.status.is_live else "")
    found = [*runs[:-1], job]
    made = tuple(_run(number, one, is_last=one is job) for number, one in enumerate(found, 1))
    return JobDetail(
        job=record,
        runs=made,
        history=made,
        native={
            "slurm": msgspec.to_builtins(job),
            "scontrol": said[1] if said is not None else None,
            "sacct": [msgspec.to_builtins(one) for one in runs],
        },
        path=f"{source}: {'scontrol show job' if said is not None else 'sacct -j'} {job.id}",
        changes=tuple(_changes(found, record)),
        directory=job.directory or None,
        facts=(*_facts(job, runs[:-1], record), *(((KNOWN_BY, ACCOUNTS_ALONE),) if left else ())),
        outputs=outputs_of(job),
    )


def _present(said: SlurmJob | None, runs: Sequence[SlurmJob]) -> SlurmJob:
    """The present state of a job, also with what only accounting knows of its last run."""
    last = runs[-1] if runs else None
    job = records.present(said, last)
    if said is None or last is None or records.is_older(last, said):
        return job
    return msgspec.structs.replace(
        job, steps=last.steps, cluster=job.cluster or last.cluster, memory=job.memory or last.memory
    )


def _run(number: int, job: SlurmJob, *, is_last: bool) -> Run:
    is_requeued = not is_last and job.status.is_live
    message = records.canceled_words(job) if job.status is JobStatus.CANCELED else None
    return Run(
        number=number,
        status=JobStatus.CANCELED if is_requeued else job.status,
        native_status=job.state,
        queued_at=job.submitted_at,
        started_at=job.started_at,
        updated_at=job.ended_at or job.started_at or job.submitted_at,
        ended_at=job.ended_at,
        message=REQUEUED if is_requeued else message,
        error=records.error_of(job),
        limit_s=job.limit_s if job.state == "TIMEOUT" else None,
        host=job.nodes or None,
    )


def _changes(runs: Sequence[SlurmJob], record: Job) -> Iterator[StateChange]:
    number, before = 0, ""
    for run in runs:
        canceled = records.canceled_words(run) if run.status is JobStatus.CANCELED else ""
        states = (
            (run.submitted_at, "PENDING", ""),
            (run.started_at, "RUNNING", f"on {run.nodes}" if run.nodes else ""),
            (run.ended_at, run.state, records.error_of(run) or canceled),
        )
        for at, state, text in states:
            if at is not None:
                number += 1
                detail: dict[str, object] | None = {"message": text} if text else None
                yield StateChange(number, record.id, at, before, state, record.source, None, detail)
                before = state


def _facts(job: SlurmJob, earlier: Sequence[SlurmJob], record: Job) -> Iterator[tuple[str, str]]:
    of_sirepo, _, sirepo = record.tags.partition(":")
    again = counted(job.restarts, "time") if job.restarts else ""
    before = f", the run before ended as {earlier[-1].state}" if again and earlier else ""
    out, errors = job.stdout and filled_path(job, job.stdout), job.stderr and filled_path(job, job.stderr)
    texts = {
        "Sirepo's job": sirepo if of_sirepo == records.OF_SIREPO else "",
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
        "eligible": _eligible_words(job),
        "may start": to_rfc3339(job.expected_at) if job.expected_at is not None else "",
        "reason": job.reason,
        "exit": _exit_words(job),
        "not started": job.not_started,
        "over its memory": _over_memory(job),
        "requeued": f"{again}{before}",
        "depends on": job.dependency,
        "comment": job.comment,
        "command": job.command,
        "work directory": job.directory,
        "output": out,
        "errors": errors if errors != out else "",
    }
    yield from ((name, text) for name, text in texts.items() if text)
    for step in job.steps[:MOST_STEPS]:
        exit_ = f", exit {step.exit}" if step.exit is not None else ""
        memory = f", at most {step.max_rss} of memory" if step.max_rss else ""
        yield f"step {step.id}", f"{step.state}{exit_}{memory}"
    if len(job.steps) > MOST_STEPS:
        yield "steps", f"{len(job.steps)}; the first {MOST_STEPS} are shown"


def _eligible_words(job: SlurmJob) -> str:
    """When a job became eligible, how long after its submission and before its start; "" if at once."""
    submitted, eligible, started = job.submitted_at, job.eligible_at, job.started_at
    if submitted is None or eligible is None or eligible <= submitted:
        return ""
    after = f"{seconds_between(submitted, eligible) / 60:.0f} min after it was submitted"
    before = f", {seconds_between(eligible, started) / 60:.0f} min before it started" if started else ""
    return f"{to_rfc3339(eligible)}, {after}{before}"


def _exit_words(job: SlurmJob) -> str:
    if job.exit is not None and job.exit.signal:
        return f"{job.exit} (signal {records.signal_name(job.exit.signal)})"
    if job.exit is not None and not job.is_whole and 0 < job.exit.code < records.SHOWN_CODES:
        return f"{job.exit}, or {job.exit.code + records.SHOWN_CODES}: sacct leaves 128 out"
    return str(job.exit) if job.exit is not None else ""


def _over_memory(job: SlurmJob) -> str:
    """The most memory that a program of it used, if that is more than the job had on each node."""
    asked = slurm.bytes_of(job.memory, cpus=job.cpus, nodes=job.node_count)
    for step in job.steps:
        used = slurm.bytes_of(step.max_rss)
        if asked and used and used > asked:
            return f"step {step.id} took {step.max_rss}, the job had {job.memory}"
    return ""


def filled_path(job: SlurmJob, path: str) -> str:
    """A path of a job without signs: slurmctld leaves those of nodes and tasks, accounting leaves all."""
    node = slurm.first_node(job.nodes)
    signs = slurm.sign_values(job.raw, job.array or job.raw, job.task, job.name, job.user, node)
    return posixpath.normpath(posixpath.join(job.directory, slurm.filled(path, signs)))


def outputs_of(job: SlurmJob) -> tuple[str, ...]:
    paths = (filled_path(job, path) for path in (job.stdout, job.stderr) if path)
    began = job.started_at is not None and not job.is_rest
    return tuple(dict.fromkeys(path for path in paths if began and not path.startswith("/dev/")))


def _array_detail(native: str, tasks: Sequence[SlurmJob], source: str, label: str) -> JobDetail:
    """An array as a whole: how many of its tasks are in which state, and which failed."""
    states = Counter[str]()
    for task in tasks:
        states[task.state] += slurm.task_count(task.task)
    failed = [task.task for task in tasks if task.status is JobStatus.FAILED]
    statuses = {task.status for task in tasks}
    status = next((one for one in _ARRAY_STATUS if one in statuses), JobStatus.UNKNOWN)
    times = [task.submitted_at for task in tasks if task.submitted_at is not None]
    listed = sorted(tasks, key=lambda task: task.status is not JobStatus.FAILED)[:MOST_STEPS]
    whys = ((task, records.error_of(task)) for task in listed)
    facts = [
        (f"task {task.task}", f"{task.state}{f': {why}' if why else ''}, number {task.raw}")
        for task, why in whys
    ]
    one = next((task for task in tasks if task.status is status), tasks[0])
    first = msgspec.structs.replace(one, id=native, raw=native, array="", task="", exit=None)
    job = msgspec.structs.replace(
        records.job_of(first, source, label),
        status=status,
        native_status=", ".join(f"{count} {state}" for state, count in states.most_common()),
        mode="array",
        model=counted(states.total(), "task"),
        queued_at=min(times, default=None),
        error=f"task{'s' * (len(failed) > 1)} {', '.join(failed[:20])} failed" if failed else None,
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
        facts=tuple(facts),
    )


_ARRAY_STATUS = (
    JobStatus.RUNNING, JobStatus.PENDING, JobStatus.FAILED, JobStatus.CANCELED, JobStatus.COMPLETED,
)  # fmt: skip
"""The state of an array is the first of these in which one of its tasks is."""
