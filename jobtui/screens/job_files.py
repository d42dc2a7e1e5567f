"""The run directory of a job: its files, and what stands in one of them, followed while it grows."""

import asyncio
from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from jobtui.analysis.run_dirs import CLUSTER_MODE, run_dirs_of
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.job_desk import FileKind, RunFile, RunListing, Unreadable
from jobtui.render.run_files import in_order, is_tailed, part_lines, part_title
from jobtui.render.sources import Judgement, judge_age
from jobtui.render.spans import Span
from jobtui.render.text import Zone, duration, show
from jobtui.screens.base import Board
from jobtui.screens.job_tab import JobTab, Subject, start
from jobtui.screens.reading import ReadingScreen
from jobtui.widgets.file_list import FileList
from jobtui.widgets.row_view import Move
from jobtui.widgets.text_pane import Paragraph, TextPane

SLOW_S = 2.0
"""A disk that has not answered for so long is spoken of."""


class FilesTab(JobTab):
    """Files on the left, the chosen one on the right. Everything is read in workers, a part of it only."""

    NAME = "files"
    SCOPED_CSS = False  # its rules name the screen, whose classes say how much room there is
    DEFAULT_CSS = """
    FilesTab #panes { layout: horizontal; height: 1fr; }
    FilesTab FileList { width: 40; height: 100%; margin: 0 1 0 0; }
    FilesTab TextPane { width: 1fr; height: 100%; }
    JobScreen.-narrow FilesTab #panes { layout: vertical; }
    JobScreen.-narrow FilesTab FileList { width: 100%; height: 40%; margin: 0; }
    JobScreen.-narrow FilesTab TextPane { width: 100%; height: 1fr; }
    """

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._subject: Subject | None = None
        self._paths: tuple[str, ...] = ()
        self._listing: RunListing | None = None
        self._shown: tuple[str, RunFile, str] | None = None
        self._began: Nanos | None = None
        self._listed_at: Nanos | None = None
        self._problem = ""
        self._paragraphs: tuple[Paragraph, ...] = ()
        self._files = FileList(board.now)
        self._text = TextPane()
        self._text.is_active = False

    def compose(self) -> ComposeResult:
        """Beside each other, below each other where it is narrow."""
        with Container(id="panes"):
            yield self._files
            yield self._text

    def set_subject(self, subject: Subject) -> None:
        """Look into the run directory of this job."""
        self._subject = subject
        path = subject.detail.path if subject.detail else None
        agent = self.board.store.correlation.agent_of(subject.job_id)
        told = subject.detail.directory if subject.detail else None
        self._paths = run_dirs_of(
            subject.job, path, subject.ops, agent.host if agent else None, self.board.reach, told
        )
        self._refresh()

    def tick(self) -> None:
        """Look again, at most as often as the disk answers."""
        self._files.tick()
        if self.display:
            self._refresh()

    @property
    def words(self) -> str:
        """Where the files are, or what is the matter."""
        waited = None if self._began is None else seconds_between(self._began, self.board.clock.now())
        if waited is not None and waited >= SLOW_S:
            return f"the disk has not answered for {duration(float(int(waited)))}"
        if self._problem or self._listing is None or self.age is None:
            return self._problem
        return f"{show(self._listing.path)} · {self.age.words}"

    @property
    def age(self) -> Judgement | None:
        """How long ago the directory was read."""
        if self._listed_at is None:
            return None
        return judge_age(max(0.0, seconds_between(self._listed_at, self.board.now())))

    def move(self, move: Move) -> None:
        """Move in the pane that has the keys."""
        (self._text if self._text.is_active else self._files).move(move)

    def switch_pane(self) -> None:
        """From the files to the text, or back."""
        to_text = not self._text.is_active
        self._text.set_active(to_text)
        self._files.set_active(not to_text)

    def open(self) -> None:
        """Read the file on a screen of its own."""
        if self._files.file is not None and self._paragraphs:
            from jobtui.screens.taking import file_taken

            taken = file_taken(self.file_here)
            name = show(self._files.file.name)
            self.app.push_screen(ReadingScreen(self.board, name, self._paragraphs, taken))

    @property
    def copied(self) -> str | None:
        """The text where it has the keys, else where the file is."""
        if self._text.is_active:
            return "\n".join(part.text for part in self._paragraphs)
        if self._listing is None or self._files.file is None:
            return None
        return show(f"{self._listing.path}/{self._files.file.name}")

    @property
    def file_here(self) -> str:
        """The path of the file under the cursor."""
        if self._listing is None or self._files.file is None:
            return ""
        return f"{self._listing.path}/{self._files.file.name}"

    def _refresh(self) -> None:
        may_read = self.board.paused_at is None or self._listed_at is None
        if self._began is None and may_read:
            self._began = self.board.clock.now()
            start(self, self._read, group="files")

    async def _read(self) -> None:
        try:
            self._listing = await self._first_listing()
            self._files.display = self._listing is not None
            if self._listing is not None:
                files = in_order(self._listing.files)
                self._files.set_files(files, self._listing.left_out, absolute=self.board.absolute)
                await self._read_chosen()
            else:
                self._files.set_files(())
        finally:
            self._began = None
            self.post_message(self.Told())

    async def _first_listing(self) -> RunListing | None:
        """The first of the places that can be read; why none can, where it would stand."""
        problems: list[str] = []
        for path in self._paths:
            try:
                listing = await self.board.desk.list_files(path)
            except Unreadable as error:
                problems.append(str(error))
                continue
            self._problem = ""
            self._listed_at = self.board.clock.now()
            return listing
        self._problem = "no run directory"
        self._shown = None
        self._set(map(Span, self._missing(problems)))
        self._text.move(Move.TOP)
        return None

    def _missing(self, problems: Sequence[str]) -> list[str]:
        subject = self._subject
        if problems:
            return ["The run directory cannot be read here:", *map(show, problems)]
        if subject and subject.job and subject.job.mode == CLUSTER_MODE:
            return ["The files of this job are on its cluster; no log that was read says where."]
        return ["Neither a record nor a log that was read tells where the run directory of this job is."]

    async def _read_chosen(self) -> None:
        file, listing = self._files.file, self._listing
        if file is None or listing is None:
            self._set([Span("the run directory is empty", "dim")])
            self._shown = None
            return
        key = (listing.path, file, Zone.mark())
        if key == self._shown:
            return
        is_same = self._shown is not None and self._shown[1].name == file.name
        try:
            part = await self.board.desk.read_file(listing.path, file.name, tail=is_tailed(file.name))
        except Unreadable as error:
            spans = [Span(show(str(error)), "warning" if file.kind is FileKind.FILE else "dim")]
        else:
            # large documents take a while to format, and keys are not to wait for it
            lines = await asyncio.to_thread(list, part_lines(part))
            spans = [Span(part_title(part, Zone.mark()), "accent"), *lines]
        if self._files.file is not None and self._files.file.name == file.name:
            self._shown = key
            self._set(spans)
            if is_tailed(file.name) and not is_same:
                self._text.move(Move.BOTTOM)

    def _set(self, spans: "Sequence[Span] | map[Span]") -> None:
        self._paragraphs = tuple(Paragraph(span.text, span.style) for span in spans)
        self._text.set_text(self._paragraphs, follow=True)

    @on(FileList.Highlighted)
    def _chosen(self) -> None:
        start(self, self._read_chosen, group="preview", exclusive=True)
