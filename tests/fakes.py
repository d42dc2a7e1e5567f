"""Stand-ins for what a session is made of: sources that follow a script, ops that are simply there."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from jobtui.backends.base import Batch
from jobtui.model.changes import StateChange
from jobtui.model.health import SourceError
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Agent, Correlation, Op, WritersRead
from jobtui.store.store import Store


class ScriptedSource:
    """A source that gives, poll by poll, the batches it was told to, and raises the errors among them.

    When the script is over it has nothing new. `hold()` makes polls wait until `go_on()`.
    """

    def __init__(
        self,
        script: Sequence[Batch | SourceError] = (),
        *,
        name: str = "/srv/db",
        kind: str = "sirepo_db",
        details: Mapping[JobId, JobDetail | SourceError] | None = None,
    ) -> None:
        self._script = list(script)
        self.name, self.kind = name, kind
        self._details = details or {}
        self._news = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()
        self.polls = 0
        self.closed = 0

    def add(self, *steps: Batch | SourceError) -> None:
        self._script += steps
        self._news.set()

    def hold(self) -> None:
        self._open.clear()

    def go_on(self) -> None:
        self._open.set()

    async def poll(self, cursor: str | None) -> Batch:
        await self._open.wait()
        self.polls += 1
        if not self._script:
            self._news.clear()
            return Batch(cursor=str(self.polls))
        step = self._script.pop(0)
        if isinstance(step, SourceError):
            raise step
        return step

    async def changed(self, timeout_s: float) -> None:
        if not self._script:
            await self._news.wait()

    async def detail(self, job_id: JobId) -> JobDetail | None:
        found = self._details.get(job_id)
        if isinstance(found, SourceError):
            raise found
        return found

    async def aclose(self) -> None:
        self.closed += 1


class FakeCorrelation(Correlation):
    """Ops as a test sets them. Records are taken in by naming the job in their field `jid`."""

    def __init__(self, ops: Iterable[Op] = (), agents: Iterable[Agent] = ()) -> None:
        self._agents = tuple(agents)
        self._ops: dict[JobId, tuple[Op, ...]] = {}
        for op in ops:
            if op.jid is not None:
                self.put(op.jid, op)

    def put(self, job_id: JobId, *ops: Op) -> None:
        self._ops[job_id] = self._ops.get(job_id, ()) + ops

    def replace(self, job_id: JobId, *ops: Op) -> None:
        self._ops[job_id] = ops

    def feed(self, records: Sequence[LogRecord]) -> set[JobId]:
        return {JobId(jid) for record in records if (jid := record.fields.get("jid"))}

    def take_in(self, other: "FakeCorrelation") -> None:
        for job_id, ops in other._ops.items():
            self._ops.setdefault(job_id, ops)

    def ops_of(self, job_id: JobId) -> tuple[Op, ...]:
        return self._ops.get(job_id, ())

    def ops(self, after: int = 0) -> Iterable[Op]:
        return [op for ops in self._ops.values() for op in ops if op.key > after]

    def agents(self) -> tuple[Agent, ...]:
        return self._agents

    @property
    def writers_read(self) -> WritersRead:
        return WritersRead(frozenset(step.component for op in self.ops() for step in op.steps))


def batch(*jobs: Job, gone: Iterable[JobId] = (), more: bool = False, **fields: object) -> Batch:
    return Batch(cursor="1", jobs=jobs, gone=tuple(gone), more=more, count=len(jobs), **fields)  # type: ignore[arg-type]


def changes_in(store: Store) -> list[StateChange]:
    return [change for own in store.changes.histories() for change in own]


SECRET = "hunter2"


class Injected(Exception):
    """What a test makes some code raise; it holds data."""


def fail(*arguments: object, **named: object) -> Any:
    raise Injected(SECRET)


async def fail_later(*arguments: object, **named: object) -> Any:
    raise Injected(SECRET)


def fail_once(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    whole, calls = getattr(owner, name), iter([fail_later])

    async def called(self: object, *given: object) -> Any:
        return await next(calls, partial(whole, self))(*given)

    monkeypatch.setattr(owner, name, called)
