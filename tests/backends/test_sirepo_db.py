"""The supervisor's db directory as a source: what it finds, in which order, and what can be wrong there."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.base import DetailSource, Source
from jobtui.backends.sirepo import source as sirepo_source
from jobtui.backends.sirepo.client import MAX_BYTES, SKIPS_NAMED, JobFiles, TooLarge, listed, read_file
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from jobtui.model.source_errors import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.transport.worker import Worker
from tests.backends.db_files import FIXTURES, Db, Reader, a_record, jid, to_bytes
from tests.loopback import nobody
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


async def test_of_many_some_come_before_all_are_looked_at(
    db: Db, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sirepo_source, "FIRST_FILES", 3)
    for age in range(10):
        db.put_bytes(jid(age), to_bytes(a_record(jid(age))), mtime_s=1_795_000_000 - age * 100)
    batches = await reader.catch_up()
    assert [batch.count for batch in batches] == [3, 4, 3]
    first, *rest = [[job.id for job in batch.jobs] for batch in batches]
    assert first == sorted(first)
    assert [job_id for part in rest for job_id in part] == [
        jid(age) for age in range(10) if jid(age) not in first
    ]


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
    told: list[JobId] = []
    while jid(2) not in told:  # the second may be heard of after the first was read
        batches = await reader.catch_up()
        told += [one for batch in batches for one in (*(job.id for job in batch.jobs), *batch.gone)]
        await reader.source.changed(0.1)
    assert told == [jid(1), jid(2)]


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


GOOD, BAD = jid(1), jid(2)


@pytest.fixture
def open_db() -> Iterator[Db]:
    """A db below a directory that anybody may search, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="jobtui-test-") as folder:
        os.chmod(folder, 0o755)
        yield Db(Path(folder) / "db")


@pytest.fixture
async def reading_all(db: Db) -> AsyncIterator[Reader]:
    source = SirepoDb(db.root)
    yield Reader(source)
    await source.aclose()


async def assert_only_bad_is_skipped(reading_all: Reader, db: Db, why: str) -> None:
    assert set(reading_all.jobs) == {GOOD}
    assert reading_all.skipped == 1
    (skip,) = reading_all.skips
    assert skip.where == str(db.path(BAD))
    assert why in skip.why
    assert await reading_all.news() == []
    assert (reading_all.skipped, len(reading_all.skips)) == (1, 1)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\0" * 4096, "NUL"),
        (to_bytes(a_record(BAD))[:200], "not valid JSON"),
        (b"[1, 2]", "a list"),
        (b"\x80\x81", "not valid JSON"),
        (b"[" * 50_000, "nested too deep"),
    ],
)
async def test_a_file_without_a_record(data: bytes, why: str, db: Db, reading_all: Reader) -> None:
    db.put(GOOD)
    db.put_bytes(BAD, data)
    await reading_all.catch_up()
    await assert_only_bad_is_skipped(reading_all, db, why)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "a pipe"),
        (Path.mkdir, "a directory"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to(path), "a link that cannot be followed"),
    ],
    ids=["pipe", "directory", "link to a device", "link in a circle"],
)
async def test_what_is_no_file(db: Db, reading_all: Reader, make: Callable[[Path], object], why: str) -> None:
    db.put(GOOD)
    make(db.path(BAD))
    await reading_all.catch_up()
    await assert_only_bad_is_skipped(reading_all, db, why)


