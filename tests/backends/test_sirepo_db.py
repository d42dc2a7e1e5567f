"""The supervisor's db directory as a source: what it finds, when, and in which order."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobtui.backends.base import DetailSource, Source, SourceError, SourceMissing
from jobtui.backends.sirepo_db import SirepoDb
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from tests.backends.db_files import FIXTURES, Db, a_record, jid, to_bytes
from tests.backends.db_reading import Reader
from tests.waiting import LONG_S

CAPTURES = sorted(path.name for path in FIXTURES.iterdir() if (path / "supervisor-job").is_dir())


@pytest.fixture
def db(tmp_path: Path) -> Db:
    return Db(tmp_path / "db")


@pytest.fixture
async def reader(db: Db) -> AsyncIterator[Reader]:
    source = SirepoDb(db.root, batch_files=4)
    yield Reader(source)
    await source.aclose()


def test_it_is_what_it_says() -> None:
    source: Source = SirepoDb(Path("/srv/sirepo/db"))
    assert isinstance(source, DetailSource)
    assert (source.kind, source.name) == ("sirepo_db", "/srv/sirepo/db")


@pytest.mark.parametrize("capture", CAPTURES)
async def test_every_capture_is_read_whole(capture: str) -> None:
    root = FIXTURES / capture
    reader = Reader(SirepoDb(root))
    await reader.catch_up()
    assert set(reader.jobs) == {path.stem for path in (root / "supervisor-job").iterdir()}
    assert (reader.skipped, {job.source for job in reader.jobs.values()}) == (0, {str(root)})
    await reader.source.aclose()


@pytest.mark.parametrize("capture", [name for name in CAPTURES if (FIXTURES / name / "snapshots").is_dir()])
async def test_each_state_of_a_snapshot_is_seen(capture: str, db: Db, reader: Reader) -> None:
    await reader.catch_up()
    for snapshot in sorted((FIXTURES / capture / "snapshots").iterdir()):
        records = {path.stem: path.read_bytes() for path in snapshot.iterdir()}
        for name, data in records.items():
            db.put_bytes(name, data)
        assert sorted(await reader.news()) == sorted(records)
        for name in records:
            detail = await reader.source.detail(JobId(name))
            assert detail is not None
            assert detail.job == reader.jobs[JobId(name)]


async def test_the_newest_come_first(db: Db, reader: Reader) -> None:
    ages = [5, 1, 9, 3, 7, 2, 8, 4, 6, 0]
    for age in ages:
        db.put_bytes(jid(age), to_bytes(a_record(jid(age))), mtime_s=1_795_000_000 - age * 100)
    batches = await reader.catch_up()
    assert [job.id for batch in batches for job in batch.jobs] == [jid(age) for age in sorted(ages)]
    assert [batch.more for batch in batches] == [True, True, False]
    assert [batch.count for batch in batches] == [4, 4, 2]


async def test_only_a_changed_file_is_read_again(db: Db, reader: Reader) -> None:
    for number in range(6):
        db.put(jid(number))
    await reader.catch_up()
    assert await reader.news() == []
    db.put(jid(3), status="running")
    assert await reader.news() == [jid(3)]
    assert reader.jobs[jid(3)].status == JobStatus.RUNNING


async def test_a_change_shows_in_mtime_or_size_or_inode_alone(db: Db, reader: Reader) -> None:
    db.put(jid())
    path = db.path(jid())
    await reader.catch_up()
    before = path.stat()

    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert await reader.news() == [jid()]

    path.write_bytes(path.read_bytes() + b" ")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert await reader.news() == [jid()]

    db.put_bytes(jid(), path.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert await reader.news() == [jid()]
    assert await reader.news() == []


async def test_a_job_whose_file_is_gone_is_gone(db: Db, reader: Reader) -> None:
    for number in range(3):
        db.put(jid(number))
    await reader.catch_up()
    db.remove(jid(1))
    (batch,) = await reader.catch_up()
    assert (batch.gone, batch.jobs) == ((jid(1),), ())
    db.put(jid(1))
    assert await reader.news() == [jid(1)]


async def test_a_lost_batch_comes_again_and_no_more_than_that(db: Db, reader: Reader) -> None:
    for number in range(3):
        db.put(jid(number))
    await reader.catch_up()
    db.remove(jid(1))
    lost = await reader.source.poll(reader.cursor)
    db.put(jid(2), status="error")
    again = await reader.step()
    assert (again, again.gone, again.jobs) == (lost, (jid(1),), ())
    assert await reader.news() == [jid(2)]


async def test_other_names_are_passed_over_without_a_word(db: Db, reader: Reader) -> None:
    good = db.put(jid())
    for name in [
        f"{jid(1)}.json.pkio-tmp-Ab3",
        f"{jid(1)}.JSON",
        f".{jid(1)}.json",
        "index.json",
        "abc-def-ghi.json",
        f"{jid(1)}-more.json",
        f"{jid(1)}\n.json",
        "x\n" + jid(1) + ".json",
        "EPRSqtUW-0000000ä-model.json",
    ]:
        (db.directory / name).write_bytes(to_bytes(a_record(jid(1))))
    (db.directory / os.fsdecode(b"\xff\xfe.json")).write_bytes(b"{}")
    assert await reader.news() == [good]
    assert (reader.skipped, reader.batches[0].count) == (0, 1)
    assert await reader.source.job_ids() == [good]


async def test_detail_reads_one_file_and_needs_no_poll(db: Db, reader: Reader) -> None:
    db.put(jid(1), status="running", extra={"kept": True})
    detail = await reader.source.detail(jid(1))
    assert detail is not None
    assert detail.native["extra"] == {"kept": True}
    assert detail.path == str(db.path(jid(1)))
    assert detail.job.status == JobStatus.RUNNING
    assert await reader.source.detail(jid(2)) is None


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "../secret",
        "../../etc/passwd",
        "/etc/passwd",
        "EPRSqtUW-00000001-../../secret",
        f"../supervisor-job/{jid(1)}",
        f"{jid(1)}\x00",
        f"{jid(1)}.json",
        f"{jid(1)}\n",
        "EPRSqtUW-00000001-модель",
        "x" * 100_000,
    ],
)
async def test_an_id_that_is_none_opens_nothing(hostile: str, db: Db, reader: Reader) -> None:
    db.put(jid(1))
    (db.root / "secret.json").write_bytes(to_bytes(a_record(jid(1))))
    assert await reader.source.detail(JobId(hostile)) is None


async def test_an_id_longer_than_a_file_name_may_be_is_an_error_of_its_own(reader: Reader) -> None:
    with pytest.raises(SourceError, match="too long"):
        await reader.source.detail(JobId("EPRSqtUW-00000001-" + "x" * 300))


async def test_the_ids_are_told_by_names_alone(db: Db, reader: Reader) -> None:
    db.put(jid(1))
    db.put_bytes(jid(2), b"torn")
    assert sorted(await reader.source.job_ids()) == [jid(1), jid(2)]


async def test_changes_are_told_of(db: Db, reader: Reader) -> None:
    for number in range(3):
        db.put(jid(number))
    await reader.catch_up()
    await reader.source.changed(0.0)
    await reader.catch_up()
    waiting = asyncio.create_task(reader.source.changed(LONG_S))
    db.put(jid(1), status="error")
    db.remove(jid(2))
    await asyncio.wait_for(waiting, LONG_S / 2)
    (batch,) = await reader.catch_up()
    assert ([job.id for job in batch.jobs], batch.gone) == ([jid(1)], (jid(2),))


async def test_what_changes_while_the_notification_is_set_up_is_not_missed(db: Db, reader: Reader) -> None:
    db.put(jid(1))
    await reader.catch_up()
    db.put(jid(2))
    await reader.source.changed(LONG_S)
    assert await reader.news() == [jid(2)]


async def test_a_directory_in_place_of_another_is_followed_on(db: Db, reader: Reader) -> None:
    db.put(jid(1))
    await reader.catch_up()
    await reader.source.changed(0.0)
    await reader.catch_up()
    shutil.rmtree(db.directory)
    await reader.source.changed(LONG_S)
    with pytest.raises(SourceMissing, match="has no supervisor-job directory"):
        await reader.step()
    db.directory.mkdir()
    db.put(jid(2))
    batches = await reader.catch_up()
    assert [job.id for batch in batches for job in batch.jobs] == [jid(2)]
    assert [gone for batch in batches for gone in batch.gone] == [jid(1)]
    await reader.source.changed(0.0)
    await reader.catch_up()
    waiting = asyncio.create_task(reader.source.changed(LONG_S))
    db.put(jid(3))
    await asyncio.wait_for(waiting, LONG_S / 2)
    assert await reader.news() == [jid(3)]


async def test_many_changes_at_once_all_arrive(db: Db, reader: Reader) -> None:
    for number in range(50):
        db.put(jid(number))
    await reader.catch_up()
    await reader.source.changed(0.0)
    await reader.catch_up()
    for number in range(50):
        db.put(jid(number), status="canceled")
    async with asyncio.timeout(LONG_S):
        while {job.status for job in reader.jobs.values()} != {JobStatus.CANCELED}:
            await reader.source.changed(LONG_S)
            await reader.catch_up()


async def test_the_loop_goes_on_while_files_are_read(db: Db, reader: Reader) -> None:
    os.mkfifo(db.path(jid(1)))
    for number in range(2, 200):
        db.put(jid(number))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    await reader.step()
    ticking.cancel()
    assert ticks > 1
