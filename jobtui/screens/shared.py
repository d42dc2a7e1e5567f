"""The state that all screens share: the store, the time, the pause, views and history."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from textual.app import App
from textual.dom import DOMNode
from textual.worker import Worker

from jobtui.actions import ScreenName, key_of
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.model.clock import DAY, Clock, Nanos
from jobtui.model.commands import Command
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.model.numbers import counted
from jobtui.model.settings import NOWHERE, USUAL_LOOKS, Appearance, ClusterAccess
from jobtui.render.sources import extents
from jobtui.render.text import Zone, clock_time, date_time
from jobtui.store.store import NO_CHANGES, Changes, Store
from jobtui.views import Views
from jobtui.widgets.filter_bar import History
from jobtui.widgets.record_list import RecordList

if TYPE_CHECKING:
    from jobtui.analysis.traces.layout import ServiceMarks
    from jobtui.backends.job_reader import JobReader
    from jobtui.model.memory import MemoryOverview
    from jobtui.model.pages import SourceLogs
    from jobtui.recording.replay import ReplayPlayer
    from jobtui.render.columns import Column
    from jobtui.session.evidence import Gatherer, ReadCache
    from jobtui.session.traces import SessionTraces


class CopyTarget(NamedTuple):
    """Things to copy or to open outside: a text, a command that prints the same, a file at a line. The block
    and the command are safe to show; "" means none.
    """

    block: str
    command: Command = Command()
    path: str = ""
    line: int = 0


@dataclass(slots=True)
class Shared:
    store: Store
    clock: Clock
    job_reader: "JobReader"
    logs: "SourceLogs"
    """The logs that can be read line by line."""
    title: str = "jobtui"
    words: tuple[str, ...] = ()
    """The flags with which another jobtui reads the same."""
    absolute: bool = False
    """Times of day instead of ages."""
    reach: ClusterAccess = NOWHERE
    trace_client: "Callable[[], SessionTraces] | None" = None
    """Answers about traces: fetch, follow, search; None without a session."""
    ask_for_nodes: Callable[[float | None], None] = lambda every_s: None
    """Sets how often clusters are asked for their nodes; None for no more."""
    views: Views = field(default_factory=Views)
    commands: History = field(default_factory=History)
    marks: "ServiceMarks | None" = field(default=None, init=False)
    live: Store = field(init=False)
    """The live store; `store` is a snapshot during a pause."""
    paused_at: Nanos | None = field(default=None, init=False)
    waiting: Changes = field(default=NO_CHANGES, init=False)
    """The changes since the pause."""
    awaited: set[JobId] = field(default_factory=set, init=False)
    """Jobs whose end the user asked to know."""
    new_failures: int = field(default=0, init=False)
    """Jobs that failed since a key was last pressed."""
    looks: Appearance = USUAL_LOOKS
    """The user's wishes for its look and keys."""
    overview: "Callable[[Nanos], MemoryOverview] | None" = None
    """Gives all that is remembered of finished runs; None if nothing is."""
    reads: "ReadCache | None" = field(default=None, init=False)
    """What was read of jobs for any screen; None before the first look."""
    player: "ReplayPlayer | None" = None
    """Moves through recorded time if there is a recording."""

    def __post_init__(self) -> None:
        self.live = self.store

    def command(self, *words: str, about: Sequence[str] = ()) -> Command:
        ends = ("--",) if any(word.startswith("-") for word in about) else ()
        return Command("jobtui", *self.words, *words, *ends, about=about)

    def gatherer(self) -> "Gatherer":
        from jobtui.session.evidence import Gatherer, ReadCache

        self.reads = self.reads or ReadCache()
        return Gatherer(self.store, self.job_reader, self.now(), self.reach, self.reads)

    def no_jobs(self) -> tuple[str, ...]:
        none = "No source of jobs is configured: jobtui --help lists them."
        return self.nothing_known("No job is known.", Gives.JOBS, none)

    def nothing_known(self, words: str, gives: Gives, none: str) -> tuple[str, ...]:
        """These words, then what was read of such sources or `none`; empty while sources are first read."""
        sources = self.store.sources()
        if any(one.state is SourceState.STARTING or one.is_first_read for one in sources):
            return ()
        return words, *([*extents(sources, kinds_that_give(gives))] or (none,))

    def usual_columns(self) -> "tuple[Column, ...]":
        from jobtui.render.columns import DEFAULT_COLUMNS, JOB_COLUMNS

        by_key = {column.key: column for column in JOB_COLUMNS}
        usual = (by_key["profile"], *DEFAULT_COLUMNS) if self.store.profiles else DEFAULT_COLUMNS
        return tuple(by_key[key] for key in self.looks.columns) or usual

    def now(self) -> Nanos:
        return self.clock.now() if self.paused_at is None else self.paused_at

    def now_of(self, job: Job) -> Nanos:
        """The time by the clock of a job's source when that was last read."""
        return self.store.now_at(job.source, self.now())

    def pause(self) -> None:
        self.paused_at = self.clock.now()
        self.waiting = NO_CHANGES
        self.store = self.live.snapshot()

    def resume(self) -> None:
        self.paused_at = None
        self.store = self.live

    def note(self, changes: Changes) -> None:
        if self.paused_at is not None:
            self.waiting |= changes

    def notice(self) -> str | None:
        if (player := self.player) is not None:
            is_short = player.ends_at - player.begins_at < DAY
            times = player.at, player.begins_at, player.ends_at
            at, begin, end = (clock_time(one) if is_short else date_time(one)[5:] for one in times)
            state = f"▶ {player.speed}x" if player.speed else "■"
            play, back, on, before, after = map(key_of, REPLAY_CALLS)
            keys = f"{play} play  {back} {on} a minute  {before} {after} changes"
            return f"replay {state} {at}{Zone.mark()} of {begin} to {end} · {keys}"
        if self.paused_at is None:
            return None
        waits = f"{counted(len(self.waiting.jobs) + len(self.waiting.gone), 'change')} waiting"
        return f"paused {clock_time(self.paused_at)}{Zone.mark()}, {waits} · {key_of('app.pause')} resumes"


