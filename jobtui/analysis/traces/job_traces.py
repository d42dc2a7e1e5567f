"""From a job to its trace and back: which traces are its own or could be, its processes, its timeline.

The surest evidence comes first: what a job was given, what spans say, when it was submitted. A trace that may
be its own gets a score, with the reasons for and against: many users submit at the same time, and submit the
same thing again. All processes of a cluster get one TRACEPARENT; each is known by the attribute in which
spans name a job, else by its host.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from jobtui.analysis.times import duration
from jobtui.analysis.traces.failures import Findings
from jobtui.analysis.traces.layout import TraceLayout, TraceLine
from jobtui.analysis.traces.tree import Tree, end_of
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.ids import JobId, OpPrefix, SpanId, TraceId, condor_id, find_trace
from jobtui.model.jobs import Job
from jobtui.model.ops import Certainty, Component, Op, OpStatus, Step, Unlinked, in_order
from jobtui.model.traces import Span, Trace, TraceSearch, is_same_job, jobs_named_by

SERVICE, OPERATION = "fife", "jobsub_submit"
"""What jobsub_lite calls itself and its submission."""
BEFORE_S, AFTER_S = 90.0, 5.0
"""How long before its job is in the queue a submission may begin, or after it as clocks differ."""
USUAL_S = 60.0
MOST = 20

_START = 0.5
"""The score of a submission near in time alone; nothing found this way is certain."""


class TraceCandidate(NamedTuple):
    """A trace that could be a job's. `score` is from 0 to 1, `why` gives the reasons for and against."""

    trace_id: TraceId
    score: float
    why: tuple[str, ...]
    started_at: Nanos


def submission_search(job: Job) -> TraceSearch | None:
    """The search for submissions that could be a job's; None where it is not known when it was submitted."""
    if job.queued_at is None:
        return None
    since = Nanos(job.queued_at - round(BEFORE_S * SECOND))
    until = Nanos(job.queued_at + round(AFTER_S * SECOND))
    return TraceSearch(service=SERVICE, operation=OPERATION, since=since, until=until, most=MOST)


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
    late = duration(abs(before_s))
    of_time = -0.3 * min(1.0, before_s / USUAL_S), f"submitted {late} before the job was in the queue"
    if before_s < 0:
        of_time = -0.1, f"it was submitted {late} after the job was in the queue"
    reasons = [of_time, *_of_command(root, job), *_of_parts(trace, job), *_of_others(trace, job, names)]
    score = min(0.95, max(0.01, _START + sum(weight for weight, _ in reasons)))
    return TraceCandidate(trace.trace_id, round(score, 2), tuple(why for _, why in reasons), root.started_at)


_Weighed = tuple[float, str]


def _of_command(root: Span, job: Job) -> Iterator[_Weighed]:
    argv = str(root.attributes.get("argv", ""))
    if job.name and job.name in argv:
        yield 0.2, f"its command names {job.name}"
    elif job.name and argv:
        yield -0.25, f"its command does not name {job.name}"
    if job.app and argv:
        named = job.app in argv
        yield 0.1 if named else -0.1, f"its command {'names' if named else 'does not name'} group {job.app}"


def _of_parts(trace: Trace, job: Job) -> Iterator[_Weighed]:
    submit = next((span for span in trace.spans if span.name == "submit"), None)
    if submit is None:
        yield -0.2, "nothing in it was sent to a schedd"
        return
    if str(submit.attributes.get("returns", "True")) != "True":
        yield -0.2, "its submission was refused"
    known = condor_id(job.id)
    schedd = known.schedd if known is not None else ""
    if schedd and (args := str(submit.attributes.get("args", ""))):
        yield (0.15, f"it was sent to {schedd}") if schedd in args else (-0.3, f"it was not sent to {schedd}")


