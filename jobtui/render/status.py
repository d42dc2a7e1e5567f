"""How a job's status is drawn: its glyph, its word and the name of its style. Colours belong to the theme."""

from collections.abc import Mapping

from jobtui.model.jobs import JobStatus
from jobtui.model.verdicts import Concern

GLYPHS: Mapping[JobStatus, str] = {
    JobStatus.RUNNING: "●",
    JobStatus.PENDING: "○",
    JobStatus.COMPLETED: "✓",
    JobStatus.FAILED: "✗",
    JobStatus.CANCELED: "⊘",
    JobStatus.MISSING: "·",
    JobStatus.PURGED: "…",
    JobStatus.UNKNOWN: "?",
}
"""One cell each, in every font."""
ASCII_GLYPHS: Mapping[JobStatus, str] = {
    JobStatus.RUNNING: "*",
    JobStatus.PENDING: "o",
    JobStatus.COMPLETED: "+",
    JobStatus.FAILED: "x",
    JobStatus.CANCELED: "-",
    JobStatus.MISSING: ".",
    JobStatus.PURGED: "~",
    JobStatus.UNKNOWN: "?",
}
NEEDS_PERSON_GLYPH = "!"

WORDS: Mapping[JobStatus, str] = {status: status.value for status in JobStatus} | {
    JobStatus.COMPLETED: "done"
}

STYLES: Mapping[JobStatus, str] = {status: f"status.{status.value}" for status in JobStatus}
NEEDS_PERSON_STYLE = "status.needs_person"
CONCERN_STYLES: Mapping[Concern, str] = {
    Concern.FINE: "",
    Concern.FAILED: "error",
    Concern.STUCK: "warning",
    Concern.OPEN: "settled",
}
"""How a verdict is painted; its words say the same."""
PLAIN_STYLE = ""
SETTLED_STYLE = "settled"
"""For what nobody must look at any more."""


def glyph(status: JobStatus, *, ascii_only: bool = False) -> str:
    """The one-cell sign of a status."""
    return (ASCII_GLYPHS if ascii_only else GLYPHS)[status]
