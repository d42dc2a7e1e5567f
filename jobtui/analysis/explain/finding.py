"""What a rule gives when it applies, and how sure a rule may be."""

from collections.abc import Callable
from typing import NamedTuple

from jobtui.analysis.explain.case import Case
from jobtui.analysis.explain.flow import Mark
from jobtui.model.ops import Step
from jobtui.model.verdicts import Code, NextStep

CERTAIN = 0.97
"""A line or record says it in so many words."""
SURE = 0.9
"""It follows from lines that were read, and nothing speaks against it."""
STRONG = 0.85
"""It follows from what one side wrote, where the other one is silent."""
LIKELY = 0.75
"""It fits, and something that would prove it was not seen."""
TOLD = 0.7
"""The record says so, and no line about it was read."""
PLAUSIBLE = 0.6
"""The record alone allows it, and other things too."""
GUESS = 0.4
"""Nothing speaks for it but that it is frequent."""


class Finding(NamedTuple):
    """A verdict before it is checked for blind spots.

    `steps` are the lines it rests on; `missing` the step that did not come, `limit_s` how long it may take.
    `doubts` say in words what would have made it surer. `silent_since` is the line after which nothing came,
    where that is what it rests on: it counts for less when the log itself goes on no longer.
    """

    code: Code
    sentence: str
    confidence: float
    steps: tuple[Step | None, ...] = ()
    missing: Mark | None = None
    limit_s: float | None = None
    doubts: tuple[str, ...] = ()
    silent_since: Step | None = None


class Said(NamedTuple):
    """What is said of a job whose system tells its state by itself; Sirepo's take a `Finding`."""

    code: Code
    sentence: str
    confidence: float
    next: tuple[NextStep, ...] = ()
    doubts: tuple[str, ...] = ()


Rule = Callable[[Case], Finding | None]
"""Looks at a case; None when it does not apply."""
