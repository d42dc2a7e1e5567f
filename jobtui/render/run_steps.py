"""The steps of two runs beside each other as lines."""

from collections.abc import Iterator, Sequence

from jobtui.analysis.run_steps import StepPair, Took
from jobtui.render.lanes import SHORT_CELLS, SHORT_NAMES
from jobtui.render.spans import Span
from jobtui.render.text import NONE, duration, fit, show

TIME_CELLS = 9
MARK = "  ◂ here they part"
SLOWER = "  ◂ slower"
LEAST_CELLS = 16
"""Fewest cells for the words of a step."""


def step_lines(pairs: Sequence[StepPair], numbers: tuple[int, int], cells: int) -> Iterator[Span]:
    """A heading and a line for each step, no wider than `cells`; what is alike steps back."""
    longest = max((len(_words(pair)) for pair in pairs), default=0)
    words = max(LEAST_CELLS, min(longest, cells - 2 * TIME_CELLS - len(MARK)))
    heads = "".join(fit(f"RUN {number}", TIME_CELLS, align="right") for number in numbers)
    yield Span(fit(f"{fit('STEP', words)}{heads}", cells).rstrip(), "heading")
    for pair in pairs:
        times = "".join(_time(took) for took in (pair.left, pair.right))
        mark = MARK if pair.parts else SLOWER if pair.component and pair.is_slower else ""
        yield Span(fit(f"{fit(_words(pair), words)}{times}{mark}", cells).rstrip(), _style(pair))


def _words(pair: StepPair) -> str:
    """Who and what, and how often where that is not once."""
    if pair.component is None:
        return show(pair.text)
    counts = [took.times if took else 0 for took in (pair.left, pair.right)]
    often = f" ×{counts[0]} ×{counts[1]}" if max(counts) > 1 else ""
    return f"  {fit(SHORT_NAMES[pair.component], SHORT_CELLS)}{show(pair.text)}{often}"


def _time(took: Took | None) -> str:
    text = NONE if took is None else "" if took.seconds is None else duration(took.seconds)
    return fit(text, TIME_CELLS, align="right")


def _style(pair: StepPair) -> str:
    if pair.parts:
        return "warning"
    if pair.component is None:
        return "strong"
    return "" if pair.is_in_one or pair.is_slower else "dim"
