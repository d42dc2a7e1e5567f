"""The palette: finds actions of this screen and others, ops and agents by their ids, jobs by a filter."""

from asyncio import sleep
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from operator import attrgetter
from time import monotonic
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Input
from textual.worker import WorkerError

from jobtui.actions import Action, Keymap, ScreenName, Topic
from jobtui.analysis.filter import Filter, abbreviation_test, parse
from jobtui.analysis.flags import JobContext
from jobtui.model.health import contained
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.render.text import show
from jobtui.screens.base import LiveScreen, test_of
from jobtui.screens.shared import open_screen, start
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.frame import RuleLine
from jobtui.widgets.job_table import PAINT_S
from jobtui.widgets.record_list import Choice, ChoiceList
from jobtui.widgets.row_view import Move

MOST_JOBS, MOST_IDS = 50, 20
SLICE = 4096
"""Jobs looked at between two keys."""
MOST_KNOWN, KNOWN_S = 10_000, 5.0
"""A longer text is looked for among the jobs that passed, if these are fewer, for so long: jobs change."""
LEAST_ID = 4
"""Characters of an id at least: the least by which logs name an op."""
MOVES = (Move.UP, Move.DOWN, Move.PAGE_UP, Move.PAGE_DOWN)


class PaletteHit(NamedTuple):
    """Something found, and what is done if it is chosen. Hits of a lower rank come first."""

    shown: Choice
    act: Callable[[], object]
    rank: int = 1


