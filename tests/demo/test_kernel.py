"""The virtual clock: order is that of time, then of asking; nothing outlives its group."""

from jobtui.demo.kernel import Future, Kernel, Queue, Slots, TaskGroup
from jobtui.model.clock import SECOND, Nanos


def _kernel() -> tuple[Kernel, TaskGroup, list[str]]:
    kernel = Kernel(Nanos(0))
    return kernel, TaskGroup(kernel), []


def test_what_is_due_happens_by_time_then_by_order_of_asking() -> None:
    kernel, _, seen = _kernel()
    kernel.later(2, lambda: seen.append("late"))
    kernel.later(1, lambda: seen.append("first"))
    kernel.later(1, lambda: seen.append("second"))
    kernel.later(1.5, lambda: seen.append("never")).cancel()

    kernel.run(Nanos(3 * SECOND))

    assert seen == ["first", "second", "late"]
    assert kernel.now == 3 * SECOND


def test_run_stops_at_the_time_asked_for() -> None:
    kernel, _, seen = _kernel()
    kernel.later(5, lambda: seen.append("later"))

    kernel.run(Nanos(4 * SECOND))

    assert seen == []
    kernel.run()
    assert (seen, kernel.now) == (["later"], 5 * SECOND)


def test_tasks_wait_for_futures_in_the_order_of_asking() -> None:
    kernel, group, seen = _kernel()
    future: Future[str] = Future(kernel)

    async def wait(name: str) -> None:
        seen.append(f"{name} {await future}")

    group.spawn(lambda: wait("a"))
    group.spawn(lambda: wait("b"))
    kernel.later(1, lambda: future.set("done"))
    kernel.later(2, lambda: future.set("ignored"))
    kernel.run()

    assert seen == ["a done", "b done"]


def test_a_slot_is_handed_on_in_the_order_of_asking() -> None:
    kernel, group, seen = _kernel()
    lock = Slots(kernel)

    async def hold(name: str) -> None:
        async with lock:
            seen.append(f"{name} in")
            await kernel.sleep(1)
            seen.append(f"{name} out")

    for name in "abc":
        group.spawn(lambda name=name: hold(name))  # type: ignore[misc]
    kernel.run()

    assert seen == ["a in", "a out", "b in", "b out", "c in", "c out"]


def test_a_queue_gives_values_to_who_waited_longest() -> None:
    kernel, group, seen = _kernel()
    queue: Queue[int] = Queue(kernel)

    async def take(name: str) -> None:
        seen.append(f"{name}{await queue.get()}")

    group.spawn(lambda: take("a"))
    group.spawn(lambda: take("b"))
    for number in (1, 2, 3):
        kernel.later(number, lambda number=number: queue.put(number))  # type: ignore[misc]
    kernel.run()

    assert seen == ["a1", "b2"]
    assert len(queue) == 1


def test_a_closed_group_goes_no_further_but_still_cleans_up() -> None:
    kernel, group, seen = _kernel()

    async def work() -> None:
        try:
            await kernel.sleep(10)
            seen.append("went on")
        finally:
            seen.append("cleaned up")

    group.spawn(work)
    kernel.later(1, group.close)
    kernel.later(2, lambda: group.spawn(work))
    kernel.run()

    assert seen == ["cleaned up"]
