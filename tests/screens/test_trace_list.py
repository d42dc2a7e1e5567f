"""When recent traces are asked for again, and what is listed meanwhile."""

import socket
from pathlib import Path

import pytest

from jobtui.app import JobtuiApp
from jobtui.backends.condor.source import CondorFile
from jobtui.backends.registry import build
from jobtui.backends.traces.files import TraceFile
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.ids import JobId
from jobtui.model.specs import SourceSpec
from jobtui.screens.choices import ChoosingScreen
from jobtui.screens.trace import TraceScreen
from jobtui.screens.traces import LONGEST_S, NEWS_S, PERIOD_S, rest_s
from jobtui.session import Session
from tests.screens.captured import FAILED_TRACE, FILES, SECOND, SIZE, an_app
from tests.tracing import EXPECTED, capture_file
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text


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
        app = JobtuiApp(Session([TraceFile(FILES[0]), build(SourceSpec("jaeger", url))], clock))
        async with app.run_test(size=SIZE) as pilot:
            await wait_until(lambda: app._session.store.traces.size(FAILED_TRACE), pilot)
            await press(pilot, "5", until="hardWork.step")
            assert f"{url}: " not in text(app)
            silent.close()
            await wait_until(lambda: f"{url}: " in text(app), pilot)
            assert "hardWork.step" in text(app)


JOB = JobId("5.0@jobsub02.fnal.gov")
SUBMITTED = EXPECTED["jobsub-ok"]
FAR = EXPECTED["jobsub-fail-klist"]


def app_on(ad: Path, *captures: str) -> JobtuiApp:
    spans = [TraceFile(capture_file(name, "otlp.pb")) for name in captures]
    session = Session([CondorFile(ad), *spans], FixedClock(Nanos(1_795_300_000 * SECOND)))
    return JobtuiApp(session, open_at=JOB)


def ad_in(directory: Path) -> Path:
    """The ad of a job that was queued two seconds after its submission began, and names no trace."""
    ad = directory / "q.ad"
    queued = SUBMITTED["start_unix_nano"] // SECOND + 2
    ids = f'ClusterId = 5\nProcId = 0\nJobsubJobId = "{JOB}"\n'
    ad.write_text(f"{ids}QDate = {queued}\nJobStatus = 1\n")
    return ad


async def test_a_job_without_a_trace_id_offers_those_submitted_near_it_and_opens_one(tmp_path: Path) -> None:
    app = app_on(ad_in(tmp_path), "jobsub-ok", "jobsub-fail-klist")
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: str(JOB) in text(app), pilot)
        await press(pilot, "T", until="These were submitted near it")
        assert SUBMITTED["traceID"] in text(app)
        assert FAR["traceID"] not in text(app)
        await press(pilot, "enter", until=ChoosingScreen)
        assert SUBMITTED["traceID"] in text(app)
        await press(pilot, "enter", until=TraceScreen)
        await wait_until(lambda: "log_host_time" in text(app), pilot)


async def test_a_trace_is_told_by_job_and_failed_step_and_compared_with_the_last_good_one() -> None:
    names = ("jobsub-ok", "jobsub-fail-klist", "job-fail", "job-good")
    app = an_app(*(capture_file(name, "otlp.pb") for name in names))
    async with app.run_test(size=(140, 40)) as pilot:
        await wait_until(lambda: len(app._session.store.traces.ids()) == len(names), pilot)
        await press(pilot, "5", until="4 traces")
        assert "81419552" in text(app)
        await press(pilot, "slash", *"failed:flag", "enter", until="1 of 4 traces")
        assert "hardWork.step: RuntimeError" in text(app)
        await press(pilot, "escape", "slash", *"failed:klist", "enter", until="1 of 4 traces")
        await press(pilot, "C", until="3 missing, 1 failed")
        await press(pilot, "x", until="get_creds")
        await press(pilot, "enter", until=TraceScreen)
        await press(pilot, "C", until="3 missing, 1 failed")
        await press(pilot, "escape", "escape", "escape", "escape", until=" 4 traces")
        await press(pilot, "g", "space", "space", until=lambda: text(app).count("▌") == 2)
        await press(pilot, "C", until="beside")
        await press(pilot, "escape", "escape", until=lambda: "▌" not in text(app))
