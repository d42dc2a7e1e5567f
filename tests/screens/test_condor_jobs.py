"""A job of HTCondor on the screen of a job."""

from pathlib import Path

from jobtui.app import JobtuiApp
from jobtui.backends.condor.source import CondorFile
from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId
from jobtui.session import Session
from tests.condor import JOB
from tests.conftest import NOW
from tests.waiting import wait_until
from tests.widgets.widget_app import screen_text, text

AD = """ClusterId = 7
ProcId = 0
GlobalJobId = "jobsub02.fnal.gov#7.0#1795168800"
JobStatus = 1
RequestMemory = (imagesize + 1024) / 1024
"""


async def test_its_record_is_there_and_expressions_are_shown_as_written(tmp_path: Path) -> None:
    path = tmp_path / "queue.ad"
    path.write_text(AD)
    async with Session([CondorFile(path)], FixedClock(NOW)) as session:
        await session.catch_up()
        app = JobtuiApp(session, JobId(JOB))
        async with app.run_test(size=(120, 40)) as pilot:
            await wait_until(lambda: JOB in screen_text(app)[0], pilot)
            await app.screen.run_action("tab('raw')")
            await wait_until(lambda: "RequestMemory (imagesize + 1024) / 1024" in text(app), pilot)
