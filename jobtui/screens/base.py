"""What all screens share: live data a few times a second, keys from the table of actions, layout by size.

What the first paint does not need is imported in the functions that need it, here and in the other screens.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from jobtui.actions import ScreenName, actions_at, hints_at
from jobtui.model.commands import Command
from jobtui.model.health import Fault
from jobtui.model.ids import JobId
from jobtui.model.numbers import counted
from jobtui.model.secrets import mask_text
from jobtui.render.columns import sort_records
from jobtui.render.text import safe, show
from jobtui.screens.shared import CopyTarget, Shared
from jobtui.store.store import NO_CHANGES, Changes
from jobtui.widgets.filter_bar import Completion, FilterBar, History, Mistake
from jobtui.widgets.frame import TRAIL, Header, KeyLine, NoticeLine, RuleLine, SourceStrip
from jobtui.widgets.lines import LineView
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.row_view import Move

if TYPE_CHECKING:
    from jobtui.analysis.filter import KnownWords
    from jobtui.analysis.filter_syntax import FilterError, TextFields
    from jobtui.render.spans import Paragraph
    from jobtui.widgets.text_pane import WrappedText

Record = TypeVar("Record")
Test = TypeVar("Test")

FLUSH_S = 0.25
"""Changes are shown at most this often."""
TINY_ROWS = 3
"""Up to this height only the worst is shown."""
TICK_S = 1.0
"""How often ages are updated."""


class LiveScreen(Screen[None], inherit_bindings=False):
    """A screen that gets the changes of the store, a few times a second."""

    @dataclass
    class Pasted(Message):
        """Something was pasted that names a job."""

        text: str

    ALLOW_SELECT = False  # our lines do their own selection, see LineView
    NAME: ClassVar[ScreenName]
    """Which screen it is in the table of actions."""
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (6, "-low"), (16, "-high"), (34, "-tall")]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-wide")]

    _main: Any
    """What the keys of the cursor move."""

    def __init__(self, shared: Shared) -> None:
        super().__init__()
        self.shared = shared
        self._bindings = BindingsMap(
            Binding(",".join(action.keys), action.call, action.help, show=False)
            for action in actions_at(self.NAME)
            if action.keys
        )
        self._pending = NO_CHANGES
        self._flushed_at = 0.0
        self._flush_is_due = False
        self._notice = NoticeLine()
        self._missed_pause = False
        self._fault_words = ""

    @property
    def is_current(self) -> bool:
        """Whether it is visible. Textual also counts the screen below an opaque modal as current."""
        top = self.app.screen if super().is_current else None
        return top is self or (top is not None and top.styles.background.a < 1)

    def open_late(self, screen: Screen[None]) -> None:
        """Open a screen that took a while to make, unless the user went elsewhere or is typing."""
        if self.app.screen is self and not self.query(FilterBar):
            self.app.push_screen(screen)

    def take(self, changes: Changes) -> None:
        """Show what changed in the store."""

    def tick(self) -> None:
        """Update ages."""

    def show_all(self) -> None:
        """Redraw everything, as after a change of how times are shown."""

    def selected_text(self) -> str:
        """What was selected with the mouse, "" when nothing is; safe to show."""
        return next((view.selected_text for view in self.query(LineView) if view.selected_text), "")

    def forget_selected(self) -> None:
        for view in self.query(LineView):
            view.forget_selected()

    def action_move(self, move: str) -> None:
        self.forget_selected()
        self._main.move(Move(move))

    def action_back(self) -> None:
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()

    async def action_command(self) -> None:
        from jobtui.screens.command_table import complete_command
        from jobtui.widgets.filter_bar import CommandBar

        if self.query(FilterBar):
            return
        known = self.known_values()
        bar = CommandBar(
            history=self.shared.commands, completer=lambda text, cursor: complete_command(text, cursor, known)
        )
        await self.mount(bar, before=next(iter(self.query(KeyLine)), None))

    def known_values(self) -> "KnownWords":
        from jobtui.screens.command_table import known_values

        return known_values(self.shared.store.jobs, self.shared.views)

    def follow(self, command: str) -> str | None:
        """Run a `:` command that only this screen has: "", or what is wrong; None for no such command."""
        return None

    @property
    def crumb(self) -> str:
        """Its name in the trail of screens; safe to show."""
        return str(self.NAME)

    @property
    def trail(self) -> tuple[str, ...]:
        below = takewhile(lambda screen: screen is not self, self.app.screen_stack[1:])
        return tuple(screen.crumb for screen in below if isinstance(screen, LiveScreen))

    def show_trail(self) -> None:
        """Show the screens between the jobs and this one."""

    async def taken(self) -> CopyTarget | None:
        return None

    def copied(self) -> str:
        """The text to copy for the row under the cursor, "" for nothing; safe to show."""
        return "\n".join(self.chosen_jobs())

    def copy(self, text: str) -> None:
        from jobtui.screens.export import copy

        copy(self, self.shared.looks.clipboard, mask_text(text))

    def chosen_jobs(self) -> Sequence[JobId]:
        """The jobs about which an action is: those that are marked, else the one under the cursor."""
        return ()

    def action_copy(self) -> None:
        if text := self.copied():
            self.copy(text)

    @work(group="report", exclusive=True)
    async def action_report(self) -> None:
        from jobtui.screens.export import job_report

        for job_id in self.chosen_jobs()[:1]:
            if report := await job_report(self.shared, job_id):
                self.copy(report)
            else:
                self.notify("no source has a record of this job", timeout=4)

    def action_bundle(self) -> None:
        commands = [self.shared.command("bundle", about=[job_id]) for job_id in self.chosen_jobs()]
        if commands:
            self.copy("\n".join(map(str, commands)))

    def action_await_end(self) -> None:
        from jobtui.screens.alarm import toggle_awaited

        if words := toggle_awaited(self.shared, self.chosen_jobs()):
            self.notify(words, timeout=4, markup=False)

    def on_mount(self) -> None:
        self._unsubscribe = self.shared.live.subscribe(self._collect)
        self.set_interval(TICK_S, self._tick)
        self.mount(self._notice)
        self.show_pause()

    def on_unmount(self) -> None:
        self._unsubscribe()
        self._styles_cache.clear()

    def on_screen_suspend(self) -> None:
        """Free what was drawn, a kilobyte a line; it is drawn again when the screen is shown."""
        self._fault_words = ""
        for widget in self.walk_children(Widget):
            widget._styles_cache.clear()

    def on_screen_resume(self) -> None:
        self.show_trail()
        self.show_pause()
        if self.shared.paused_at is None:
            self._go_on()
        else:
            self._flush()

    def show_pause(self) -> None:
        self._notice.words = self.shared.notice() or self._fault_words
        self._notice.set_class(bool(self._notice.words), "-needed")

    def say_fault(self, fault: Fault, then: str = "") -> None:
        self._fault_words = f"{fault.words}{then}"
        self.show_pause()

    def pause_begins(self) -> None:
        self.show_pause()
        self._flush()  # `shared` keeps what changes from now on

    def pause_ended(self) -> None:
        """Show all that was held back: now if it is visible, else when it is."""
        self._pending |= self.shared.waiting
        self._missed_pause = True
        if self.is_current:
            self.show_pause()
            self._go_on()

    def _go_on(self) -> None:
        self._flush()
        if self._missed_pause:
            self._missed_pause = False
            self.show_all()
        self.tick()

    @on(events.Resize)
    def _measure(self, event: events.Resize) -> None:
        """Add a class for a screen of a few lines, where only the worst is shown."""
        self.set_class(event.size.height <= TINY_ROWS, "-tiny")
        self.set_class(event.size.height == 1, "-line")
        self.show_pause()

    def _tick(self) -> None:
        if not self.is_current:
            return
        if self.shared.paused_at is None:
            self.tick()
        if self.shared.notice() is not None:
            self.show_pause()

    def _collect(self, changes: Changes) -> None:
        if self.shared.paused_at is not None:
            return
        self._pending |= changes
        if not self._flush_is_due:
            self._flush_is_due = True
            wait_s = self._flushed_at + FLUSH_S - monotonic()
            if wait_s > 0:
                self.set_timer(wait_s, self._flush)
            else:
                self.call_later(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._pending == NO_CHANGES or not self.is_current:
            return
        self._flushed_at = monotonic()
        changes, self._pending = self._pending, NO_CHANGES
        self.take(changes)


class HeadedScreen(LiveScreen):
    """Header, sources, what `body` gives, keys. `show_all` shows it at every change, and every second."""

    FOOT = ""
    """Words on the rule below what is shown."""
    _about: "WrappedText | None" = None
    """The lines below the main part: all about the row under the cursor."""

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._header = Header(shared.now, shared.title)
        self._strip = SourceStrip(shared.now)
        self._rule = RuleLine(self.FOOT)

    def body(self) -> Iterator[Widget]:
        yield RuleLine()
        yield self._main
        yield self._rule
        if self._about is not None:
            yield self._about
            yield RuleLine().add_class("-last")

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._strip
        yield from self.body()
        yield KeyLine(hints_at(self.NAME))

    def on_mount(self) -> None:
        self.show_all()

    @property
    def heading(self) -> str:
        """Its name in its own header; safe to show."""
        return self.crumb

    def look(self) -> Any:
        """The values besides its record on which a cell depends."""
        from jobtui.render.columns import TimeLook

        return TimeLook(self.shared.now(), relative=not self.shared.absolute)

    def show_trail(self) -> None:
        self._header.title = TRAIL.join((self.shared.title, *self.trail, self.heading))

    def take(self, changes: Changes) -> None:
        self.show_all()

    def tick(self) -> None:
        self.show_all()
        self._header.repaint()

    def show_all(self) -> None:
        self._strip.sources = self.shared.store.sources()

    def paragraphs(self) -> Iterable["Paragraph"]:
        return ()

    def show_about(self) -> None:
        if self._about is not None:
            self._about.set_text(self.paragraphs())

    def on_record_list_highlighted(self) -> None:
        self.show_about()

    async def on_record_list_opened(self) -> None:
        await self.run_action("open")

    def block(self) -> str:
        return "\n".join(part.text for part in self.paragraphs())

    def command(self) -> Command:
        """The command that prints the same; "" if there is none."""
        return Command()

    def copied(self) -> str:
        return super().copied() or self.block()

    async def taken(self) -> CopyTarget | None:
        return CopyTarget(self.block(), self.command())


def mistake_of(error: "FilterError") -> Mistake:
    return Mistake(error.start, error.end, show(str(error)))


def test_of(parse: Callable[[str], Test], text: str) -> tuple[Test | None, Mistake | None]:
    """The test of a filter, None if all records pass, and the mistake in it if it has one."""
    if not text.strip():
        return None, None
    from jobtui.analysis.filter_syntax import FilterError  # the first paint has no filter

    try:
        return parse(text), None
    except FilterError as error:
        return None, mistake_of(error)


class FilteringScreen(HeadedScreen):
    """A screen of records that pass a filter, which is typed above its rule."""

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.filters = History()
        self.filter_text = ""
        """The filter in effect, "" when all is shown."""
        self._passes: Any = None
        """Its test, None if all records pass."""

    def filter_bar(self) -> FilterBar:
        raise NotImplementedError

    def parsed(self, text: str) -> Any:
        """The test of a filter. Raises FilterError."""
        raise NotImplementedError

    def apply_filter(self) -> None:
        """Show what passes the filter."""
        self.show_all()

    def set_filter(self, text: str) -> Mistake | None:
        """Filter by this text; returns the mistake in it, which means no filter."""
        before, (self._passes, mistake) = self.filter_text, test_of(self.parsed, text)
        self.filter_text = "" if mistake else text.strip()
        if self.filter_text != before:
            self.apply_filter()
        return mistake

    def sort_by(self, key: str | None, *, reverse: bool = False) -> None:
        self._main.sort_by(key, reverse=reverse)
        self.show_all()

    def action_sort(self) -> None:
        keys = (None, *(column.key for column in self._main.columns))
        self.sort_by(next((after for key, after in pairwise(keys) if key == self._main.sorted_by), None))

    def action_reverse(self) -> None:
        self.sort_by(self._main.sorted_by, reverse=not self._main.reverse)

    async def action_filter(self) -> None:
        if not self.query(FilterBar):
            await self.mount(self.filter_bar(), before=self._rule)

    def edit_filter(self, bar: FilterBar, text: str) -> None:
        bar.set_mistake(self.set_filter(text))

    async def close_filter(self, bar: FilterBar, text: str) -> None:
        bar.set_mistake(self.set_filter(text))
        if bar.mistake is None:
            await bar.remove()

    @on(FilterBar.Edited)
    def _filter_edited(self, message: FilterBar.Edited) -> None:
        if message.bar.is_attached:  # else it was closed in the meantime
            self.edit_filter(message.bar, message.text)

    @on(FilterBar.Closed)
    async def _filter_closed(self, message: FilterBar.Closed) -> None:
        if type(message.bar) is not FilterBar:
            return  # a command, for the app
        await self.close_filter(message.bar, message.bar.before if message.text is None else message.text)

    def action_back(self) -> None:
        if self.filter_text:
            self.set_filter("")
        elif isinstance(self._main, RecordTable) and self._main.marked:
            self._main.forget_marks()
        else:
            super().action_back()


class TableScreen(FilteringScreen, Generic[Record]):
    """A table of the records that pass a filter, sorted by a column; `show_all` redraws it."""

    WHAT: ClassVar[str]
    """The word for a record."""
    COLUMNS: ClassVar[Sequence[Any]]
    KEY: ClassVar[Any]
    """Gives the key of a record, by which it is recognized when it has changed."""
    FIELDS: "ClassVar[TextFields[Any] | None]" = None
    """The fields of the filter, which are completed."""
    PLACEHOLDER: ClassVar[str]

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._main = self._table = RecordTable[Record](self.COLUMNS, self.look, self.KEY)

    def records(self) -> Sequence[Record]:
        """All records, in the usual order."""
        raise NotImplementedError

    def parsed(self, text: str) -> Callable[[Record], bool]:
        assert self.FIELDS is not None
        return self.FIELDS.parse(text)

    def silence(self) -> Sequence[str]:
        raise NotImplementedError

    def words(self) -> Iterable[str]:
        """Further words on the rule; empty ones are left out."""
        return ()

    def total(self) -> str:
        return counted(len(self.records()), self.WHAT)

    def show_all(self) -> None:
        super().show_all()
        table, known = self._table, self.records()
        table.empty = (f"no {self.WHAT} passes the filter",) if known else self.silence()
        passing = known if self._passes is None else filter(self._passes, known)
        table.set_records(sort_records(passing, self.COLUMNS, table.sorted_by, reverse=table.reverse))
        filtered = f"/{safe(self.filter_text)}" if self.filter_text else ""
        total = f"{table.count:,} of {self.total()}" if filtered else self.total()
        order = f"by {table.sorted_by}{', reversed' * table.reverse}" if table.sorted_by else ""
        self._rule.words = " · ".join(filter(None, (filtered, total, *self.words(), order)))
        self._rule.set_class(bool(self.filter_text), "-needed")
        self.show_about()

    def command(self) -> Command:
        return self.shared.command(self.NAME, about=[self.filter_text] * bool(self.filter_text))

    def complete(self, text: str, cursor: int) -> Completion:
        from jobtui.screens.command_table import complete_fields

        if (fields := self.FIELDS) is None:
            return Completion(cursor, cursor, ())
        return complete_fields(text, cursor, fields.names, lambda name: fields.values(name, self.records()))

    def filter_bar(self) -> FilterBar:
        return FilterBar(
            self.filter_text, history=self.filters, completer=self.complete, placeholder=self.PLACEHOLDER
        )