REPLAY_CALLS = ("app.pause", "app.step(-60)", "app.step(60)", "app.change(False)", "app.change(True)")
"""The actions that the line of a replay names."""
SCREENS: Mapping[str, str] = {
    ScreenName.JOB: "job.JobScreen", ScreenName.LOGS: "logs.LogsScreen",
    ScreenName.SOURCES: "sources.SourcesScreen", ScreenName.AGENTS: "agents.AgentsScreen",
    ScreenName.CHARTS: "charts.ChartsScreen", ScreenName.TRACES: "traces.TracesScreen",
    ScreenName.INCIDENTS: "incidents.IncidentsScreen", ScreenName.ALLOCATIONS: "nodes.AllocationsScreen",
    ScreenName.TRACE: "trace.TraceScreen", ScreenName.SEEN: "incidents.SeenScreen",
    ScreenName.NODES: "nodes.NodesScreen",
    ScreenName.COLUMNS: "choices.ColumnsScreen", ScreenName.LOG_SET: "choices.LogSetScreen",
    ScreenName.FACETS: "choices.FacetsScreen", ScreenName.TRACE_CHANGES: "traces.TraceChangesScreen",
}  # fmt: skip
"""The class of each screen that others open. It is imported when it is opened: no first paint needs it."""


def start(
    node: DOMNode, work: Callable[[], Coroutine[Any, Any, None]], *, group: str, exclusive: bool = False
) -> Worker[None]:
    """Run `work` in a worker; `exclusive` cancels the earlier workers of the group."""
    return node.run_worker(work, group=group, exclusive=exclusive)


T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """The result of a long computation in a thread.

    The garbage collector is off until it ends: walking lists of millions of items would block the screen.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return await asyncio.to_thread(call)
    finally:
        if collects:
            gc.enable()


def screen_at(screen: str, shared: Shared, *about: object) -> Any:
    module, _, name = SCREENS[screen].partition(".")
    return getattr(import_module(f"{__package__}.{module}"), name)(shared, *about)


def open_screen(app: App[Any], screen: str, shared: Shared, *about: object) -> None:
    """Open a screen; with what it is `about`, the cursor of the screen below stays on its record."""
    for opened_from in app.screen.query(RecordList) if about else ():
        opened_from.go(opened_from.cursor)
    app.push_screen(screen_at(screen, shared, *about))
