"""A screen to choose one of several things that a text may mean."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.app import App

from jobtui.actions import ScreenName
from jobtui.analysis import find
from jobtui.analysis.log_shapes import Condition, FacetCount
from jobtui.model.commands import Command
from jobtui.model.ids import TRACE_DIGITS, JobId, TraceId, TraceRef, find_trace
from jobtui.render.columns import JOB_COLUMNS
from jobtui.render.log_lines import FACET_COLUMNS, facet_words
from jobtui.render.spans import Paragraph
from jobtui.render.text import show
from jobtui.screens.base import FilteringScreen, HeadedScreen
from jobtui.screens.command_table import CommandError, parse_command
from jobtui.screens.shared import Shared, open_screen
from jobtui.store.store import Store
from jobtui.views import View
from jobtui.widgets.record_list import Choice, ChoiceList, ColumnList, RecordTable

if TYPE_CHECKING:
    from jobtui.session.evidence import Gatherer

LONGEST_ID = 200
LONGEST = 4_096
"""How many characters of a text are looked at."""


class Goal(NamedTuple):
    """A target: a job, a trace, a log, or the jobs under a filter; what it is, and why it is offered."""

    words: str
    why: str
    job: JobId | None = None
    filter: str | None = None
    trace: TraceRef | None = None
    log: str | None = None


class Jump(NamedTuple):
    """The meanings of a text, likeliest first, and whether the first is clearly the likeliest. `is_sure`:
    something here has exactly this name.
    """

    goals: tuple[Goal, ...]
    is_clear: bool
    is_sure: bool = False


NOWHERE = Jump((), False)


def names_a_job(text: str) -> bool:
    """Whether a text holds a whole id, a run directory or the like, and cannot be a filter."""
    return any(reference.target is find.Target.JOB for reference in find.references(text[:LONGEST].strip()))


def may_name_a_job(text: str) -> bool:
    """Whether a text can be the id of a job: one word with a digit, and no comparison."""
    text = text.strip()
    is_word = len(text) <= LONGEST_ID and len(text.split()) == 1 and not re.search("[:=<>]", text)
    return is_word and any(sign.isdigit() for sign in text)


def jump_to(text: str, store: Store, logs: Sequence[str] = ()) -> Jump:
    """The meanings of a text. A name with a similar spelling is only offered."""
    correlation = store.correlation
    found = find.find(text[:LONGEST], store.jobs, correlation.ops(), correlation.agents(), logs)
    likely = tuple(candidate for candidate in found if candidate.score >= find.SURE)
    led: dict[tuple[str | None, ...], Goal] = {}
    for goal in (goal for candidate in likely for goal in _goals(candidate, store, logs)):
        led.setdefault((goal.job, goal.filter, goal.log), goal)
    goals = tuple(led.values())
    if traces := tuple(trace_goals(text, store)):
        return Jump((*traces, *goals), len(traces) == 1 and not goals, is_sure=True)
    if not likely or not likely[0].is_sure:
        naming = store.traces.naming(text[:LONGEST])
        named = spans_goals((trace_id, f"its spans name the job as {job}") for trace_id, job in naming)
        goals = (*named, *goals)
        if named:
            return Jump(goals, len(named) == 1, is_sure=True)
    if not goals:
        return NOWHERE
    is_exact = likely[0].is_sure
    return Jump(goals, is_exact and (len(goals) == 1 or not find.is_ambiguous(likely)), is_exact)


async def look_up(text: str, store: Store, logs: Sequence[str], gatherer: "Gatherer") -> Jump:
    """The same. If nothing is known of the text, the files of the newest jobs are read."""
    jump = jump_to(text, store, logs) if text.strip() else NOWHERE
    if jump.goals or not text.strip():
        return jump
    found = await gatherer.jobs_on_disk(text[:LONGEST])
    return Jump(tuple(Goal(one.id, one.why, job=one.job) for one in found), len(found) == 1, bool(found))


def spans_goals(named: Iterable[tuple[TraceId, str]]) -> tuple[Goal, ...]:
    """The traces whose spans name a job that nothing else knows of, each with how that is known."""
    return tuple(Goal(f"trace {trace_id}", why, trace=TraceRef(trace_id)) for trace_id, why in named)


def trace_goals(text: str, store: Store) -> Iterator[Goal]:
    """The traces that a text names: by an id or its beginning, a TRACEPARENT, an address, a span."""
    ref = find_trace(text[:LONGEST])
    if ref is None:
        return
    is_short = len(text.strip()) < TRACE_DIGITS
    known = store.traces.called(text) if is_short else {}
    for trace_id, why in known.items():
        yield Goal(f"trace {trace_id}", why, trace=TraceRef(trace_id))
    if not known and (not is_short or store.traces.trace(ref.trace_id) is not None):
        yield Goal(f"trace {ref.trace_id}", "; ".join(ref.notes) or "the text names it", trace=ref)
        for other in ref.others:
            if store.traces.trace(other) is not None:
                yield Goal(f"trace {other}", "a possible match", trace=TraceRef(other))


def _goals(candidate: find.Candidate, store: Store, logs: Sequence[str]) -> Iterator[Goal]:
    """The target of a candidate: its job, or all jobs of the thing it names."""
    kind, id_, _, why, job = candidate
    words = f"{kind} {id_}"
    if job is not None:
        yield Goal(job if kind == "job" else f"{words} of {job}", why, job=job)
    elif kind == "unit":
        yield from (Goal(f"log {name}", why, log=name) for name in logs if find.is_of_unit(name, id_))
    elif kind == "user":
        yield Goal(words, why, filter=f"user:{id_}")
    elif kind != "trace":
        jobs = find.jobs_meant(candidate, store.jobs, store.correlation.ops(), store.correlation.agents())
        if len(jobs) == 1:
            yield Goal(f"{jobs[0]}, of {words}", why, job=jobs[0])
        elif jobs:
            yield Goal(f"{words}, {len(jobs)} jobs", why, filter=find.filter_of(jobs))


class ChoosingScreen(HeadedScreen):
    """Goals, likeliest first. Choosing one closes the screen and calls `follow`.

    With a `title` they are not what some text may mean.
    """

    NAME = ScreenName.CHOOSING

    def __init__(
        self,
        shared: Shared,
        asked: str,
        goals: Sequence[Goal],
        follow: Callable[[Goal], None],
        title: str = "",
    ) -> None:
        super().__init__(shared)
        self._goals = tuple(goals)
        self._follow = follow
        self._asked, self._title = asked, title
        self._main = self._list = ChoiceList([Choice(show(one.words), show(one.why)) for one in self._goals])

    @property
    def heading(self) -> str:
        count = len(self._asked.strip().splitlines())
        return show(self._title) or f"{show(self._asked) if count < 2 else f'{count} lines'} may mean"

    def action_open(self) -> None:
        goal = self._goals[self._list.cursor]
        self.app.pop_screen()
        self._follow(goal)

    def paragraphs(self) -> Iterator[Paragraph]:
        return (Paragraph(f"{show(goal.words)}  {show(goal.why)}") for goal in self._goals)

    def command(self) -> Command:
        return Command() if self._title else self.shared.command("find", about=[self._asked])

    def copied(self) -> str:
        goal = self._goals[self._list.cursor]
        return goal.job or goal.words


class ColumnsScreen(HeadedScreen):
    NAME = ScreenName.COLUMNS
    FOOT = "kept until jobtui ends; :save keeps it for the next start"

    def __init__(self, shared: Shared, view: View, follow: Callable[[View], None]) -> None:
        super().__init__(shared)
        self._main = self._list = ColumnList(JOB_COLUMNS, view.columns)
        self._follow = follow
        self._view = view
        self._list.sort, self._list.reverse = view.sort, view.reverse
        self.action_mark, self.action_shift = self._list.toggle, self._list.shift
        self.action_sort = self._list.sort_here

    def action_usual(self) -> None:
        self._list.set_shown([column.key for column in self.shared.usual_columns()])

    def action_open(self) -> None:
        chosen = self._list
        self.app.pop_screen()
        self._follow(self._view._replace(columns=chosen.shown, sort=chosen.sort, reverse=chosen.reverse))

    def paragraphs(self) -> tuple[Paragraph, ...]:
        return (Paragraph(" ".join(self._list.shown)),)

    def command(self) -> Command:
        return self.shared.command("jobs", about=[self._view.filter] * bool(self._view.filter))


class LogSetScreen(HeadedScreen):
    NAME = ScreenName.LOG_SET
    FOOT = "lines of the chosen logs, by time"

    def __init__(
        self,
        shared: Shared,
        labels: Mapping[str, str],
        chosen: Sequence[str],
        follow: Callable[[tuple[str, ...]], None],
    ) -> None:
        super().__init__(shared)
        self._follow = follow
        self._main = self._list = ChoiceList(Choice(label, show(name)) for name, label in labels.items())
        self._names = dict(zip(self._list.records, labels, strict=True))
        self._list.marked = {choice for choice, name in self._names.items() if name in chosen}
        self.action_mark = self._list.toggle_mark

    @property
    def chosen(self) -> tuple[str, ...]:
        return tuple(name for choice, name in self._names.items() if choice in self._list.marked)

    def action_mark_all(self) -> None:
        self._list.marked = set() if len(self.chosen) == self._list.count else set(self._names)
        self._list.repaint()

    def action_open(self) -> None:
        chosen = self.chosen or (self._names[self._list.records[self._list.cursor]],)
        self.app.pop_screen()
        self._follow(chosen)

    def paragraphs(self) -> Iterator[Paragraph]:
        return map(Paragraph, map(show, self.chosen))

    def copied(self) -> str:
        return self._list.records[self._list.cursor].reason


class FacetsScreen(HeadedScreen):
    """Choose a value in lines of a log, to show only such lines or to leave them out."""

    NAME = ScreenName.FACETS

    def __init__(
        self, shared: Shared, counts: Sequence[FacetCount], of: str, follow: Callable[[Condition], None]
    ) -> None:
        super().__init__(shared)
        self._follow = follow
        most = max((one.records for one in counts), default=0)
        self._main = self._table = RecordTable[FacetCount](FACET_COLUMNS, lambda: most, lambda one: one.facet)
        self._table.set_records(counts)
        self._table.empty = ("no line to count",)
        self._rule.words = f"records of {of}"

    def action_next_field(self) -> None:
        fields = [one.facet.field for one in self._table.records]
        here = fields[self._table.cursor] if fields else ""
        later = (at for at, field in enumerate(fields) if at > self._table.cursor and field != here)
        self._table.go(next(later, 0))

    def action_choose(self, keeps: bool) -> None:
        if (one := self._table.record) is not None:
            self.app.pop_screen()
            self._follow(Condition(one.facet, keeps))

    def paragraphs(self) -> Iterator[Paragraph]:
        return (Paragraph(f"{one.records} {facet_words(one.facet)}") for one in self._table.records)

    def copied(self) -> str:
        return facet_words(self._table.record.facet) if self._table.record is not None else ""


ASKED_S = 5.0
"""How long trace servers may take to find the spans that name a typed job."""


class Guide:
    """Goes to what a text may mean, on an app whose lowest screen shows the jobs."""

    def __init__(self, app: App[Any], shared: Shared) -> None:
        self._app = app
        self._shared = shared

    def work_for(self, text: str) -> str:
        """The slow work needed to follow a text or a command, in words; "" if there is none."""
        with suppress(CommandError):
            said = parse_command(text)
            text = said.rest if said.command.call == "goto" else ""
        if self.asks_servers(text):
            return "asking trace servers"
        is_in_files = find.is_path(text) or any(find.named_in_files(text[:LONGEST]))
        reads = is_in_files and not self._jump_in_store(text).goals
        return "reading the files of the newest jobs" if reads else ""

    def jump(self, text: str, *, guesses: bool = True) -> bool:
        """Go to what a text means; without `guesses` only where something has that name."""
        jump = self._jump_in_store(text)
        return (guesses or jump.is_sure) and self._take(text, jump)

    def _jump_in_store(self, text: str) -> Jump:
        return jump_to(text, self._shared.store, self._shared.logs.names()) if text.strip() else NOWHERE

    def asks_servers(self, text: str) -> bool:
        """Whether following a text takes the time in which trace servers answer."""
        client = self._shared.trace_client
        if client is None or not client().asks_servers or not may_name_a_job(text):
            return False
        return not self._jump_in_store(text).is_sure

    async def seek(self, text: str) -> bool:
        shared = self._shared
        jump = await look_up(text, shared.store, shared.logs.names(), shared.gatherer())
        if self.asks_servers(text):
            asked = await self._goals_of_servers(text.strip())
            known = {goal.trace for goal in asked}
            others = tuple(goal for goal in jump.goals if goal.trace is None or goal.trace not in known)
            if asked:
                jump = Jump((*asked, *others), len(asked) == 1)
        return self._take(text, jump)

    async def _goals_of_servers(self, job_id: str) -> tuple[Goal, ...]:
        from jobtui.session.traces import ways_by_attribute

        assert self._shared.trace_client is not None
        client, names = self._shared.trace_client(), self._shared.store.traces.job_attributes
        try:
            async with asyncio.timeout(ASKED_S):
                ways = await ways_by_attribute(client, job_id, names)
        except TimeoutError:
            words = f"no trace of {job_id} was found: no answer within {ASKED_S:g} s"
            self._app.notify(show(words), severity="warning", markup=False)
            return ()
        for note in () if ways.found else ways.notes:
            self._app.notify(show(note), severity="warning", markup=False)
        return spans_goals((link.trace_id, link.why) for link in ways.found)

    def _take(self, text: str, jump: Jump) -> bool:
        if jump.goals:
            self.choose(text.strip(), jump.goals, is_clear=jump.is_clear)
        return bool(jump.goals)

    def choose(self, asked: str, goals: Sequence[Goal], *, is_clear: bool) -> None:
        if is_clear:
            self.go(goals[0])
        else:
            self._app.push_screen(ChoosingScreen(self._shared, asked, goals, self.go))

    def go(self, goal: Goal) -> None:
        if goal.job is not None:
            open_screen(self._app, ScreenName.JOB, self._shared, goal.job)
        elif goal.trace is not None:
            self.open_trace(goal.trace)
        elif goal.log is not None:
            open_screen(self._app, ScreenName.LOGS, self._shared, goal.log)
        elif goal.filter is not None:
            self.lowest().set_filter(goal.filter)

    def open_trace(self, ref: TraceRef) -> None:
        open_screen(self._app, ScreenName.TRACE, self._shared, ref.trace_id, None, "; ".join(ref.notes))

    def lowest(self) -> FilteringScreen:
        while len(self._app.screen_stack) > 1:
            self._app.pop_screen()
        screen = self._app.screen
        assert isinstance(screen, FilteringScreen)
        return screen
