"""One job alone out of a trace that several share: all processes of a cluster are handed one TRACEPARENT.

A process is told by the attribute in which its spans, or who sent them, name a job; where none does, by the
host it ran on. A span that names none belongs to the process of the span above it, else to all.
"""

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

from jobtui.analysis.traces.tree import Tree, build_tree
from jobtui.model.trace_ids import SpanId
from jobtui.model.trace_jobs import is_same_job, names_job
from jobtui.model.traces import Span, Trace

HOST = "host.name"
Claim = Callable[[Span], str | None]
"""Which process a span says that it is of."""


class Alone(NamedTuple):
    """A trace without the spans of other processes. `others` are these, with how many spans each has.

    `why` says by what the process was told; "" when the trace could not be taken apart.
    """

    trace: Trace
    others: Mapping[str, int]
    why: str = ""


def processes_in(trace: Trace, names: tuple[str, ...]) -> Mapping[str, int]:
    """The processes that spans of a trace name, in order of their start, with how many spans each has."""
    return _counts(_owners(build_tree(trace), _by_attribute(names)))


def alone(trace: Trace, job_id: str, names: tuple[str, ...], host: str | None = None) -> Alone:
    """A trace with the spans of one process, and with those that belong to none.

    `names` are the attributes that hold the id of a job, `host` is where the job ran, where that is known.
    """
    tree = build_tree(trace)
    owners = _owners(tree, _by_attribute(names))
    mine = {written for written in owners.values() if written and is_same_job(written, job_id)}
    if mine:
        return _without(trace, owners, mine, "an attribute of its spans")
    hosts = _owners(tree, lambda span: _text(span.resource.attributes.get(HOST)))
    if host and not any(owners.values()) and host in hosts.values() and len(_counts(hosts)) > 1:
        return _without(trace, hosts, {host}, f"its host {host}")
    return Alone(trace, {})


def _by_attribute(names: tuple[str, ...]) -> Claim:
    def claim(span: Span) -> str | None:
        return names_job(span.attributes, names) or names_job(span.resource.attributes, names)

    return claim


def _text(value: object) -> str | None:
    return str(value) if value else None


def _owners(tree: Tree, claim: Claim) -> dict[SpanId, str | None]:
    """The process of each span, by itself or by what is above it."""
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


def _counts(owners: Mapping[SpanId, str | None]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for owner in owners.values():
        if owner is not None:
            counts[owner] = counts.get(owner, 0) + 1
    return counts


def _without(
    trace: Trace, owners: Mapping[SpanId, str | None], mine: Container[str | None], why: str
) -> Alone:
    dropped = {span_id for span_id, owner in owners.items() if owner is not None and owner not in mine}
    return Alone(
        Trace(
            trace_id=trace.trace_id,
            spans=tuple(span for span in trace.spans if span.span_id not in dropped),
            logs=tuple(log for log in trace.logs if log.span_id not in dropped),
        ),
        {owner: count for owner, count in _counts(owners).items() if owner not in mine},
        why,
    )
