"""Whether more of a trace may come: spans are sent when they end, children first, over minutes and hours."""

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.traces import Trace

QUIET_S = 30.0
"""So long after its last span a trace may still grow: senders wait for a batch."""
AGED_S = 3600.0
"""After so long nobody waits for what is missing."""


def growing(trace: Trace | None, now: Nanos, grew_at: Nanos | None = None) -> str:
    """Why more of a trace may come, "" when it is complete. `grew_at` is when it was last seen to grow."""
    if trace is None or not trace.spans:
        return "no span was received"
    ids = {span.span_id for span in trace.spans}
    ended = {span.span_id for span in trace.spans if span.ended_at is not None}
    missing = {span.parent_id for span in trace.spans} - ids - {None}
    roots = {span.span_id for span in trace.spans if span.parent_id is None}
    if not roots:
        return "its root was not received"
    if roots - ended:
        return "its root has not ended"
    if missing:
        return f"{len(missing)} parent{'s were' if len(missing) > 1 else ' was'} not received"
    quiet_s = _quiet_s(trace, now, grew_at)
    return f"its last span came {quiet_s:.0f}s ago" if quiet_s < QUIET_S else ""


def is_waited_for(trace: Trace | None, now: Nanos, grew_at: Nanos | None = None) -> bool:
    """Whether to read a trace again: what is not complete after `AGED_S` will not be."""
    if trace is None or not trace.spans:
        return True
    return bool(growing(trace, now, grew_at)) and _quiet_s(trace, now, grew_at) < AGED_S


def _quiet_s(trace: Trace, now: Nanos, grew_at: Nanos | None) -> float:
    """Seconds since the last sign of it. An end ahead is that of another clock."""
    ends = (max(span.started_at, span.ended_at or Nanos(0)) for span in trace.spans)
    last = max((at for at in ends if at <= now), default=Nanos(0))
    return seconds_between(max(last, grew_at or Nanos(0)), now)
