"""Timers that fire once do so also on a machine that has much else to do."""

import itertools

import pytest
from textual import _time

from jobtui.terminal.app import TerminalApp
from tests.waiting import wait_until


async def test_a_timer_that_is_delayed_while_it_starts_still_fires(monkeypatch: pytest.MonkeyPatch) -> None:
    app: TerminalApp[None] = TerminalApp()
    called: list[str] = []
    async with app.run_test():
        looks = itertools.count(_time.get_time(), 0.012)  # less than what timers that repeat wait
        with monkeypatch.context() as patched:
            patched.setattr(_time, "get_time", lambda: next(looks))
            app.set_timer(0.01, lambda: called.append("app"))
            app.screen.set_timer(0.01, lambda: called.append("screen"))
            await wait_until(lambda: len(called) == 2)


@pytest.mark.parametrize("wait_s", [0.0, -0.001, -5.0])
async def test_a_timer_that_was_due_before_it_started_fires_at_once(wait_s: float) -> None:
    app: TerminalApp[None] = TerminalApp()
    called: list[str] = []
    async with app.run_test():
        app.screen.set_timer(wait_s, lambda: called.append("screen"))
        await wait_until(lambda: called)


async def test_a_repeating_timer_skips_the_times_that_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    app: TerminalApp[None] = TerminalApp()
    called: list[float] = []
    async with app.run_test():
        before = _time.get_time
        app.set_interval(0.01, lambda: called.append(before()))
        await wait_until(lambda: called)
        with monkeypatch.context() as patched:
            patched.setattr(_time, "get_time", lambda: before() + 1_000)
            count = len(called)
            await wait_until(lambda: len(called) > count + 1)
        assert len(called) < count + 1_000, "a hundred thousand were missed"
