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


class Usual(NamedTuple):
    """The times that are searched when a search does not say; None for the last days."""

    since: Nanos | None = None
    until: Nanos | None = None


def window_of(search: TraceSearch, usual: Usual, clock: Clock) -> SearchWindow:
    """The times of a search, with what it leaves open."""
    until = _first(search.until, usual.until, Nanos(clock.now() + AHEAD_S * SECOND))
    since = _first(search.since, usual.since, Nanos(until - LOOKBACK_S * SECOND))
    return SearchWindow(Nanos(max(0, since)), until)


def _first(said: Nanos | None, usual: Nanos | None, else_: Nanos) -> Nanos:
    return said if said is not None else usual if usual is not None else else_
