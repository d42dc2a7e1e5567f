"""The logs: one of them or the ends of all, followed or read, searched, filtered, copied."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic

from textual import events, on, work
from textual.app import ComposeResult
from textual.screen import Screen

from jobtui.actions import ScreenName, hints_at
from jobtui.analysis.log_shapes import Condition, continues, count_facets
from jobtui.analysis.times import looks_like_time, time_near
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.model.clock import Nanos
from jobtui.model.commands import Command
from jobtui.model.numbers import counted, whole
from jobtui.model.pages import Extent, FilePosition, Log, LogLine, LogUnreadable, Query, SearchState, query_of
from jobtui.model.tables import tables_of
from jobtui.render.log_lines import LineLook, Tags, finder
from jobtui.render.sources import extents
from jobtui.render.spans import Paragraph
from jobtui.render.text import Zone, date_time, show
from jobtui.screens.base import LiveScreen
from jobtui.screens.log_reader import LogReader, Names, all_names, labels_of, status_words, tags_of
from jobtui.screens.shared import CopyTarget, Shared, open_screen, screen_at
from jobtui.terminal.textual_patches import kept_up
from jobtui.widgets.filter_bar import FilterBar, LogPrompt
from jobtui.widgets.frame import KeyLine
from jobtui.widgets.log_feed import FOLDED, LogFeed, folded, runs_of
from jobtui.widgets.log_view import LogHeader, LogHistogram, LogStatus, LogView
from jobtui.widgets.row_view import Move

FIRST_WAIT_S = 0.05
"""How long the first paint waits for lines; after that it shows what there is."""
LOOK_S = 2.0
"""How often a log that does not seem to change is looked at."""
WORK_S = 0.1
"""How long it is searched between two looks."""
APART_S = 0.1
"""The least time between two looks, so that logs that are always written to do not delay keys."""
OVERVIEW_S = 0.5
"""How often the histogram is redrawn while the log is scanned."""
NARROW = 70
TAG_CELLS, NARROW_TAG_CELLS = 14, 3
"""Cells of the name of a log before its lines, and the same on a screen of fewer than `NARROW` cells."""
SEARCH_S = 0.05
"""How often the hits of a running search are counted."""
NO_SEARCH = "nothing is searched for: / starts a search"
COPIED_LINES, RECORD_LINES = 5_000, 500
"""The most lines copied at a time, and the most of one record; terminals often take fewer."""
COUNTED_LINES = 20_000
"""How many lines are read to count the values in them."""


class LogScreen(LiveScreen):
    """The log on the screen, how it is followed, and the header. Subclasses give the actions."""

    def __init__(
        self,
        shared: Shared,
        source_name: str | None = None,
        offset: int | None = None,
        at: Nanos | None = None,
        text: str = "",
    ) -> None:
        """At the line that was at `offset` and holds `text`, else at a time, else at the end."""
        super().__init__(shared)
        self._extra = source_name
        self._names: Names = all_names(shared, source_name)
        self._chosen = 0 if source_name is None else self._names.index(source_name)
        self._opening = offset, at, text
        self._is_picked = source_name is not None
        self._set: tuple[str, ...] | None = None
        self._readers: dict[str | None, LogReader] = {}
        self._reader: LogReader | None = None
        self._place: FilePosition | None = None
        """Where in its file the line under the cursor is."""
        self._worked_at: Extent | None = None
        self._shown = asyncio.Event()
        self._awake = asyncio.Event()
        self._labels = labels_of(shared, self._names)
        self._header = LogHeader(shared.now)
        self._histogram = LogHistogram()
        self._main = self._view = view = LogView()
        self.action_wrap, self.action_heads = view.toggle_wrap, view.toggle_heads
        self.action_sideways, self.action_bookmark = view.go_sideways, view.toggle_bookmark

    def compose(self) -> ComposeResult:
        if self._names:
            self._choose(self._chosen)
        else:
            self._view.empty = self._silence()
            self.add_class("-silent")
            self._shown.set()
        yield self._header
        yield self._histogram
        yield self._view
        yield KeyLine(hints_at(ScreenName.LOGS))

    def _silence(self) -> list[str]:
        """What to type where no log is read; safe to show."""
        kinds, command = kinds_that_give(Gives.LOGS), show(str(self.shared.command()))
        if read := [*extents(self.shared.store.sources(), kinds)]:
            return ["No log has any line yet:", *read]
        return [text.replace("{jobtui}", command) for text in tables_of("jobtui.screens", "empty")["logs"]]

    @on(events.Mount)
    async def _wait_for_lines(self) -> None:
        """Delay the first paint a moment until there are lines: two paints cost more than one."""
        self._show_status()
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_WAIT_S):
                await self._shown.wait()

    @on(events.Unmount)
    async def _release(self) -> None:
        for reader in self._readers.values():
            reader.end_search()
            await reader.log.aclose()

    @on(events.ScreenResume)
    def _wake(self) -> None:
        self._awake.set()

    def pause_ended(self) -> None:
        super().pause_ended()
        self._awake.set()

    def tick(self) -> None:
        self._renew_names()
        self._header.repaint()

    def show_all(self) -> None:
        self._view.redraw()
        self._histogram.redraw()
        self._show_status()

    def show_trail(self) -> None:
        self._header.trail = self.trail

    def _choose(self, chosen: int) -> None:
        if self._reader is not None:
            self._reader.position = None if self._view.follows else self._view.position
        self._chosen = chosen
        self.workers.cancel_group(self, "facets")  # those of the other log
        name = self._names[chosen]
        reader = self._readers.get(name)
        if reader is None:
            log = self.shared.logs.merged(self._set) if name is None else self.shared.logs.open(name)
            reader = self._readers[name] = LogReader(log, name)
        self._reader = reader
        self._place = None
        self._header.read_at = reader.read_at
        self.remove_class("-silent")
        self._view.set_look(LineLook(self._view.shows_heads, self._tags() if name is None else None))
        self._view.bookmarks = reader.bookmarks
        self._view.set_finder(finder(reader.search.query) if reader.search else None)
        self._keep_up(reader)

    def _tags(self) -> Tags:
        return tags_of(self.shared, self._labels, NARROW_TAG_CELLS if self.size.width < NARROW else TAG_CELLS)

    def on_resize(self) -> None:
        if self._reader is not None and self._reader.name is None:
            self._view.set_look(LineLook(self._view.shows_heads, self._tags()))

    @work(group="keep up", exclusive=True, description="")
    async def _keep_up(self, reader: LogReader) -> None:
        await kept_up(self, "following a log", partial(self._follow, reader))

    async def _follow(self, reader: LogReader) -> None:
        await self._look(reader)
        await self._show_lines(reader)
        self._worked_at = None
        drawn_at, undrawn, busy = 0.0, False, False
        while self._reader is reader:
            is_live = self.is_current and self.shared.paused_at is None
            worked = is_live and await self._look(reader) and reader.extent != self._worked_at
            was_busy, busy = busy, worked and await self._work(reader)
            undrawn = undrawn or worked
            if undrawn and (was_busy > busy or monotonic() - drawn_at >= OVERVIEW_S):
                drawn_at, undrawn = monotonic(), False
                if (overview := reader.log.overview()) != self._histogram.overview:
                    self._histogram.overview = overview
                    self._show_place()
            if busy:
                await asyncio.sleep(0.0)
            elif is_live:
                await asyncio.sleep(APART_S)
                await reader.log.changed(OVERVIEW_S if undrawn else LOOK_S)
            else:
                self._awake.clear()
                await self._awake.wait()

    async def _show_lines(self, reader: LogReader) -> None:
        feed = LogFeed(reader.lines)
        with self._told(reader):
            found = await self._opened_at(reader.log)
            reader.position = reader.position if found is None else found
            await feed.jump(reader.position)
        self._view.take_over(feed, reader.position)
        self._shown.set()

    async def _opened_at(self, log: Log) -> int | None:
        """Where it was opened, None at the end and after that."""
        (offset, at, text), self._opening = self._opening, (None, None, "")
        line = None if offset is None else await log.position_of(offset, text)
        if text and line is None:
            self.say("this line is no longer in the log")
        time = None if at is None else await log.position_of_time(at)
        return line if time is None or (text and line is not None) else time

    async def _look(self, reader: LogReader) -> bool:
        """Look for what was written. True if the log can be read."""
        try:
            extent = await reader.log.look()
        except LogUnreadable as error:
            self._set_problem(reader, str(error))
            return False
        self._set_problem(reader, "")
        reader.read_at = self.shared.now()
        if reader is self._reader:
            self._header.read_at = reader.read_at
        if extent == reader.extent:
            return True
        before, reader.extent = reader.extent, extent
        if reader.search is not None and not reader.is_searching:
            self._search_on(reader)
        if not reader.is_filtered:
            self._view.grown(extent)
        if extent.revision != before.revision and not reader.is_filtered:
            self._view.reload()
        if extent.event != before.event:
            self._show_status()
        return True

    @work(group="search on", exclusive=True, description="")
    async def _search_on(self, reader: LogReader) -> None:
        if reader.search is not None:
            await reader.search.extend()
            with self._told(reader):
                await reader.keep_hits()
            self._show_status()
            if reader.is_filtered and self._reader is reader:
                self._view.grown(reader.extent)

    async def _work(self, reader: LogReader) -> bool:
        until = monotonic() + WORK_S
        extent = reader.extent
        with self._told(reader):
            while await reader.log.work():
                if monotonic() >= until:
                    return True
        self._worked_at = extent
        return False

    @contextmanager
    def _told(self, reader: LogReader) -> Iterator[None]:
        """While a log is read: if it cannot be, the header says why."""
        try:
            yield
        except LogUnreadable as error:
            self._set_problem(reader, str(error))

    def _set_problem(self, reader: LogReader, problem: str) -> None:
        if reader.problem != problem:
            reader.problem = problem
            self._show_status()

    @on(LogView.Moved)
    def _moved(self) -> None:
        self._histogram.position = self._view.position
        self._show_status()
        self._show_place()

    @on(LogView.Failed)
    def _failed(self, message: LogView.Failed) -> None:
        if self._reader is not None:
            self._set_problem(self._reader, message.words)

    @work(group="place", exclusive=True)
    async def _show_place(self) -> None:
        if self._reader is not None and self._view.position is not None:
            try:
                self._place = await self._reader.log.file_position(self._view.position)
            except LogUnreadable:
                self._place = None
            self._show_status()

    def _show_status(self) -> None:
        whole = "all" if self._set is None else counted(len(self._set), "log")
        names = tuple(whole if name is None else self._labels[name] for name in self._names)
        if self._reader is not None:
            self._view.empty = (show(self._reader.problem) or self._reader.hidden_words,)
        words = status_words(self._reader, self._view, self._place)
        self._header.status = LogStatus(names, self._chosen, tuple(words))

    # Other logs. Streams of journals become known as they are read.

    def say(self, words: str) -> None:
        self.notify(words, timeout=2, markup=False)

    def action_next_log(self, steps: int) -> None:
        if len(self._names) > 1:
            self._is_picked = True
            self._choose((self._chosen + steps) % len(self._names))

    def action_log_set(self) -> None:
        known = [name for name in self._names if name is not None]
        if None not in self._names:
            self.say("there is only one log" if known else "no logs to read")
            return
        labels = {name: self._labels[name] for name in known}
        open_screen(self.app, ScreenName.LOG_SET, self.shared, labels, self._set or known, self._show_set)

    def _renew_names(self) -> None:
        names = all_names(self.shared, self._extra)
        if names == self._names or (self._names and self._names[self._chosen] not in names):
            return
        shown = self._names[self._chosen] if self._names else None
        self._names, self._labels = names, labels_of(self.shared, names)
        self._chosen = names.index(shown) if shown in names else 0
        if names and (self._reader is None or (None in names and not self._is_picked and shown is not None)):
            self._choose(0 if not self._is_picked else self._chosen)
        else:
            self.on_resize()
        self._show_status()

    def _show_set(self, chosen: tuple[str, ...]) -> None:
        self._is_picked = True
        if len(chosen) == 1 and chosen[0] in self._names:
            self._choose(self._names.index(chosen[0]))
            return
        known = tuple(name for name in self._names if name is not None)
        self._set = None if set(chosen) == set(known) else chosen
        if (reader := self._readers.pop(None, None)) is not None:
            reader.end_search()
            self.run_worker(reader.log.aclose(), group="release")
        self._choose(self._names.index(None))


class LogsScreen(LogScreen):
    """Opened at a position of one source or at a time, else at the end."""

    NAME = ScreenName.LOGS

    def action_select(self, move: str) -> None:
        self._view.select(Move(move))

    def action_select_lines(self) -> None:
        self._view.toggle_selection()
        self._show_status()

    def action_follow(self) -> None:
        if self._view.follows:
            self._view.follows = False
            self._show_status()
        else:
            self._view.go_to(None)

    def action_next_bookmark(self) -> None:
        if not self._view.bookmarks:
            self.say("no bookmarks: m sets one")
        self._view.next_bookmark()

    def action_back(self) -> None:
        if self._view.selection is not None:
            self.action_select_lines()
        elif self._reader is not None and self._reader.search is not None:
            self._end_search(self._reader)
        elif self._reader is not None and self._reader.conditions:
            self._set_conditions(())
        else:
            self.app.pop_screen()

    async def action_open(self) -> None:
        line, reader = self._view.line_at_cursor, self._reader
        if line is None or reader is None:
            return
        from jobtui.screens.text import ReadingScreen

        with self._told(reader):
            record = [one async for one in self._record(reader, line)]
            taken = await self.taken()
            self.app.push_screen(ReadingScreen(self.shared, "log line", self._about(line, record), taken))

    def _about(self, line: LogLine, record: Sequence[LogLine]) -> Iterable[Paragraph]:
        place = None if line.origin else self._place
        name = line.origin or (self._reader.name if self._reader else None) or ""
        number = f":{place.line:,}" if place is not None and place.line is not None else ""
        yield Paragraph(f"{show(name if place is None else place.path)}{number}", "accent")
        if (at := self._view.time) is not None:
            near = "" if line.at == at else ", from the nearest line with a time"
            yield Paragraph(f"{date_time(at)}{Zone.mark()}{near}", "dim")
        if line.note:
            yield Paragraph(line.note, "warning")
        yield from (Paragraph(""), *(Paragraph(show(one.text)) for one in record))

    async def _record(self, reader: LogReader, line: LogLine) -> AsyncIterator[LogLine]:
        page = await reader.unfolded.after(line.position, RECORD_LINES)
        for one in page.lines:
            if one.position >= line.end and (line.folded or not continues(line, one)):
                return
            yield one

    def _show_again(self, reader: LogReader, position: int | None) -> None:
        self._view.show(reader.lines, position)
        self._show_status()

    def action_fold_all(self) -> None:
        if self._reader is not None:
            self._reader.folds.toggle_all()
            self._show_again(self._reader, None if self._view.follows else self._view.position)

    @work(group="fold", exclusive=True)
    async def action_fold(self) -> None:
        line, reader = self._view.line_at_cursor, self._reader
        if reader is None or line is None:
            return
        with self._told(reader):
            if not line.folded:
                before = (await reader.unfolded.before(line.position, FOLDED)).lines
                after = (await reader.unfolded.after(line.position, FOLDED)).lines
                run = next(run for run in runs_of((*before, *after)) if run[-1].end > line.position)
                if len(run) < 2:
                    self.say("no lines here to fold")
                    return
                line = folded(run)
            reader.folds.toggle(line.position, line.end)
            self._show_again(reader, line.position)

    @work(group="facets", exclusive=True)
    async def action_facets(self) -> None:
        if (reader := self._reader) is None:
            return
        reader.is_counting = True
        self._show_status()
        try:
            with self._told(reader):
                self.open_late(await self._counted(reader))
        finally:
            reader.is_counting = False
            self._show_status()

    async def _counted(self, reader: LogReader) -> Screen[None]:
        lines: list[LogLine] = []
        at_edge = False
        position = (await reader.log.look()).end  # what the screen shows may be older, or nothing yet
        while len(lines) < COUNTED_LINES and not at_edge:
            page = await reader.unfolded.before(position, COUNTED_LINES // 10)
            lines[:0], at_edge = page.lines, page.at_edge or not page.lines
            position = lines[0].position if lines else position
        counts = await asyncio.to_thread(count_facets, lines)

        def add(one: Condition) -> None:
            self._set_conditions((*reader.conditions, one))

        of = counted(len(lines), "line") if at_edge else f"the newest {len(lines):,} lines"
        found: Screen[None] = screen_at(ScreenName.FACETS, self.shared, counts, of, add)
        return found

    def _set_conditions(self, conditions: tuple[Condition, ...]) -> None:
        if self._reader is not None:
            self._reader.conditions = conditions
            self._show_again(self._reader, None if self._view.follows else self._view.position)
            self._search_on(self._reader)

    def action_copy(self) -> None:
        line = self._view.line_at_cursor
        if self._view.selection is not None:
            self.action_copy_block()
        elif line is not None:
            self.copy(show(line.text))

    async def taken(self) -> CopyTarget | None:
        from jobtui.screens.export import file_target, is_file

        line, reader = self._view.line_at_cursor, self._reader
        if line is None or reader is None:
            return None
        name = line.origin or reader.name or ""
        if not is_file(self.shared, name):
            return CopyTarget(show(line.text), self.shared.command("find", about=[line.text]))
        place = self._place
        taken = file_target(name) if place is None else file_target(place.path, place.line or 0, place.offset)
        if reader.name is None and self._view.follows:
            files = (known for known in self._names if known and is_file(self.shared, known))
            taken = taken._replace(command=Command("tail", "-F", about=[*map(os.path.abspath, files)]))
        elif reader.name and reader.is_filtered and reader.search is not None:
            query = reader.search.query
            options = ["-n", "-P" if query.is_regex else "-F", *["-i"] * query.ignores_case, "-e", query.text]
            found = Command("grep", *options, "--", about=[taken.path])
            taken = taken._replace(command=found)
        return taken._replace(block=show(line.text))

    @work(group="copy", exclusive=True)
    async def action_copy_block(self) -> None:
        reader, line, chosen = self._reader, self._view.line_at_cursor, self._view.selection
        if reader is None or line is None:
            return
        with self._told(reader):
            if chosen is None:
                lines = [one async for one in self._record(reader, line)]
            else:
                page = await reader.unfolded.after(chosen[0], COPIED_LINES)
                lines = [one for one in page.lines if one.position <= chosen[1]]
            self.copy("\n".join(show(one.text) for one in lines))

    def action_error(self, direction: int) -> None:
        if self._reader is not None and (position := self._view.position) is not None:
            find = partial(self._reader.log.next_error, position, forward=direction > 0)
            self._seek(self._reader, find, f"no error {'below' if direction > 0 else 'above'}")

    @work(group="seek", exclusive=True, description="")
    async def _seek(self, reader: LogReader, find: Callable[[], Awaitable[int | None]], nowhere: str) -> None:
        """Go to the line searched for among all lines; `nowhere` is shown if there is none."""
        with self._told(reader):
            found = await find()
            if reader is not self._reader:
                return
            if found is None:
                self.say(nowhere)
            elif reader.is_filtered:
                reader.set_filtered(None, on=False)
                self._view.show(reader.lines, found)
            else:
                self._view.go_to(found)

    async def action_search(self) -> None:
        if self._reader is not None and not self.query(FilterBar):
            await self.mount(LogPrompt(), before=self.query_one(KeyLine))

    def follow(self, command: str) -> str | None:
        typed, reader, here = command.strip(), self._reader, self._view.time or self.shared.now()
        number = whole(typed.replace(",", ""))
        if reader is not None and number is not None and typed[:1] not in "+-":
            self._seek(reader, partial(reader.log.position_of_line, number), "lines here have no numbers")
        elif reader is None or not looks_like_time(typed):
            return None
        elif (at := time_near(typed, here, self.shared.now(), Zone.offset_s(here))) is None:
            return f"{typed} is not a time; such as 20:42:55, -10m, 2026-11-20 20:42"
        else:
            late = f"no line is known to be from {date_time(at)}{Zone.mark()} or later"
            self._seek(reader, partial(reader.log.position_of_time, at), late)
        return ""

    def on_filter_bar_edited(self, message: FilterBar.Edited) -> None:
        if isinstance(message.bar, LogPrompt) and message.bar.is_attached:
            query = query_of(message.text)
            self._view.set_finder(finder(query) if query else None)

    @on(FilterBar.Closed)
    async def _search_typed(self, message: FilterBar.Closed) -> None:
        if not isinstance(message.bar, LogPrompt):
            return
        await message.bar.remove()
        if (reader := self._reader) is None:
            return
        if query := query_of(message.text) if message.text else None:
            self._search(reader, query)
        else:
            before = reader.search.query if reader.search else None
            self._view.set_finder(finder(before) if before else None)

    @work(group="search", exclusive=True, description="")
    async def _search(self, reader: LogReader, query: Query) -> None:
        position = self._view.position
        reader.end_search()
        search = reader.log.search(query, reader.extent.end if position is None else position)
        reader.search, reader.seeks = search, 1
        self._view.set_finder(finder(query))
        if reader.is_filtered:
            self._view.show(reader.lines, position)
        watching = self.set_interval(SEARCH_S, lambda: self._found_more(reader))
        try:
            await search.run()
            with self._told(reader):
                await reader.keep_hits()
        finally:
            watching.stop()
        if search is reader.search:
            reader.seeks = reader.seeks or (1 if reader.conditions else 0)
            self._found_more(reader)
            if search.state is SearchState.FAILED:
                self.notify(show(search.problem), title="search", severity="warning", markup=False)
            elif search.state is SearchState.DONE and not len(reader.hits):
                self.say("not found")

    def _found_more(self, reader: LogReader) -> None:
        if reader is not self._reader:
            return
        if reader.seeks and not self._go_to_hit(reader, reader.seeks, nearest=True):
            reader.seeks = reader.seeks if reader.is_searching else 0
        if reader.is_filtered:
            self._view.reload()
        self._show_status()

    def action_hit(self, direction: int) -> None:
        reader = self._reader
        if reader is None or reader.search is None:
            self.say(NO_SEARCH)
        elif not self._go_to_hit(reader, direction):
            if self._view.line_at_cursor is not None and reader.may_come(direction):
                reader.seeks = direction
            else:
                self.say(f"nothing more {'below' if direction > 0 else 'above'}")

    def _go_to_hit(self, reader: LogReader, direction: int, *, nearest: bool = False) -> bool:
        """Go to the next hit; with `nearest` the line itself counts, and when all is searched any other."""
        line = self._view.line_at_cursor
        begin, end = (line.position, line.end) if line else (reader.extent.end, reader.extent.end)
        found = reader.next_hit(begin, begin if nearest and direction > 0 else end, direction)
        if found is None and nearest and not reader.may_come(direction):
            found = reader.next_hit(begin, end, -direction)
        if found is None:
            return False
        reader.seeks = 0
        self._view.go_to(found)
        return True

    def action_matches(self) -> None:
        reader = self._reader
        if reader is None or reader.search is None:
            self.say(NO_SEARCH)
            return
        position = self._view.position
        if reader.is_filtered:
            position = self._position_in_all(reader)
        reader.set_filtered(position, on=not reader.is_filtered)
        self._show_again(reader, position)

    def _position_in_all(self, reader: LogReader) -> int | None:
        line = self._view.line_at_cursor
        return reader.position_in_all(line.position, line.end) if line else reader.left_from

    def _end_search(self, reader: LogReader) -> None:
        was_filtered, position = reader.is_filtered, self._position_in_all(reader)
        reader.end_search()
        reader.set_filtered(None, on=False)
        self._view.set_finder(None)
        if was_filtered:
            self._view.show(reader.lines, position)
        self._show_status()
