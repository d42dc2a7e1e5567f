"""Every op that is kept, and the ones a line may speak of.

A prefix of four characters is never a key: two ops share one after some thousand. It narrows the search,
and what else the line says (user, name, agent, run directory, and how far the op can be) decides.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from jobtui.analysis.op_track import OpTrack, Room
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import OpStatus

OPS_KEPT = 20_000
"""Ops kept in all; the oldest that have ended go first."""
BYTES_KEPT = 128 << 20
"""How much memory they may take, about; a simulated op has 20 steps and takes 8 KB."""

Fits = Callable[[OpTrack], bool]
_Key = TypeVar("_Key", bound=str)


class OpIndex:
    """Ops by prefix, by job, and in the order they were created."""

    def __init__(self, limit: int = OPS_KEPT, most_bytes: int = BYTES_KEPT) -> None:
        self._limit = limit
        self._most_bytes = most_bytes
        self._room = Room()
        self._next_key = 1
        self._count = 0
        self._all: deque[OpTrack] = deque()
        self._by_prefix: dict[str, list[OpTrack]] = {}
        self._open: dict[str, list[OpTrack]] = {}
        self._all_open: dict[int, OpTrack] = {}
        self._by_jid: dict[JobId, list[OpTrack]] = {}
        self.dropped = 0

    def __iter__(self) -> Iterator[OpTrack]:
        return iter(self._all)

    def create(self, op: str, name: str, source: str, at: Nanos | None) -> OpTrack:
        """A new op. May let old ones go."""
        track = OpTrack(self._next_key, op, name, source, at, self._room)
        self._next_key += 1
        self._all.append(track)
        self._by_prefix.setdefault(op, []).append(track)
        self._open.setdefault(op, []).append(track)
        self._all_open[track.key] = track
        while len(self._all) > self._limit or (self._room.taken > self._most_bytes and len(self._all) > 1):
            self._let_go()
        return track

    def all(self) -> deque[OpTrack]:
        """Every op that is kept, in the order they were created; not to be changed."""
        return self._all

    @property
    def next_key(self) -> int:
        """The key of the next op to be created; those of all others are smaller."""
        return self._next_key

    def tie(self, track: OpTrack, jid: JobId) -> None:
        """Make an op one of a job's."""
        if track.jid == jid:
            return
        if track.jid is not None:
            _remove(self._by_jid, track.jid, track)
        track.jid = jid
        track.learn_user(jid.partition("-")[0])
        self._by_jid.setdefault(jid, []).append(track)

    def of_job(self, jid: JobId) -> Sequence[OpTrack]:
        """The ops of a job, oldest first."""
        return self._by_jid.get(jid, ())

    def open_with(self, op: str, fits: Fits) -> list[OpTrack]:
        """Ops with this prefix that have not ended and fit, oldest first."""
        tracks = self._open.get(op)
        if not tracks:
            return []
        found = [track for track in tracks if track.is_open and fits(track)]
        if len(tracks) > 8 and len(found) * 4 < len(tracks):
            self._open[op] = [track for track in tracks if track.is_open]
        return found

    def kept_with(self, op: str, fits: Fits) -> list[OpTrack]:
        """Ops with this prefix, ended ones too, that fit, oldest first."""
        return [track for track in self._by_prefix.get(op, ()) if fits(track)]

    def open_ops(self) -> list[OpTrack]:
        """Every op that has not ended, oldest first."""
        self._all_open = {key: track for key, track in self._all_open.items() if track.is_open}
        return list(self._all_open.values())

    def reopen(self, track: OpTrack, status: OpStatus) -> None:
        """An op was taken for ended too early."""
        track.reopen(status)
        self._all_open[track.key] = track
        tracks = self._open.setdefault(str(track.op), [])
        if track not in tracks:
            insort(tracks, track, key=lambda track: track.key)

    def _let_go(self) -> None:
        """Drop the oldest ended op; when the oldest few are all open, the oldest of all."""
        for _ in range(64):
            if not self._all[0].is_open:
                break
            self._all.rotate(-1)
        track = self._all.popleft()
        track.leave_room()
        self.dropped += 1
        _remove(self._by_prefix, str(track.op), track)
        _remove(self._open, str(track.op), track)
        self._all_open.pop(track.key, None)
        if track.jid is not None:
            _remove(self._by_jid, track.jid, track)


def _remove(index: dict[_Key, list[OpTrack]], key: _Key, track: OpTrack) -> None:
    tracks = index.get(key, [])
    if track in tracks:
        tracks.remove(track)
    if not tracks:
        index.pop(key, None)


def others(chosen: OpTrack, found: Iterable[OpTrack]) -> tuple[str, ...]:
    """The other jobs a line may as well have meant; empty when all candidates are the same job's."""
    return tuple(dict.fromkeys(t.jid for t in found if t.jid is not None and t.jid != chosen.jid))
