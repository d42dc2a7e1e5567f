"""A line of a log that belongs to a job, as one line: when, where, which op, what. Masked and safe."""

from collections.abc import Iterable, Mapping

from jobtui.analysis.job_lines import JobLine
from jobtui.analysis.timeline import BAD
from jobtui.model.health import SourceHealth
from jobtui.model.ops import Certainty
from jobtui.render.sources import labels
from jobtui.render.spans import Line, Span, fitting
from jobtui.render.text import NONE, clock_time, fit, show, width

CLOCK_CELLS = 9
OP_CELLS = 5
MOST_TAG_CELLS = 16
LEAST_TEXT_CELLS = 24
MOST_SHOWN = 2_000
"""Characters of a line that are looked at; no screen is wider."""


def tags(lines: Iterable[JobLine], sources: Iterable[SourceHealth]) -> Mapping[str, str]:
    """Short names of the sources of these lines."""
    known = tuple(sources)
    short = {source.name: label for source, label in zip(known, labels(known), strict=True)}
    return {
        line.source: short.get(line.source) or show(line.source).rstrip("/").rsplit("/", 1)[-1]
        for line in lines
    }


def tag_cells(names: Iterable[str]) -> int:
    """Cells of the column of sources, with a blank behind it."""
    return min(MOST_TAG_CELLS, max(map(width, names), default=0)) + 1


def job_line(line: JobLine, tag: str, tags_wide: int, cells: int) -> Line:
    """The line; its op, then its source go where it is narrow."""
    tags_wide = tags_wide if cells >= CLOCK_CELLS + tags_wide + LEAST_TEXT_CELLS else min(tags_wide, 7)
    ops = OP_CELLS if cells >= CLOCK_CELLS + tags_wide + OP_CELLS + LEAST_TEXT_CELLS else 0
    room = max(1, cells - 1 - CLOCK_CELLS - tags_wide - ops)
    text = show(line.text[:MOST_SHOWN])
    sure = line.certainty is not Certainty.ADJACENT
    at = NONE if line.at is None else clock_time(line.at)
    spans = (
        Span(" ", "", 1),
        Span(fit(at, CLOCK_CELLS), "dim", CLOCK_CELLS),
        Span(fit(tag, tags_wide - 1) + " ", "accent", tags_wide),
        Span(fit(show(line.op.op) if line.op else "", ops), "dim", ops),
        Span(fit(text, room), _style(line) if sure else "dim", room),
    )
    return fitting(spans, cells)


def _style(line: JobLine) -> str:
    if line.level in ("error", "critical"):
        return "error"
    if line.level == "warning":
        return "warning"
    return "error" if BAD.search(line.text[:MOST_SHOWN]) else ""
