"""When recent traces are asked for again."""

import pytest

from jobtui.screens.trace_list import LONGEST_S, NEWS_S, PERIOD_S, rest_s


@pytest.mark.parametrize(
    ("took_s", "has_news", "is_whole", "rests_s"),
    [
        (0.01, False, True, PERIOD_S),
        (0.01, True, True, NEWS_S),
        (20.0, False, True, 200.0),  # a large answer is work for its server
        (20.0, False, False, LONGEST_S),  # silence is none
        (0.01, False, False, PERIOD_S),
    ],
)
def test_servers_are_asked_again_soon_unless_answers_cost_them_much(
    took_s: float, has_news: bool, is_whole: bool, rests_s: float
) -> None:
    assert rest_s(took_s, has_news=has_news, is_whole=is_whole) == rests_s
