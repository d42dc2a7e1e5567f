"""Times as logs and `date` write them: without a year, in any language and zone."""

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.job_output import read_date
from jobtui.model.clock import MONTHS, SECOND, SKEW, Nanos, latest, to_rfc3339

TABLES = tomllib.loads((Path(__file__).parents[1] / "fixtures" / "times.toml").read_text())


def nanos(text: str) -> Nanos:
    return of(datetime.fromisoformat(text).replace(tzinfo=UTC))


def of(at: datetime) -> Nanos:
    return Nanos(int(at.timestamp()) * SECOND)


def written(at: datetime) -> str:
    return f"{MONTHS[at.month - 1]} {at.day:02} {at:%H:%M:%S}"


@pytest.mark.parametrize(("text", "newest", "expected"), TABLES["years"])
def test_the_year_comes_from_what_is_newest(text: str, newest: str, expected: str) -> None:
    assert latest(text, nanos(newest)) == nanos(expected)


@pytest.mark.parametrize("text", TABLES["no_times"])
def test_what_is_no_time_has_none(text: str) -> None:
    assert latest(text, nanos("2026-11-20T21:00:00")) is None


MOMENTS = st.integers(631_152_000, 7_258_118_400).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
"""Whole seconds of 1990 to 2199."""


@given(MOMENTS, st.integers(0, 364 * 86_400 - 1))
def test_any_time_of_the_last_year_is_read_back(newest: datetime, age_s: int) -> None:
    at = newest - timedelta(seconds=age_s)
    assert latest(written(at), of(newest)) == of(at)


@given(MOMENTS, MOMENTS)
def test_a_time_is_never_further_ahead_than_clocks_differ(newest: datetime, at: datetime) -> None:
    found = latest(written(at), of(newest))
    assert found is not None
    assert found <= of(newest) + SKEW


@pytest.mark.parametrize(("text", "at", "is_local"), TABLES["dates"])
def test_a_date_is_read(text: str, at: str, is_local: bool) -> None:
    moment = read_date(text)
    assert moment is not None
    assert (to_rfc3339(moment.at), moment.is_local) == (at, is_local)
