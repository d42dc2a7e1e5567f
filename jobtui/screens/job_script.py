"""The script with which a job was submitted, its environment, where they were, and what the job printed."""

import asyncio
from collections.abc import Iterable, Sequence
from posixpath import split
from typing import NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.containers import Container

from jobtui.analysis.paths import reached
from jobtui.analysis.scripts import OutputFile, named_outputs, outputs_of
from jobtui.model.job_reader import Unreadable
from jobtui.model.scripts import Answer
from jobtui.render import job_files
from jobtui.render.spans import Line, Paragraph, Piece
from jobtui.render.text import Zone, show
from jobtui.screens.job_tabs import JobTab, Subject
from jobtui.screens.shared import Shared
from jobtui.screens.text import ReadingScreen
from jobtui.widgets.text_pane import SpanPane

MOST_LINES = 2_000
"""Lines of a script that are shown here; the command shows all."""
LONGEST = 500
"""Characters of a line or a value that are shown here."""
MOST_VARIABLES = 2_000
NO_NUMBER = "Only jobs of Slurm have an archived script; the Slurm number of this job is not known."


class ScriptRead(NamedTuple):
    """The answers of the archives, and where the output went."""

    answer: Answer
    outputs: tuple[OutputFile, ...]


class ScriptTab(JobTab):
    """The script on the left, its facts on the right. Read when the tab is shown."""

    NAME = "script"
    COMMAND = ("script",)
    IS_WHOLE = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._asked: tuple[object, ...] = ()
        self._read: ScriptRead | None = None
        self._problem = ""
        self._script = SpanPane()
        self._about = SpanPane()
        self._about.add_class("about")
        self._about.is_active = False
        self.panes = self._script, self._about

    def compose(self) -> ComposeResult:
        yield Container(*self.panes, id="parts")

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
        script = self._read.answer.script
        return show(script.source) if script is not None else "no script was found"

    def open(self) -> None:
        if self._read is not None and self._read.outputs:
            self._open_outputs(self._read)

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
                self._read, self._problem = None, "no script"
                self._set((), (_line(NO_NUMBER),))
                return
            if self._read is None:
                self._problem = "looking for the script"
                self.post_message(self.TextChanged())
            answer = await self.shared.job_reader.script(wanted)
        except Unreadable as error:
            self._read, self._problem = None, "the script cannot be looked for"
            self._set((), (_line(show(str(error))),))
            return
        script, named = answer.script, named_outputs(detail.facts) if detail is not None else ()
        outputs = named or (outputs_of(script, wanted) if script is not None else ())
        self._read = ScriptRead(answer, outputs)
        # a script can be large, and keys are not to wait for it
        self._set(*await asyncio.to_thread(_drawn, self._read))

    def _set(self, script: Iterable[Line], about: Iterable[Line]) -> None:
        lines = tuple(script)
        self._script.display = bool(lines)
        self._script.set_lines(lines)
        self._about.set_lines(about)
        self.post_message(self.TextChanged())

    @work(group="outputs", exclusive=True, description="")
    async def _open_outputs(self, read: ScriptRead) -> None:
        text: list[Paragraph] = []
        for output in read.outputs:
            text += [*await self._output(output), Paragraph()]
        self.app.push_screen(ReadingScreen(self.shared, "output", text))

    async def _output(self, output: OutputFile) -> Sequence[Paragraph]:
        problem = "its path is not known in full"
        host = self.subject.job.host if self.subject.job is not None else None
        for path in reached(output.path, host, self.shared.reach):
            directory, name = split(path)
            try:
                part = await self.shared.job_reader.read_file(directory, name, tail=True)
            except Unreadable as error:
                problem = str(error)
                continue
            lines = await asyncio.to_thread(list, job_files.part_lines(part))
            head = Paragraph(f"{show(output.path)}  {job_files.part_title(part, Zone.mark())}", "accent")
            return [head, *(Paragraph(span.text, span.style) for span in lines)]
        return [Paragraph(show(output.path), "accent"), Paragraph(show(problem), "warning")]


def _drawn(read: ScriptRead) -> tuple[list[Line], list[Line]]:
    script = read.answer.script
    about = [_fact(name, text) for name, text in job_files.head_facts(script, read.outputs)] if script else []
    about += [
        (),
        _line("tried", "title"),
        *(_fact(*pair) for pair in job_files.tried_lines(read.answer.tried)),
    ]
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
