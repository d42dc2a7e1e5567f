"""The script with which a job was submitted, its environment, where they were, and what the job printed."""

import asyncio
from collections.abc import Iterable, Sequence

from textual import work

from jobtui.analysis.paths import reached
from jobtui.analysis.scripts import OutputFile, named_outputs, outputs_of
from jobtui.model.job_reader import Unreadable
from jobtui.model.scripts import Answer
from jobtui.render import job_files
from jobtui.render.spans import Line, Piece
from jobtui.render.text import Zone, show
from jobtui.screens.choices import Goal, Guide
from jobtui.screens.job_tabs import JobTab, Subject
from jobtui.screens.shared import Shared
from jobtui.widgets.text_pane import SpanPane

MOST_LINES = 2_000
"""Lines of a script that are shown here; the command shows all."""
LONGEST = 500
"""Characters of a line or a value that are shown here."""
MOST_VARIABLES = 2_000
NO_NUMBER = "Only jobs of Slurm have an archived script; the Slurm number of this job is not known."


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
