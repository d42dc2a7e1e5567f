"""Why a job waits, in words: verdicts of all systems on pending jobs use the same sentence."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import msgspec

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.times import age, capital, duration, waits_words
from jobtui.model.clock import Nanos, seconds_between, to_rfc3339, utc_of
from jobtui.model.condor import HELD
from jobtui.model.jobs import MOST_REASONS, Blocker, Category, Job, JobStatus, NodeTally, Pending, ReasonSeen
from jobtui.model.numbers import and_more, counted
from jobtui.model.verdicts import Chain, Code

MOST_NAMED = 3
LACKS = frozenset({Category.REQUEST, Category.LIMIT, Category.PARTITION})
"""What a job that will not start waits for in vain: it asks for more than it gets."""


def pending_by(code: Code, job: Job) -> Pending | None:
    """Why a job waits, from its record and the verdict on it; None for a job that does not wait."""
    if job.status is not JobStatus.PENDING:
        return None
    return Pending(
        category=code.category,
        reason=job.reason,
        words=job.message or "",
        since=job.queued_at,
        queue=job.app if job.reason else "",
    )


def refined(pending: Pending) -> Pending:
    """The reason that nodes show: the scheduler gives the true one only for the first job of a partition.

    A job that no node could take even if it were free waits for a person, whatever is ahead of it. A job for
    which too many nodes are down or drained waits for these.
    """
    nodes = pending.nodes
    if nodes is None or not pending.category.is_for_nodes or not nodes.total:
        return pending
    unfit = nodes.no_feature + nodes.no_gres + nodes.too_small
    if nodes.total - unfit < nodes.wanted:
        lacks = (
            (nodes.no_feature, f'the feature "{nodes.features}"'),
            (nodes.no_gres, nodes.gres.replace("gres:", "").replace("gres/", "")),
            (nodes.too_small, "the CPUs or memory it asks for"),
        )
        what = " and ".join(words for count, words in lacks if count)
        who = "no node has" if nodes.wanted == 1 else "too few have"
        words = f"{counted(nodes.wanted, 'node')} with {what}, which {who}"
        return msgspec.structs.replace(pending, category=Category.REQUEST, is_stuck=True, words=words)
    if nodes.free + nodes.full < nodes.wanted:
        words = "nodes that are down, drained or reserved"
        return msgspec.structs.replace(pending, category=Category.NODES, words=words)
    is_away = bool(nodes.down or nodes.drained or nodes.reserved)
    if pending.category is Category.NODES and not is_away and nodes.free < nodes.wanted:
        return msgspec.structs.replace(pending, category=Category.RESOURCES, words="free nodes")
    return pending


def with_history(pending: Pending, evidence: Evidence) -> Pending:
    """The same with all that the job waited for, in order. `history` has what only the job's system knows.

    A state that was read is later than its event, and counts only after another one. Logs are better than a
    record. Of changes only a hold says why the job waits; the others say how it came to this.
    """
    noted, states, before = list(pending.history), {one.after for one in evidence.changes}, ""
    for change in evidence.changes:
        why = (change.detail or {}).get("message") if change.after == HELD else None
        noted.append((change.at, f"{change.after}: {why}" if why else change.after))
    for seen in evidence.reasons:
        is_new = not states >= {seen.reason, before or seen.reason}
        if is_new and not (evidence.ops and seen.job_id == evidence.job_id):
            noted.append((seen.at, seen.reason))
        before = seen.reason
    history = [next(alike) for _, alike in groupby(sorted(noted, key=itemgetter(0)), key=itemgetter(1))]
    if len(history) < 2:
        return msgspec.structs.replace(pending, history=())
    at, reason = history[-1]
    since = at if reason == pending.reason else pending.since
    return msgspec.structs.replace(pending, history=tuple(history[-MOST_REASONS:]), since=since)


def history_words(pending: Pending, seen: Iterable[ReasonSeen]) -> str:
    """The same as a sentence; "" if no change is known. What was seen may have been so before."""
    if not pending.history:
        return ""
    reasons, at = " → ".join(reason for _, reason in pending.history), pending.history[-1][0]
    earlier = " or earlier" if any(one.at == at for one in seen) else ""
    return f" So far: {reasons} since {utc_of(at):%H:%M}Z{earlier}."


def held_until(held: Blocker, now: Nanos) -> Blocker:
    """The same with how long the job has held it until a time, if the start is known."""
    held_s = held.held_s if held.since is None else max(0.0, seconds_between(held.since, now))
    return msgspec.structs.replace(held, held_s=held_s)


def sentence_of(pending: Pending, waited: str, begin: str = "", more: str = "") -> str:
    """The whole sentence: what the job waits for, for how long, and what is known about it, with counts."""
    words, at = f"{waits_words(waited)} for {pending.words}{more}", pending.scheduler_estimate
    if pending.is_stuck and pending.category in LACKS:  # time brings none of it
        _, _, asks = pending.words.partition("a limit: it ")
        words = asks or f"needs {pending.words}"
    estimate = "" if at is None else f"; Slurm expects to start it at {to_rfc3339(at)}"
    ends = f"will not start by itself: it {words}" if pending.is_stuck else f"{words}{estimate}"
    return " ".join(f"{part}." for part in (f"{begin}It {ends}", *_parts(pending)))


def _parts(pending: Pending) -> Iterator[str]:
    if pending.ahead is not None and pending.of is not None and not pending.is_stuck:
        yield _rank(pending)
    if pending.nodes is not None:
        yield _tally(pending.nodes, pending.queue)
    if (limit := pending.limit) is not None:
        what = limit.what.removesuffix("s") if limit.most == 1 else limit.what
        taken = "is in use" if limit.used == 1 else "are in use"
        used = "" if limit.used is None else f", of which {limit.used:g} {taken}"
        yield f"{capital(limit.of)} allows {limit.most:g} {what} ({limit.name}){used}"
    if pending.needs and pending.needs[0][0] not in pending.words:
        named = ", ".join(f"{name} ({how})" if how else name for name, how in pending.needs[:MOST_NAMED])
        yield f"It needs {named}{and_more(len(pending.needs), MOST_NAMED)}"
    if pending.holders and not (pending.is_stuck and pending.nodes is not None):
        yield _holders(pending)
    if pending.note:
        yield capital(pending.note)
    if pending.category is Category.BEGIN_TIME and pending.eligible_at is not None:
        yield f"That is {to_rfc3339(pending.eligible_at)}"


def _rank(pending: Pending) -> str:
    nodes = f"nodes of {pending.queue}" if pending.queue else "nodes"
    of = f"the {pending.of} that wait for {nodes}"
    if not pending.ahead:
        alone = f"No other job waits for {nodes}"
        return f"It is the first of {of}" if pending.of != 1 else alone
    names = ", ".join(map(_held_words, pending.next))
    right = "they are" if pending.ahead == len(pending.next) else "the last of them are"
    if pending.ahead == 1:
        return f"Of {of} 1 is ahead of it: {names}"
    return f"Of {of} {pending.ahead} are ahead of it: {right} {names}"


def _tally(nodes: NodeTally, queue: str) -> str:
    where = f" of {queue}" if queue else ""
    if not nodes.total:
        return f"It may run on no node{where}"
    reasons = "; ".join(f"{names}: {why}" for why, names in nodes.reasons)
    parts = [
        (nodes.free, "free"), (nodes.full, "full"), (nodes.reserved, "reserved"), (nodes.drained, "drained"),
        (nodes.down, "down"), (nodes.no_feature, f"without the feature {nodes.features}"),
        (nodes.no_gres, f"without {nodes.gres}"), (nodes.too_small, "too small"),
    ]  # fmt: skip
    sums = ", ".join(f"{count} {words}" for count, words in parts if count)
    why = f" ({reasons})" if reasons else ""
    return f"Of {counted(nodes.total, 'node')}{where}, {nodes.up} up, it asks for {nodes.wanted}: {sums}{why}"


def _holders(pending: Pending) -> str:
    if pending.nodes is not None:
        return f"The first to end of those that run there is {_held_words(pending.holders[0])}"
    names = ", ".join(map(_held_words, pending.holders))
    return f"Held by {names}{and_more(pending.holder_count, len(pending.holders))}"


def _held_words(held: Blocker) -> str:
    parts = [held.user, held.has]
    if held.held_s is not None:
        most = f" of {duration(held.limit_s)}" if held.limit_s is not None else ""
        parts.append(f"for {age(held.held_s)}{most}")
    parts += [f"usually {duration(held.usual_s)}"] if held.usual_s is not None else []
    return f"{held.job} ({', '.join(filter(None, parts))})" if any(parts) else held.job


def held_words(pending: Pending | None) -> str:
    """A sentence on who holds the thing a job waits for and how many are ahead; "" if nobody is known."""
    if pending is None or pending.category is not Category.SLOT or not pending.holders:
        return ""
    ahead = f", {pending.ahead} ahead of it" if pending.ahead else ""
    return f"{_holders(pending)}{ahead}."


def by_chain(pending: Pending, chain: Chain) -> Pending:
    """The same with the jobs that have the slot that it waits for, as inferred from the logs."""
    if not chain.waits:
        return pending
    wait = chain.waits[0]
    holders = [
        Blocker(
            job=holder.op.jid or f"{holder.op.name} {holder.op.op}",
            user=holder.op.uid or "",
            has=holder.op.name,
            held_s=holder.held_s,
            limit_s=holder.limit_s,
            usual_s=holder.usual_s,
        )
        for holder in wait.holders[:MOST_NAMED]
    ]
    return msgspec.structs.replace(
        pending,
        category=Category.SLOT,
        ahead=wait.ahead,
        holders=tuple(holders),
        holder_count=len(wait.holders),
    )
