"""A job of HTCondor on the screen of a job."""

from pathlib import Path

import pytest

from jobtui.app import JobtuiApp
from jobtui.backends import ad_library
from jobtui.backends.condor_files import CondorFile
from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId
from jobtui.session import Session
from tests.ad_stand_in import AD, AS_WRITTEN, installed
from tests.condor import JOB
from tests.conftest import NOW
from tests.waiting import wait_until
from tests.widgets.stage import screen_text


@pytest.mark.parametrize("has_library", [True, False])
async def test_its_record_is_there_and_expressions_have_their_values(
    has_library: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = installed(tmp_path) if has_library else None
    monkeypatch.setattr(ad_library, "directory_of_library", lambda: directory)
    path = tmp_path / "queue.ad"
    path.write_text(AD)
    async with Session([CondorFile(path)], FixedClock(NOW)) as session:
        await session.catch_up()
        app = JobtuiApp(session, JobId(JOB))
        async with app.run_test(size=(120, 40)) as pilot:
            await wait_until(lambda: JOB in screen_text(app)[0], pilot)
            await app.screen.run_action("tab('raw')")
            value = f"5 MiB = {AS_WRITTEN}" if has_library else AS_WRITTEN
            await wait_until(lambda: f"RequestMemory {value}" in "\n".join(screen_text(app)), pilot)
