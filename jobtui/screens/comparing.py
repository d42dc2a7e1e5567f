"""A run beside the last good one, as a text to be read: step by step, and how their inputs differ."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textual.screen import Screen

from jobtui.analysis.compare import Choice, Comparison, FileDiff, Side, choose, compare, diff_files
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

FILES = ("in.json", "parameters.py")
"""Files of a run directory that make a run what it is."""
NOT_KEPT = "an earlier run of the same job has the same directory: its files are not kept"
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
    files = await _files(board, left, right, detail, other)
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
    return Side(detail.job, wanted, ops, agent.host if agent is not None else None)


async def _files(
    board: Board, left: Side, right: Side, one: JobDetail | None, two: JobDetail
) -> list[FileDiff]:
    if left.job.id == right.job.id:
        return [FileDiff(name, note=NOT_KEPT) for name in FILES]
    dirs = [
        run_dirs_of(side.job, detail.path if detail is not None else None, side.ops, side.host, board.reach)
        for side, detail in ((left, one), (right, two))
    ]
    return [await _file(board, name, dirs[0], dirs[1]) for name in FILES]


async def _file(board: Board, name: str, one: Sequence[str], two: Sequence[str]) -> FileDiff:
    try:
        return diff_files(name, await _text(board, name, one), await _text(board, name, two))
    except Unreadable as error:
        return FileDiff(name, note=str(error))


async def _text(board: Board, name: str, paths: Sequence[str]) -> str:
    """A file out of the first of these directories that has it. Raises Unreadable."""
    problem: Unreadable | None = None
    for path in paths:
        try:
            return (await board.desk.read_file(path, name, tail=False)).text
        except Unreadable as error:
            problem = problem or error
    raise problem or Unreadable("the run directory is not known")
