"""Records as JSON: what a script gets is what was there, masked, and always JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import Skip, SourceHealth
from jobtui.model.jobs import JobDetail
from jobtui.render.json_output import (
    detail_record,
    document,
    document_lines,
    dumps,
    job_record,
    op_record,
    source_record,
    step_record,
    time_or_null,
)
from tests.builders import HOSTILE, a_job, a_step, an_op
from tests.conftest import NOW

SECRET = "0123456789abcdefghijABCDEFGHIJ42"


def read(lines: Any) -> Any:
    text = "\n".join(lines)
    assert text.isascii()
    return json.loads(text)


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (None, None),
        (0, "1970-01-01T00:00:00Z"),
        (1_795_206_892_250_000_000, "2026-11-20T20:34:52.250000Z"),
        (10**30, None),
        (-(10**30), None),
    ],
)
def test_a_time_is_rfc_3339_or_null(at: int | None, text: str | None) -> None:
    assert time_or_null(None if at is None else Nanos(at)) == text


def test_a_document_begins_with_its_schema_and_ends_with_its_sources() -> None:
    found = document("jobs", {"jobs": []}, [SourceHealth(name="a", kind="b")], NOW, partial=True)
    assert [*found] == ["schema", "jobs", "partial", "sources"]
    assert found["schema"] == "jobtui/jobs/1"


def test_each_record_has_a_line() -> None:
    lines = [
        *document_lines({"schema": "x", "jobs": [{"id": "a"}, {"id": "b"}], "empty": [], "one": {"a": [1]}})
    ]
    assert [line for line in lines if "id" in line] == ['    {"id": "a"},', '    {"id": "b"}']
    assert read(lines) == {"schema": "x", "jobs": [{"id": "a"}, {"id": "b"}], "empty": [], "one": {"a": [1]}}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1), _JSON, max_size=4))
def test_what_is_written_is_read_back(found: dict[str, object]) -> None:
    assert read(document_lines(found)) == found


def test_numbers_that_json_lacks_become_null() -> None:
    found = {"a": float("nan"), "b": [{"c": float("inf")}, 1.5], "d": (float("-inf"),)}
    assert json.loads(dumps(found)) == {"a": None, "b": [{"c": None}, 1.5], "d": [None]}


@pytest.mark.parametrize("text", HOSTILE)
def test_outside_text_is_kept_and_drives_nothing(text: str) -> None:
    written = dumps(job_record(a_job(name=text, error=text), NOW))
    assert written.isascii()
    assert written.isprintable()
    assert json.loads(written)["name"] == text


def test_secrets_are_masked_wherever_text_can_be() -> None:
    text = f"agent_id='{SECRET}' token={SECRET}"
    job = a_job(name=text, error=text, message=text, alert=text, app=text, mode=text, native_status=text)
    detail = JobDetail(job=job, runs=(), history=(), native={"token": SECRET, "deep": [{"x": text}]})
    health = SourceHealth(name="a", kind="b", error=text, note=text, last_skips=(Skip(text, text),))
    op = an_op(steps=[a_step(text=text)], run_dir=f"/user/a/agent-local/{SECRET}", error=text)
    for record in (detail_record(detail, NOW), source_record(health, NOW), op_record(op)):
        assert SECRET not in dumps(record)


def test_a_line_that_is_not_counted_yet_has_no_number() -> None:
    assert step_record(a_step(line=-7))["line"] is None


def test_lag_is_the_age_of_what_is_shown() -> None:
    health = SourceHealth(name="a", kind="b", read_at=Nanos(NOW - 3 * SECOND))
    assert source_record(health, NOW)["lag_s"] == 3.0
