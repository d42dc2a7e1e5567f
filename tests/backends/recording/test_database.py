"""A recording: what goes in comes out, within its size, whatever happens to the file."""

import asyncio
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends.base import LISTS, Batch
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_rfc3339
from jobtui.model.health import FailingPart, Skip, SourceUnreachable
from jobtui.model.jobs import JobStatus
from jobtui.model.logs import LogRecord
from jobtui.model.pages import Log
from jobtui.recording import replay as recorded_logs
from jobtui.recording.database import Item, Recording, RecordingError, packed, unpacked
from jobtui.recording.recorder import BundleCollector, Recorder, RecordingWriter
from jobtui.recording.replay import OpenRecording, RecordingReplay, ReplayClock, ReplayedJobs, ReplayedLogs
from jobtui.transport.worker import Worker
from tests.backends.log_fakes import open_inodes
from tests.backends.recording import files
from tests.builders import a_job, job_id
from tests.fakes import Injected, ScriptedSource, batch, fail
from tests.offenders import each
from tests.polling import polled
from tests.rows import ROWS, database_rows
from tests.tracing import a_span
from tests.waiting import wait_for


def test_every_list_of_a_batch_is_kept() -> None:
    tuples = {f.name for f in msgspec.structs.fields(Batch) if str(f.type).startswith("tuple")}
    assert tuples - {"failing"} == set(LISTS)


@settings(max_examples=50)
@given(
    st.text(max_size=200),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.dictionaries(st.sampled_from(["op", "jid", "state"]), st.one_of(st.none(), st.text(max_size=20))),
)
def test_records_come_back_as_they_were(text: str, place: int, fields: dict[str, str | None]) -> None:
    one = LogRecord("a.log", 1, place, Nanos(7), None, "op", fields, text, identity=place)
    kept = Batch(cursor="c", records=(one,), skipped=(Skip("x", "y"),), skip_count=2, count=3)
    again: Batch = unpacked(Item.BATCH, packed(kept))
    (back,) = again.records
    assert (back.offset, back.identity, again.skip_count, again.count) == (place, place, 2, 3)
    assert packed(again) == packed(kept)  # masked once, it is not changed again


@each(Item.LISTING, Item.FILE, Item.NOTED, Item.MESSAGES, Item.REMEMBERED)
def test_a_recording_gives_back_why_there_was_no_answer(what: Item) -> None:
    assert unpacked(what, packed("connection refused")) == "connection refused"


def test_a_replay_delivers_all_up_to_its_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.written(tmp_path / "r", (Item.BATCH, files.lines(1), 0), (Item.BATCH, files.lines(2), 10))
    assert (files.numbers(path, 5), files.numbers(path, 10)) == ([1], [1, 2])
    path = files.written(tmp_path / "many", *((Item.BATCH, files.lines(n), n) for n in range(1, 180)))
    assert files.numbers(path, 1_000) == list(range(1, 180))
    monkeypatch.setattr("jobtui.recording.database.AT_ONCE_BYTES", 100)
    assert [len(batch.records) for batch in files.replayed(path, 1_000)] == [1] * 179 + [0]


def test_an_outage_lasts_until_something_comes(tmp_path: Path) -> None:
    failure = (Item.FAILURE, "no answer", 10)
    before, after = (Item.BATCH, files.lines(1), 0), (Item.BATCH, files.lines(2), 20)
    path = files.written(tmp_path / "r", before, failure, after)
    with closing(Recording(path)) as recording, closing(Worker("test")) as worker:
        source = files.replayed_source(recording, worker, 15)
        first = asyncio.run(source.poll(None))
        assert (first.more, first.read_at) == (True, Nanos(files.NOW + 10 * SECOND))
        for _ in range(3):
            with pytest.raises(SourceUnreachable, match="no answer"):
                asyncio.run(source.poll("1"))
    assert files.numbers(path, 20) == [1, 2]


