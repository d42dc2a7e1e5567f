"""What keeps a log screen up to date: which log it shows, what was written to that, what its header says."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from textual import events, on
from textual.app import ComposeResult

from jobtui.actions import Place as At
from jobtui.actions import hints_at
from jobtui.model.pages import Extent, LogUnreadable, Place
from jobtui.render.hits import finder
from jobtui.render.log_line import Look
from jobtui.render.log_tags import Tags
from jobtui.screens.base import Board, LiveScreen
from jobtui.screens.log_names import Names, all_names, labels_of, tags_of
from jobtui.screens.log_reader import LogReader
from jobtui.screens.log_words import status_words
from jobtui.store.store import Changes
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.log_feed import LogFeed
from jobtui.widgets.log_header import LogHeader, LogHistogram, LogStatus
from jobtui.widgets.log_view import LogView
from jobtui.widgets.row_view import Move

FIRST_WAIT_S = 0.05
"""How long the first paint waits for lines; without them it is made of what there is."""
LOOK_S = 2.0
"""How often a log is looked at that does not seem to change."""
WORK_S = 0.1
"""How long it is looked through between two looks."""
OVERVIEW_S = 0.5
"""How often the histogram is drawn anew while the log is looked through."""
TAG_CELLS, NARROW_TAG_CELLS = 14, 3
"""Cells of the name of a log before its lines, and the same on a narrow screen."""
NARROW = 70
ALL = "all"


class LogScreen(LiveScreen):
    """A log on a screen. Subclasses give the actions."""

    DEFAULT_CSS = """
    LogScreen.-low LogHistogram, LogScreen.-flat LogHistogram { display: none; }
    LogScreen.-line LogHeader { display: none; }
    """

    def __init__(self, board: Board, source_name: str | None = None, offset: Place | None = None) -> None:
        super().__init__(board)
        self._extra = source_name
        self._names: Names = all_names(board, source_name)
        self._chosen = 0 if source_name is None else self._names.index(source_name)
        self._offset = offset
        self._is_picked = source_name is not None
        self._set: tuple[str, ...] | None = None
        self._readers: dict[str | None, LogReader] = {}
        self._reader: LogReader | None = None
        self._number: int | None = None
        self._worked_at: Extent | None = None
        self._shown = asyncio.Event()
        self._awake = asyncio.Event()
        self._labels = labels_of(board, self._names)
        self._header = LogHeader(board.now)
        self._histogram = LogHistogram()
        self._view = LogView()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        if self._names:
            self._choose(self._chosen)
        else:
            self._shown.set()
        yield self._header
        yield self._histogram
        yield self._view
        yield KeyLine(hints_at(At.LOGS))

    @on(events.Mount)
    async def _wait_for_lines(self) -> None:
        """Let the first paint wait a moment for lines: two paints cost more than one."""
        self._show_status()
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_WAIT_S):
                await self._shown.wait()

    @on(events.Unmount)
    async def _release(self) -> None:
        """Release the logs."""
        for reader in self._readers.values():
            reader.end_search()
            await reader.log.aclose()

    @on(events.ScreenResume)
    def _wake(self) -> None:
        """Go on following the log."""
        self._awake.set()

    def pause_ended(self) -> None:
        """Go on following the log."""
        super().pause_ended()
        self._awake.set()

    def take(self, changes: Changes) -> None:
        """The log is looked at here, not through the store."""

    def tick(self) -> None:
        """Let the clock go on."""
        self._header.repaint()

    def show_all(self) -> None:
        """Show everything anew."""
        self._view.redraw()
        self._histogram.redraw()
        self._show_status()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_trail(self.trail)

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._view.move(move)

    def start(self, group: str, call: Callable[[], Awaitable[None]]) -> None:
        """Do something beside the screen, instead of what was begun of this group before."""
        work: Any = call  # a callable, which Textual's type of work does not admit when it gives nothing
        self.run_worker(work, group=group, exclusive=True)

    # Which log.

    def _choose(self, chosen: int) -> None:
        """Show another of the logs, where it was left."""
        if self._reader is not None:
            self._reader.place = None if self._view.follows else self._view.place
        self._chosen = chosen
        name = self._names[chosen]
        reader = self._readers.get(name)
        if reader is None:
            log = self.board.logs.merged(self._set) if name is None else self.board.logs.open(name)
            reader = self._readers[name] = LogReader(log, name, place=self._offset)
            self._offset = None
        self._reader = reader
        self._number = None
        self._header.set_read_at(reader.read_at)
        self._view.set_look(Look(self._view.shows_heads, self._tags() if name is None else None))
        self._view.bookmarks = reader.bookmarks
        self._view.set_finder(finder(reader.search.query) if reader.search else None)
        self.start("keep up", partial(self._keep_up, reader))

    def _tags(self) -> Tags:
        """What stands before the lines of each log where they are mixed."""
        return tags_of(self.board, self._labels, NARROW_TAG_CELLS if self.size.width < NARROW else TAG_CELLS)

    def on_resize(self) -> None:
        """Shorten what stands before lines, or no longer."""
        if self._reader is not None and self._reader.name is None:
            self._view.set_look(Look(self._view.shows_heads, self._tags()))

    # How it goes on.

    async def _keep_up(self, reader: LogReader) -> None:
        """Follow the log while it is shown."""
        await self._look(reader)
        await self._show_lines(reader)
        self._worked_at = None
        drawn_at = 0.0
        while self._reader is reader:
            is_live = self.is_current and self.board.paused_at is None
            worked = is_live and await self._look(reader) and reader.extent != self._worked_at
            busy = worked and await self._work(reader)
            if worked and (not busy or monotonic() - drawn_at >= OVERVIEW_S):
                drawn_at = monotonic()
                self._show_overview(reader)
            if busy:
                await asyncio.sleep(0.0)
            elif is_live:
                await reader.log.changed(LOOK_S)
            else:
                if self._view.follows and not self.is_current:
                    reader.rest()
                self._awake.clear()
                await self._awake.wait()

    async def _show_lines(self, reader: LogReader) -> None:
        """Show the log where it was left, or its end."""
        feed = LogFeed(reader.lines)
        try:
            await feed.jump(reader.place)
        except LogUnreadable as error:
            self._set_problem(reader, str(error))
        self._view.take_over(feed, reader.place)
        self._shown.set()

    async def _look(self, reader: LogReader) -> bool:
        """Notice what was written; whether the log can be read."""
        try:
            extent = await reader.log.look()
        except LogUnreadable as error:
            self._set_problem(reader, str(error))
            return False
        self._set_problem(reader, "")
        reader.read_at = self.board.now()
        if reader is self._reader:
            self._header.set_read_at(reader.read_at)
        if extent != reader.extent:
            before, reader.extent = reader.extent, extent
            self._grown(reader, before)
        return True

    def _grown(self, reader: LogReader, before: Extent) -> None:
        if reader.search is not None and not reader.is_searching:
            self.start("search on", partial(self._search_on, reader))
        if not reader.is_filtered:
            self._view.grown(reader.extent)
        if reader.extent.revision != before.revision and not reader.is_filtered:
            self._view.reload()
        if reader.extent.event != before.event:
            self._show_status()

    async def _search_on(self, reader: LogReader) -> None:
        """Search what was written; where only hits are shown, show the new ones."""
        if reader.search is not None:
            await reader.search.extend()
            self._show_status()
            if reader.is_filtered and self._reader is reader:
                self._view.grown(reader.extent)

    async def _work(self, reader: LogReader) -> bool:
        """Look through a little more of the log; whether there is more."""
        until = monotonic() + WORK_S
        extent = reader.extent
        try:
            while await reader.log.work():
                if monotonic() >= until:
                    return True
        except LogUnreadable as error:
            self._set_problem(reader, str(error))
        self._worked_at = extent
        return False

    def _show_overview(self, reader: LogReader) -> None:
        overview = reader.log.overview()
        if overview != self._histogram.overview:
            self._histogram.set_overview(overview)
            self._find_number()

    def _set_problem(self, reader: LogReader, problem: str) -> None:
        if reader.problem != problem:
            reader.problem = problem
            self._show_status()

    # What the header says.

    @on(LogView.Moved)
    def _moved(self) -> None:
        self._histogram.set_place(self._view.place)
        self._show_status()
        self._find_number()

    @on(LogView.Failed)
    def _failed(self, message: LogView.Failed) -> None:
        if self._reader is not None:
            self._set_problem(self._reader, message.words)

    def _find_number(self) -> None:
        if self._reader is not None and self._view.place is not None:
            self.start("number", partial(self._show_number, self._reader, self._view.place))

    async def _show_number(self, reader: LogReader, place: Place) -> None:
        try:
            self._number = await reader.log.number_of(place)
        except LogUnreadable:
            self._number = None
        self._show_status()

    def _show_status(self) -> None:
        whole = ALL if self._set is None else f"{len(self._set)} logs"
        names = tuple(whole if name is None else self._labels[name] for name in self._names)
        words = status_words(self._reader, self._view, self._number)
        self._header.set_status(LogStatus(names, self._chosen, tuple(words)))