class Palette(ModalScreen[None]):
    """Finds at each key what the typed text may mean on the screen below, and does what is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", show=False),
        *(Binding(move.replace("_", ""), f"move('{move}')", show=False) for move in MOVES),
    ]

    def __init__(self, live: LiveScreen) -> None:
        super().__init__()
        self._live, self._list = live, ChoiceList(())
        self._hits: list[PaletteHit] = []
        self._known: tuple[float, Filter, list[JobId]] | None = None
        """When all jobs were last looked at, by which filter, and those that passed if they are few."""

    def compose(self) -> ComposeResult:
        yield FilterInput("", "an action, a job, a filter")
        yield RuleLine()
        yield self._list

    def on_mount(self) -> None:
        self._search("")

    def on_input_changed(self, message: Input.Changed) -> None:
        self._search(message.value.strip())

    async def on_input_submitted(self) -> None:
        """Do what is found for all that was typed: what is shown may be of what was typed before."""
        with suppress(WorkerError):  # then more was typed
            await self._searching.wait()
            self.on_record_list_opened()

    def on_record_list_opened(self) -> None:
        if self._hits:
            self.dismiss()
            self.app.call_later(self._hits[self._list.cursor].act)

    def action_move(self, move: str) -> None:
        self._list.move(Move(move))

    def _search(self, query: str) -> None:
        self._searching = start(self, partial(self._find, query), group="search", exclusive=True)

    async def _find(self, query: str) -> None:
        """Show what is found; of jobs the first are enough."""
        hits: list[PaletteHit] = []
        for find in (self._actions, self._ids):
            with contained("searching from the palette"):
                hits += find(query)
        jobs, passing = list[Job](), self._passing(query)
        with contained("searching from the palette"):
            while len(jobs) < MOST_JOBS and (some := next(passing, None)) is not None:
                jobs += some
                await sleep(0)
        self._hits = [*sorted(hits, key=attrgetter("rank")), *map(self._job, jobs[:MOST_JOBS])]
        self._list.empty = ("nothing has this name",)
        self._list.set_records((hit.shown for hit in self._hits), at=0)
        start(self, partial(self._look_at_others, passing), group="search")

    async def _look_at_others(self, passing: Iterator[list[Job]]) -> None:
        """Look at the other jobs too: a longer text may be looked for among those that pass."""
        await sleep(PAINT_S)
        with contained("searching from the palette"):
            for _ in passing:
                await sleep(0)

    def _job(self, job: Job) -> PaletteHit:
        act = partial(open_screen, self.app, ScreenName.JOB, self._live.shared, job.id)
        return PaletteHit(Choice(show(job.name or job.id), show(job.id) if job.name else ""), act)

    def _actions(self, query: str) -> Iterator[PaletteHit]:
        """The actions whose words fit, of other screens if they begin with the query: these come first."""
        low, fits = query.lower(), [abbreviation_test(word) for word in query.lower().split()]
        for action, screen in self._offered():
            is_here = screen is self._live.NAME
            words = (action.name.removeprefix("go-").removeprefix("tab-"), *action.found_by.split())
            begun = (action.help.lower(), *(word for word in words if len(low) > 2 or word == low))
            is_begun = bool(low) and any(word.startswith(low) for word in begun)
            if is_begun or (is_here and all(fit(f"{action.help} {action.found_by}") for fit in fits)):
                keys = action.shown_keys if is_here else f"{action.shown_keys} ({screen})".lstrip()
                act = partial(self._act_at, screen, action.call)
                yield PaletteHit(Choice(action.help, keys), act, -is_begun * (1 + is_here))

    def _offered(self) -> Collection[tuple[Action, ScreenName]]:
        """All actions, each with the screen below or another to which one can go from it."""
        replays, calls = self._live.shared.player is not None, {one.call for one in Keymap.actions}
        screens = [screen for screen in ScreenName if f"app.go('{screen}')" in calls]
        screens += [ScreenName.JOB] if self._live.chosen_jobs() else []
        actions = [one for one in Keymap.actions if replays or one.topic is not Topic.REPLAY]
        offered = {one.help: (one, self._live.NAME) for one in actions if self._live.NAME in one.screens}
        for one in actions:
            if screen := next((screen for screen in screens if screen in one.screens), None):
                offered.setdefault(one.help, (one, screen))
        return offered.values()

    async def _act_at(self, name: ScreenName, call: str) -> None:
        if name is ScreenName.JOB and name is not self._live.NAME:
            open_screen(self.app, name, self._live.shared, self._live.chosen_jobs()[0])
        elif name is not self._live.NAME:
            await self.app.run_action(f"go('{name}')")
        screen = self.app.screen
        screen.call_later(screen.run_action, call)

    def _ids(self, query: str) -> Iterator[PaletteHit]:
        """Ops, agents and containers by their ids, as far as those are shown anywhere."""
        if len(query) < LEAST_ID:
            return
        correlation, jump = self._live.shared.store.correlation, self.app.run_action
        ops = (op for op in correlation.ops() if query == op.op or (op.op_id or "").startswith(query))
        for op in islice((op for op in ops if op.jid), MOST_IDS):
            words = Choice(show(f"op {op.op}, {op.name}"), show(f"of {op.jid}"))
            yield PaletteHit(words, partial(jump, f"jump({op.jid!r})"))
        named = (agent for agent in correlation.agents() if query in (agent.agent, agent.container))
        for agent in islice(named, MOST_IDS):
            words = Choice(show(f"agent {agent.agent}"), show(agent.container or ""))
            yield PaletteHit(words, partial(jump, f"jump({query!r})"))

    def _passing(self, query: str) -> Iterator[list[Job]]:
        """The jobs that the query filters, a slice of those looked at after the other."""
        if (chosen := test_of(parse, query)[0]) is None:
            return
        store, now, began = self._live.shared.store, self._live.shared.now(), monotonic()
        jobs, passed = tuple(store.jobs.values()), list[JobId]()
        if self._known is not None and began - self._known[0] < KNOWN_S and chosen.narrows(self._known[1]):
            began, _, known = self._known
            jobs = tuple(filter(None, map(store.jobs.get, known)))
        test = chosen.test(JobContext(time_of=cache(partial(store.now_at, now=now))))
        for at in range(0, len(jobs), SLICE):
            yield (passing := list(filter(test, jobs[at : at + SLICE])))
            passed += [job.id for job in passing[: MOST_KNOWN - len(passed)]]
        self._known = (began, chosen, passed) if len(passed) < MOST_KNOWN else None
