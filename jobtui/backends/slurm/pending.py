"""Why one job waits: what the queue tells, and the one command that is run for it alone.

Which command that is depends on what Slurm says that the job waits for, see `QUESTIONS`; none for what the
queue and the job's own record tell already.
"""

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from jobtui.backends.slurm.client import Commands
from jobtui.formats.slurm import text_of
from jobtui.formats.slurm_nodes import (
    allowed_nodes,
    expanded,
    is_of_qos,
    license_of,
    limit_told,
    nodes_of,
    partitions_of,
    reservation_of,
    tally_of,
    wants_of,
)
from jobtui.model.clock import seconds_between, to_rfc3339
from jobtui.model.jobs import JobStatus
from jobtui.model.numbers import counted, whole
from jobtui.model.pending import MOST_HOLDERS, Category, HeldBy, Pending
from jobtui.model.slurm import (
    ALSO_LOST,
    HELD_STATES,
    LIMIT,
    NODE_NOT_KNOWN,
    STUCK_PER,
    Partition,
    SlurmJob,
    reason_of,
)
from jobtui.model.source_errors import SourceError

FOR_NODES = frozenset({Category.RESOURCES, Category.PRIORITY, Category.NODES})
"""What jobs wait for that are before others, or after them."""
ASK_NODES = ("show", "node")
MOST_CHAIN = 20
"""Jobs of a chain of dependencies that are followed."""
MOST_LOST = 10
TOGETHER_S = 60.0
"""Jobs that were lost on a node within so long were lost together."""
_NEEDED = re.compile(r"(\d+(?:_\d+)?)(?:\+\d+)?(?:\((\w+)\))?", re.ASCII)


class Queue(NamedTuple):
    """What the queue tells when it was read last: its jobs by key, and the priorities of those that wait."""

    jobs: Mapping[str, SlurmJob]
    priorities: Mapping[str, int]


def question_of(job: SlurmJob, said: Mapping[str, str]) -> tuple[str, ...]:
    """The words of scontrol that tell more of why a job waits, none where nothing does."""
    category = category_of(job)
    if category in FOR_NODES or category is Category.REQUEST:
        return ASK_NODES
    if category is Category.LIMIT:
        return ("show", "assoc_mgr", "flags=qos" if is_of_qos(job.reason) else "flags=assoc")
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
    """Why a job waits, with the answer to its question. Where that fails, what is known without it."""
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
    return msgspec.structs.replace(_answered(known, job, said, queue, answer.printed), asked=(cost,))


def pending_of(key: str, job: SlurmJob, queue: Queue) -> Pending:
    reason, category = reason_of(job.reason or "None"), category_of(job)
    known = Pending(
        category=category,
        reason=job.reason,
        words=reason.words,
        since=job.submitted_at,
        queue=job.partition,
        eligible_at=job.eligible_at,
        scheduler_estimate=job.expected_at if category is not Category.BEGIN_TIME else None,
        is_stuck=reason.is_stuck or category is Category.HELD,
    )
    if category in FOR_NODES and key in queue.priorities:
        mine, place = set(queue.jobs[key].partition.split(",")), _order(key, queue)
        rivals = [  # all that wait for nodes of the same partition, itself included
            one
            for one in queue.priorities
            if category_of(other := queue.jobs[one]) in FOR_NODES and mine & set(other.partition.split(","))
        ]
        ahead = sorted(order for one in rivals if (order := _order(one, queue)) < place)
        last = [_held(queue.jobs[one]) for *_, one in ahead[-MOST_HOLDERS:]]
        known = msgspec.structs.replace(known, ahead=len(ahead), of=len(rivals), next=tuple(last))
    if category is Category.BEGIN_TIME:
        known = msgspec.structs.replace(known, eligible_at=job.eligible_at or job.expected_at)
    if category is Category.DEPENDENCY:
        known = msgspec.structs.replace(known, needs=chain_of(job, queue.jobs))
    return known


