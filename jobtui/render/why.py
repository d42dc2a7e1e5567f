"""A verdict as text to be read in a pane: parts, each with what it is about, if that can be opened."""

from collections.abc import Iterator
from typing import NamedTuple

from jobtui.analysis.explain.study import Study
from jobtui.model.verdicts import Evidence, NextStep
from jobtui.render.status import CONCERN_STYLES
from jobtui.render.text import show
from jobtui.render.verdicts import (
    INDENT,
    chain_lines,
    contradiction_lines,
    evidence_head,
    step_line,
    sureness,
)

Item = Evidence | NextStep


class Part(NamedTuple):
    """Some text, safe to show, and the evidence or the command it is about.

    What is not `whole` is cut at the width instead of being wrapped.
    """

    text: str = ""
    style: str = ""
    item: Item | None = None
    whole: bool = True


def why_parts(study: Study) -> Iterator[Part]:
    """All that is known of why a job stands as it does."""
    verdict = study.verdict
    yield Part(f"{verdict.code.value}  {sureness(verdict)}", CONCERN_STYLES[verdict.concern])
    yield Part(show(verdict.sentence))
    if stands := step_line(verdict):
        yield Part(stands, "dim")
    yield from _evidence(study)
    yield from map(_line, contradiction_lines(study.contradictions, colour=False))
    yield from map(_line, chain_lines(study.chain, colour=False))
    if verdict.blind_spots:
        yield from _head("not known")
        yield from (Part(f"{INDENT}{show(spot)}") for spot in verdict.blind_spots)
    if verdict.next:
        yield from _head("next")
    for step in verdict.next:
        yield Part(f"{INDENT}{show(step.why)}:", "dim", step)
        yield Part(f"{INDENT * 2}{show(step.command)}", "accent", step)


def _evidence(study: Study) -> Iterator[Part]:
    if study.verdict.evidence:
        yield from _head("evidence")
    for one in study.verdict.evidence:
        yield Part(f"{INDENT}{evidence_head(one, 0)}", "dim", one, whole=False)
        yield Part(f"{INDENT * 2}{show(one.text)}", "", one, whole=False)


def _head(title: str) -> Iterator[Part]:
    yield Part()
    yield Part(title, "heading")


def _line(text: str) -> Part:
    """A line of a section; what is not indented is its title."""
    return Part(text, "" if text.startswith(INDENT) else "heading")