def test_a_recording_keeps_its_size_and_the_last_record_of_each_job(tmp_path: Path) -> None:
    path = tmp_path / "r"
    writer = RecordingWriter(path, files.about(), files.MB)
    early = a_job(1, status=JobStatus.RUNNING)
    with writer.together():
        writer.put("logfile", "a.log", Item.BATCH, batch(early), files.NOW)
        for n in range(600):
            kept = files.lines(n, text=files.noise(n, 5_000))
            writer.put("logfile", "a.log", Item.BATCH, kept, files.NOW)
            assert writer.kept_bytes <= files.MB
    assert writer.let_go > 100
    writer.close()
    assert path.stat().st_size < 2 * files.MB
    batches = files.replayed(path, 0)
    assert [job for b in batches for job in b.jobs] == [early]
    assert max(r.line for b in batches for r in b.records) == 599


def test_a_job_is_found_without_its_whole_record(tmp_path: Path) -> None:
    job = a_job(1, status=JobStatus.FAILED, error="disk full")
    path = files.written(tmp_path / "r", (Item.BATCH, batch(job), 0), (Item.FAILURE, "a.log: refused", 10))
    with closing(Recording(path)) as recording, closing(Worker("test")) as worker:
        clock = ReplayClock(files.NOW)
        source = ReplayedJobs(OpenRecording(recording, worker, clock), "logfile", "a.log", 1)
        detail = asyncio.run(source.detail(job.id))
        assert asyncio.run(source.detail(job_id(99))) is None
        clock.set(Nanos(files.NOW + 18_000 * SECOND))
        late = asyncio.run(source.detail(job.id))
    assert detail is not None
    said = f"a.log cannot be read since {to_rfc3339(Nanos(files.NOW + 10 * SECOND))}: refused"
    assert (detail.facts, late and late.facts) == ((), (("not read", said),))
    assert detail.job == job
    assert [run.error for run in detail.runs] == ["disk full"]


def test_bytes_that_changed_in_its_layout_or_something_else_are_one_clear_error(tmp_path: Path) -> None:
    path = files.written(tmp_path / "r", (Item.BATCH, files.lines(1), 1))
    data = path.read_bytes()
    for name in (b"about", b"CREATE TABLE", b"autoindex_source"):  # which SQLite quotes in what it says
        place = data.index(name) + 2
        path.write_bytes(data[:place] + b"\xff" + data[place + 1 :])
        with pytest.raises(RecordingError):
            files.replayed(path, 5)
    path = tmp_path / "places.sqlite"
    database_rows(path, "CREATE TABLE bookmarks (url)")
    with pytest.raises(RecordingError, match="something else"):
        Recording(path)


def test_what_cannot_be_read_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.written(tmp_path / "r", (Item.BATCH, files.lines(1), 1))
    monkeypatch.setattr(Recording, "ends_at", property(fail))
    with pytest.raises(Injected):
        RecordingReplay(path)
    assert path.stat().st_ino not in open_inodes()
    database_rows(path, "UPDATE about SET value = '7'")
    with pytest.raises(RecordingError, match="damaged"):
        Recording(path)
    assert path.stat().st_ino not in open_inodes()


@pytest.mark.parametrize("bad", [{10}, {60}, set(range(1, 60)), {2, 51, 100, 179}])
@pytest.mark.parametrize("body", [b"x", "text", 7, zlib.compress(b"[]"), zlib.compress(bytes(6 << 20))])
def test_a_damaged_or_huge_entry_is_counted(tmp_path: Path, bad: set[int], body: object) -> None:
    path = files.written(tmp_path / "r", *((Item.BATCH, files.lines(n), n) for n in range(1, 180)))
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany("UPDATE entry SET body = ? WHERE seq = ?", [(body, seq) for seq in bad])
    batches = files.replayed(path, 1_000)
    assert {one.line for batch in batches for one in batch.records} == set(range(1, 180)) - bad
    assert sum(batch.skip_count for batch in batches) == len(bad)


