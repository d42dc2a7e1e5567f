"""What every screen works with, and what they agree on: the store, the time, the pause, what is kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from jobtui.actions import key_of
from jobtui.model.clock import Clock, Nanos
from jobtui.model.looks import USUAL_LOOKS, Looks
from jobtui.model.words import counted
from jobtui.render.text import Zone, clock_time
from jobtui.store.store import NO_CHANGES, Changes, Store
from jobtui.views import Views
from jobtui.widgets.history import History

if TYPE_CHECKING:
    # What follows from it is imported where it is needed, as the first paint does not
    from jobtui.analysis.cluster_paths import Reach
    from jobtui.analysis.traces.services import ServiceMarks
    from jobtui.model.job_desk import JobDesk
    from jobtui.model.pages import Log, LogBook
    from jobtui.model.playing import Player
    from jobtui.model.trace_desk import TraceDesk


class NoLogs:
    """No log can be read line by line."""

    def names(self) -> tuple[str, ...]:
        """None."""
        return ()

    def open(self, name: str) -> "Log":
        """Not to be called. Raises KeyError."""
        raise KeyError(name)

    def merged(self, names: Sequence[str] | None = None) -> "Log":
        """Not to be called. Raises KeyError."""
        raise KeyError


NO_LOGS = NoLogs()


class Taken(NamedTuple):
    """What can be taken along: a block of text, a command that shows the same outside, a file at a line.

    The block and the command are safe to show; what is empty is not there.
    """

    block: str
    command: str = ""
    path: str = ""
    line: int = 0


@dataclass(slots=True)
class Board:
    """What every screen works with, and what they agree on."""

    store: Store
    clock: Clock
    desk: "JobDesk"
    title: str = "jobtui"
    words: tuple[str, ...] = ()
    """The flags with which another jobtui reads the same."""
    absolute: bool = False
    """Times of day instead of ages."""
    logs: "LogBook" = NO_LOGS
    """The logs that can be read line by line."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """The journals of docker hosts and clusters, as configured, by the name of the host."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Directories of this machine by those on clusters that are mounted there, as configured."""

    trace_desk: "Callable[[], TraceDesk] | None" = None
    """What answers about traces: fetch, follow, search; None where there is no session."""
    views: Views = field(default_factory=Views)
    """What the user asked to keep."""
    commands: History = field(default_factory=History)
    """What was said behind `:`."""
    names_of_jobs: tuple[str, ...] = ()
    """The attributes in which spans name a job, as configured; none: the usual ones."""
    marks: "ServiceMarks | None" = field(default=None, init=False)
    live: Store = field(init=False)
    """What goes on while `store` is what was there at the pause."""
    paused_at: Nanos | None = field(default=None, init=False)
    waiting: Changes = field(default=NO_CHANGES, init=False)
    """What changed since the pause."""
    looks: Looks = USUAL_LOOKS
    """How the user wants it to look and be handled."""
    player: "Player | None" = None
    """What goes through recorded time, where there is a recording."""

    def __post_init__(self) -> None:
        """Show what is there."""
        self.live = self.store

    @property
    def reach(self) -> "Reach":
        """How clusters can be reached."""
        # Imported here, as the first paint does not need it
        from jobtui.analysis.cluster_paths import Reach

        return Reach(self.mounts, self.hosts)

    def job_attributes(self) -> tuple[str, ...]:
        """The attributes in which spans may name a job."""
        # Imported here, as the first paint does not need it
        from jobtui.model.trace_desk import JOB_ATTRIBUTES

        return self.names_of_jobs or JOB_ATTRIBUTES

    def service_marks(self) -> "ServiceMarks":
        """By what services are known, for as long as the program runs."""
        if self.marks is None:
            # Imported here, as the first paint does not need it
            from jobtui.analysis.traces.services import ServiceMarks

            self.marks = ServiceMarks()
        return self.marks

    def now(self) -> Nanos:
        """The present time, that of the pause while there is one."""
        return self.clock.now() if self.paused_at is None else self.paused_at

    def pause(self) -> None:
        """Let everything stay as it is."""
        self.paused_at = self.clock.now()
        self.waiting = NO_CHANGES
        self.store = self.live.snapshot()

    def resume(self) -> None:
        """Go on with what is there now."""
        self.paused_at = None
        self.store = self.live

    def note(self, changes: Changes) -> None:
        """Count what changes during a pause."""
        if self.paused_at is not None:
            self.waiting |= changes

    def notice(self) -> str | None:
        """What is to be said above every screen: where in recorded time it is, or that it is paused."""
        if self.player is None:
            return self._pause_words()
        from jobtui.screens.replaying import replay_words  # who watches what goes on does not need it

        return replay_words(self.player)

    def _pause_words(self) -> str | None:
        """That it is paused, since when, and what waits; None when it is not."""
        if self.paused_at is None:
            return None
        count = len(self.waiting.jobs) + len(self.waiting.gone)
        waits = f"{counted(count, 'change')} waiting"
        return f"paused {clock_time(self.paused_at)}{Zone.mark()}, {waits} · {key_of('app.pause')} goes on"
