"""The logs of Balsam sites as a source: found where a site can be reached, followed, tied to jobs."""

import os
import shutil
from pathlib import Path

import pytest

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.correlation.job_events import EVENTS_KEPT
from jobtui.backends.balsam.site_logs import FILES_FOLLOWED, SiteDirectories, SiteLogs
from jobtui.logs.catalog import SessionLogs
from jobtui.model.clock import FixedClock
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.logs import LogRecord
from jobtui.session import Session
from tests.conftest import NOW

FIXTURES = Path(__file__).parents[2] / "fixtures" / "balsam" / "site_logs"
LINE = "2026-11-20 17:31:39.707 | 12 | DEBUG | balsam.site.service.processing:1] Job {} advanced to FAILED\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    logs = tmp_path / "site" / "log"
    shutil.copytree(FIXTURES, logs)
    (logs / "mpi_mode_2026-11-20_173142.0.out").write_text("Job 9 advanced to FAILED\n")
    (logs / "other.log").write_text(LINE.format(9))
    return tmp_path / "site"


def watched(*directories: Path, every_s: float = 0.0) -> Session:
    site = SiteDirectories("balsam", tuple(map(str, directories)))
    source = SiteLogs(lambda: (site,))
    source.every_s = every_s
    return Session([source], FixedClock(NOW))


def words(session: Session, number: int) -> list[str]:
    unlinked = session.store.correlation.unlinked_of(JobId(f"balsam/{number}"))
    return [one.step.step for one in unlinked]


async def test_its_files_are_found_and_their_lines_tied_to_jobs(site: Path) -> None:
    async with watched(site.parent / "not-there", site) as session:
        await session.catch_up()
        logs = SessionLogs(lambda: session.sources)
        names = {Path(name).name.partition("_2026")[0] for name in logs.names()}
        assert names == {"service", "mpi_mode", "serial_mode"}
        assert sorted(words(session, 7)) == [
            "agent advanced it", "agent advanced it", "its app could not be loaded", "its program failed",
            "worker ends it", "worker may try it again", "worker starts or ends it",
            "worker starts or ends it",
        ]  # fmt: skip
        assert words(session, 9) == []
        (health,) = session.store.sources()
        assert (health.state, health.kind) == (SourceState.OK, "site_logs")


async def test_site_logs_are_followed_and_new_ones_found(site: Path) -> None:
    async with watched(site) as session:
        await session.catch_up()
        before = len(words(session, 1))
        service = next((site / "log").glob("service*"))
        with service.open("a") as file:
            file.write(LINE.format(1)[:40])
        await session.catch_up()
        assert len(words(session, 1)) == before
        with service.open("a") as file:
            file.write(LINE.format(1)[40:])
        (site / "log" / "mpi_mode_2026-11-21_090000.0.log").write_text(LINE.format(77))
        await session.catch_up()
        assert (len(words(session, 1)), words(session, 77)) == (before + 1, ["agent advanced it"])


async def test_links_and_pipes_are_not_opened(site: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.log").write_text(LINE.format(55))
    (site / "log" / "service_2.log").symlink_to(tmp_path / "secret.log")
    os.mkfifo(site / "log" / "service_3.log")
    async with watched(site) as session:
        await session.catch_up()
        assert words(session, 55) == []
        assert len(session.sources[0].directories) == 3  # type: ignore[attr-defined]


async def test_only_the_newest_are_followed_and_it_is_said(site: Path) -> None:
    for number in range(FILES_FOLLOWED):
        path = site / "log" / f"mpi_mode_{number}.log"
        path.write_text(LINE.format(100 + number))
        os.utime(path, (number, number))
    async with watched(site) as session:
        await session.catch_up()
        assert words(session, 100) == []
        assert words(session, 100 + FILES_FOLLOWED - 1)
        (health,) = session.store.sources()
        assert health.note == "3 older files were not read"


def test_beyond_a_limit_the_oldest_lines_are_dropped() -> None:
    correlator, fields = Correlator(), dict[str, str | None](jid="balsam/3")
    for number in range(EVENTS_KEPT + 5):
        correlator.feed([LogRecord("f", number, number, None, 1, "site_advanced", fields, "x")])
    kept = [one.step.line for one in correlator.unlinked_of(JobId("balsam/3"))]
    assert kept == [*range(5, EVENTS_KEPT + 5)]