def test_the_unpacked_size_of_all_entries_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.recording.database.WHOLE_BYTES", 3 * files.MB)
    path = files.written(tmp_path / "r", *((Item.BATCH, files.lines(n), n) for n in range(1, 40)))
    honest = path.stat().st_size
    with closing(sqlite3.connect(path)) as db, db:
        grown = zlib.compress(b"{}".ljust(files.MB), 9)
        db.execute("UPDATE entry SET body = ? WHERE seq % 2", (grown,))
    with closing(Recording(path)) as recording, closing(Worker("test")) as worker:
        for _ in range(2):  # what was read once may be read again
            batches = asyncio.run(polled(files.replayed_source(recording, worker, 1_000)))
            counts = [(len(batch.records), batch.skip_count) for batch in batches]
            assert [sum(count) for count in zip(*counts, strict=True)] == [19, 17]
        assert list(recording.left_out()) == ["17 entries are too large when unpacked, and left out"]
    even = files.written(tmp_path / "even", (Item.BATCH, files.lines(*[1] * 10_000), 1))
    assert even.stat().st_size > honest
    monkeypatch.setattr("jobtui.recording.database.WHOLE_BYTES", 0)
    assert len(files.numbers(even, 5)) == 10_000  # what a recorder wrote is within it always


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.recording.writer.WRITE_EVERY_S", 0.05)


SOURCE = ScriptedSource(name="a.log", kind="logfile")


@contextmanager
def recorded(place: Path) -> Iterator[tuple[RecordingWriter, Recorder]]:
    writer = RecordingWriter(place / "r", files.about(), files.MB)
    recorder = Recorder(writer, FixedClock(files.NOW))
    yield writer, recorder
    recorder.close()
    writer.close()


def limit(writer: RecordingWriter, pages: int) -> None:
    """Limit the room to this number of pages, as on a full disk."""
    writer._db.execute(f"PRAGMA max_page_count = {pages}")


def noisy(number: int) -> Batch:
    return files.lines(number, text=files.noise(number, 200_000))


def test_late_entries_are_lost_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.recording.writer.MOST_WAITING", 500)
    with recorded(tmp_path) as (writer, recorder):
        limit(writer, 12)
        for number in range(5):
            recorder.delivered(SOURCE, noisy(number))
        wait_for(lambda: recorder.problem is not None)
        assert (lost := recorder.lost) > 0
        limit(writer, 1_000_000)
        wait_for(lambda: recorder.problem is None)
    with closing(Recording(tmp_path / "r")) as recording:
        assert [note.partition(" records")[0] for note in recording.about.notes] == [str(lost)]


def test_a_disk_that_stays_full_costs_what_came_and_nothing_else(tmp_path: Path) -> None:
    with recorded(tmp_path) as (writer, recorder):
        recorder.delivered(SOURCE, files.lines(1))
        wait_for(lambda: recorder.kept)
        limit(writer, 12)
        recorder.delivered(SOURCE, noisy(2))
        wait_for(lambda: recorder.problem is not None)
    assert recorder.lost > 0
    assert files.numbers(tmp_path / "r") == [1]


@pytest.mark.parametrize(("again", "expected"), ROWS["lines that an earlier recorder kept"])
def test_lines_that_an_earlier_recorder_kept_are_not_kept_again(
    tmp_path: Path, again: list[int], expected: list[int]
) -> None:
    for came in ([5, 6], again):
        writer = RecordingWriter(tmp_path / "r", files.about(), files.MB, goes_on=True)
        recorder = Recorder(writer, FixedClock(files.NOW))
        recorder.delivered(SOURCE, files.lines(*came, text="password=of-somebody"))
        recorder.close()
        writer.discard()
    assert files.numbers(tmp_path / "r") == expected


def test_quiet_polls_are_not_kept(tmp_path: Path) -> None:
    with recorded(tmp_path) as (_, recorder):
        recorder.delivered(SOURCE, files.lines(1))
        for _ in range(50):
            recorder.delivered(SOURCE, Batch())
            recorder.failed(SOURCE, "no answer")
            recorder.failed(SOURCE, "no answer")
            recorder.delivered(SOURCE, Batch())
    kinds = [row for (row,) in database_rows(tmp_path / "r", "SELECT what FROM entry ORDER BY seq")]
    assert kinds[:3] == ["batch", "failure", "batch"]
    assert len(kinds) == 1 + 2 * 50  # each change of its state, and no more


