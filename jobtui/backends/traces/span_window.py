"""Which times are searched: servers want both ends, and refuse much more than a week."""

from typing import NamedTuple

from jobtui.model.clock import SECOND, Clock, Nanos
from jobtui.model.trace_desk import TraceSearch

LOOKBACK_S = 6 * 24 * 3600
"""How far back is searched when no time is given. Tempo refuses more than a week."""
AHEAD_S = 3600
"""Clocks of senders may be ahead so much."""


class SearchWindow(NamedTuple):
    """From when to when spans begin."""

    since: Nanos
    until: Nanos


def window_of(search: TraceSearch, clock: Clock) -> SearchWindow:
    """The times of a search, with what it leaves open."""
    until = search.until if search.until is not None else Nanos(clock.now() + AHEAD_S * SECOND)
    since = search.since if search.since is not None else Nanos(until - LOOKBACK_S * SECOND)
    return SearchWindow(Nanos(max(0, since)), until)