def _answered(
    known: Pending, job: SlurmJob, said: Mapping[str, str], queue: Queue, printed: bytes
) -> Pending:
    changed: dict[str, object] = {}
    holders: list[SlurmJob] = []
    running = [one for one in queue.jobs.values() if one.status is JobStatus.RUNNING]
    match known.category:
        case Category.LIMIT:
            changed["limit"] = limit_told(
                printed, job.reason, user=job.user, account=job.account, qos=job.qos
            )
            holders = [one for one in running if _counts_for(one, job)]
        case Category.LICENSE:
            names = licenses_of(job.licenses or said.get("Licenses", ""))
            told = [one for name in names if (one := license_of(printed, name)) is not None]
            short = (one for one in told if one.most - (one.used or 0.0) < names[one.name])
            changed["limit"] = next(short, None)
            holders = [one for one in running if names.keys() & licenses_of(one.licenses)]
        case Category.PARTITION:
            changed["note"] = "; ".join(map(_partition_words, partitions_of(printed)))
        case Category.RESERVATION:
            if (begin := reservation_of(printed)) is not None:
                changed |= {"eligible_at": begin, "note": f"it begins at {to_rfc3339(begin)}"}
        case _:
            wants = wants_of(said)
            nodes = allowed_nodes(nodes_of(printed), wants)
            changed["nodes"] = tally_of(nodes, wants)
            allowed = {node.name for node in nodes}
            partitions = {name for node in nodes for name in node.partitions.split(",")}
            there = (one for one in running if one.partition in partitions)
            holders = [one for one in there if not allowed.isdisjoint(expanded(one.nodes))]
    ends = sorted(holders, key=lambda one: one.ended_at or one.started_at or 0)
    changed["holders"] = tuple(map(_held, ends[:MOST_HOLDERS]))
    changed["holder_count"] = len(holders)
    return msgspec.structs.replace(known, **changed)


def _partition_words(partition: Partition) -> str:
    most = partition.most_nodes
    parts = [counted(most, "node")] if most is not None else []
    parts += [f"{partition.limit_s / 60:g} min"] if partition.limit_s else []
    given = f" and gives a job at most {' for '.join(parts)}" if parts else ""
    return f"partition {partition.name} is {partition.state.lower()}{given}"


def _counts_for(one: SlurmJob, job: SlurmJob) -> bool:
    limit = LIMIT.fullmatch(job.reason)
    if limit is None or limit["each"] in STUCK_PER:
        return False
    is_mine = one.user == job.user
    if is_of_qos(job.reason):
        each = {"User": is_mine, "Account": one.account == job.account}.get(limit["each"] or "", True)
        return one.qos == job.qos and each
    return one.account == job.account and (is_mine or limit["whose"] == "AssocGrp")


def licenses_of(text: str) -> dict[str, int]:
    """How many of each license: `matlab:2,abaqus@server:1`."""
    parts = (part.rpartition(":") for part in text_of(text).split(",") if part)
    return {name or last: whole(last, 1) if name else 1 for name, _, last in parts}


def _held(job: SlurmJob) -> HeldBy:
    parts = (counted(whole(job.cpus, 0), "CPU"), counted(whole(job.node_count, 0), "node"), job.licenses)
    return HeldBy(
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
            # it waits for what its user submitted earlier under the same name
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
    """The jobs that a node which failed took with it: lost on a node of this one at the same time."""
    nodes, at = set(expanded(job.nodes)), job.ended_at
    return [
        one
        for one in others
        if one.state == job.state and one.id != job.id and nodes & set(expanded(one.nodes))
        if at is not None and one.ended_at is not None
        if abs(seconds_between(one.ended_at, at)) <= TOGETHER_S
    ]


async def node_facts(
    commands: Commands, job: SlurmJob, queue_of: Callable[[], Awaitable[Queue]]
) -> tuple[tuple[str, str], ...]:
    facts = []
    try:
        answer = await commands.scontrol("--oneliner", "--details", *ASK_NODES, job.nodes)
        for node in nodes_of(answer.printed):
            if node.needs_person:
                at = f", since {to_rfc3339(node.since)}" if node.since is not None else ""
                facts.append(
                    (f"node {node.name}", f"{node.states}: {node.reason or 'no reason is given'}{at}")
                )
        others = others_lost(job, (await queue_of()).jobs.values())
    except SourceError as error:
        return (*facts, (NODE_NOT_KNOWN, str(error)))
    if others:
        names = ", ".join(f"{one.id} of {one.user}" for one in others[:MOST_LOST])
        more = f", and {len(others) - MOST_LOST} more" if len(others) > MOST_LOST else ""
        facts.append((ALSO_LOST, f"{names}{more}"))
    return tuple(facts)
