"""The kernel of the simulation: a virtual clock and its coroutines. Nothing really sleeps.

What waits, waits for a `Future`; what is due, is in a heap ordered by (time, order of asking). So one seed
gives one order of events, always.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from jobtui.model.clock import SECOND, Nanos

T = TypeVar("T")
Start = Callable[[], Coroutine[object, None, object]]
"""Makes the coroutine of a task."""


class Timer:
    def __init__(self, action: Callable[[], object]) -> None:
        self.action: Callable[[], object] | None = action

    def cancel(self) -> None:
        self.action = None


class Kernel:
    def __init__(self, start: Nanos) -> None:
        self.now = start
        self._heap: list[tuple[int, int, Timer]] = []
        self._asked = 0

    def at(self, when: Nanos, action: Callable[[], object]) -> Timer:
        timer = Timer(action)
        self._asked += 1
        heappush(self._heap, (max(when, self.now), self._asked, timer))
        return timer

    def later(self, delay_s: float, action: Callable[[], object]) -> Timer:
        return self.at(Nanos(self.now + round(delay_s * SECOND)), action)

    def sleep(self, delay_s: float) -> Awaitable[None]:
        return self.sleep_until(Nanos(self.now + round(delay_s * SECOND)))

    def sleep_until(self, when: Nanos) -> Awaitable[None]:
        future: Future[None] = Future(self)
        self.at(when, future.pass_on)
        return future

    def run(self, until: Nanos) -> None:
        """Run all timers up to `until`, and set the clock to it."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            when, _, timer = heappop(heap)
            if timer.action is None:
                continue
            self.now = Nanos(when)
            timer.action()
        self.now = max(self.now, until)


class Future(Generic[T]):
    """A value that is set later. Waiters are resumed in the order in which they came."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.waiting: list[Task] = []
        self._value: T | None = None
        self.done = False

    def set(self, value: T) -> None:
        if self.done:
            return
        self.done = True
        self._value = value
        for task in self.waiting:
            self._kernel.at(self._kernel.now, task.step)
        self.waiting.clear()

    def pass_on(self) -> None:
        """Resume the waiters at once, without a value."""
        self.done = True
        for task in self.waiting:
            task.step()

    def __await__(self) -> Generator["Future[T]", None, T]:
        if not self.done:
            yield self
        return self._value  # type: ignore[return-value]


class SimQueue(Generic[T]):
    """Values in the order in which they came, given to waiters in the order in which these came."""

    def __init__(self, kernel: Kernel, *values: T) -> None:
        self._kernel = kernel
        self._values = list(values)
        self._waiting: list[Future[T]] = []

    def __len__(self) -> int:
        return len(self._values)

    def put(self, value: T) -> None:
        if self._waiting:
            self._waiting.pop(0).set(value)
        else:
            self._values.append(value)

    async def get(self) -> T:
        if self._values:
            return self._values.pop(0)
        future: Future[T] = Future(self._kernel)
        self._waiting.append(future)
        return await future


class Slots(SimQueue[None]):
    """A number of slots of one kind. One slot is a lock."""

    def __init__(self, kernel: Kernel, size: int = 1) -> None:
        super().__init__(kernel, *(None,) * size)

    async def __aenter__(self) -> None:
        await self.get()

    async def __aexit__(self, *_: object) -> None:
        self.put(None)


class TaskGroup:
    """Tasks that end together, such as those of a process."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.tasks: dict[Task, None] = {}
        self.closed = False

    def spawn(self, start: Start) -> None:
        self._kernel.at(self._kernel.now, Task(self, start).step)

    def close(self) -> None:
        """End every task of the group. If one of them calls it, that one runs on until it waits."""
        self.closed = True
        for task in list(self.tasks):
            self._kernel.at(self._kernel.now, task.close)
        self.tasks.clear()


class Task:
    def __init__(self, group: TaskGroup, start: Start) -> None:
        self._group = group
        self._start = start
        self._coroutine: Coroutine[object, None, object] | None = None

    def step(self) -> None:
        if self._group.closed:
            return
        if self._coroutine is None:
            self._coroutine = self._start()
            self._group.tasks[self] = None
        try:
            future = self._coroutine.send(None)
        except StopIteration:
            del self._group.tasks[self]
            return
        future.waiting.append(self)  # type: ignore[attr-defined]

    def close(self) -> None:
        if self._coroutine is not None:
            self._coroutine.close()