async def test_a_socket(db: Db, reading_all: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    db.put(GOOD)
    monkeypatch.chdir(db.directory)  # the path of a socket may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(db.path(BAD).name)
        await reading_all.catch_up()
    await assert_only_bad_is_skipped(reading_all, db, "a socket")


async def test_a_link_that_leads_nowhere_until_it_does(db: Db, reading_all: Reader, tmp_path: Path) -> None:
    db.put(GOOD)
    db.path(BAD).symlink_to(tmp_path / "elsewhere")
    await reading_all.catch_up()
    await assert_only_bad_is_skipped(reading_all, db, "a link that cannot be followed: No such file")
    (tmp_path / "elsewhere").write_bytes(to_bytes(a_record(BAD, status="running")))
    assert await reading_all.news() == [BAD]
    (tmp_path / "elsewhere").write_bytes(to_bytes(a_record(BAD, status="completed")))
    assert await reading_all.news() == [BAD]
    assert (reading_all.jobs[BAD].status, reading_all.skipped) == (
        JobStatus.COMPLETED,
        0,
    )


async def test_a_file_of_100_mb(db: Db, reading_all: Reader) -> None:
    db.put(GOOD)
    db.put_bytes(BAD, b"")
    os.truncate(db.path(BAD), 100_000_000)
    await reading_all.catch_up()
    await assert_only_bad_is_skipped(reading_all, db, f"100000000 bytes, more than the {MAX_BYTES}")
    with pytest.raises(SourceError, match="100000000 bytes"):
        await reading_all.source.detail(BAD)


async def test_the_largest_size_can_be_chosen(db: Db) -> None:
    record = to_bytes(a_record(GOOD, error="e" * 40_000))
    db.put_bytes(GOOD, record)
    for max_bytes, jobs in [(len(record), 1), (len(record) - 1, 0)]:
        reading_all = Reader(SirepoDb(db.root, max_bytes=max_bytes))
        await reading_all.catch_up()
        assert (len(reading_all.jobs), reading_all.skipped) == (jobs, 1 - jobs)
        await reading_all.source.aclose()


@pytest.mark.parametrize("size", [8191, 8192, 8193, 16384, 100_000])
async def test_every_size_is_read_whole(size: int, db: Db, reading_all: Reader) -> None:
    record = to_bytes(a_record(GOOD))
    db.put_bytes(GOOD, record + b" " * (size - len(record)))
    assert await reading_all.news() == [GOOD]
    assert reading_all.skipped == 0


def test_a_file_that_grows_without_end_is_given_up() -> None:
    with pytest.raises(TooLarge):
        read_file("/dev/zero", None, 100_000)


async def test_a_pipe_in_place_of_a_file_that_was_listed_does_not_block(db: Db) -> None:
    db.put(BAD)
    files = JobFiles("where", "source")
    directory = os.open(db.directory, os.O_RDONLY)
    try:
        files.sweep(directory)
        db.remove(BAD)
        os.mkfifo(db.path(BAD))
        reading = await asyncio.wait_for(Worker("reader").run(lambda: files.read(directory, 10)), LONG_S)
        assert (reading.jobs, [skip.why for skip in reading.skipped]) == ((), ["empty"])
    finally:
        os.close(directory)


async def test_a_file_that_vanishes_between_listing_and_reading_is_no_fault(db: Db) -> None:
    for number in range(4):
        db.put(jid(number))
    files = JobFiles("where", "source")
    directory = os.open(db.directory, os.O_RDONLY)
    try:
        files.sweep(directory)
        db.remove(jid(2))
        reading = files.read(directory, 10)
        assert sorted(job.id for job in reading.jobs) == [jid(0), jid(1), jid(3)]
        assert (reading.skip_count, reading.gone) == (0, ())
    finally:
        os.close(directory)


async def test_the_last_good_record_stays_while_the_file_is_torn(db: Db, reading_all: Reader) -> None:
    db.put(GOOD, status="running")
    await reading_all.catch_up()
    db.put_bytes(GOOD, b'{"status": "comp')
    (batch,) = await reading_all.catch_up()
    assert (batch.jobs, batch.gone, batch.skip_count) == ((), (), 1)
    assert reading_all.jobs[GOOD].status == JobStatus.RUNNING
    db.put(GOOD, status="completed")
    (batch,) = await reading_all.catch_up()
    assert (batch.recovered, reading_all.skipped, reading_all.jobs[GOOD].status) == (
        1,
        0,
        JobStatus.COMPLETED,
    )


async def test_another_damage_to_the_same_file_counts_once(db: Db, reading_all: Reader) -> None:
    db.put_bytes(BAD, b"")
    await reading_all.catch_up()
    db.put_bytes(BAD, b"[]")
    await reading_all.catch_up()
    assert reading_all.skipped == 1
    assert [skip.why for skip in reading_all.skips] == ["empty", "not a JSON object but a list"]
    db.remove(BAD)
    (batch,) = await reading_all.catch_up()
    assert (batch.recovered, reading_all.skipped) == (1, 0)


async def test_an_odd_field_is_told_and_the_job_is_there(db: Db, reading_all: Reader) -> None:
    db.put(GOOD, computeJobStart="soon")
    assert await reading_all.news() == [GOOD]
    assert (reading_all.skipped, reading_all.jobs[GOOD].started_at) == (1, None)
    assert "computeJobStart" in reading_all.skips[0].why
    db.put(GOOD)
    assert await reading_all.news() == [GOOD]
    assert reading_all.skipped == 0


async def test_the_file_name_is_the_id_whatever_the_record_says(db: Db, reading_all: Reader) -> None:
    db.put_bytes(GOOD, to_bytes(a_record(BAD)))
    assert await reading_all.news() == [GOOD]
    assert reading_all.skipped == 1
    assert BAD in reading_all.skips[0].why


async def test_of_very_many_faults_a_few_are_named_and_all_counted(db: Db, reading_all: Reader) -> None:
    for number in range(SKIPS_NAMED + 5):
        db.put_bytes(jid(number), b"")
    await reading_all.catch_up()
    assert (reading_all.skipped, len(reading_all.skips)) == (
        SKIPS_NAMED + 5,
        SKIPS_NAMED,
    )


async def test_a_file_that_may_not_be_read_until_it_may(open_db: Db) -> None:
    open_db.put(GOOD)
    open_db.put(BAD)
    open_db.path(BAD).chmod(0)
    reading_all = Reader(SirepoDb(open_db.root))
    with nobody():
        await reading_all.catch_up()
        await assert_only_bad_is_skipped(reading_all, open_db, "Permission denied")
        with pytest.raises(SourceDenied, match="permission denied"):
            await reading_all.source.detail(BAD)
    open_db.path(BAD).chmod(0o644)
    assert await reading_all.news() == [BAD]
    assert reading_all.skipped == 0
    await reading_all.source.aclose()


async def test_a_file_that_could_never_be_read_is_no_fault_once_it_is_gone(open_db: Db) -> None:
    open_db.put(BAD)
    open_db.path(BAD).chmod(0)
    reading_all = Reader(SirepoDb(open_db.root))
    with nobody():
        await reading_all.catch_up()
    assert reading_all.skipped == 1
    open_db.remove(BAD)
    (batch,) = await reading_all.catch_up()
    assert (batch.gone, reading_all.skipped) == ((), 0)
    await reading_all.source.aclose()


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100], ids=["nothing", "only listed", "only searched"])
async def test_a_directory_that_may_not_be_read(mode: int, open_db: Db) -> None:
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


