"""What is taken along from under a cursor: a block of text, the command that shows the same, the file."""

import os
from collections.abc import Iterator, Mapping
from shlex import join
from typing import NamedTuple

from jobtui.model.job_desk import Unreadable
from jobtui.model.jobs import Job
from jobtui.model.ops import Step
from jobtui.render.columns import JOB_COLUMNS, RowContext
from jobtui.render.text import show
from jobtui.screens.base import Board, Taken
from jobtui.widgets.step_detail import where

FLAGS: Mapping[str, str] = {"sirepo_db": "--srdb", "logfile": "--log"}
"""The flag that names a source of a kind."""


class Sources(NamedTuple):
    """The sources of the dashboard as flags of a command."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, board: Board) -> "Sources":
        """Those of a board."""
        known = board.store.sources()
        return cls(
            tuple(
                word for source in known if source.kind in FLAGS for word in (FLAGS[source.kind], source.name)
            )
        )


async def job_taken(board: Board, job: Job, context: RowContext) -> Taken:
    """What can be taken along of a job: all columns, `jobtui show`, its record."""
    try:
        detail = await board.desk.detail(job.id)
    except Unreadable:
        detail = None
    command = join(["jobtui", *Sources.of(board).words, "show", job.id])
    return Taken("\n".join(_facts(job, context)), command, detail.path or "" if detail else "")


def step_taken(step: Step) -> Taken:
    """What can be taken along of a step: its line with its place, `less` at that line, the log."""
    path = os.path.abspath(step.source)
    return Taken(
        f"{where(step, full=True)}\n{show(step.text)}", join(["less", f"+{step.line}", path]), path, step.line
    )


def file_taken(path: str, line: int = 0) -> Taken:
    """What can be taken along of a file: where it is, `less` at the line."""
    path = os.path.abspath(path)
    at = [f"+{line}"] if line else []
    return Taken(show(path), join(["less", *at, path]), path, line)


def sources_taken(board: Board, block: str) -> Taken:
    """What can be taken along of the sources: the words shown, and `jobtui doctor`."""
    return Taken(block, join(["jobtui", *Sources.of(board).words, "doctor"]))


def _facts(job: Job, context: RowContext) -> Iterator[str]:
    """Every column of a job that has something to say."""
    for column in JOB_COLUMNS:
        value = column.cell(job, context).strip()
        if value and value != "–":
            yield f"{column.key:<10}{value}"
