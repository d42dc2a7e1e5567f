"""Incidents as lines of text and as JSON documents."""

from collections.abc import Iterator, Sequence

from jobtui.analysis.incidents import Incident
from jobtui.analysis.times import age
from jobtui.model.clock import Nanos, seconds_between, to_rfc3339
from jobtui.model.ids import JobId
from jobtui.model.secrets import mask_text
from jobtui.render.spans import Line, Span
from jobtui.render.table import paint
from jobtui.render.text import clock_time, fit, show

INCIDENT_COLUMNS = ("verdict", "count", "first_at", "last_at", "error", "first", "jobs")
INDENT = "  "
COUNT_CELLS, CODE_CELLS, TIME_CELLS, SMALLEST_CODE = 7, 22, 10, 14
LABEL_CELLS = len("verdicts ")
JOBS_NAMED = 200
"""Jobs of a group that are named."""
WHAT_FROM = 70
"""Cells from which on there is room for what a group shares."""
HEADINGS = ("JOBS", "WHAT", "FIRST", "LAST", "THEY SHARE")


def incident_lines(one: Incident, now: Nanos, colour: bool) -> Iterator[str]:
    """A group: how many, since when, what they share, which to look at first."""
    count = len(one.jobs)
    yield paint(f"{count} × {one.code}{_span(one, now)}", "error" if count > 1 else "warning", colour)
    yield f"{INDENT}{show(one.sentence)}"
    if doubt := _doubt(one):
        yield f"{INDENT}{doubt}"
    if len(one.codes) > 1:
        yield f"{INDENT}verdicts: {_codes(one)}"
    if one.error and count > 1:
        yield f"{INDENT}error: {show(one.error)}"
    if count > 1 and one.shared:
        shared = ", ".join(
            f"{name} {show(value)} ({number} of {count})" for name, value, number in one.shared
        )
        yield f"{INDENT}shared: {shared}"
    yield f"{INDENT}first: {show(one.first)}"


def _codes(one: Incident) -> str:
    return ", ".join(f"{number:,} {show(code)}" for code, number in one.codes)


def _doubt(one: Incident) -> str:
    """How many of several are doubted; of one its own sentence tells that."""
    return f"not sure of {one.doubtful:,} of them" if one.doubtful and len(one.jobs) > 1 else ""


def doubtful_words(jobs: Sequence[JobId]) -> str:
    """Which jobs may be otherwise than they seem."""
    more = f" and {len(jobs) - 1:,} more" if len(jobs) > 1 else ""
    return f"what is known of {show(jobs[0])}{more} may not be so: jobtui explain tells why"


def _span(one: Incident, now: Nanos) -> str:
    if one.first_at is None or one.last_at is None:
        return ""
    first, last = (age(max(0.0, seconds_between(at, now))) for at in (one.first_at, one.last_at))
    return f"  {first} ago" if first == last else f"  from {first} to {last} ago"


def incident_record(one: Incident) -> dict[str, object]:
    """A group as a JSON document, texts masked."""
    return {
        "verdict": one.code,
        "verdicts": dict(one.codes),
        "count": len(one.jobs),
        "sentence": mask_text(one.sentence),
        "confidence": round(one.confidence, 2),
        "doubtful": one.doubtful,
        "error": mask_text(one.error),
        "first_at": None if one.first_at is None else to_rfc3339(one.first_at),
        "last_at": None if one.last_at is None else to_rfc3339(one.last_at),
        "shape": [mark.name.lower() for mark in one.shape],
        "shared": [
            {"name": name, "value": mask_text(value), "count": count} for name, value, count in one.shared
        ],
        "first": one.first,
        "jobs": list(one.jobs),
    }


def row_cells(count: str, code: str, first: str, last: str, what: str, cells: int) -> tuple[str, ...]:
    """The texts of a row cut to its columns; what a group shares and its first time go where it is narrow."""
    times = TIME_CELLS if cells >= COUNT_CELLS + CODE_CELLS + 2 * TIME_CELLS else 0
    last_cells = TIME_CELLS if cells >= COUNT_CELLS + SMALLEST_CODE + TIME_CELLS else 0
    left = cells - COUNT_CELLS - times - last_cells
    code_cells = min(CODE_CELLS, left) if cells >= WHAT_FROM else left
    return (
        fit(count, COUNT_CELLS - 2, align="right") + "  ",
        fit(code, max(0, code_cells)),
        fit(first, times, align="right"),
        fit(last, last_cells, align="right"),
        f"  {fit(what, left - code_cells - 2)}" if left - code_cells > 2 else "",
    )


def incident_row(one: Incident, now: Nanos, cells: int, *, absolute: bool) -> Line:
    """A group in one line: how many, what, since when, what they share."""
    shared = ", ".join(f"{name} {value}" for name, value, _ in one.shared)
    first, last = (_time(at, now, absolute) for at in (one.first_at, one.last_at))
    texts = row_cells(
        f"{len(one.jobs):,}",
        show(one.code),
        first,
        last,
        show(shared if shared and len(one.jobs) > 1 else one.sentence),
        cells,
    )
    styles = ("error" if len(one.jobs) > 1 else "warning", "", "dim", "dim", "dim")
    return tuple(Span(text, style) for text, style in zip(texts, styles, strict=True))


def _time(at: Nanos | None, now: Nanos, absolute: bool) -> str:
    if at is None:
        return ""
    return clock_time(at) if absolute else age(max(0.0, seconds_between(at, now)))


def incident_facts(one: Incident) -> Iterator[tuple[str, str]]:
    """All about a group, each fact with its style; safe to show."""
    count = len(one.jobs)
    yield show(one.sentence), "error" if count > 1 else "warning"
    if doubt := _doubt(one):
        yield doubt, "warning"
    if len(one.codes) > 1:
        yield _labelled("verdicts", _codes(one)), ""
    if one.error:
        yield _labelled("error", show(one.error)), ""
    for name, value, number in one.shared:
        yield _labelled(name, show(value) + (f" ({number:,} of {count:,})" if count > 1 else "")), ""
    if one.shape:
        yield _labelled("steps", " · ".join(mark.value for mark in one.shape)), "dim"
    yield _labelled("first", show(one.first)), "accent"
    for job_id in one.jobs[1:JOBS_NAMED]:
        yield _labelled("", show(job_id)), ""
    if count > JOBS_NAMED:
        yield _labelled("", f"and {count - JOBS_NAMED:,} more"), "dim"


def _labelled(label: str, words: str) -> str:
    return label.ljust(LABEL_CELLS) + words
