"""A virtual clock and the coroutines that live by it. Nothing here sleeps or depends on the real time.

What waits, waits for a `Future`; what is due, is in a heap ordered by (time, order of asking). So one seed
gives one order of events, always.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from jobtui.model.clock import SECOND, Nanos

T = TypeVar("T")


class Timer:
    """Something that will be called, unless it is cancelled."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], object]) -> None:
        self.action: Callable[[], object] | None = action

    def cancel(self) -> None:
        """Do not call it. May be called twice."""
        self.action = None


class Future(Generic[T]):
    """A value that comes later. Who waits for it goes on in the order of asking."""

    __slots__ = ("_kernel", "_value", "_waiting", "done")

    def __init__(self, kernel: "Kernel") -> None:
        self._kernel = kernel
        self._waiting: list[Task] = []
        self._value: T | None = None
        self.done = False

    def set(self, value: T) -> None:
        """Give the value; later ones are ignored."""
        if self.done:
            return
        self.done = True
        self._value = value
        for task in self._waiting:
            self._kernel.soon(task.step)
        self._waiting.clear()

    def __await__(self) -> Generator["Future[T]", None, T]:
        if not self.done:
            yield self
        return self._value  # type: ignore[return-value]

    def add(self, task: "Task") -> None:
        """Let `task` go on when the value is there."""
        self._waiting.append(task)


class Event:
    """A flag that can be waited for, set and cleared again."""

    def __init__(self, kernel: "Kernel") -> None:
        self._kernel = kernel
        self._future: Future[None] = Future(kernel)

    @property
    def is_set(self) -> bool:
        """Whether waiting would end at once."""
        return self._future.done

    def set(self) -> None:
        """Let go on who waits now, and who will ask while it is set."""
        self._future.set(None)

    def clear(self) -> None:
        """Make who asks from now on wait."""
        if self._future.done:
            self._future = Future(self._kernel)

    async def wait(self) -> None:
        """Return once the flag is set."""
        await self._future


class Lock:
    """One holder at a time, in the order of asking."""

    def __init__(self, kernel: "Kernel") -> None:
        self._kernel = kernel
        self._queue: list[Future[None]] = []
        self._held = False

    async def __aenter__(self) -> None:
        if not self._held:
            self._held = True
            return
        turn: Future[None] = Future(self._kernel)
        self._queue.append(turn)
        await turn

    async def __aexit__(self, *_: object) -> None:
        if self._queue:
            self._queue.pop(0).set(None)
        else:
            self._held = False


class Task:
    """One running coroutine. It ends with its group."""

    __slots__ = ("_coroutine", "_group", "_start")

    def __init__(self, group: "TaskGroup", start: Callable[[], Coroutine[object, None, object]]) -> None:
        self._group = group
        self._start = start
        self._coroutine: Coroutine[object, None, object] | None = None

    def step(self) -> None:
        """Run up to the next place where it has to wait."""
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
        future.add(self)  # type: ignore[attr-defined]

    def close(self) -> None:
        """End it where it waits."""
        if self._coroutine is not None:
            self._coroutine.close()


class TaskGroup:
    """Tasks that end together, as those of a process do."""

    def __init__(self, kernel: "Kernel") -> None:
        self._kernel = kernel
        self.tasks: dict[Task, None] = {}
        self.closed = False

    def spawn(self, start: Callable[[], Coroutine[object, None, object]], at: Nanos | None = None) -> None:
        """Start a coroutine, soon or at a given time."""
        task = Task(self, start)
        self._kernel.at(self._kernel.now if at is None else at, task.step)

    def close(self) -> None:
        """End every task of the group. Called by one of them, that one runs on to where it waits next."""
        self.closed = True
        for task in list(self.tasks):
            self._kernel.soon(task.close)
        self.tasks.clear()


class Kernel:
    """The virtual clock and what is due on it."""

    def __init__(self, start: Nanos) -> None:
        self.now = start
        self._heap: list[tuple[int, int, Timer]] = []
        self._asked = 0

    def at(self, when: Nanos, action: Callable[[], object]) -> Timer:
        """Call `action` at a time, now when that is past."""
        timer = Timer(action)
        self._asked += 1
        heappush(self._heap, (max(when, self.now), self._asked, timer))
        return timer

    def soon(self, action: Callable[[], object]) -> Timer:
        """Call `action` at the present time, after what is due already."""
        return self.at(self.now, action)

    def later(self, delay_s: float, action: Callable[[], object]) -> Timer:
        """Call `action` after `delay_s` seconds."""
        return self.at(Nanos(self.now + round(delay_s * SECOND)), action)

    def sleep(self, delay_s: float) -> Awaitable[None]:
        """Wait `delay_s` seconds."""
        future: Future[None] = Future(self)
        self.later(delay_s, lambda: future.set(None))
        return future

    def sleep_until(self, when: Nanos) -> Awaitable[None]:
        """Wait until a time."""
        future: Future[None] = Future(self)
        self.at(when, lambda: future.set(None))
        return future

    def run(self, until: Nanos | None = None) -> None:
        """Do what is due up to `until`, and be then there; without `until`, until nothing is due any more."""
        heap = self._heap
        while heap and (until is None or heap[0][0] <= until):
            when, _, timer = heappop(heap)
            if timer.action is None:
                continue
            self.now = Nanos(when)
            timer.action()
        if until is not None:
            self.now = max(self.now, until)


class Queue(Generic[T]):
    """Values in the order of coming; who waits gets them in the order of asking."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._values: list[T] = []
        self._waiting: list[Future[T]] = []

    def __len__(self) -> int:
        return len(self._values)

    def put(self, value: T) -> None:
        """Add a value."""
        if self._waiting:
            self._waiting.pop(0).set(value)
        else:
            self._values.append(value)

    async def get(self) -> T:
        """The next value, once there is one."""
        if self._values:
            return self._values.pop(0)
        future: Future[T] = Future(self._kernel)
        self._waiting.append(future)
        return await future
