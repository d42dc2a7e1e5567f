import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.moments import parse_moment
from jobtui.analysis.time_words import age, duration, parse_duration
from jobtui.model.clock import SECOND, Nanos, to_rfc3339

NOW = Nanos(1_795_207_531 * SECOND)
"""2026-11-20 20:45:31 UTC"""


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("14:00", "2026-11-20T14:00:00Z", "2026-11-20T14:01:00Z"),
        ("9:05", "2026-11-20T09:05:00Z", "2026-11-20T09:06:00Z"),
        ("14:00:30", "2026-11-20T14:00:30Z", "2026-11-20T14:00:31Z"),
        ("14:00:30.25", "2026-11-20T14:00:30.250000Z", "2026-11-20T14:00:30.250000Z"),
        ("23:00", "2026-11-19T23:00:00Z", "2026-11-19T23:01:00Z"),
        ("14:00Z", "2026-11-20T14:00:00Z", "2026-11-20T14:01:00Z"),
        ("14:00+05:30", "2026-11-20T08:30:00Z", "2026-11-20T08:31:00Z"),
        ("2026-11-20", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"),
        ("2027-01-01", "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"),
        ("2024-02-29T12:00", "2024-02-29T12:00:00Z", "2024-02-29T12:01:00Z"),
        ("2026-11-20 12:00", "2026-11-20T12:00:00Z", "2026-11-20T12:01:00Z"),
        ("2026-11-20T12:00:00-0100", "2026-11-20T13:00:00Z", "2026-11-20T13:00:01Z"),
        ("today", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"),
        ("yesterday", "2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z"),
        ("Yesterday 14:00", "2026-11-19T14:00:00Z", "2026-11-19T14:01:00Z"),
        ("2h", "2026-11-20T18:45:31Z", "2026-11-20T18:45:31Z"),
        ("1d12h", "2026-11-19T08:45:31Z", "2026-11-19T08:45:31Z"),
    ],
)
def test_moments(text: str, start: str, end: str) -> None:
    moment = parse_moment(text)
    assert moment is not None
    span = moment.span(NOW)
    assert (to_rfc3339(span.start), to_rfc3339(span.end)) == (start, end)


def test_moments_without_a_zone_are_in_the_zone_given() -> None:
    moment = parse_moment("01:00")
    assert moment is not None
    # there it is 02:15:31 of the next day
    assert to_rfc3339(moment.span(NOW, 19_800).start) == "2026-11-20T19:30:00Z"
    today = parse_moment("today")
    assert today is not None
    assert to_rfc3339(today.span(NOW, 19_800).start) == "2026-11-20T18:30:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "T",
        "Z",
        "+01:00",
        "24:00",
        "12:60",
        "12:00:60",
        "2026-13-01",
        "2026-02-30",
        "0000-01-01",
        "soon",
        "14",
    ],
)
def test_no_moments(text: str) -> None:
    assert parse_moment(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(
            ("90s", 90),
            ("10m", 600),
            ("2h30m", 9000),
            ("1d", 86400),
            ("3d 2h", 266400),
            ("1w", 604800),
            ("0.5s", 0.5),
        ),
        *(
            ("1H", 3600),
            ("", None),
            ("m", None),
            ("10", None),
            ("-5m", None),
            ("5x", None),
            ("m10", None),
            ("30m2h", None),
        ),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


@settings(deadline=None, max_examples=200)
@given(
    st.text("0123456789:-+TZwdhms. todayesr", max_size=24) | st.text(max_size=12), st.integers(-86400, 86400)
)
def test_anything_may_be_written(text: str, offset_s: int) -> None:
    parse_duration(text)
    moment = parse_moment(text)
    if moment is not None:
        start, end = moment.span(NOW, offset_s)
        assert start <= end


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**7))
def test_shown_lengths_can_be_read_again(seconds: int) -> None:
    for words in (age, duration):
        again = parse_duration(words(seconds))
        assert again is not None
        assert again <= seconds
        assert words(again) == words(seconds)
