"""Slots: what limits how much runs at a time. An op takes up to three before it is sent.

The texts are those that go into the job's record and into the log while an op waits.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from jobtui.demo.kernel import Kernel, Queue

if TYPE_CHECKING:
    from jobtui.demo.ops import Op

WAIT_OP = "Waiting for another sim op to complete await=op_slot"
WAIT_RUN_DIR = "Waiting for access to sim state await=run_dir_slot"
WAIT_CPU = "Waiting for CPU resources await=cpu_slot"


class Taken(Enum):
    """How a slot was come by."""

    AT_ONCE = auto()
    WAITED = auto()
    DESTROYED = auto()
    """The op that waited for it was given up meanwhile."""


class Slots:
    """So many of one kind."""

    def __init__(self, kernel: Kernel, size: int) -> None:
        self._free: Queue[int] = Queue(kernel)
        for number in range(1, size + 1):
            self._free.put(number)

    def __len__(self) -> int:
        """How many are free."""
        return len(self._free)

    async def take(self) -> int:
        """One of them, once there is one."""
        return await self._free.get()

    def give(self, number: int) -> None:
        """Give one back: to who has waited longest, if anyone."""
        self._free.put(number)


class Slot:
    """One op's claim to one of the slots."""

    def __init__(self, op: Op, slots: Slots) -> None:
        self._op = op
        self._slots = slots
        self._number: int | None = None

    async def take(self, situation: str) -> Taken:
        """Get a slot, waiting for it when there is none."""
        if self._number is not None:
            return Taken.AT_ONCE
        if len(self._slots):
            self._number = await self._slots.take()
            return Taken.AT_ONCE
        op = self._op
        op.waits(situation)
        self._number = await self._slots.take()
        op.goes_on(situation)
        if op.is_destroyed:
            self.free()
        op.settles()
        return Taken.DESTROYED if op.is_destroyed else Taken.WAITED

    def free(self) -> None:
        """Give the slot back, when there is one."""
        if self._number is not None:
            number, self._number = self._number, None
            self._slots.give(number)
