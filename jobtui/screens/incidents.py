"""What went wrong lately: one cause or five, since when, what the jobs share, which to look at first."""

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult

from jobtui.actions import Place, hints_at, key_of
from jobtui.analysis.explain.survey import survey_turns
from jobtui.analysis.incidents import Incidents
from jobtui.analysis.moments import parse_moment
from jobtui.analysis.time_words import duration
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.words import counted
from jobtui.render.incidents import LABEL_CELLS, incident_facts
from jobtui.render.text import show
from jobtui.screens.base import Board, LiveScreen, Taken, bindings_at
from jobtui.screens.choosing import ChoosingScreen
from jobtui.screens.job_tab import start
from jobtui.screens.jumping import Goal
from jobtui.store.store import Changes
from jobtui.widgets.header import Header
from jobtui.widgets.incident_list import IncidentList
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip
from jobtui.widgets.text_pane import Paragraph, TextPane

if TYPE_CHECKING:
    from jobtui.analysis.turns import Turns

WINDOWS_S = (3_600, 6 * 3_600, 24 * 3_600, 7 * 86_400)
"""How far back is looked, in seconds; the third one at first."""
TURN_S = 0.01
"""After so long of explaining the rest of the screen has its turn."""
RENEW_S, SHARE = 5.0, 10
"""It is looked again so often at most, and for no more than one part in so many of the time."""
EARLY_S = 1.0
"""The same after a look at what was not read to its end yet."""
JOBS_LISTED = 1_000


