"""Files of a job: its run directory, with one of them followed while it grows; its script, as submitted."""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import chain

from textual import on, work

from jobtui.analysis.keys import CLUSTER_MODE
from jobtui.analysis.paths import output_dirs, reached, run_dirs_of
from jobtui.analysis.scripts import OutputFile, named_outputs, outputs_of
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.job_reader import FileKind, RunFile, RunListing, Unreadable
from jobtui.model.scripts import Answer
from jobtui.render import job_files
from jobtui.render.columns import TimeLook
from jobtui.render.job_files import in_order, is_tailed, part_lines, part_title
from jobtui.render.sources import judge_age
from jobtui.render.spans import Line, Paragraph, Piece
from jobtui.render.text import Zone, duration, show
from jobtui.screens.choices import Goal, Guide
from jobtui.screens.job_tabs import JobTab, Subject
from jobtui.screens.shared import Shared, start
from jobtui.screens.text import ReadingScreen
from jobtui.widgets.job_facts import FileList
from jobtui.widgets.row_view import Move
from jobtui.widgets.text_pane import SpanPane, TextPane

SLOW_S = 2.0
"""After this time a disk that does not answer is reported."""
MOST_LINES = 2_000
"""Lines of a script that are shown here; the command shows all."""
LONGEST = 500
"""Characters of a line or a value that are shown here."""
MOST_VARIABLES = 2_000
NO_NUMBER = "Only jobs of Slurm have an archived script; the Slurm number of this job is not known."


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


class ScriptTab(JobTab):
    """The script on the left, its facts on the right. Read when the tab is shown."""

    NAME = "script"
    COMMAND = ("script",)
    IS_WHOLE = True
    IS_SPLIT = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._asked: tuple[object, ...] = ()
        self._read: Answer | None = None
        self._outputs: tuple[OutputFile, ...] = ()
        self._problem = ""
        self._script = SpanPane()
        self._about = SpanPane()
        self._about.add_class("about")
        self._about.is_active = False
        self.panes = self._script, self._about

    def show_subject(self) -> None:
        subject = self.subject
        asked = (subject.job_id, subject.job and subject.job.status, subject.detail is None, Zone.mark())
        if asked != self._asked:
            self._asked = asked
            self._find(subject)

    @property
    def words(self) -> str:
        if self._read is None:
            return self._problem
        script = self._read.script
        return show(script.source) if script is not None else "no script was found"

    def open(self) -> None:
        """Open what it printed as a log; of several files, and places they may be in, one is chosen."""
        job, outputs = self.subject.job, self._outputs
        host = job.host if job is not None else None
        named = ((one, path) for one in outputs for path in reached(one.path, host, self.shared.reach))
        if goals := [Goal(path, one.stream, log=path) for one, path in named]:
            Guide(self.app, self.shared).choose("output", goals, is_clear=len(goals) == 1)
        elif outputs:
            self.notify("its path is not known in full", timeout=4)

    @property
    def copied(self) -> str | None:
        return (self._about if self._about.is_active else self._script).text or None

    @work(group="script", exclusive=True, description="")
    async def _find(self, subject: Subject) -> None:
        wanted, detail = None, subject.detail
        job = subject.job or (detail.job if detail is not None else None)
        try:
            if job is not None:
                wanted, _, detail = await self.shared.gatherer().script_of(job, detail)
            if wanted is None:
                self._read, self._outputs, self._problem = None, (), "no script"
                self._set((), (_line(NO_NUMBER),))
                return
            if self._read is None:
                self._problem = "looking for the script"
                self.post_message(self.TextChanged())
            answer = await self.shared.job_reader.script(wanted)
        except Unreadable as error:
            self._read, self._outputs, self._problem = None, (), "the script cannot be searched for"
            self._set((), (_line(show(str(error))),))
            return
        script, named = answer.script, named_outputs(detail.facts) if detail is not None else ()
        self._read = answer
        self._outputs = named or (outputs_of(script, wanted) if script is not None else ())
        # a script can be large, and keys must not wait for it
        self._set(*await asyncio.to_thread(_drawn, answer, self._outputs))

    def _set(self, script: Iterable[Line], about: Iterable[Line]) -> None:
        lines = tuple(script)
        self._script.display = bool(lines)
        self._script.set_lines(lines)
        self._about.set_lines(about)
        self.post_message(self.TextChanged())


def _drawn(answer: Answer, outputs: Sequence[OutputFile]) -> tuple[list[Line], list[Line]]:
    script = answer.script
    about = [_fact(name, text) for name, text in job_files.head_facts(script, outputs)] if script else []
    about += [(), _line("tried", "title"), *(_fact(*pair) for pair in job_files.tried_lines(answer.tried))]
    if script is None:
        return [], about
    if script.environment is not None:
        rows = job_files.variable_rows(script.environment, LONGEST)[:MOST_VARIABLES]
        about += [(), _line("environment", "title")]
        about += [(Piece(f"{name}=", "accent"), Piece(value)) for name, value in rows]
    lines = list(job_files.script_lines(script, MOST_LINES + 1, LONGEST))
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [_line(f"… more than {MOST_LINES:,} lines: jobtui script shows all", "warning")]
    return lines, about


def _fact(name: str, text: str) -> Line:
    return (Piece(f"{name} ", "dim"), Piece(text))


def _line(text: str, style: str = "") -> Line:
    return (Piece(text, style),)