def _of_others(trace: Trace, job: Job, names: tuple[str, ...]) -> Iterator[_Weighed]:
    written = {name for span in trace.spans for name in jobs_named_by(span, names)[:1]}
    if any(is_same_job(one, job.id) for one in written):
        yield 0.4, "spans in it name the job"
        return
    clusters = {one: known for one in written if (known := condor_id(one)) is not None}
    mine = condor_id(job.id)
    others = [one for one, known in clusters.items() if mine is None or known.cluster != mine.cluster]
    if others:
        yield -0.4, f"spans in it name another job, {min(others)}"


class TraceLink(NamedTuple):
    """The trace of a job, how that is known, and how sure it is."""

    trace_id: TraceId
    why: str
    certainty: Certainty = Certainty.JID


class TraceMatches(NamedTuple):
    """The traces of a job; without one those that could be, ranked. `notes` say what could not be asked."""

    found: tuple[TraceLink, ...] = ()
    candidates: tuple[TraceCandidate, ...] = ()
    notes: tuple[str, ...] = ()


HOST = "host.name"
Claim = Callable[[Span], str | None]
"""The process that a span names as its own."""


class OwnTrace(NamedTuple):
    """A trace without the spans of other processes. `others` are these, with how many spans each has.

    `why` says what showed which process it is; "" when the trace could not be divided.
    """

    trace: Trace
    others: Mapping[str, int]
    why: str = ""


def alone(trace: Trace, job_id: str, names: tuple[str, ...], host: str | None = None) -> OwnTrace:
    """A trace with the spans of one process, and with those that belong to none.

    `names` are the attributes that hold the id of a job, `host` is where the job ran, where that is known.
    """
    tree = Tree(trace)
    owners = _process_of_each(tree, lambda span: next(iter(jobs_named_by(span, names)), None))
    mine = {written for written in owners.values() if written and is_same_job(written, job_id)}
    if mine:
        return _without(trace, owners, mine, "an attribute of its spans")
    hosts = _process_of_each(tree, lambda span: str(span.resource.attributes.get(HOST) or "") or None)
    is_of_several = len(set(hosts.values()) - {None}) > 1
    if host and not any(owners.values()) and host in hosts.values() and is_of_several:
        return _without(trace, hosts, {host}, f"its host {host}")
    return OwnTrace(trace, {})


def _process_of_each(tree: Tree, claim: Claim) -> dict[SpanId, str | None]:
    owners: dict[SpanId, str | None] = {}
    for span in tree.spans:
        way: list[SpanId] = []
        at: Span | None = span
        found: str | None = None
        while at is not None and at.span_id not in owners and found is None:
            way.append(at.span_id)
            found = claim(at)
            at = tree.parent_of(at) if found is None else at
        if found is None and at is not None:
            found = owners[at.span_id]
        owners.update((span_id, found) for span_id in way)
    return owners


def _without(
    trace: Trace, owners: Mapping[SpanId, str | None], mine: Container[str | None], why: str
) -> OwnTrace:
    dropped = {span_id for span_id, owner in owners.items() if owner is not None and owner not in mine}
    kept = Trace(
        trace_id=trace.trace_id,
        spans=tuple(span for span in trace.spans if span.span_id not in dropped),
        logs=tuple(log for log in trace.logs if log.span_id not in dropped),
    )
    counts = Counter(owner for owner in owners.values() if owner is not None and owner not in mine)
    return OwnTrace(kept, counts, why)


MOST_STEPS = 400
"""Steps of a trace in a timeline: of a larger one the failed spans, then the topmost."""
KEY = -1
"""The key of the op that stands for a trace; those of real ops are not below 0."""
_SOURCE = "span "


def link_in_lines(ops: Iterable[Op], unlinked: Iterable[Unlinked]) -> TraceLink | None:
    steps = [*(step for op in ops for step in op.steps), *(loose.step for loose in unlinked)]
    for step in sorted(steps, key=lambda one: (one.certainty.rank, one.at or 0)):
        if "trace" in step.text.lower() and (ref := find_trace(step.text)) is not None:
            return TraceLink(ref.trace_id, "a line of its log names the trace", step.certainty)
    return None


