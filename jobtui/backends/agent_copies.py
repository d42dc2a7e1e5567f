"""The copies of cluster agents' logs below a database root, as a source of log records.

They are `<root>/user/<uid>/agent-sbatch/<host>/*.log`. Only the directories of those users are looked at who
have jobs on a cluster: of the many users of a site few do, and a walk through all would load it. The newest
copies of each come first, at most so many.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from jobtui.backends.base import Batch, PolledSource, merged
from jobtui.backends.copied_log import CopiedLog, Looked
from jobtui.model.clock import Nanos
from jobtui.model.health import Skip
from jobtui.model.source_errors import SourceError, SourceMissing
from jobtui.transport.worker import Worker

DIRECTORY = "agent-sbatch"
USERS_LOOKED_AT = 500
"""Users whose directories are looked at; those who were named first are left out beyond that."""
FEW_USERS, COPIES_OF_MANY = 20, 20
"""Of more users fewer copies are read of each: a copy costs half a millisecond."""
HOSTS_LOOKED_AT = 20
"""Clusters of one user."""
UID_LENGTH = 8
LOOK_EVERY_S = 10.0
"""How often directories are looked at. A login makes two copies, and they tell of what is over."""
SLICE_S = 0.05
"""How long is looked before others have their turn."""
IDLE_TO_BUSY = 100
"""How much longer nothing is looked at than the last look took: file systems may be slow."""

Users = Callable[[], Iterable[str]]


class AgentCopies(PolledSource):
    """The copies below one database root, of the users that `users` names; who comes later comes last."""

    kind = "agent_copies"

    def __init__(self, root: Path, users: Users, *, every_s: float = LOOK_EVERY_S) -> None:
        super().__init__(str(root / "user" / "*" / DIRECTORY))
        self.root = root
        self._users = users
        self._logs: dict[Path, CopiedLog] = {}
        self._worker = Worker(f"agent copies {root}")
        self._every_s = every_s
        self._looked_for: Sequence[str] = ()
        self._next_at = -math.inf
        self._round: Iterator[CopiedLog] | None = None
        self._spent_s = 0.0

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(str(path) for path in self._logs)

    def begins_after(self, at: Nanos) -> bool:
        return False

    def starting_at(self, at: Nanos) -> "AgentCopies":
        return AgentCopies(self.root, self._users, every_s=self._every_s)

    async def read(self, *, begins: bool) -> Batch:
        users = tuple(dict.fromkeys(self._users()))
        return await self._worker.run(lambda: self._poll(users, begins=begins))

    def _poll(self, users: Sequence[str], *, begins: bool) -> Batch:
        if not self.root.is_dir():
            raise SourceMissing(f"{self.name}: there is no directory {self.root}; check the path")
        if begins:
            self._logs.clear()
        is_due = users != self._looked_for or time.monotonic() >= self._next_at
        if begins or (self._round is None and is_due):
            self._spent_s, self._looked_for = 0.0, users
            self._round = self._found(users)
        found = self._look()
        notes = []
        if left_out := sum(log.left_out for log in self._logs.values()):
            notes.append(f"{left_out:,} older copies were not read")
        if len(users) > USERS_LOOKED_AT:
            shown = f"{USERS_LOOKED_AT:,} of {len(users):,}"
            notes.append(f"only {shown} users with jobs on a cluster are looked at")
        note = "; ".join(notes) or None
        return merged((*found, Batch(cursor="", more=self._round is not None, note=note)))

    def _look(self) -> list[Batch]:
        """What is new in the next few directories; the next round is when it has cost little of the time."""
        found: list[Batch] = []
        begun = time.monotonic()
        while self._round is not None:
            log = next(self._round, None)
            if log is None:
                self._round = None
                break
            found.append(self._batch_of(log))
            if time.monotonic() >= begun + SLICE_S:
                break
        ended = time.monotonic()
        self._spent_s += ended - begun
        if self._round is None and self._next_at <= begun:
            self._next_at = ended + max(self._every_s, IDLE_TO_BUSY * self._spent_s if self._every_s else 0)
        return found

    def _found(self, users: Sequence[str]) -> Iterator[CopiedLog]:
        for uid in users[-USERS_LOOKED_AT:]:
            if len(uid) != UID_LENGTH or not uid.isalnum():
                continue  # out of a record, and about to be a part of a path
            try:
                with os.scandir(self.root / "user" / uid / DIRECTORY) as entries:
                    hosts = sorted(Path(e.path) for e in entries if e.is_dir(follow_symlinks=False))
            except OSError:
                continue  # a user without copies has none
            for path in hosts[:HOSTS_LOOKED_AT]:
                log = self._logs.get(path)
                if log is None:
                    most = None if len(users) <= FEW_USERS else COPIES_OF_MANY
                    log = self._logs[path] = CopiedLog(path, most=most)
                yield log

    def _batch_of(self, log: CopiedLog) -> Batch:
        try:
            looked = log.look()
        except SourceError as error:
            looked = Looked(skips=(Skip(str(log.directory), str(error)),))
        parsed = [*log.records(looked.news)]
        skips = [*looked.skips, *(skip for part in parsed for skip in part.skips)]
        above = f"{self.root / 'user'}/"
        return Batch(
            cursor="",
            records=tuple(record for part in parsed for record in part.records),
            skipped=tuple(Skip(f"{self.name}: {skip.where.removeprefix(above)}", skip.why) for skip in skips),
            skip_count=len(skips),
            recovered=looked.recovered,
            count=sum(len(new.lines) for new in looked.news),
        )

    async def aclose(self) -> None:
        await super().aclose()
        self._worker.close()
