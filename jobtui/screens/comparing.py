"""A run beside the last good one, as a text to be read: step by step, and how their inputs differ."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textual.screen import Screen

from jobtui.analysis.compare import Choice, Comparison, Side, choose, compare
from jobtui.analysis.compare_texts import Kept, texts_compared
from jobtui.analysis.run_dirs import run_dirs_of
from jobtui.analysis.run_windows import ops_in, window_of
from jobtui.model.ids import JobId
from jobtui.model.job_desk import Unreadable
from jobtui.model.jobs import JobDetail
from jobtui.render.comparison import PARTS, SLOWER, comparison_lines
from jobtui.screens.board import Board, Taken
from jobtui.screens.reading import ReadingScreen
from jobtui.widgets.text_pane import Paragraph

if TYPE_CHECKING:
    from jobtui.model.jobs import Run

MARGIN = 3


async def open_comparison(screen: Screen[None], board: Board, job_id: JobId) -> None:
    """Put the newest run of a job beside the last good one of it, of its user or of its model."""
    from jobtui.screens.taking import jobtui_command

    found = await _compared(board, job_id)
    if isinstance(found, str):
        screen.notify(found, timeout=4, markup=False)
        return
    command = jobtui_command(board, "compare", job_id, *({found.right.job.id} - {job_id}))
    text = list(_paragraphs(found, max(20, screen.size.width - MARGIN)))
    screen.app.push_screen(ReadingScreen(board, "beside the last good run", text, Taken("", command)))


def _paragraphs(found: Comparison, cells: int) -> Iterator[Paragraph]:
    for at, line in enumerate(comparison_lines(found, cells, colour=False)):
        marked = line.rstrip().endswith((PARTS, SLOWER))
        yield Paragraph(line.rstrip(), "title" if at == 0 else "warning" if marked else "")


async def _compared(board: Board, job_id: JobId) -> Comparison | str:
    """The comparison, or why there is none."""
    store = board.store
    try:
        detail = await board.desk.detail(job_id)
    except Unreadable:
        detail = None
    job = store.job(job_id) or (detail.job if detail is not None else None)
    if job is None:
        return "no source has a record of this job"
    choice = choose(job, detail.runs if detail is not None else (), tuple(store.jobs.values()))
    if choice is None:
        return "no good run is known to compare it with"
    other = detail if choice.job_id == job_id else await _detail(board, choice)
    if other is None:
        return "the record of the good run could not be read"
    left = _side(board, detail or JobDetail(job=job, runs=(), history=(), native={}, path=None), None)
    right = _side(board, other, choice.number)
    files = await texts_compared(board.desk, _kept(board, left, detail), _kept(board, right, other))
    return compare(left, right, choice.why, board.now(), files)


async def _detail(board: Board, choice: Choice) -> JobDetail | None:
    try:
        return await board.desk.detail(choice.job_id)
    except Unreadable:
        return None


def _side(board: Board, detail: JobDetail, number: int | None) -> Side:
    runs: Sequence[Run] = detail.runs
    wanted = next((one for one in runs if one.number == number), runs[-1] if runs else None)
    correlation = board.store.correlation
    ops = correlation.ops_of(detail.job.id)
    agent = correlation.agent_of(detail.job.id)
    ops = ops if wanted is None else ops_in(window_of(runs, wanted.number), ops)
    return Side(detail.job, wanted, ops, agent)


def _kept(board: Board, side: Side, detail: JobDetail | None) -> Kept:
    path = detail.path if detail is not None else None
    return Kept(side, run_dirs_of(side.job, path, side.ops, side.host, board.reach), detail)
