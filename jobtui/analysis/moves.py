"""Moves of jobs into and out of what is counted, summed up to step functions of time.

A move is one number: its time, and which of few effects it has. A million of them are sorted and summed in
short turns, and give the garbage collector nothing to look at.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from jobtui.analysis.series import DIGITS, Window
from jobtui.analysis.turns import AT_ONCE, Turns, sorted_turns
from jobtui.model.clock import Nanos

EFFECT_BITS = 24
"""Bits of a move for its effect; above them is its time."""
_MASK = (1 << EFFECT_BITS) - 1

_BEFORE = Nanos(-(1 << 100))
"""Before all time."""

Key = Hashable
"""Which of the sums is meant."""


class Effect(NamedTuple):
    """By how much one sum rises, and which one falls by as much; None for none."""

    rises: Key | None
    falls: Key | None = None
    weight: float = 1.0


class Points(NamedTuple):
    """A step function: y[i] holds from x[i] on."""

    x: list[Nanos]
    y: list[float]


class Moves:
    """Collects the moves of one window. What comes before it counts from its beginning on."""

    def __init__(self, window: Window) -> None:
        self._since = window.since
        self._until = window.until
        self._index: dict[tuple[Key | None, Key | None, float], int] = {}
        self._moves: list[int] = []

    def effect(self, rises: Key | None, falls: Key | None = None, weight: float = 1.0) -> int:
        """The number of an effect, for `add`. To ask once for many moves saves time."""
        return self._index.setdefault((rises, falls, weight), len(self._index))

    def add(self, at: Nanos, effect: int) -> None:
        """One move. What comes after the window is left out."""
        if self._since is not None and at < self._since:
            at = self._since
        elif self._until is not None and at > self._until:
            return
        self._moves.append(at << EFFECT_BITS | effect)

    def sum_turns(self) -> Turns[dict[Key, Points]]:
        """Each sum over time, one point for each time at which it may change. To be asked for once."""
        sums: dict[Key, Points] = {}
        changes = [_changes(Effect(*key), sums) for key in self._index]
        moves = yield from sorted_turns(self._moves)
        self._moves = []
        yield
        for start in range(0, len(moves), AT_ONCE):
            part = moves[start : start + AT_ONCE]
            # To let go of all of them at the end would take as long as many turns
            moves[start : start + AT_ONCE] = [0] * len(part)
            for move in part:
                at = Nanos(move >> EFFECT_BITS)
                for x, y, delta in changes[move & _MASK]:
                    if x[-1] == at:
                        y[-1] += delta
                    else:
                        x.append(at)
                        y.append(y[-1] + delta)
            yield
        for points in sums.values():
            del points.x[0], points.y[0]
        if any(weight % 1 for _, _, weight in self._index):
            yield from _without_dust_turns(sums.values())
        return {key: points for key, points in sums.items() if points.x}


def _changes(effect: Effect, sums: dict[Key, Points]) -> tuple[tuple[list[Nanos], list[float], float], ...]:
    """What an effect does to which sums, each of which begins with 0 before all time."""
    found = []
    for key, delta in ((effect.rises, effect.weight), (effect.falls, -effect.weight)):
        if key is not None:
            points = sums.setdefault(key, Points([_BEFORE], [0.0]))
            found.append((points.x, points.y, delta))
    return tuple(found)


def _without_dust_turns(sums: Iterable[Points]) -> Turns[None]:
    for points in sums:
        for start in range(0, len(points.y), AT_ONCE):
            stretch = slice(start, start + AT_ONCE)
            points.y[stretch] = [round(value, DIGITS) for value in points.y[stretch]]
            yield
