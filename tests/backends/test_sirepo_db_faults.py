"""What can be wrong in the supervisor's db directory, each with real files: it costs itself and is told."""

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.sirepo_db import SirepoDb
from jobtui.backends.sirepo_files import MAX_BYTES, SKIPS_NAMED, JobFiles, TooLarge, listed, read_file
from jobtui.backends.worker import Worker
from jobtui.model.jobs import JobStatus
from tests.backends.db_files import Db, a_record, jid, to_bytes
from tests.backends.db_reading import Reader, unprivileged
from tests.waiting import LONG_S

GOOD, BAD = jid(1), jid(2)


@pytest.fixture
def db(tmp_path: Path) -> Db:
    return Db(tmp_path / "db")


@pytest.fixture
def open_db() -> Iterator[Db]:
    """A db below a directory that anybody may search, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="jobtui-test-") as folder:
        os.chmod(folder, 0o755)
        yield Db(Path(folder) / "db")


@pytest.fixture
async def reader(db: Db) -> AsyncIterator[Reader]:
    source = SirepoDb(db.root)
    yield Reader(source)
    await source.aclose()


async def assert_only_bad_is_skipped(reader: Reader, db: Db, why: str) -> None:
    assert set(reader.jobs) == {GOOD}
    assert reader.skipped == 1
    (skip,) = reader.skips
    assert skip.where == str(db.path(BAD))
    assert why in skip.why
    assert await reader.news() == []
    assert (reader.skipped, len(reader.skips)) == (1, 1)


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
async def test_a_file_without_a_record(data: bytes, why: str, db: Db, reader: Reader) -> None:
    db.put(GOOD)
    db.put_bytes(BAD, data)
    await reader.catch_up()
    await assert_only_bad_is_skipped(reader, db, why)


async def test_a_pipe(db: Db, reader: Reader) -> None:
    db.put(GOOD)
    os.mkfifo(db.path(BAD))
    await reader.catch_up()
    await assert_only_bad_is_skipped(reader, db, "a pipe")


async def test_a_directory(db: Db, reader: Reader) -> None:
    db.put(GOOD)
    db.path(BAD).mkdir()
    await reader.catch_up()
    await assert_only_bad_is_skipped(reader, db, "a directory")


async def test_a_socket(db: Db, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    db.put(GOOD)
    monkeypatch.chdir(db.directory)  # the path of a socket may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(db.path(BAD).name)
        await reader.catch_up()
    await assert_only_bad_is_skipped(reader, db, "a socket")


async def test_a_link_to_a_device(db: Db, reader: Reader) -> None:
    db.put(GOOD)
    db.path(BAD).symlink_to("/dev/zero")
    await reader.catch_up()
    await assert_only_bad_is_skipped(reader, db, "a device")


async def test_a_link_that_leads_nowhere_until_it_does(db: Db, reader: Reader, tmp_path: Path) -> None:
    db.put(GOOD)
    db.path(BAD).symlink_to(tmp_path / "elsewhere")
    await reader.catch_up()
    await assert_only_bad_is_skipped(reader, db, "a link that cannot be followed: No such file")
    (tmp_path / "elsewhere").write_bytes(to_bytes(a_record(BAD, status="running")))
    assert await reader.news() == [BAD]
    (tmp_path / "elsewhere").write_bytes(to_bytes(a_record(BAD, status="completed")))
    assert await reader.news() == [BAD]
    assert (reader.jobs[BAD].status, reader.skipped) == (JobStatus.COMPLETED, 0)


async def test_a_link_in_a_circle(db: Db, reader: Reader) -> None:
    db.put(GOOD)
    db.path(BAD).symlink_to(db.path(BAD))
    await reader.catch_up()
    await assert_only_bad_is_skipped(reader, db, "a link that cannot be followed")


async def test_a_file_of_100_mb(db: Db, reader: Reader) -> None:
    db.put(GOOD)
    db.put_bytes(BAD, b"")
    os.truncate(db.path(BAD), 100_000_000)
    await reader.catch_up()
    await assert_only_bad_is_skipped(reader, db, f"100000000 bytes, more than the {MAX_BYTES}")
    with pytest.raises(SourceError, match="100000000 bytes"):
        await reader.source.detail(BAD)


async def test_the_largest_size_can_be_chosen(db: Db) -> None:
    record = to_bytes(a_record(GOOD, error="e" * 40_000))
    db.put_bytes(GOOD, record)
    for max_bytes, jobs in [(len(record), 1), (len(record) - 1, 0)]:
        reader = Reader(SirepoDb(db.root, max_bytes=max_bytes))
        await reader.catch_up()
        assert (len(reader.jobs), reader.skipped) == (jobs, 1 - jobs)
        await reader.source.aclose()


@pytest.mark.parametrize("size", [8191, 8192, 8193, 16384, 100_000])
async def test_every_size_is_read_whole(size: int, db: Db, reader: Reader) -> None:
    record = to_bytes(a_record(GOOD))
    db.put_bytes(GOOD, record + b" " * (size - len(record)))
    assert await reader.news() == [GOOD]
    assert reader.skipped == 0


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


async def test_the_last_good_record_stays_while_the_file_is_torn(db: Db, reader: Reader) -> None:
    db.put(GOOD, status="running")
    await reader.catch_up()
    db.put_bytes(GOOD, b'{"status": "comp')
    (batch,) = await reader.catch_up()
    assert (batch.jobs, batch.gone, batch.skip_count) == ((), (), 1)
    assert reader.jobs[GOOD].status == JobStatus.RUNNING
    db.put(GOOD, status="completed")
    (batch,) = await reader.catch_up()
    assert (batch.recovered, reader.skipped, reader.jobs[GOOD].status) == (1, 0, JobStatus.COMPLETED)


async def test_another_damage_to_the_same_file_counts_once(db: Db, reader: Reader) -> None:
    db.put_bytes(BAD, b"")
    await reader.catch_up()
    db.put_bytes(BAD, b"[]")
    await reader.catch_up()
    assert reader.skipped == 1
    assert [skip.why for skip in reader.skips] == ["empty", "not a JSON object but a list"]
    db.remove(BAD)
    (batch,) = await reader.catch_up()
    assert (batch.recovered, reader.skipped) == (1, 0)


async def test_an_odd_field_is_told_and_the_job_is_there(db: Db, reader: Reader) -> None:
    db.put(GOOD, computeJobStart="soon")
    assert await reader.news() == [GOOD]
    assert (reader.skipped, reader.jobs[GOOD].started_at) == (1, None)
    assert "computeJobStart" in reader.skips[0].why
    db.put(GOOD)
    assert await reader.news() == [GOOD]
    assert reader.skipped == 0


async def test_the_file_name_is_the_id_whatever_the_record_says(db: Db, reader: Reader) -> None:
    db.put_bytes(GOOD, to_bytes(a_record(BAD)))
    assert await reader.news() == [GOOD]
    assert reader.skipped == 1
    assert BAD in reader.skips[0].why


async def test_of_very_many_faults_a_few_are_named_and_all_counted(db: Db, reader: Reader) -> None:
    for number in range(SKIPS_NAMED + 5):
        db.put_bytes(jid(number), b"")
    await reader.catch_up()
    assert (reader.skipped, len(reader.skips)) == (SKIPS_NAMED + 5, SKIPS_NAMED)


async def test_a_file_that_may_not_be_read_until_it_may(open_db: Db) -> None:
    open_db.put(GOOD)
    open_db.put(BAD)
    open_db.path(BAD).chmod(0)
    reader = Reader(SirepoDb(open_db.root))
    with unprivileged():
        await reader.catch_up()
        await assert_only_bad_is_skipped(reader, open_db, "Permission denied")
        with pytest.raises(SourceDenied, match="permission denied"):
            await reader.source.detail(BAD)
    open_db.path(BAD).chmod(0o644)
    assert await reader.news() == [BAD]
    assert reader.skipped == 0
    await reader.source.aclose()


async def test_a_file_that_could_never_be_read_is_no_fault_once_it_is_gone(open_db: Db) -> None:
    open_db.put(BAD)
    open_db.path(BAD).chmod(0)
    reader = Reader(SirepoDb(open_db.root))
    with unprivileged():
        await reader.catch_up()
    assert reader.skipped == 1
    open_db.remove(BAD)
    (batch,) = await reader.catch_up()
    assert (batch.gone, reader.skipped) == ((), 0)
    await reader.source.aclose()


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100], ids=["nothing", "only listed", "only searched"])
async def test_a_directory_that_may_not_be_read(mode: int, open_db: Db) -> None:
    open_db.put(GOOD)
    if os.geteuid() == 0:
        os.chown(open_db.directory, 65534, -1)
    open_db.directory.chmod(mode)
    source = SirepoDb(open_db.root)
    with unprivileged():
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
    reader = Reader(SirepoDb(root))
    with pytest.raises(SourceMissing, match="or its supervisor has not run yet"):
        await reader.step()
    db = Db(root)
    db.put(GOOD)
    assert await reader.news() == [GOOD]
    await reader.source.aclose()


ANY_NAME = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=20)


@given(st.lists(ANY_NAME, max_size=5))
def test_no_name_is_taken_for_another(names: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="jobtui-test-") as folder:
        for name in [*names, f"{GOOD}.json"]:
            if name not in (".", ".."):
                Path(folder, name).touch()
        assert listed(folder) == [GOOD]
