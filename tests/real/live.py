"""What live tests share: a source, watched as a dashboard does; verdicts, compared with what was planted."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

import pytest

from jobtui.backends.base import Source
from jobtui.model.clock import SystemClock
from jobtui.model.health import SourceHealth
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.fakes import FakeCorrelation

PATIENCE_S = 180.0


class System:
    """A real system. A context manager that starts all of it, or nothing, and stops it."""

    def start_all(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self.stop)
            self.start_all()
            stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class Watched:
    """A source on a real system, and the store it fills."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.store = Store(FakeCorrelation(), SystemClock())
        self.poller = Poller(source, self.store)
        self.polls = 0

    def health(self) -> SourceHealth:
        (health,) = self.store.sources()
        return health

    async def poll(self) -> None:
        """What a dashboard does in one round."""
        await self.poller.catch_up()
        self.polls += 1

    async def until(self, condition: Callable[[], bool], wait_s: float = 1.0) -> None:
        """Poll until it is so: some things are asked less often than others."""
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < until, self.store.jobs
            await self.source.changed(wait_s)
            await self.poll()


class Due(NamedTuple):
    """What must be said of a job: its verdict, words that its sentence has, and words that it has not."""

    code: str
    words: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def is_said(self, said: Mapping[str, Any]) -> bool:
        sentence = str(said.get("sentence"))
        return (
            said["verdict"] == self.code
            and all(word in sentence for word in self.words)
            and not any(word in sentence for word in self.never)
        )


Told = tuple[str, Due, Mapping[str, Any]]
"""Which job it is, what must be said of it, and what `explain --json` says."""


def compare(title: str, told: Iterable[Told], capsys: pytest.CaptureFixture[str]) -> None:
    """Fail with each verdict that is not what was planted, and when a wrong truth would not be noticed."""
    every = list(told)
    wrong = [
        f"{name}: {said['verdict']} {said.get('confidence')}: {said.get('sentence')}"
        for name, due, said in every
        if not due.is_said(said)
    ]
    with capsys.disabled():
        sys.stderr.write(f"\n{title}: {len(every)} verdicts, {len(wrong)} wrong\n")
    assert not wrong, "\n".join(wrong)
    others = ((due, said) for _, due, _ in every for _, other, said in every if due.code != other.code)
    assert not any(due.is_said(said) for due, said in others), "a wrong truth is not noticed"
