"""The run directory of a job: its files, and the text of one of them, followed while it grows."""

import asyncio
from itertools import chain

from textual import on, work

from jobtui.analysis.keys import CLUSTER_MODE
from jobtui.analysis.paths import output_dirs, run_dirs_of
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.job_reader import FileKind, RunFile, RunListing, Unreadable
from jobtui.render.columns import TimeLook
from jobtui.render.job_files import in_order, is_tailed, part_lines, part_title
from jobtui.render.sources import judge_age
from jobtui.render.spans import Paragraph, Piece
from jobtui.render.text import Zone, duration, show
from jobtui.screens.job_tabs import JobTab
from jobtui.screens.shared import Shared, start
from jobtui.screens.text import ReadingScreen
from jobtui.widgets.job_facts import FileList
from jobtui.widgets.row_view import Move
from jobtui.widgets.text_pane import TextPane

SLOW_S = 2.0
"""After this time a disk that does not answer is reported."""


class FilesTab(JobTab):
    """Files on the left, the chosen one on the right. Workers read a part of each."""

    NAME = "files"
    IS_SPLIT = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._paths: tuple[str, ...] = ()
        self._outputs: dict[str, list[str]] = {}
        self._listing: RunListing | None = None
        self._shown: tuple[str, RunFile, str] | None = None
        self._began: Nanos | None = None
        self._listed_at: Nanos | None = None
        self._problem = ""
        self._files = FileList(lambda: TimeLook(shared.now(), relative=not shared.absolute))
        self._text = TextPane()
        self._text.is_active = False
        self.panes = self._files, self._text

    def show_subject(self) -> None:
        subject, reach = self.subject, self.shared.reach
        job = subject.job and self.shared.store.with_agent(subject.job)
        of_name = output_dirs(subject.detail, reach)
        dirs = run_dirs_of(job, subject.detail, subject.ops, reach)
        self._paths = tuple(dict.fromkeys((*chain.from_iterable(of_name.values()), *dirs)))
        self._outputs = {path: [name for name in of_name if path in of_name[name]] for path in self._paths}
        self._refresh()

    def tick(self) -> None:
        self._files.repaint()
        if self.display:
            self._refresh()

    @property
    def words(self) -> str:
        waited = None if self._began is None else seconds_between(self._began, self.shared.clock.now())
        if waited is not None and waited >= SLOW_S:
            return f"the disk has not answered for {duration(float(int(waited)))}"
        if self._problem or self._listing is None or self.age is None:
            return self._problem
        return f"{show(self._listing.path)} · {self.age.text}"

    @property
    def age(self) -> Piece | None:
        if self._listed_at is None:
            return None
        return judge_age(max(0.0, seconds_between(self._listed_at, self.shared.now())))

    def open(self) -> None:
        if self._files.record is not None and self._text.paragraphs:
            from jobtui.screens.export import file_target

            taken = file_target(self.file_here)
            name = show(self._files.record.name)
            self.app.push_screen(ReadingScreen(self.shared, name, self._text.paragraphs, taken))

    @property
    def copied(self) -> str | None:
        return self._text.text if self._text.is_active else show(self.file_here) or None

    @property
    def file_here(self) -> str:
        if self._listing is None or self._files.record is None:
            return ""
        return f"{self._listing.path}/{self._files.record.name}"

    def _refresh(self) -> None:
        may_read = self.shared.paused_at is None or self._listed_at is None
        if self._began is None and may_read:
            self._began = self.shared.clock.now()
            self._read()

    @work(group="files")
    async def _read(self) -> None:
        try:
            self._listing = listing = await self._first_listing()
            self._files.display = listing is not None
            if listing is not None:
                outputs = self._outputs.get(listing.path, ())
                if not any(outputs) and (known := [*filter(None, self._outputs.values())]):
                    outputs = known[0]  # in a directory that cannot be read: no other file stands for it
                lost = FileKind.UNLISTED if listing.left_out else FileKind.MISSING
                self._files.set_files(in_order(listing.files, outputs, lost), listing.left_out)
                await self._read_chosen()
            else:
                self._files.set_files(())
        finally:
            self._began = None
            self.post_message(self.TextChanged())

    async def _first_listing(self) -> RunListing | None:
        problems: list[str] = []
        for path in self._paths:
            try:
                listing = await self.shared.job_reader.list_files(path)
            except Unreadable as error:
                problems.append(show(str(error)))
                continue
            self._problem = ""
            self._listed_at = self.shared.clock.now()
            return listing
        self._problem = "no run directory"
        self._shown = None
        job = self.subject.job
        words = ["No record and no log that was read says where the run directory of this job is."]
        if problems:
            words = ["The run directory cannot be read here:", *problems]
        elif job is not None and job.mode == CLUSTER_MODE:
            words = ["The files of this job are on its cluster; no log that was read says where."]
        self._text.set_text(map(Paragraph, words), follow=True)
        self._text.move(Move.TOP)
        return None

    async def _read_chosen(self) -> None:
        file, listing = self._files.record, self._listing
        if file is None or listing is None:
            self._text.set_text([Paragraph("the run directory is empty", "dim")], follow=True)
            self._shown = None
            return
        key = (listing.path, file, Zone.mark())
        if key == self._shown:
            return
        is_same = self._shown is not None and self._shown[1].name == file.name
        try:
            if file.kind is FileKind.MISSING:
                raise Unreadable(f"{file.name}: not there: not written yet, removed, or on another machine")
            part = await self.shared.job_reader.read_file(listing.path, file.name, tail=is_tailed(file.name))
        except Unreadable as error:
            spans = [Piece(show(str(error)), "warning" if file.kind is FileKind.FILE else "dim")]
        else:
            # large documents take a while to format, and keys must not wait for it
            lines = await asyncio.to_thread(list, part_lines(part))
            spans = [Piece(part_title(part, Zone.mark()), "accent"), *lines]
        if self._files.record is not None and self._files.record.name == file.name:
            self._shown = key
            self._text.set_text((Paragraph(span.text, span.style) for span in spans), follow=True)
            if is_tailed(file.name) and not is_same:
                self._text.move(Move.BOTTOM)

    @on(FileList.Highlighted)
    def _chosen(self) -> None:
        start(self, self._read_chosen, group="preview", exclusive=True)