def test_a_replay_is_without_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.recording.database.AT_ONCE_BYTES", 1)
    failing = (FailingPart("sites", "refused", files.NOW),)
    collector = BundleCollector()
    with recorded(tmp_path) as (_, recorder):
        for one in (failing, failing, ()):
            recorder.delivered(SOURCE, Batch(failing=one))
            collector.delivered(SOURCE, Batch(failing=one))
    collector.write(tmp_path / "b", files.about(), lambda job: (), lambda job_id: True)
    assert [one.failing for one in files.replayed(tmp_path / "r")] == [failing, (), None]
    assert [one.failing for one in files.replayed(tmp_path / "b")] == [failing, failing, (), None]


def test_a_batch_that_cannot_be_encoded_costs_itself_only(tmp_path: Path) -> None:
    odd = msgspec.structs.replace(a_span(1), attributes={"x": object()})
    with recorded(tmp_path) as (writer, recorder):
        recorder.delivered(SOURCE, Batch(spans=(odd,), count=1))
        recorder.delivered(SOURCE, files.lines(2))
    assert (writer.refused, recorder.problem) == (1, None)
    assert files.numbers(tmp_path / "r") == [2]


LOGS = ("/var/log/a.log", "/var/log/b.log")
SECONDS = 40


def a_record(log: str, second: int) -> LogRecord:
    text = f"{log[-5]}{second}\n  more of it"
    return LogRecord(log, second + 1, second, Nanos(files.NOW + second * SECOND), 1, "op", {}, text)


@pytest.fixture
def clock() -> ReplayClock:
    return ReplayClock(Nanos(files.NOW + SECONDS * SECOND))


@pytest.fixture
def logs(tmp_path: Path, clock: ReplayClock) -> Iterator[ReplayedLogs]:
    writer = RecordingWriter(tmp_path / "r", files.about(), 1 << 20)
    with writer.together():
        for second in range(SECONDS):
            for log in LOGS:
                kept = Batch(records=(a_record(log, second),))
                writer.put("logfile", log, Item.BATCH, kept, Nanos(files.NOW + second * SECOND))
    writer.close()
    with closing(Recording(tmp_path / "r")) as recording, closing(Worker("test")) as worker:
        yield ReplayedLogs(OpenRecording(recording, worker, clock), lambda: (1, 2))


async def words(log: Log) -> list[str]:
    extent = await log.look()
    page = await log.before(extent.end, 10_000)
    return [line.text for line in page.lines if not line.text.startswith(" ")]


async def test_a_log_is_shown_up_to_the_time_of_the_clock(logs: ReplayedLogs, clock: ReplayClock) -> None:
    log = logs.open(LOGS[0])
    assert await words(log) == [f"a{second}" for second in range(SECONDS)]
    clock.set(Nanos(files.NOW + 9 * SECOND))
    before = (await log.look()).revision
    assert await words(log) == [f"a{second}" for second in range(10)]
    assert (await log.look()).revision == before
    clock.set(Nanos(files.NOW + 12 * SECOND))
    assert await words(log) == [f"a{second}" for second in range(13)]
    await log.aclose()


async def test_going_back_is_another_revision(logs: ReplayedLogs, clock: ReplayClock) -> None:
    log = logs.merged()
    before = await log.look()
    clock.set(Nanos(files.NOW + 9 * SECOND))
    after = await log.look()
    assert after.revision != before.revision
    assert after.end < before.end


async def test_lines_of_all_logs_are_in_the_order_of_time(logs: ReplayedLogs, clock: ReplayClock) -> None:
    log = logs.merged()
    expected = [f"{name}{second}" for second in range(SECONDS) for name in "ab"]
    assert await words(log) == expected
    page = await log.before((await log.look()).end, 4)
    assert [line.origin for line in page.lines] == [LOGS[0]] * 2 + [LOGS[1]] * 2
    log = logs.merged([LOGS[0]])
    await log.look()
    assert not await log._source.is_changed()  # type: ignore[attr-defined]
    clock.set(Nanos(files.NOW + 3 * SECOND))
    assert await log._source.is_changed()  # type: ignore[attr-defined]


async def test_a_replay_reads_the_end_of_a_log(logs: ReplayedLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_logs, "ENTRIES_AT_FIRST", 10)
    log = logs.open(LOGS[1])
    extent = await log.look()
    assert extent.event == "its end only"
    assert await words(log) == [f"b{second}" for second in range(SECONDS - 10, SECONDS)]
