from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.pace import MINUTES, Pulse
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import Job, JobStatus
from tests.builders import a_job

MINUTE = 60 * SECOND
NOW = Nanos(1_795_208_400 * SECOND)
"""The beginning of a minute."""


def came(seconds: float, number: int = 1, ended_s: float | None = None) -> Job:
    """A job that came so long before now, and ended so long before."""
    return a_job(
        number,
        status=JobStatus.RUNNING if ended_s is None else JobStatus.COMPLETED,
        queued_at=Nanos(NOW - round(seconds * SECOND)),
        ended_at=None if ended_s is None else Nanos(NOW - round(ended_s * SECOND)),
    )


def pulse_of(*jobs: Job) -> Pulse:
    pulse = Pulse(lambda: NOW)
    for job in jobs:
        pulse.note(None, job)
    return pulse


def test_arrivals_and_ends_are_told_by_minute() -> None:
    pace = pulse_of(came(30, 1), came(90, 2), came(95, 3, ended_s=20), came(3600, 4, ended_s=65)).pace(NOW)
    assert pace.arrivals.by_minute == (0,) * (MINUTES - 3) + (2, 1, 0)
    assert pace.ends.by_minute == (0,) * (MINUTES - 3) + (1, 1, 0)
    assert (pace.arrivals.per_minute, pace.ends.per_minute) == (1, 1)


def test_a_later_minute_moves_the_bars_on_and_what_is_old_is_let_go() -> None:
    pulse = pulse_of(came(30))
    assert pulse.pace(Nanos(NOW + 3 * MINUTE)).arrivals.by_minute[-5:] == (1, 0, 0, 0, 0)
    assert pulse.pace(Nanos(NOW + MINUTES * MINUTE)).is_still
    assert pulse.pace(NOW).is_still, "it was let go"


def test_the_same_news_again_count_once() -> None:
    pulse = Pulse(lambda: NOW)
    job = came(30)
    pulse.note(None, job)
    for percent in (10.0, 20.0):
        pulse.note(job, msgspec.structs.replace(job, percent=percent))
    assert pulse.pace(NOW).arrivals.per_minute == 1


def test_a_job_that_runs_again_comes_and_ends_again() -> None:
    pulse = Pulse(lambda: NOW)
    steps: Sequence[Job] = [came(50), came(50, ended_s=40), came(30), came(30, ended_s=20)]
    for before, after in zip([None, *steps], steps, strict=False):
        pulse.note(before, after)
    pace = pulse.pace(NOW)
    assert (pace.arrivals.per_minute, pace.ends.per_minute) == (2, 2)


def test_an_end_that_becomes_better_known_counts_once() -> None:
    pulse = Pulse(lambda: NOW)
    steps = [came(200, ended_s=100), came(200, ended_s=20)]
    pulse.note(None, steps[0])
    pulse.note(steps[0], steps[1])
    assert pulse.pace(NOW).ends.by_minute[-3:] == (0, 1, 0)


@pytest.mark.parametrize("seconds", [86_400.0, -86_400.0])
def test_what_is_long_past_or_to_come_is_not_counted(seconds: float) -> None:
    pulse = pulse_of(came(seconds))
    assert pulse.pace(NOW).is_still
    assert not pulse._arrivals


def test_compute_calls_are_not_jobs() -> None:
    assert pulse_of(msgspec.structs.replace(came(30), is_quasi=True)).pace(NOW).is_still


@given(st.lists(st.integers(0, 20 * 60), max_size=50), st.integers(0, 59))
def test_every_arrival_is_in_the_bar_of_its_minute(seconds: list[int], past: int) -> None:
    now = Nanos(NOW + past * SECOND)
    pulse = pulse_of(*(came(s, number) for number, s in enumerate(seconds)))
    minutes = [(NOW - s * SECOND) // MINUTE - NOW // MINUTE + MINUTES - 1 for s in seconds]
    assert pulse.pace(now).arrivals.by_minute == tuple(minutes.count(bar) for bar in range(MINUTES))