def trace_op(
    found: Findings,
    layout: TraceLayout,
    link: TraceLink,
    job_id: JobId,
    ops: Iterable[Op],
    unlinked: Iterable[Unlinked],
    *,
    grows: bool = False,
) -> Op:
    """A trace as an op of a job: its spans and their log records with the lines of the job, by time.

    It is open as long as it `grows`. Each step has the certainty of its own link: a span that of the trace,
    a line that which it has in its op.
    """
    lines = _chosen(found, layout)
    steps = [step for line in lines for step in _steps_of(found, line, link)]
    for log in found.tree.logs:
        where = f"{_SOURCE}{log.span_id} of trace {log.trace_id}" if log.span_id else f"trace {log.trace_id}"
        text = f"{log.level} {log.body}".strip()
        steps.append(Step(text, log.at, Component.SPAN, text, where, 0, 0, link.certainty))
    for step in (*(step for op in ops for step in op.steps), *(loose.step for loose in unlinked)):
        words = f"{step.component}: {step.step}"
        steps.append(msgspec.structs.replace(step, component=Component.LOG, step=words))
    tree = found.tree
    errors = (cause.message or cause.span.name for cause in found.causes if not cause.is_handled)
    return Op(
        key=KEY,
        op=OpPrefix(tree.trace_id[:4]),
        name="trace",
        status=OpStatus.REPLIED if grows else OpStatus.ENDED,
        jid=job_id,
        result="error" if found.has_failed else None if found.is_unfinished else "ok",
        error=next(errors, None),
        created_at=tree.started_at,
        ended_at=None if grows else tree.ended_at,
        certainty=link.certainty,
        steps=in_order(steps),
        dropped_steps=sum(line.own is not None for line in layout.lines) - len(lines),
    )


def span_of(step: Step) -> tuple[TraceId, SpanId] | None:
    if step.component is not Component.SPAN or not step.source.startswith(_SOURCE):
        return None
    span_id, _, trace_id = step.source.removeprefix(_SOURCE).partition(" of trace ")
    return TraceId(trace_id), SpanId(span_id)


def _chosen(found: Findings, layout: TraceLayout) -> list[TraceLine]:
    """The lines that are steps: one for a run; of many the failed ones and the topmost."""
    inside = 0
    lines: list[TraceLine] = []
    for at, line in enumerate(layout.lines):
        if at < inside:
            continue
        if line.run is not None:
            inside = line.end
        if line.own is not None or line.run is not None:
            lines.append(line)
    if len(lines) <= MOST_STEPS:
        return lines
    causes = {cause.span.span_id for cause in found.causes}
    lines.sort(key=lambda line: (line.span is None or line.span.span_id not in causes, line.depth))
    return lines[:MOST_STEPS]


def _steps_of(found: Findings, line: TraceLine, link: TraceLink) -> Iterator[Step]:
    span = line.span
    if span is None:
        return
    if line.run is not None:
        yield _step(span, f"{line.run.name} × {len(line.run.spans)} begin", span.started_at, link)
        return
    took = "" if span.duration_ns is None else f", took {duration(span.duration_ns / SECOND)}"
    yield _step(span, f"{span.name} begins{took}", span.started_at, link)
    cause = next((cause for cause in found.causes if cause.span.span_id == span.span_id), None)
    if cause is not None:
        said = "was handled after an error" if cause.is_handled else "failed"
        yield _step(span, f"{span.name} {said}: {cause.message}", end_of(span), link)


def _step(span: Span, words: str, at: Nanos, link: TraceLink) -> Step:
    source = f"{_SOURCE}{span.span_id} of trace {span.trace_id}"
    given = "  ".join(f"{key}={value}" for key, value in span.attributes.items())
    text = f"{span.service}  {words}  {given}".rstrip()
    return Step(words, at or None, Component.SPAN, text, source, 0, 0, link.certainty)
