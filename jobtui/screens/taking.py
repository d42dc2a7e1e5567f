"""What is taken along from under a cursor: a block of text, the command that shows the same, the file."""

import os
from collections.abc import Iterator, Sequence
from shlex import join
from typing import TYPE_CHECKING

from jobtui.model.ids import JobId
from jobtui.model.job_desk import Unreadable
from jobtui.model.jobs import Job
from jobtui.model.ops import Step
from jobtui.model.pages import Query
from jobtui.render.columns import JOB_COLUMNS, RowContext
from jobtui.render.text import show
from jobtui.screens.base import Board, Taken
from jobtui.widgets.step_detail import where

if TYPE_CHECKING:
    from jobtui.screens.job_tab import JobTab

LOG_FILE = "logfile"
"""The kind of sources whose names are paths."""


def jobtui_command(board: Board, *words: str) -> str:
    """A command line of jobtui on the same sources."""
    return shown(("jobtui", *board.words, *words))


def shown(words: Sequence[str]) -> str:
    """A command line as one types it, without secrets and safe to show."""
    return show(join(words))


async def tab_taken(board: Board, tab: "JobTab", job_id: JobId) -> Taken:
    """The line or the file under the cursor of a job's tab, the job otherwise, and what shows the same."""
    command = jobtui_command(board, *tab.COMMAND, job_id) if tab.COMMAND else ""
    if tab.step_here is not None:
        taken = step_taken(board, tab.step_here)
        return taken._replace(command=command) if tab.IS_WHOLE else taken
    if tab.file_here:
        return file_taken(tab.file_here)
    job = board.store.job(job_id)
    if job is None:
        return Taken("", command)
    return (await job_taken(board, job, RowContext(now=board.now())))._replace(command=command)


async def job_taken(board: Board, job: Job, context: RowContext) -> Taken:
    """What can be taken along of a job: all columns, `jobtui show`, its record."""
    try:
        detail = await board.desk.detail(job.id)
    except Unreadable:
        detail = None
    command = jobtui_command(board, "show", job.id)
    return Taken("\n".join(_facts(job, context)), command, detail.path or "" if detail else "")


def jobs_taken(board: Board, chosen: Taken | None, filter_text: str) -> Taken:
    """What can be taken along of the table: all about the job under the cursor, `jobtui jobs FILTER`."""
    words = (filter_text,) if filter_text else ()
    return (chosen or Taken(""))._replace(command=jobtui_command(board, "jobs", *words))


def step_taken(board: Board, step: Step) -> Taken:
    """What can be taken along of a step: its line with its place, `less` at that line, the log."""
    block = f"{where(step, full=True)}\n{show(step.text)}"
    if not is_file(board, step.source):
        return Taken(block, jobtui_command(board, "find", step.text))
    return file_taken(step.source, step.line if step.line > 0 else 0, step.offset)._replace(block=block)


def is_file(board: Board, source: str) -> bool:
    """Whether the name of a source is the path of a file."""
    kinds = {known.name: known.kind for known in board.store.sources()}
    return kinds.get(source, LOG_FILE) == LOG_FILE


def file_taken(path: str, line: int = 0, offset: int = 0) -> Taken:
    """What can be taken along of a file: where it is, `less` at the line, at the byte without its number."""
    path = os.path.abspath(path)
    at = f"+{line}" if line else f"+{offset}P" if offset else ""
    return Taken(show(path), shown([word for word in ("less", at, path) if word]), path, line)


def found_taken(path: str, query: Query) -> Taken:
    """What can be taken along of the lines of a file in which something was found: `grep` for the same."""
    path = os.path.abspath(path)
    kind = "-P" if query.is_regex else "-F"
    case = ("-i",) if query.ignores_case else ()
    return Taken(show(path), shown(("grep", "-n", kind, *case, "-e", query.text, "--", path)), path)


def ends_taken(paths: Sequence[str]) -> Taken:
    """What can be taken along of all logs in one: `tail` on their ends."""
    found = [os.path.abspath(path) for path in paths]
    return Taken("\n".join(map(show, found)), shown(("tail", "-F", *found)))


def sources_taken(board: Board, block: str) -> Taken:
    """What can be taken along of the sources: the words shown, and `jobtui doctor`."""
    return Taken(block, jobtui_command(board, "doctor"))


def _facts(job: Job, context: RowContext) -> Iterator[str]:
    """Every column of a job that has something to say."""
    for column in JOB_COLUMNS:
        value = column.cell(job, context).strip()
        if value and value != "–":
            yield f"{column.key:<10}{value}"
