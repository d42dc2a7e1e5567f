"""The supervisor's db directory as a source: what it finds, in which order, and what can be wrong there."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from unittest.mock import Mock

import pytest

from jobtui.backends.base import SKIPS_NAMED
from jobtui.backends.sirepo import source as sirepo_source
from jobtui.backends.sirepo.source import MAX_BYTES, JobFiles, SirepoDb, TooLarge, read_file
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from jobtui.transport.worker import Worker
from tests.backends.db_files import Db, a_record, to_bytes
from tests.builders import job_id as jid
from tests.builders import some
from tests.loopback import nobody
from tests.polling import Reading
from tests.waiting import LONG_S

Reader = Reading[SirepoDb]


@pytest.fixture
def db(tmp_path: Path) -> Db:
    return Db(tmp_path / "db")


async def news(reader: Reader) -> list[JobId]:
    return [job.id for batch in await reader.drain() for job in batch.jobs]


@pytest.fixture
async def reader(db: Db) -> AsyncIterator[Reader]:
    source = SirepoDb(db.root)
    source.batch_files = 4
    yield Reading(source)
    await source.aclose()


async def test_the_newest_come_first(db: Db, reader: Reader) -> None:
    ages = [5, 1, 9, 3, 7, 2, 8, 4, 6, 0]
    for age in ages:
        db.put_bytes(jid(age), to_bytes(a_record(jid(age))), mtime_s=1_795_000_000 - age * 100)
    batches = await reader.drain()
    assert [job.id for batch in batches for job in batch.jobs] == [jid(age) for age in sorted(ages)]
    assert [batch.more for batch in batches] == [True, True, False]
    assert [batch.count for batch in batches] == [4, 4, 2]


async def test_of_many_some_come_soon(db: Db, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sirepo_source, "FIRST_FILES", 3)
    for age in range(10):
        db.put_bytes(jid(age), to_bytes(a_record(jid(age))), mtime_s=1_795_000_000 - age * 100)
    monkeypatch.setattr(os, "listdir", listing := Mock(wraps=os.listdir))
    batches = await reader.drain()
    assert listing.call_count == 1
    assert [(batch.count, batch.left) for batch in batches] == [(3, 7), (4, 3), (3, 0)]
    first, *rest = [[job.id for job in batch.jobs] for batch in batches]
    assert first == sorted(first)
    assert [one for part in rest for one in part] == [jid(age) for age in range(10) if jid(age) not in first]
    for begun, more in (("", True), (jid(2), False), ("none", False)):
        async with aclosing(SirepoDb(db.root, 3, begun)) as source:
            batch = await source.poll(None)
            wanted = [jid(age) for age in range(10) if jid(age).startswith(begun)][:3]
            assert ([job.id for job in batch.jobs], batch.more) == (wanted, more)


async def test_only_a_changed_file_is_read_again_known_by_mtime_size_or_inode(db: Db, reader: Reader) -> None:
    for number in range(6):
        db.put(jid(number))
    path = db.path(jid(3))
    before = path.stat()
    await reader.drain()

    async def is_news() -> None:
        assert [await news(reader), await news(reader)] == [[jid(3)], []]

    os.utime(path, ns=(1, before.st_mtime_ns + 1))
    await is_news()
    path.write_bytes(path.read_bytes() + b" ")
    os.utime(path, ns=(1, before.st_mtime_ns + 1))
    await is_news()
    db.put_bytes(jid(3), path.read_bytes())
    os.utime(path, ns=(1, before.st_mtime_ns + 1))
    await is_news()
    db.put(jid(3), status="running")
    await is_news()
    assert reader.jobs[jid(3)].status == JobStatus.RUNNING


async def test_a_job_whose_file_is_gone_is_gone(db: Db, reader: Reader) -> None:
    for number in range(3):
        db.put(jid(number))
    await reader.drain()
    db.remove(jid(1))
    (batch,) = await reader.drain()
    assert (batch.gone, batch.jobs) == ((jid(1),), ())
    db.put(jid(1))
    assert await news(reader) == [jid(1)]


async def test_other_names_are_passed_over_without_a_word(db: Db, reader: Reader) -> None:
    good = db.put(jid())
    for name in (
        f"{jid(1)}.json.pkio-tmp-Ab3", f"{jid(1)}.JSON", f".{jid(1)}.json", "index.json", "abc-def-ghi.json",
        f"{jid(1)}-more.json", f"{jid(1)}\n.json", f"x\n{jid(1)}.json", "EPRSqtUW-0000000ä-model.json",
    ):  # fmt: skip
        (db.directory / name).write_bytes(to_bytes(a_record(jid(1))))
    (db.directory / os.fsdecode(b"\xff\xfe.json")).write_bytes(b"{}")
    assert await news(reader) == [good]
    assert (reader.skipped, reader.batches[0].count) == (0, 1)


async def test_detail_reads_one_file_and_needs_no_poll(db: Db, reader: Reader) -> None:
    db.put(jid(1), status="running", extra={"kept": True})
    detail = some(await reader.source.detail(jid(1)))
    assert (detail.native["extra"], detail.path) == ({"kept": True}, str(db.path(jid(1))))
    assert detail.job.status == JobStatus.RUNNING
    assert await reader.source.detail(jid(2)) is None


NO_IDS = [
    "", "../secret", "../../etc/passwd", "/etc/passwd", "EPRSqtUW-00000001-../../secret",
    f"../supervisor-job/{jid(1)}", f"{jid(1)}\x00", f"{jid(1)}.json", f"{jid(1)}\n",
    "EPRSqtUW-00000001-модель", "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("hostile", NO_IDS)
async def test_an_id_that_is_none_opens_nothing(hostile: str, db: Db, reader: Reader) -> None:
    db.put(jid(1))
    (db.root / "secret.json").write_bytes(to_bytes(a_record(jid(1))))
    assert await reader.source.detail(JobId(hostile)) is None


async def test_what_changes_while_the_notification_is_set_up_is_not_missed(db: Db, reader: Reader) -> None:
    db.put(jid(1))
    await reader.drain()
    db.put(jid(2))
    await reader.source.changed(LONG_S)
    assert await news(reader) == [jid(2)]


GOOD, BAD = jid(1), jid(2)


async def assert_only_bad_is_skipped(reader: Reader, db: Db, why: str) -> None:
    assert set(reader.jobs) == {GOOD}
    (skip,) = reader.skips
    assert skip.where == str(db.path(BAD))
    assert why in skip.why
    assert await news(reader) == []
    assert (reader.skipped, len(reader.skips)) == (1, 1)


def make_hole(path: Path) -> None:
    path.touch()
    os.truncate(path, 100_000_000)


NO_RECORDS: dict[str, Callable[[Path], object]] = {
    "empty": Path.touch,
    "not valid JSON": lambda path: path.write_bytes(to_bytes(a_record(BAD))[:200]),
    "a pipe": os.mkfifo,
    "a link that cannot be followed": lambda path: path.symlink_to(path),
    f"100000000 bytes, more than the {MAX_BYTES}": make_hole,
}


@pytest.mark.parametrize("why", NO_RECORDS)
async def test_what_is_no_record_costs_itself_only(why: str, db: Db, reader: Reader) -> None:
    db.put(GOOD)
    NO_RECORDS[why](db.path(BAD))
    await reader.drain()
    await assert_only_bad_is_skipped(reader, db, why)
    if "bytes" in why:
        with pytest.raises(SourceError, match="100000000 bytes"):
            await reader.source.detail(BAD)


@pytest.mark.parametrize("size", [8191, 8192, 8193, 16384, 100_000])
async def test_every_size_is_read_whole(size: int, db: Db, reader: Reader) -> None:
    record = to_bytes(a_record(GOOD))
    db.put_bytes(GOOD, record + b" " * (size - len(record)))
    assert await news(reader) == [GOOD]
    assert reader.skipped == 0


def test_a_file_that_grows_without_end_is_given_up() -> None:
    with pytest.raises(TooLarge):
        read_file("/dev/zero", None)


async def test_a_file_that_is_another_or_gone_after_it_was_listed_is_no_fault(db: Db) -> None:
    for number in range(4):
        db.put(jid(number))
    files = JobFiles("where", "source")
    directory = os.open(db.directory, os.O_RDONLY)
    try:
        files.sweep(directory)
        db.remove(jid(1))
        db.remove(jid(2))
        os.mkfifo(db.path(jid(2)))
        reading = await asyncio.wait_for(Worker("reader").run(lambda: files.read(directory, 10)), LONG_S)
        assert sorted(job.id for job in reading.jobs) == [jid(0), jid(3)]
        assert ([skip.why for skip in reading.skipped], reading.gone) == (["empty"], ())
    finally:
        os.close(directory)


async def test_the_last_good_record_stays_while_the_file_is_torn(db: Db, reader: Reader) -> None:
    db.put(GOOD, status="running")
    await reader.drain()
    db.put_bytes(GOOD, b'{"status": "comp')
    (batch,) = await reader.drain()
    assert (batch.jobs, batch.gone, batch.skip_count) == ((), (), 1)
    assert reader.jobs[GOOD].status == JobStatus.RUNNING
    db.put(GOOD, status="completed")
    (batch,) = await reader.drain()
    assert (batch.recovered, reader.skipped, reader.jobs[GOOD].status) == (1, 0, JobStatus.COMPLETED)


async def test_another_damage_to_the_same_file_counts_once(db: Db, reader: Reader) -> None:
    db.put_bytes(BAD, b"")
    await reader.drain()
    db.put_bytes(BAD, b"[]")
    await reader.drain()
    assert reader.skipped == 1
    assert [skip.why for skip in reader.skips] == ["empty", "not a JSON object but a list"]
    db.remove(BAD)
    (batch,) = await reader.drain()
    assert (batch.recovered, reader.skipped) == (1, 0)


async def test_of_very_many_faults_a_few_are_named_and_all_counted(db: Db) -> None:
    for number in range(SKIPS_NAMED + 5):
        db.put_bytes(jid(number), b"")
    async with aclosing(SirepoDb(db.root)) as source:
        batch = await source.poll(None)
    assert (batch.skip_count, len(batch.skipped)) == (SKIPS_NAMED + 5, SKIPS_NAMED)


@pytest.mark.parametrize("is_removed", [False, True])
async def test_a_file_that_may_not_be_read_until_it_may_or_is_gone(open_path: Path, is_removed: bool) -> None:
    open_db = Db(open_path / "db")
    open_db.put(GOOD)
    open_db.put(BAD)
    open_db.path(BAD).chmod(0)
    async with aclosing(SirepoDb(open_db.root)) as source:
        reader = Reading(source)
        with nobody():
            await reader.drain()
            await assert_only_bad_is_skipped(reader, open_db, "Permission denied")
            with pytest.raises(SourceDenied, match="permission denied"):
                await source.detail(BAD)
        if is_removed:
            open_db.remove(BAD)
        else:
            open_db.path(BAD).chmod(0o644)
        assert await news(reader) == ([] if is_removed else [BAD])
        assert (reader.batches[-1].gone, reader.skipped) == ((), 0)


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100], ids=["nothing", "only listed", "only searched"])
async def test_a_directory_that_may_not_be_read(mode: int, open_path: Path) -> None:
    open_db = Db(open_path / "db")
    open_db.put(GOOD)
    if os.geteuid() == 0:
        os.chown(open_db.directory, 65534, -1)
    open_db.directory.chmod(mode)
    source = SirepoDb(open_db.root)
    with nobody():
        with pytest.raises(SourceDenied, match="permission denied; run as") as raised:
            await source.poll(None)
        assert str(open_db.directory) in str(raised.value)
    open_db.directory.chmod(0o755)
    assert [job.id for job in (await source.poll(None)).jobs] == [GOOD]
    await source.aclose()


NO_DB = [
    ("nowhere", SourceMissing, "no such directory; name the db directory of Sirepo"),
    ("file", SourceMissing, "not a directory; name the db directory of Sirepo"),
    ("supervisor-job", SourceMissing, "name the directory above it"),
    ("odd", SourceMissing, "has no supervisor-job directory: it is not the db directory of Sirepo"),
    ("new", SourceMissing, "or its supervisor has not run yet"),
    ("a\x00b", SourceUnreachable, ""),
    ("x" * 5000, SourceUnreachable, ""),
]


@pytest.mark.parametrize(("name", "kind", "text"), NO_DB)
async def test_a_root_that_is_no_db(tmp_path: Path, name: str, kind: type[SourceError], text: str) -> None:
    (tmp_path / "file").write_text("")
    for made in ("supervisor-job", "odd", "new"):
        (tmp_path / made).mkdir()
    (tmp_path / "odd" / "supervisor-job").write_text("")
    async with aclosing(SirepoDb(tmp_path / name)) as source:
        with pytest.raises(kind) as raised:
            await source.poll(None)
        await source.changed(0.0)
    assert text in str(raised.value)
    assert kind is SourceUnreachable or str(tmp_path / name) in str(raised.value)
