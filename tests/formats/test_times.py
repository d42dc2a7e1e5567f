"""Times as logs and `date` write them: without a year, in any language and zone."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.job_output import read_date
from jobtui.formats.parser import MONTHS, SKEW, TimeReader, latest
from jobtui.model.clock import SECOND, Nanos, to_rfc3339


def nanos(text: str) -> Nanos:
    return of(datetime.fromisoformat(text).replace(tzinfo=UTC))


def of(at: datetime) -> Nanos:
    return Nanos(int(at.timestamp()) * SECOND)


def written(at: datetime) -> str:
    return f"{MONTHS[at.month - 1]} {at.day:02} {at:%H:%M:%S}"


@pytest.mark.parametrize(
    ("text", "newest", "expected"),
    [
        ("Nov 20 20:34:30", "2026-11-20T21:00:00", "2026-11-20T20:34:30"),
        ("Nov  2 20:34:30", "2026-11-20T21:00:00", "2026-11-02T20:34:30"),
        ("Nov 20 21:09:00", "2026-11-20T21:00:00", "2026-11-20T21:09:00"),
        ("Nov 20 21:11:00", "2026-11-20T21:00:00", "2025-11-20T21:11:00"),
        ("Dec 31 23:59:59", "2027-01-01T00:00:00", "2026-12-31T23:59:59"),
        ("Dec 31 23:59:59", "2026-12-31T23:59:59", "2026-12-31T23:59:59"),
        ("Jan  1 00:00:01", "2026-12-31T23:59:59", "2027-01-01T00:00:01"),
        ("Jan  1 00:20:00", "2026-12-31T23:59:59", "2026-01-01T00:20:00"),
        ("Jan  1 00:00:00", "2027-06-01T00:00:00", "2027-01-01T00:00:00"),
        ("Feb 29 12:00:00", "2028-03-01T00:00:00", "2028-02-29T12:00:00"),
        ("Feb 29 12:00:00", "2027-03-01T00:00:00", "2024-02-29T12:00:00"),
        ("Feb 29 12:00:00", "2104-02-28T00:00:00", "2096-02-29T12:00:00"),
        ("Nov 20 20:34:30 30699     0 x.py:1:f m", "2026-11-20T21:00:00", "2026-11-20T20:34:30"),
    ],
)
def test_the_year_comes_from_what_is_newest(text: str, newest: str, expected: str) -> None:
    assert latest(text, nanos(newest)) == nanos(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Nov 20",
        "Xxx 00 00:00:00",
        "nov 20 20:34:30",
        "Nov 31 20:34:30",
        "Feb 30 20:34:30",
        "Nov 20 24:00:00",
        "Nov 20 20:60:00",
        "Nov 20 20:34:60",
        "Nov 00 20:34:30",
        "Nov xx 20:34:30",
        "2026-11-20T20:34:30",
    ],
)
def test_what_is_no_time_has_none(text: str) -> None:
    assert latest(text, nanos("2026-11-20T21:00:00")) is None


MOMENTS = st.integers(631_152_000, 7_258_118_400).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
"""Whole seconds of 1990 to 2199."""


@given(MOMENTS, st.integers(0, 364 * 86_400))
def test_any_time_of_the_last_year_is_read_back(newest: datetime, age_s: int) -> None:
    at = newest - timedelta(seconds=age_s)
    assert latest(written(at), of(newest)) == of(at)


@given(MOMENTS, MOMENTS)
def test_a_time_is_never_further_ahead_than_clocks_differ(newest: datetime, at: datetime) -> None:
    found = latest(written(at), of(newest))
    assert found is not None
    assert found <= of(newest) + SKEW


@given(st.one_of(st.text(max_size=40), MOMENTS.map(written)), st.integers(-(2**70), 2**70))
def test_no_text_raises(text: str, newest: int) -> None:
    found = latest(text, Nanos(newest))
    assert found is None or found <= newest + SKEW


def test_a_reader_follows_both_the_text_and_what_is_newest() -> None:
    times = TimeReader()
    first, later = nanos("2026-11-20T21:00:00"), nanos("2027-11-20T21:00:00")
    assert times.read("Nov 20 20:00:00", first) == nanos("2026-11-20T20:00:00")
    assert times.read("Nov 20 20:00:00", later) == nanos("2027-11-20T20:00:00")
    assert times.read("Nov 20 20:00:01", later) == nanos("2027-11-20T20:00:01")
    assert times.read("no time at all..", later) is None
    assert times.read("Nov 20 20:00:01", later) == nanos("2027-11-20T20:00:01")


@pytest.mark.parametrize(
    ("text", "at", "is_local"),
    [
        ("Fri Jul 19 04:22:22 UTC 2024", "2024-07-19T04:22:22Z", False),
        ("Fri Jul  9 04:22:22 CDT 2024", "2024-07-09T09:22:22Z", False),
        ("Fri 19 Jul 2024 04:22:22 PM UTC", "2024-07-19T16:22:22Z", False),
        ("Fri 19 Jul 2024 12:22:22 AM UTC", "2024-07-19T00:22:22Z", False),
        ("Fr 19. Jul 04:22:22 CEST 2024", "2024-07-19T02:22:22Z", False),
        ("ven. 19 juil. 2024 04:22:22 CEST", "2024-07-19T02:22:22Z", False),
        ("mar 03 mar 2026 10:00:00 CET", "2026-03-03T09:00:00Z", False),
        ("2024年 7月 19日 金曜日 04:22:22 JST", "2024-07-18T19:22:22Z", False),
        ("Fri Jul 19 04:22:22 +03 2024", "2024-07-19T01:22:22Z", False),
        ("Fri Jul 19 04:22:22 -0530 2024", "2024-07-19T09:52:22Z", False),
        ("2024-07-18T23:19:40-05:00", "2024-07-19T04:19:40Z", False),
        ("2024-07-18 23:19:40.123Z", "2024-07-18T23:19:40.123000Z", False),
        ("2026/11/20 20:40:07", "2026-11-20T20:40:07Z", True),
        ("Sat Jul 19 04:22:22 XYZT 2024", "2024-07-19T04:22:22Z", True),
        ("Thu Dec 31 23:59:60 UTC 2026", "2026-12-31T23:59:59Z", False),
    ],
)
def test_a_date_is_read(text: str, at: str, is_local: bool) -> None:
    moment = read_date(text)
    assert moment is not None
    assert (to_rfc3339(moment.at), moment.is_local) == (at, is_local)


@pytest.mark.parametrize(
    "text", ["", "x", "12:00:00", "Fri Feb 31 04:22:22 UTC 2024", "Fri Jul 19 25:00:00 UTC 2024", "9" * 500]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert read_date(text) is None


@given(st.text(alphabet="0123456789:/-+. TZUCJulFri年", max_size=70))
def test_no_text_makes_it_raise(text: str) -> None:
    read_date(text)