async def raised_by(root: Path) -> SourceError:
    source = SirepoDb(root)
    with pytest.raises(SourceError) as raised:
        await source.poll(None)
    await source.changed(0.0)
    await source.aclose()
    return raised.value


async def test_a_root_that_is_missing_or_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "supervisor-job").mkdir()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "supervisor-job").write_text("")
    for name, text in [
        ("nowhere", "no such directory; name the db directory of Sirepo"),
        ("file", "not a directory; name the db directory of Sirepo"),
        ("supervisor-job", "name the directory above it"),
        ("odd", "has no supervisor-job directory: it is not the db directory of Sirepo"),
    ]:
        error = await raised_by(tmp_path / name)
        assert isinstance(error, SourceMissing)
        assert str(tmp_path / name) in str(error)
        assert text in str(error)


async def test_a_root_that_no_file_system_can_have() -> None:
    assert isinstance(await raised_by(Path("/a\x00b")), SourceUnreachable)
    assert isinstance(await raised_by(Path("/" + "x" * 5000)), SourceUnreachable)


async def test_a_db_before_the_first_run_is_found_once_it_is_there(tmp_path: Path) -> None:
    root = tmp_path / "db"
    root.mkdir()
    reading_all = Reader(SirepoDb(root))
    with pytest.raises(SourceMissing, match="or its supervisor has not run yet"):
        await reading_all.step()
    db = Db(root)
    db.put(GOOD)
    assert await reading_all.news() == [GOOD]
    await reading_all.source.aclose()


ANY_NAME = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=20)


@given(st.lists(ANY_NAME, max_size=5))
def test_no_name_is_taken_for_another(names: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="jobtui-test-") as folder:
        for name in [*names, f"{GOOD}.json"]:
            if name not in (".", ".."):
                Path(folder, name).touch()
        assert listed(folder) == [GOOD]
