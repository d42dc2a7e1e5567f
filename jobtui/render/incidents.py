"""Incidents as lines of text and as JSON documents."""

from collections.abc import Iterator

from jobtui.analysis.incidents import Incident
from jobtui.analysis.time_words import age
from jobtui.model.clock import Nanos, seconds_between, to_rfc3339
from jobtui.model.secrets import mask_text
from jobtui.render.table import paint
from jobtui.render.text import show

CSV_COLUMNS = ("verdict", "count", "first_at", "last_at", "error", "first", "jobs")
INDENT = "  "


def incident_lines(one: Incident, now: Nanos, colour: bool) -> Iterator[str]:
    """A group: how many, since when, what they share, which to look at first."""
    count = len(one.jobs)
    yield paint(f"{count} × {one.code}{_span(one, now)}", "error" if count > 1 else "warning", colour)
    yield f"{INDENT}{show(one.sentence)}"
    if one.error and count > 1:
        yield f"{INDENT}error: {show(one.error)}"
    if count > 1 and one.shared:
        shared = ", ".join(
            f"{name} {show(value)} ({number} of {count})" for name, value, number in one.shared
        )
        yield f"{INDENT}shared: {shared}"
    yield f"{INDENT}first: {show(one.first)}"


def _span(one: Incident, now: Nanos) -> str:
    if one.first_at is None or one.last_at is None:
        return ""
    first, last = (age(max(0.0, seconds_between(at, now))) for at in (one.first_at, one.last_at))
    return f"  {first} ago" if first == last else f"  from {first} to {last} ago"


def incident_record(one: Incident) -> dict[str, object]:
    """A group as a JSON document, texts masked."""
    return {
        "verdict": one.code,
        "count": len(one.jobs),
        "sentence": mask_text(one.sentence),
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
