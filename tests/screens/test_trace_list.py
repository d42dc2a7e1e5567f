"""When recent traces are asked for again, and what is listed meanwhile."""

import socket

import pytest

from jobtui.app import JobtuiApp
from jobtui.backends.registry import build
from jobtui.backends.trace_files import TraceFile
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.specs import SourceSpec
from jobtui.screens.trace_list import LONGEST_S, NEWS_S, PERIOD_S, rest_s
from jobtui.session import Session
from tests.screens.test_traces import FAILED, FILES, SECOND, SIZE, text
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("took_s", "has_news", "is_whole", "rests_s"),
    [
        (0.01, False, True, PERIOD_S),
        (0.01, True, True, NEWS_S),
        (20.0, False, True, 200.0),  # a large answer is work for its server
        (20.0, False, False, LONGEST_S),  # silence is none
        (0.01, False, False, PERIOD_S),
    ],
)
def test_servers_are_asked_again_soon_unless_answers_cost_them_much(
    took_s: float, has_news: bool, is_whole: bool, rests_s: float
) -> None:
    assert rest_s(took_s, has_news=has_news, is_whole=is_whole) == rests_s


async def test_a_server_that_does_not_answer_holds_up_no_list() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        clock = FixedClock(Nanos(1_795_300_000 * SECOND))
        app = JobtuiApp(Session([TraceFile(FILES[0]), build(SourceSpec("jaeger", url))], clock, strict=True))
        async with app.run_test(size=SIZE) as pilot:
            await wait_until(lambda: app._session.store.traces.size(FAILED), pilot)
            await pilot.press("5")
            await wait_until(lambda: "jobsub_submit" in text(app), pilot)
            assert f"{url}: " not in text(app)
            silent.close()
            await wait_until(lambda: f"{url}: " in text(app), pilot)
            assert "jobsub_submit" in text(app)
