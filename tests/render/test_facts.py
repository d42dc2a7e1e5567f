from typing import Any

import pytest

from jobtui.model.jobs import JobStatus
from jobtui.render.facts import matter, record_line, status_words
from jobtui.render.spans import width_of
from tests.builders import a_job, ago, text_of
from tests.conftest import NOW


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"status": JobStatus.FAILED, "error": "no such breed"}, "no such breed"),
        ({"status": JobStatus.FAILED, "error": None}, "failed, the record does not say of what"),
        ({"status": JobStatus.COMPLETED, "alert": "mind the gap"}, "mind the gap"),
        ({"status": JobStatus.CANCELED, "limit_s": 20.0}, "canceled by its time limit of 20s"),
        ({"status": JobStatus.COMPLETED}, "completed, without an error"),
        ({"status": JobStatus.MISSING}, "never run, or its files are gone"),
        ({}, "running, nothing to say"),
    ],
)
def test_the_one_thing_to_know(fields: dict[str, Any], words: str) -> None:
    assert matter(a_job(**fields), NOW).text == words


def test_a_pending_job_says_what_it_waits_for() -> None:
    job = a_job(status=JobStatus.PENDING, started_at=None, queued_at=ago(3))
    assert matter(job, NOW).text.startswith("waits for ")
    stuck = a_job(status=JobStatus.PENDING, started_at=None, queued_at=ago(400))
    assert matter(stuck, NOW).style == "status.needs_person"
    assert text_of(status_words(stuck, NOW, absolute=False)).startswith("! ○ pending for ")


def test_the_status_with_its_age_time_or_alone() -> None:
    job = a_job(status=JobStatus.FAILED, ended_at=ago(120))
    assert text_of(status_words(job, NOW, absolute=False)) == "✗ failed 2m ago"
    assert text_of(status_words(job, NOW, absolute=True)) == "✗ failed at 20:58:00Z"
    assert text_of(status_words(job, NOW, absolute=None)) == "✗ failed"
    assert text_of(status_words(a_job(), NOW, absolute=True)) == "● running since 20:59:00Z"
    odd = a_job(status=JobStatus.UNKNOWN, native_status="melting")
    assert "melting" in text_of(status_words(odd, NOW, absolute=False))


def test_the_record_in_a_line() -> None:
    line = record_line(a_job(percent=41.0), NOW, 200)
    assert text_of(line).rstrip() == (
        " heights 0 · myapp · heightWeightReport · sequential · user EPRSqtUW · 41%"
        " · queued 2026-11-20 20:58:59Z · waited 1s · runs 1m"
    )
    assert width_of(record_line(a_job(), NOW, 40)) == 40
