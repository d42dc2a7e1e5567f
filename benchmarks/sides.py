"""Sources beside a simulated site in the endurance run: little happens in them, and each faults in its turn.

Each writes something once a second, counts it, and says in what a dashboard's own count differs from that.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Any

TICK_S = 1.0
LASTS_S = 4.0
"""How long a fault lasts as a rule: twice as long as a source that can tell of changes is left alone."""

Wait = Callable[[float], None]
"""Lets the dashboard go on for so many seconds."""
Fault = Callable[[Wait], None]


class Side(ABC):
    """A source with its faults. `written` is how many records it should have given by now."""

    name = ""
    source = ""
    """What it is called in the dashboard."""
    flags: Sequence[str] = ()
    environ: Mapping[str, str] = {}
    """What the dashboard needs in its environment to find it."""
    keys: Sequence[str] = ()
    """What is typed, from the jobs on, so that it is asked, where only a person has it asked."""
    shown = ""
    """What the screen says then, when it is well."""

    def __init__(self) -> None:
        self.written = 0
        self.missed: list[str] = []
        """What a fault did otherwise than it should; it is told once."""

    @abstractmethod
    def tick(self) -> None:
        """Let something happen."""

    @property
    @abstractmethod
    def faults(self) -> Mapping[str, Fault]:
        """What can befall it, by name; it is mended again."""

    def wrong(self, told: Mapping[str, Any]) -> list[str]:
        """In what the dashboard's knowledge differs from what was written."""
        known = told["records"].get(self.source)
        if known is None:
            return [f"{self.name}: there is no source {self.source}"]
        missed = self.written - known
        return [f"{self.name}: {abs(missed)} {'lost' if missed > 0 else 'too many'}"] if missed else []

    def saw(self, screen: str) -> None:  # noqa: B027 - few are only asked
        """Take note of what the screen says of it while it is looked at and a fault lasts."""

    def close(self) -> None:  # noqa: B027 - few run anything
        """End what it runs. May be called twice."""


class Sides:
    """Some of them, living on a thread of their own between `start` and `stop`."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self.sides = sides
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._live, name="sides")

    @property
    def flags(self) -> list[str]:
        """The command line that names them."""
        return [flag for side in self.sides for flag in side.flags]

    @property
    def environ(self) -> dict[str, str]:
        """What the dashboard needs in its environment."""
        return {name: value for side in self.sides for name, value in side.environ.items()}

    @property
    def written(self) -> int:
        """How many records all of them should have given."""
        return sum(side.written for side in self.sides)

    @property
    def faults(self) -> dict[str, Fault]:
        """What can befall them, by name: something that befalls each, then something else."""
        turns = zip_longest(*([(side, *fault) for fault in side.faults.items()] for side in self.sides))
        each = (one for turn in turns for one in turn if one)
        return {f"{side.name}: {name}": partial(self._befall, fault) for side, name, fault in each}

    def asked(self, fault: str) -> Side | None:
        """What a fault befalls, by its name, where that is asked only when a person wants to know."""
        return next((side for side in self.sides if side.keys and fault.startswith(f"{side.name}: ")), None)

    def wrong(self, told: Mapping[str, Any]) -> list[str]:
        """In what the dashboard's knowledge differs, while they are at rest."""
        return [words for side in self.sides for words in side.wrong(told)]

    def missed(self) -> Iterator[str]:
        """What faults did otherwise than they should, since this was asked last."""
        for side in self.sides:
            yield from (f"{side.name}: {words}" for words in side.missed)
            side.missed.clear()

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Nothing happens in them as long as this lasts."""
        with self._lock:
            yield

    def start(self) -> None:
        """Let them live."""
        self._thread.start()

    def stop(self) -> None:
        """Let nothing happen any more. May be called twice."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        """End them. May be called twice."""
        self.stop()
        for side in self.sides:
            side.close()

    def _befall(self, fault: Fault, wait: Wait) -> None:
        with self._lock:
            fault(wait)

    def _live(self) -> None:
        while not self._stopped.wait(TICK_S):
            with self._lock:
                for side in self.sides:
                    side.tick()
