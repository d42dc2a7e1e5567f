"""What is wrong with a record costs no more than that, and is told."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.sirepo_json import DEEPEST, TOO_DEEP, NotARecord, read_document
from jobtui.backends.sirepo_record import FAULTS_NAMED, LONGEST_TEXT, read_job
from jobtui.model.jobs import JobStatus
from tests.backends.db_files import a_record, jid, to_bytes
from tests.backends.record_reading import JID, MTIME, SOURCE, detail_of, job_of, read, run

ODD: dict[str, list[object]] = {
    "computeJobStart": ["soon", -1, 10**30, 1e300, True, [], {}],
    "dbUpdateTime": ["now", -1.0, 1e300],
    "status": [5, None, ["completed"]],
    "simName": [7, {"a": 1}],
    "error": [["x"], 0],
    "history": ["none", 3, {"computeJobSerial": 1}],
    "parallelStatus": [0, "half", []],
    "driverDetails": ["DockerDriver", []],
    "computeModel": [9, "x" * 300],
    "canceledAfterSecs": ["1h", -5],
    "uid": [12345678],
}


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


def test_what_is_nested_is_kept_as_far_as_it_makes_sense() -> None:
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


def test_many_oddities_are_counted_not_listed() -> None:
    record = a_record(JID, history=[{"computeJobSerial": "x"} for _ in range(1000)])
    fault = read(to_bytes(record))[1] or ""
    assert fault.count("history[") == FAULTS_NAMED
    assert fault.endswith("and 995 more")


def test_another_id_than_that_of_the_file_name_is_told() -> None:
    job, fault = read(to_bytes(a_record(jid(1))))
    assert job.id == JID
    assert jid(1) in (fault or "")
    assert "computeJid" in (read(to_bytes(a_record(jid(1), simName=3)))[1] or "")


def test_long_texts_are_cut_in_the_job_and_whole_in_the_record() -> None:
    text = "y" * (LONGEST_TEXT + 1)
    data = to_bytes(a_record(JID, error=text, simName=text, alert=text, jobStatusMessage=text))
    detail = detail_of(data)
    for kept in (detail.job.error, detail.job.name, detail.job.alert, detail.job.message):
        assert kept is not None
        assert len(kept) == LONGEST_TEXT
    assert detail.native["error"] == text


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\0" * 600, "NUL"),
        (b" \n", "blank"),
        (to_bytes(a_record(JID))[:300], "not valid JSON"),
        (to_bytes(a_record(JID)) + b"}", "not valid JSON"),
        (to_bytes(a_record(JID)) + b"\0\0", "not valid JSON"),
        (b"[]", "a list"),
        (b"null", "null"),
        (b"true", "true or false"),
        (b'"x"', "a text"),
        (b"17", "a number"),
        (b"1.5", "a number"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b"\xff\xfe\x00", "not valid JSON"),
    ],
)
def test_what_is_no_record_says_why(data: bytes, why: str) -> None:
    job, fault = read_job(data, JID, MTIME, SOURCE)
    assert job is None
    assert why in (fault or "")
    with pytest.raises(NotARecord, match=why):
        detail_of(data)


def test_an_object_without_a_status_is_a_job_with_a_fault() -> None:
    job, fault = read(b"{}")
    assert (job.status, fault) == (JobStatus.UNKNOWN, "no status")


def test_bytes_that_are_not_utf_8_cost_themselves_only() -> None:
    data = to_bytes(a_record(JID)).replace(b"Scooby", b"Sc\xff\xfeby")
    job, fault = read(data)
    assert job.name == "Sc\ufffd\ufffdby Doo"
    assert "not UTF-8" in (fault or "")


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"-" + b"9" * 30])
def test_numbers_that_json_cannot_hold_stay_readable(number: bytes) -> None:
    data = to_bytes(a_record(JID, parallelStatus={"percentComplete": 1.0, "frameCount": 3, "other": 1}))
    odd = data.replace(b'"percentComplete":1.0', b'"percentComplete":' + number)
    job, fault = read(odd)
    assert (job.percent, job.frames) == (None, 3)
    assert "parallelStatus.percentComplete" in (fault or "")
    native = detail_of(odd).native
    assert json.loads(msgspec.json.encode(native))["parallelStatus"]["percentComplete"] == number.decode()


def test_half_a_surrogate_pair_is_shown_and_can_be_written_again() -> None:
    data = to_bytes(a_record(JID)).replace(b"Scooby", rb"S\ud800\u00fc")
    job, _ = read(data)
    assert job.name == "S\ufffdü Doo"
    assert msgspec.json.encode(detail_of(data).native)


def test_a_byte_order_mark_is_no_fault() -> None:
    assert read(b"\xef\xbb\xbf" + to_bytes(a_record(JID))) == (job_of(), None)


def test_deep_nesting_is_cut() -> None:
    depth = DEEPEST + 10
    document, _ = read_document(b'{"a":' + b"[" * depth + b"]" * depth + b"}")
    inner: object = document["a"]
    levels = 1
    while isinstance(inner, list):
        inner, levels = inner[0], levels + 1
    assert (inner, levels) == (TOO_DEEP, DEEPEST)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    job, fault = read_job(data, JID, MTIME, SOURCE)
    assert job is not None or fault


@given(st.data())
def test_no_damage_to_a_record_raises(data: st.DataObject) -> None:
    whole = to_bytes(a_record(JID, history=[run("completed", 1795200000)], parallelStatus={"frameCount": 2}))
    position = data.draw(st.integers(0, len(whole)))
    damaged = whole[:position] + data.draw(st.binary(max_size=4)) + whole[position + 1 :]
    job, fault = read_job(damaged, JID, MTIME, SOURCE)
    assert job is not None or fault


@given(st.dictionaries(st.sampled_from([*sorted(a_record(JID)), "parallelStatus"]), JSON_VALUES, max_size=6))
def test_no_values_raise_and_all_can_be_written_again(fields: dict[str, object]) -> None:
    data = json.dumps(a_record(JID, **fields)).encode("ascii")
    job, _ = read(data)
    detail = detail_of(data)
    assert detail.job == job
    assert msgspec.json.encode(job)
    assert msgspec.json.encode(detail)