class IncidentsScreen(LiveScreen):
    """Groups of jobs that went wrong alike, and all about the one under the cursor."""

    PLACE = Place.INCIDENTS
    BINDINGS = bindings_at(Place.INCIDENTS)

    DEFAULT_CSS = """
    IncidentsScreen IncidentList { height: 1fr; }
    IncidentsScreen TextPane { height: 40%; }
    IncidentsScreen.-low TextPane, IncidentsScreen.-flat TextPane { display: none; }
    """

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._window_s: float = WINDOWS_S[2]
        self._since = _since_flag(board)
        self._found: Incidents | None = None
        self._is_due, self._works, self._ended_at, self._took_s = True, False, 0.0, 0.0
        self._is_early = False
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        self._rule = RuleLine()
        self._list = IncidentList(board.now)
        self._about = TextPane()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield RuleLine()
        yield self._list
        yield self._rule
        yield self._about
        yield RuleLine()
        yield KeyLine(hints_at(Place.INCIDENTS))

    def on_mount(self) -> None:
        """Begin to look."""
        self.show_all()
        self._look()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(self.crumb))

    def take(self, changes: Changes) -> None:
        """Look again, soon."""
        self._is_due = True

    def tick(self) -> None:
        """Let ages go on, and look again when something changed."""
        self.show_all()
        self._header.repaint()
        rested_s = monotonic() - self._ended_at
        least_s = EARLY_S if self._is_early else RENEW_S
        if (self._is_due or self._is_early) and rested_s >= max(least_s, SHARE * self._took_s):
            self._look()

    def pause_ended(self) -> None:
        """Look at what there is now."""
        super().pause_ended()
        self._is_due = True

    def show_all(self) -> None:
        """Show how old everything is; what is the same is not painted again."""
        self._strip.set_sources(self.board.store.sources())
        self._list.set_absolute(self.board.absolute)
        self._rule.set_words(self._words())

    def _look(self) -> None:
        if not self._works:
            self._works = True
            start(self, self._survey, group="survey")

    async def _survey(self) -> None:
        """Explain the jobs of the window in slices, between which keys are answered."""
        self._is_due, began = False, monotonic()
        store, now = self.board.store, self.board.now()
        self._is_early = any(one.is_behind or one.state is SourceState.STARTING for one in store.sources())
        turns = survey_turns(store, self._begin(now), now, now)
        try:
            self._found = await _in_slices(turns)
            self._list.set_incidents((*self._found.groups, *self._found.alone))
            self._list.set_empty(self._nothing())
            self.show_all()
        finally:
            self._works, self._ended_at = False, monotonic()
            self._took_s = self._ended_at - began

    def _begin(self, now: Nanos) -> Nanos:
        if self._since is not None and (moment := parse_moment(self._since)) is not None:
            return moment.span(now).start
        return Nanos(now - round(self._window_s) * SECOND)

    def _span(self) -> str:
        """How far back is looked."""
        now = self.board.now()
        return duration(float(round(seconds_between(self._begin(now), now))))

    def _nothing(self) -> tuple[str, ...]:
        """What is said when nothing went wrong."""
        return f"Nothing went wrong in the last {self._span()}.", f"{key_of('window')} looks at other times."

    def _words(self) -> str:
        span, found = self._span(), self._found
        if found is None:
            return f"looking at the last {span}"
        groups = f"{counted(len(found.groups), 'group')}, {len(found.alone)} alone"
        what = groups if self._list.count else "nothing went wrong"
        early = " · not all is read yet" if self._is_early else ""
        return f"{what} · {counted(found.looked_at, 'job')} of the last {span}{early}"

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._list.move(move)

    @on(IncidentList.Highlighted)
    def _show_about(self) -> None:
        one = self._list.incident
        facts = incident_facts(one) if one is not None else ()
        self._about.set_text(Paragraph(text, style, LABEL_CELLS) for text, style in facts)

    def action_open(self) -> None:
        """Open the first job of the group."""
        if self._list.incident is not None:
            self._open_job(self._list.incident.first)

    def _open_job(self, job_id: JobId) -> None:
        from jobtui.screens.job import JobScreen

        self.app.push_screen(JobScreen(self.board, job_id))

    def action_jobs(self) -> None:
        """List the jobs of the group."""
        one = self._list.incident
        if one is not None:
            goals = [Goal(job_id, self._why(job_id), job=job_id) for job_id in one.jobs[:JOBS_LISTED]]
            title = f"{len(one.jobs):,} × {one.code}"
            self.app.push_screen(GroupScreen(self.board, title, goals, self._follow))

    def _follow(self, goal: Goal) -> None:
        if goal.job is not None:
            self._open_job(goal.job)

    def _why(self, job_id: JobId) -> str:
        job = self.board.store.job(job_id)
        return "" if job is None else job.error or job.name or ""

    def action_window(self) -> None:
        """Look further back, or only at what is new."""
        self._since = None
        later = [window for window in WINDOWS_S if window > self._window_s]
        self._window_s = later[0] if later else WINDOWS_S[0]
        self._is_due, self._ended_at = True, 0.0
        self.tick()

    def action_copy(self) -> None:
        """Copy the id of the first job of the group."""
        if self._list.incident is not None:
            self.copy(self._list.incident.first)

    async def taken(self) -> Taken | None:
        """All about the group with its jobs, and the command that shows the same."""
        from jobtui.screens.taking import jobtui_command

        one = self._list.incident
        block = "\n".join(text for text, _ in incident_facts(one)) if one is not None else ""
        window = () if self._since is not None else ("--since", f"{round(self._window_s)}s")
        return Taken(block, jobtui_command(self.board, *window, "incidents"))


class GroupScreen(ChoosingScreen):
    """The jobs of a group, the earliest first."""

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(show(self._asked)))

    async def taken(self) -> Taken | None:
        """All of them."""
        return Taken("\n".join(show(goal.words) for goal in self._goals))


async def _in_slices(turns: "Turns[Incidents]") -> Incidents:
    began = monotonic()
    while True:
        try:
            next(turns)
        except StopIteration as done:
            found: Incidents = done.value
            return found
        if monotonic() - began >= TURN_S:
            await asyncio.sleep(0.001)
            began = monotonic()


def _since_flag(board: Board) -> str | None:
    """From when on this jobtui was told to look, if it was."""
    words = board.words
    return next((words[at + 1] for at, word in enumerate(words[:-1]) if word == "--since"), None)
