"""Records of a db directory, as a source and as jobs: what is found, in which order, what can be wrong."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from jobtui.backends.sirepo import records
from jobtui.backends.sirepo import source as sirepo_source
from jobtui.backends.sirepo.files import MAX_BYTES, RecordTooLarge, read_file
from jobtui.backends.sirepo.records import NotARecord, read_detail, read_document, read_job
from jobtui.backends.sirepo.source import JobFiles, SirepoDb
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SKIPS_NAMED, SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail, JobStatus
from jobtui.transport.worker import Worker
from tests.backends.rigs import Db, a_record, captured, to_bytes
from tests.builders import job_id as jid
from tests.builders import some
from tests.loopback import nobody
from tests.offenders import check_all, each
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


async def test_the_reasons_for_which_a_job_was_seen_to_wait_are_given(db: Db, reader: Reader) -> None:
    told = []
    for message in (None, "await=cpu_slot", "await=cpu_slot", ..., "await=op_slot", None):
        db.put(jid(1), status="running" if message is ... else "pending", jobStatusMessage=message)
        told.append([seen.reason for batch in await reader.drain() for seen in batch.reasons])
    assert told == [[], ["pending", "await=cpu_slot"], [], [], [], ["await=op_slot", "pending"]]


async def test_the_first_records_come_soon(db: Db, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
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
    async with aclosing(SirepoDb(db.root, 3)) as source:
        batch = await source.poll(None)
        assert ([job.id for job in batch.jobs], batch.more) == ([jid(age) for age in range(3)], True)


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


async def test_other_names_are_ignored(db: Db, reader: Reader) -> None:
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
async def test_an_invalid_id_opens_nothing(hostile: str, db: Db, reader: Reader) -> None:
    db.put(jid(1))
    (db.root / "secret.json").write_bytes(to_bytes(a_record(jid(1))))
    assert await reader.source.detail(JobId(hostile)) is None


async def test_a_change_during_the_set_up_of_the_watch_is_not_missed(db: Db, reader: Reader) -> None:
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
async def test_a_file_that_is_not_a_record_costs_only_itself(why: str, db: Db, reader: Reader) -> None:
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
    with pytest.raises(RecordTooLarge):
        read_file("/dev/zero", None)


async def test_a_file_that_changes_or_goes_after_the_listing_is_not_a_fault(db: Db) -> None:
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


async def test_many_faults_are_counted_and_a_few_named(db: Db) -> None:
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
    ("supervisor-job", SourceMissing, "name its parent"),
    ("odd", SourceMissing, "has no supervisor-job directory: it is not the db directory of Sirepo"),
    ("new", SourceMissing, "or its supervisor has not run yet"),
    ("a\x00b", SourceUnreachable, ""),
    ("x" * 5000, SourceUnreachable, ""),
]


@pytest.mark.parametrize(("name", "kind", "text"), NO_DB)
async def test_other_roots_are_refused(tmp_path: Path, name: str, kind: type[SourceError], text: str) -> None:
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


SOURCE = "/srv/sirepo/db"
MTIME = 1_800_000_000 * SECOND
JID = jid()


def at(seconds: float) -> Nanos:
    return Nanos(round(seconds * 1_000_000) * 1_000)


def read(data: bytes, job_id: JobId = JID) -> tuple[Job, str | None]:
    job, fault = read_job(data, job_id, MTIME, SOURCE)
    assert job is not None, fault
    return job, fault


def job_of(**fields: Any) -> Job:
    job, fault = read(to_bytes(a_record(JID, **fields)))
    assert fault is None
    return job


def detail_of(data: bytes, job_id: JobId = JID) -> JobDetail:
    return read_detail(data, job_id, MTIME, SOURCE, f"{SOURCE}/x.json")


def run(status: str, serial: int, **fields: Any) -> dict[str, Any]:
    return {
        "computeJobQueued": serial, "computeJobSerial": serial, "computeJobStart": serial and serial + 1,
        "lastUpdateTime": serial and serial + 5, "status": status, "jobRunMode": "sequential",
    } | fields  # fmt: skip


WORDS = {"error": JobStatus.FAILED, "job_run_purged": JobStatus.PURGED}


def test_every_captured_record_is_read_without_fault() -> None:
    def check(path: Path) -> None:
        document = json.loads(path.read_bytes())
        job, fault = read(path.read_bytes(), JobId(path.stem))
        uid, simulation, model = path.stem.split("-")
        assert fault is None
        assert (job.id, job.owner, job.model, job.app) == (path.stem, uid, model, document["simulationType"])
        assert job.native_status == document["status"]
        said = (document["error"], document["simName"], document["jobRunMode"])
        assert (job.error, job.name, job.mode) == said
        assert job.status == WORDS.get(document["status"], document["status"])
        assert job.is_quasi == (simulation == "_1_stlss")
        assert (job.queued_at or 0) == document["computeJobQueued"] * SECOND
        assert (job.started_at or 0) == document["computeJobStart"] * SECOND
        assert job.written_at == (at(document["dbUpdateTime"]) if "dbUpdateTime" in document else MTIME)
        assert (job.percent is None) == ("parallelStatus" not in document)
        serials = [entry["computeJobSerial"] for entry in [*document["history"], document]]
        assert job.runs == len(serials) - serials.count(0)
        detail = detail_of(path.read_bytes(), job.id)
        assert (detail.job, detail.native) == (job, document)
        assert [entry.native_status for entry in detail.history] == [h["status"] for h in document["history"]]
        assert [run.number for run in detail.runs] == list(range(1, job.runs + 1))
        queued = [run.queued_at or 0 for run in detail.runs]
        assert all(queued)
        assert queued == sorted(queued)

    check_all(check, captured())


STATUSES = {
    "missing": JobStatus.MISSING, "pending": JobStatus.PENDING, "running": JobStatus.RUNNING,
    "completed": JobStatus.COMPLETED, "canceled": JobStatus.CANCELED, "error": JobStatus.FAILED,
    "job_run_purged": JobStatus.PURGED, "unknown": JobStatus.UNKNOWN, "Completed": JobStatus.UNKNOWN,
    "": JobStatus.UNKNOWN,
}  # fmt: skip
WRITTEN, UPDATED = at(1795206880.25), at(1795206879)
ENDS: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(("completed", "error", "canceled"), (WRITTEN, UPDATED, MTIME)),  # with the last write
    **dict.fromkeys(("missing", "job_run_purged"), (UPDATED, UPDATED, None)),  # a reset is written later
    **dict.fromkeys(("pending", "running", "unknown"), (None, None, None)),
}
"""When a run with this status ended: by all times, without that of the write, and without any."""
TIMES: list[dict[str, object]] = [{}, {"dbUpdateTime": ...}, {"dbUpdateTime": ..., "lastUpdateTime": 0}]
NEVER = {"computeJobSerial": 0, "computeJobQueued": 0, "computeJobStart": 0, "lastUpdateTime": 0}
NO_TIMES = dict.fromkeys(("ended_at", "queued_at", "started_at", "updated_at"))
FIELDS: list[tuple[Mapping[str, object], Mapping[str, object]]] = [
    *(({"status": word}, {"status": STATUSES[word], "native_status": word}) for word in STATUSES),
    *(
        ({"status": word, **times}, {"ended_at": end})
        for word, ends in ENDS.items()
        for times, end in zip(TIMES, ends, strict=True)
    ),
    ({"status": "canceled", **NEVER}, {**NO_TIMES, "runs": 0}),
    ({"computeModel": ..., "uid": ...}, {"model": "heightWeightReport", "owner": "EPRSqtUW"}),
    ({"computeJobStart": 1795206873.75}, {"started_at": at(1795206873)}),
    (
        {**dict.fromkeys(a_record(JID)), "status": "completed", "parallelStatus": None},
        {"started_at": None, "name": None, "owner": "EPRSqtUW"},
    ),
]


@each(*FIELDS)
def test_fields_of_a_record(fields: Mapping[str, object], wanted: Mapping[str, object]) -> None:
    job = job_of(**fields)
    assert {name: getattr(job, name) for name in wanted} == wanted


def test_the_runs_of_a_job_come_from_its_history() -> None:
    record = a_record(
        JID,
        history=[
            run("missing", 0),
            run("completed", 1795200000, alert="look"),
            run("canceled", 1795201000, canceledAfterSecs=20),
            run("job_run_purged", 0),
            run("error", 1795202000, error="bad", driverDetails={"type": "DockerDriver", "host": "v1"}),
        ],
    )
    detail = detail_of(to_bytes(record))
    assert [r.number for r in detail.runs] == [1, 2, 3, 4]
    assert [entry.number for entry in detail.history] == [0, 1, 2, 0, 3]
    completed, canceled, failed, present = detail.runs
    assert (completed.ended_at, completed.alert) == (at(1795200005), "look")
    assert (canceled.ended_at, canceled.limit_s) == (None, 20.0)
    assert (failed.error, failed.driver, failed.host) == ("bad", "DockerDriver", "v1")
    assert (present.status, present.ended_at) == (JobStatus.COMPLETED, detail.job.ended_at)
    assert detail.job.runs == 4


ODD: dict[str, list[object]] = {
    "computeJobStart": ["soon", -1, 10**30, 1e300, True, [], {}], "dbUpdateTime": ["now", -1.0, 1e300],
    "status": [5, None, ["completed"]], "simName": [7, {"a": 1}], "error": [["x"], 0],
    "history": ["none", 3, {"computeJobSerial": 1}], "parallelStatus": [0, "half", []],
    "driverDetails": ["DockerDriver", []], "computeModel": [9, "x" * 300], "canceledAfterSecs": ["1h", -5],
    "uid": [12345678],
}  # fmt: skip


@each(*[(field, value) for field in ODD for value in ODD[field]])
def test_one_odd_field_costs_that_field_only(field: str, value: object) -> None:
    job, fault = read(to_bytes(a_record(JID, **{field: value})))
    plain = job_of()
    assert fault is not None
    assert field in fault
    for kept in {"id", "app", "queued_at", "updated_at", "mode", "plan"}:
        assert getattr(job, kept) == getattr(plain, kept)
    assert field == "status" or job.status == JobStatus.COMPLETED
    assert field == "simName" or job.name == plain.name


def test_nested_fields_are_read_and_odd_ones_counted() -> None:
    record = a_record(
        JID,
        parallelStatus={"percentComplete": 12.5, "frameCount": "many"},
        driverDetails={"type": 1, "host": "v1.radia.run"},
        history=[run("completed", 1795200000), "torn", run("error", 1795201000), {"computeJobSerial": "x"}],
    )
    job, fault = read(to_bytes(record))
    assert (job.percent, job.frames, job.driver, job.host, job.runs) == (12.5, None, None, "v1.radia.run", 3)
    for name in ("parallelStatus.frameCount", "driverDetails.type", "history[1]", "history[3].computeJobS"):
        assert name in (fault or "")
    fault = read(to_bytes(a_record(JID, history=[{"computeJobSerial": "x"} for _ in range(1000)])))[1] or ""
    assert fault.count("history[") == records.FAULTS_NAMED
    assert fault.endswith("and 995 more")


def test_long_texts_are_cut_in_the_job_and_the_record_has_everything() -> None:
    text = "y" * (records.LONGEST_TEXT + 1)
    odd = {"yetAnother": {"deep": [1, None]}, "queuedState": None}
    data = to_bytes(a_record(JID, error=text, simName=text, alert=text, jobStatusMessage=text, **odd))
    detail, longest = detail_of(data), records.LONGEST_TEXT
    job = detail.job
    assert [len(kept or "") for kept in (job.error, job.name, job.alert, job.message)] == [longest] * 4
    assert detail.native["error"] == text
    assert {name: detail.native[name] for name in odd} == odd


WHOLE = to_bytes(a_record(JID))
NOT_RECORDS = [
    (b"", "empty"), (b"\0" * 600, "NUL"), (b" \n", "blank"), (WHOLE[:300], "not valid JSON"),
    (WHOLE + b"}", "not valid JSON"), (WHOLE + b"\0\0", "not valid JSON"), (b"[]", "a list"),
    (b"null", "null"), (b"true", "true or false"), (b'"x"', "a text"), (b"17", "a number"),
    (b"1.5", "a number"), (b"[" * 100_000, "nested too deep"), (b'{"a":' * 100_000, "nested too deep"),
    (b"\xff\xfe\x00", "not valid JSON"),
]  # fmt: skip


@each(*NOT_RECORDS)
def test_bytes_that_are_not_a_record_say_why(data: bytes, why: str) -> None:
    job, fault = read_job(data, JID, MTIME, SOURCE)
    assert job is None
    assert why in (fault or "")
    with pytest.raises(NotARecord, match=why):
        detail_of(data)


@each(
    (b"{}", {"status": JobStatus.UNKNOWN}, "no status"),
    (WHOLE.replace(b"Scooby", b"Sc\xff\xfeby"), {"name": "Sc\ufffd\ufffdby Doo"}, "not UTF-8"),
    (WHOLE.replace(b"Scooby", rb"S\ud800\u00fc"), {"name": "S\ufffdü Doo"}, ""),
    (b"\xef\xbb\xbf" + WHOLE, {"name": "Scooby Doo"}, ""),
    (to_bytes(a_record(jid(1))), {"id": JID}, jid(1)),
    (to_bytes(a_record(jid(1), simName=3)), {"id": JID}, "another job"),
)
def test_odd_bytes_cost_themselves_only(data: bytes, wanted: dict[str, object], said: str) -> None:
    job, fault = read(data)
    assert {name: getattr(job, name) for name in wanted} == wanted
    assert said in (fault or "")
    assert msgspec.json.encode(detail_of(data).native)


@each(b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"-" + b"9" * 30)
def test_numbers_that_json_cannot_hold_stay_readable(number: bytes) -> None:
    data = to_bytes(a_record(JID, parallelStatus={"percentComplete": 1.0, "frameCount": 3, "other": 1}))
    odd = data.replace(b'"percentComplete":1.0', b'"percentComplete":' + number)
    job, fault = read(odd)
    assert (job.percent, job.frames) == (None, 3)
    assert "parallelStatus.percentComplete" in (fault or "")
    native = detail_of(odd).native
    assert json.loads(msgspec.json.encode(native))["parallelStatus"]["percentComplete"] == number.decode()


def test_deep_nesting_is_cut() -> None:
    depth = records.DEEPEST + 10
    document, _ = read_document(b'{"a":' + b"[" * depth + b"]" * depth + b"}")
    inner: object = document["a"]
    levels = 1
    while isinstance(inner, list):
        inner, levels = inner[0], levels + 1
    assert (inner, levels) == (records.TOO_DEEP, records.DEEPEST)
