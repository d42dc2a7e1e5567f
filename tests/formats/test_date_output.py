"""What `date` prints on workers, whatever their language and zone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.date_output import read_date
from jobtui.model.clock import to_rfc3339


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
