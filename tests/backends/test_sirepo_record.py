"""A record's bytes to a Job, its runs and what is wrong with it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobtui.backends.sirepo import records
from jobtui.backends.sirepo.records import NotARecord, read_detail, read_document, read_job
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail, JobStatus
from tests.backends.db_files import a_record, captured, to_bytes
from tests.builders import job_id as jid
from tests.offenders import check_all

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


@pytest.mark.parametrize(("fields", "wanted"), FIELDS)
def test_fields_of_a_record(fields: Mapping[str, object], wanted: Mapping[str, object]) -> None:
    job = job_of(**fields)
    assert {name: getattr(job, name) for name in wanted} == wanted


def test_the_runs_of_a_job_are_told_apart_from_its_history() -> None:
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


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in ODD for value in ODD[field]])
def test_one_odd_field_costs_that_field_only(field: str, value: object) -> None:
    job, fault = read(to_bytes(a_record(JID, **{field: value})))
    plain = job_of()
    assert fault is not None
    assert field in fault
    for kept in {"id", "app", "queued_at", "updated_at", "mode", "plan"}:
        assert getattr(job, kept) == getattr(plain, kept)
    assert field == "status" or job.status == JobStatus.COMPLETED
    assert field == "simName" or job.name == plain.name


def test_what_is_nested_is_kept_as_far_as_it_can_be_and_oddities_counted() -> None:
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
NO_RECORDS = [
    (b"", "empty"), (b"\0" * 600, "NUL"), (b" \n", "blank"), (WHOLE[:300], "not valid JSON"),
    (WHOLE + b"}", "not valid JSON"), (WHOLE + b"\0\0", "not valid JSON"), (b"[]", "a list"),
    (b"null", "null"), (b"true", "true or false"), (b'"x"', "a text"), (b"17", "a number"),
    (b"1.5", "a number"), (b"[" * 100_000, "nested too deep"), (b'{"a":' * 100_000, "nested too deep"),
    (b"\xff\xfe\x00", "not valid JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "why"), NO_RECORDS)
def test_what_is_no_record_says_why(data: bytes, why: str) -> None:
    job, fault = read_job(data, JID, MTIME, SOURCE)
    assert job is None
    assert why in (fault or "")
    with pytest.raises(NotARecord, match=why):
        detail_of(data)


@pytest.mark.parametrize(
    ("data", "wanted", "said"),
    [
        (b"{}", {"status": JobStatus.UNKNOWN}, "no status"),
        (WHOLE.replace(b"Scooby", b"Sc\xff\xfeby"), {"name": "Sc\ufffd\ufffdby Doo"}, "not UTF-8"),
        (WHOLE.replace(b"Scooby", rb"S\ud800\u00fc"), {"name": "S\ufffdü Doo"}, ""),
        (b"\xef\xbb\xbf" + WHOLE, {"name": "Scooby Doo"}, ""),
        (to_bytes(a_record(jid(1))), {"id": JID}, jid(1)),
        (to_bytes(a_record(jid(1), simName=3)), {"id": JID}, "computeJid"),
    ],
)
def test_odd_bytes_cost_themselves_only(data: bytes, wanted: dict[str, object], said: str) -> None:
    job, fault = read(data)
    assert {name: getattr(job, name) for name in wanted} == wanted
    assert said in (fault or "")
    assert msgspec.json.encode(detail_of(data).native)


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"-" + b"9" * 30])
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
