"""The logs of Balsam's sites in the dashboard: read once a site is known that can be reached."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jobtui.backends.base import Batch
from jobtui.backends.registry import SITE_LOGS
from jobtui.commands import reader
from jobtui.commands.reader import watch_sites
from jobtui.model.changes import Site
from jobtui.model.clock import FixedClock
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.specs import SourceSpec
from jobtui.session import Session
from tests.conftest import NOW
from tests.fakes import ScriptedSource
from tests.waiting import stop, wait_until

URL = "https://balsam.test"
LINE = "2026-11-20 17:31:39.707 | 12 | DEBUG | balsam.site.service.processing:1] Job 7 advanced to FAILED\n"
SPECS = (SourceSpec("balsam", URL, label="alcf"),)


def write_logs(site: Path) -> None:
    (site / "log").mkdir(parents=True)
    (site / "log" / "service_2026-11-20_173100.log").write_text(LINE)


def told_of(path: str, source: str = URL) -> Batch:
    return Batch(cursor="1", sites=(Site(id=1, source=source, name="theta", path=path),))


@asynccontextmanager
async def watching(
    specs: tuple[SourceSpec, ...], *batches: Batch, mounts: dict[str, str] | None = None
) -> AsyncIterator[tuple[Session, ScriptedSource]]:
    source = ScriptedSource(batches, name=URL, kind="balsam")
    async with Session([source], FixedClock(NOW)) as session:
        session.mounts = mounts or {}
        watch_sites(session, specs)
        running = asyncio.create_task(session.run())
        yield session, source
        await stop(running)


def kinds(session: Session) -> list[str]:
    return [health.kind for health in session.store.sources()]


def is_read(session: Session) -> bool:
    found = [health for health in session.store.sources() if health.kind == SITE_LOGS.kind]
    return bool(found) and found[0].state is SourceState.OK and found[0].records == 1


async def test_they_are_read_from_where_the_site_is_mounted(tmp_path: Path) -> None:
    write_logs(tmp_path / "mounted" / "site")
    mounts = {"/projects": str(tmp_path / "mounted")}
    async with watching(SPECS, told_of("/projects/site"), mounts=mounts) as (session, _):
        await wait_until(lambda: is_read(session))
        (line,) = session.store.correlation.unlinked_of(JobId("balsam@alcf/7"))
        assert line.step.step == "agent advanced it"


async def test_a_site_that_is_mounted_later_is_found_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "LOOK_EVERY_S", 0.02)
    async with watching(SPECS, told_of(str(tmp_path / "site"))) as (session, _):
        await wait_until(lambda: bool(session.store.sites()))
        await asyncio.sleep(0)
        assert kinds(session) == ["balsam"]
        write_logs(tmp_path / "site")
        await wait_until(lambda: is_read(session))


async def test_a_site_that_comes_to_be_known_later_is_read_with_the_first(tmp_path: Path) -> None:
    write_logs(tmp_path / "one")
    write_logs(tmp_path / "two")
    async with watching(SPECS, told_of(str(tmp_path / "one"))) as (session, source):
        await wait_until(lambda: is_read(session))
        both = (
            Site(id=1, source=URL, name="theta", path=str(tmp_path / "one")),
            Site(id=2, source=URL, name="summit", path=str(tmp_path / "two")),
        )
        source.add(Batch(cursor="2", sites=both))
        await wait_until(lambda: session.store.sources()[1].records == 2)
        assert kinds(session) == ["balsam", SITE_LOGS.kind]
