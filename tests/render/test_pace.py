from jobtui.analysis.counts import MINUTES, STILL, Flow, Pace
from jobtui.render.spans import Line, pace_line


def words(line: Line) -> str:
    return "".join(span.text for span in line)


def flow(*counts: int, per_minute: int = 0) -> Flow:
    return Flow((0,) * (MINUTES - len(counts)) + counts, per_minute)


def test_nothing_is_said_when_nothing_comes_or_ends() -> None:
    assert pace_line(STILL, with_ends=True) == ()


def test_bars_and_numbers_of_both_are_on_one_scale() -> None:
    pace = Pace(flow(0, 1, 40, 80, per_minute=1_041), flow(20, 0, per_minute=0))
    assert words(pace_line(pace, with_ends=True)) == "   ▁▁▁▁▁▁▁▂▅█ 1,041 in  ▁▁▁▁▁▁▁▁▃▁ 0 out/min"
    assert words(pace_line(pace, with_ends=False)) == "   ▁▁▁▁▁▁▁▂▅█ 1,041 in/min"


def test_when_only_ends_are_told_arrivals_are_none() -> None:
    pace = Pace(flow(), flow(5, per_minute=5))
    assert words(pace_line(pace, with_ends=False)) == f"   {'▁' * MINUTES} 0 in/min"
