"""The record of a job as it is stored, secrets masked."""

import asyncio
from collections.abc import Iterable
from functools import partial

from textual.app import ComposeResult

from jobtui.model.jobs import JobDetail
from jobtui.render.json_text import document_lines
from jobtui.render.text import Zone, date_time, show
from jobtui.screens.base import Board
from jobtui.screens.job_tab import JobTab, Subject, start
from jobtui.widgets.row_view import Move
from jobtui.widgets.text_pane import Paragraph, TextPane


class RawTab(JobTab):
    """Where the record is, when it was written, and what stands in it."""

    NAME = "raw"
    COMMAND = ("show", "--json")

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._shown: tuple[JobDetail, str] | None = None
        self._paragraphs: tuple[Paragraph, ...] = ()
        self._text = TextPane()

    def compose(self) -> ComposeResult:
        """The text."""
        yield self._text

    def set_subject(self, subject: Subject) -> None:
        """Show the record that is there now."""
        detail = subject.detail
        if detail is None:
            words = subject.problem or "no source has a record of this job"
            self._set([Paragraph(words, "warning")])
            self._shown = None
        elif (detail, Zone.mark()) != self._shown:
            self._shown = (detail, Zone.mark())
            start(self, partial(self._format, detail), group="format", exclusive=True)

    def move(self, move: Move) -> None:
        """Scroll."""
        self._text.move(move)

    @property
    def copied(self) -> str | None:
        """All of it."""
        return "\n".join(part.text for part in self._paragraphs) or None

    async def _format(self, detail: JobDetail) -> None:
        # a record can be large, and keys are not to wait for it
        lines = await asyncio.to_thread(list, document_lines(detail.native))
        self._set([*_head(detail), *map(Paragraph, lines)])

    def _set(self, paragraphs: Iterable[Paragraph]) -> None:
        self._paragraphs = tuple(paragraphs)
        self._text.set_text(self._paragraphs)


def _head(detail: JobDetail) -> Iterable[Paragraph]:
    yield Paragraph(show(detail.path or detail.job.source), "accent")
    if detail.job.written_at is not None:
        yield Paragraph(f"written {date_time(detail.job.written_at)}{Zone.mark()}", "dim")
    for name, text in detail.facts:
        yield Paragraph(show(f"{name} {text}"), "dim")
    yield Paragraph()
