"""The Trace tab of a job that names no trace: those submitted near it are offered, and one is opened."""

from pathlib import Path

from jobtui.app import JobtuiApp
from jobtui.backends.base import Batch
from jobtui.backends.condor_files import CondorFile
from jobtui.backends.trace_files import TraceFile
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.ids import JobId
from jobtui.screens.choosing import ChoosingScreen
from jobtui.screens.trace import TraceScreen
from jobtui.session import Session
from tests.tracing import EXPECTED, capture_file, captured
from tests.waiting import wait_until
from tests.widgets.stage import screen_text

SECOND = 10**9
JOB = JobId("5.0@jobsub02.fnal.gov")
SUBMITTED = EXPECTED["jobsub-ok"]
FAR = EXPECTED["jobsub-fail-klist"]


def app_on(ad: Path, *captures: str) -> JobtuiApp:
    """The dashboard at the job of an ad, with captured traces."""
    spans = [TraceFile(capture_file(name, "otlp.pb")) for name in captures]
    session = Session([CondorFile(ad), *spans], FixedClock(Nanos(1_795_300_000 * SECOND)), strict=True)
    return JobtuiApp(session, open_at=JOB)


def ad_in(directory: Path) -> Path:
    """The ad of a job that was queued two seconds after its submission began, and names no trace."""
    ad = directory / "q.ad"
    queued = SUBMITTED["start_unix_nano"] // SECOND + 2
    ids = f'ClusterId = 5\nProcId = 0\nJobsubJobId = "{JOB}"\n'
    ad.write_text(f"{ids}QDate = {queued}\nJobStatus = 1\n")
    return ad


def text(app: JobtuiApp) -> str:
    return "\n".join(screen_text(app))


async def test_a_job_without_a_trace_id_offers_those_submitted_near_it_and_opens_one(tmp_path: Path) -> None:
    app = app_on(ad_in(tmp_path), "jobsub-ok", "jobsub-fail-klist")
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: str(JOB) in text(app), pilot)
        await pilot.press("T")
        await wait_until(lambda: "These were submitted near it" in text(app), pilot)
        assert SUBMITTED["traceID"] in text(app)
        assert FAR["traceID"] not in text(app)
        await pilot.press("enter")
        await wait_until(lambda: isinstance(app.screen, ChoosingScreen), pilot)
        assert SUBMITTED["traceID"] in text(app)
        await pilot.press("enter")
        await wait_until(lambda: isinstance(app.screen, TraceScreen), pilot)
        await wait_until(lambda: "log_host_time" in text(app), pilot)


async def test_one_that_comes_while_somebody_looks_is_offered_too(tmp_path: Path) -> None:
    ad = ad_in(tmp_path)
    app = app_on(ad)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: str(JOB) in text(app), pilot)
        await pilot.press("T")
        await wait_until(lambda: "No trace of this job was found" in text(app), pilot)
        spans = captured("jobsub-ok").spans
        app._session.store.apply(str(ad), Batch(cursor="", spans=spans))
        await wait_until(lambda: SUBMITTED["traceID"] in text(app), pilot)
