"""What the tabs of the job screen share: what they are about, and what a key may do to them."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual.containers import Container
from textual.dom import DOMNode
from textual.message import Message
from textual.worker import Worker

from jobtui.model.ids import JobId
from jobtui.model.job_desk import JobDesk, Unreadable
from jobtui.model.jobs import Job, JobDetail, Run
from jobtui.model.ops import Op, Step, Unlinked
from jobtui.render.sources import Judgement
from jobtui.render.text import show
from jobtui.screens.base import Board
from jobtui.widgets.row_view import Move
from jobtui.widgets.step_detail import StepDetail

if TYPE_CHECKING:
    from jobtui.analysis.explain.study import Study
    from jobtui.screens.job_tracing import JobTracing

RECORD_LINES = 100
"""How many lines of a record are read at most."""


class Subject(NamedTuple):
    """A job as its screen knows it. `ops` and `unlinked` are those of the chosen `run`, all without one.

    `silence` says, where there are no ops, what was read and what not; safe to show. `good` is the run that
    the chosen one is compared with, and `good_ops` are its ops. `study` is the verdict on the newest run,
    `tracing` what finds its trace.
    """

    job_id: JobId
    job: Job | None = None
    ops: tuple[Op, ...] = ()
    unlinked: tuple[Unlinked, ...] = ()
    detail: JobDetail | None = None
    run: Run | None = None
    silence: tuple[str, ...] = ()
    problem: str = ""
    good: Run | None = None
    good_ops: tuple[Op, ...] = ()
    study: "Study | None" = None
    tracing: "JobTracing | None" = None


class JobTab(Container):
    """One tab. It is told what is known, and asked to move, open and copy."""

    NAME: ClassVar[str]
    COMMAND: ClassVar[tuple[str, ...]] = ("show",)
    """The command of jobtui that shows the same, but for the id."""
    IS_WHOLE: ClassVar[bool] = False
    """Whether that command shows the same also where a line is under the cursor."""
    DEFAULT_CSS = "JobTab { height: 1fr; }"

    class Told(Message):
        """Its words are others now."""

    class Wanted(Message):
        """The logs are wanted from this run on."""

        def __init__(self, run: Run) -> None:
            self.run = run
            super().__init__()

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board = board

    def set_subject(self, subject: Subject) -> None:
        """Show this; what is the same is not painted again."""
        raise NotImplementedError

    def tick(self) -> None:
        """Let ages go on."""

    def move(self, move: Move) -> None:
        """Move in the pane that has the keys."""
        raise NotImplementedError

    def switch_pane(self) -> None:
        """Give the keys to the other pane, if there is one."""

    def open(self) -> None:
        """Open what is under the cursor."""

    @property
    def copied(self) -> str | None:
        """What is copied from here, None for the id of the job."""
        return None

    @property
    def step_here(self) -> Step | None:
        """The line under the cursor, where there is one."""
        return None

    @property
    def file_here(self) -> str:
        """The path of the file under the cursor, "" where there is none."""
        return ""

    @property
    def age(self) -> Judgement | None:
        """How old is what it shows, None where that is as old as the sources are."""
        return None

    @property
    def words(self) -> str:
        """What is said beside the names of the tabs."""
        return ""


def start(
    node: DOMNode, work: Callable[[], Coroutine[Any, Any, None]], *, group: str, exclusive: bool = False
) -> None:
    """Do some reading in a worker; with `exclusive` what its group was doing before ends."""
    _: Worker[None] = node.run_worker(work, group=group, exclusive=exclusive)


async def read_record(desk: JobDesk, detail: StepDetail, step: Step | None) -> None:
    """Show the lines behind a step in its pane, as far as they can be read and nobody went on meanwhile."""
    if step is None:
        return
    try:
        lines = await desk.lines_behind(step, RECORD_LINES)
    except Unreadable as error:
        found = [f"(the log cannot be read: {show(str(error))})"]
    else:
        found = [show(line.text) for line in lines[1:]]
    if detail.step is step and (found or detail.more):
        detail.set_more(found)
