"""Finding something in a log that is on a screen: errors, lines by number, a text, only the lines with it."""

from functools import partial
from typing import TYPE_CHECKING

from jobtui.model.pages import LogUnreadable, Place, Query, SearchState, query_of
from jobtui.render.hits import finder
from jobtui.render.text import show
from jobtui.screens.log_choosing import ChoosingLogScreen
from jobtui.screens.log_reader import LogReader
from jobtui.widgets.filter_bar import FilterBar
from jobtui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from jobtui.widgets.log_prompt import LogPrompt

SEARCH_S = 0.05
"""How often the hits of a search that goes on are counted."""
NOTHING = {1: "nothing more below", -1: "nothing more above"}
FORWARD = 1


class SearchedLogScreen(ChoosingLogScreen):
    """A log in which something is looked for. Subclasses give the other actions."""

    # Errors.

    def action_error(self, direction: int) -> None:
        """Go to the next line with an error, or the one before."""
        if self._reader is not None and (place := self._view.place) is not None:
            seeking = partial(self._seek_error, self._reader, place, direction)
            self.start("seek", seeking)

    async def _seek_error(self, reader: LogReader, place: Place, direction: int) -> None:
        try:
            found = await reader.log.next_error(place, forward=direction > 0)
        except LogUnreadable as error:
            self._set_problem(reader, str(error))
            return
        if found is None:
            self.say(f"no error {'below' if direction > 0 else 'above'}")
            return
        if reader.is_filtered:
            reader.set_filtered(None, on=False)
            self._view.show(reader.lines, found)
        else:
            self._view.go_to(found)

    # What is typed.

    async def action_search(self) -> None:
        """Let a text be typed that is searched for."""
        if self._reader is not None and not self.query(FilterBar):
            await self.mount(self._prompt_class()(), before=self.query_one(KeyLine))

    def follow(self, command: str) -> bool:
        """Go to a line by its number."""
        digits = command.strip().replace(",", "")
        if self._reader is None or not digits.isdecimal():
            return False
        self.start("seek", partial(self._seek_line, self._reader, int(digits)))
        return True

    def _prompt_class(self) -> "type[LogPrompt]":
        # Imported here, as the first paint does not need it
        from jobtui.widgets.log_prompt import LogPrompt

        return LogPrompt

    def on_filter_bar_edited(self, message: FilterBar.Edited) -> None:
        """Mark in the lines that are seen what would be found."""
        if isinstance(message.bar, self._prompt_class()):
            query = query_of(message.text)
            self._view.set_finder(finder(query) if query else None)

    async def on_log_prompt_ended(self, message: "LogPrompt.Ended") -> None:
        """Do what was typed."""
        await message.prompt.remove()
        reader = self._reader
        if reader is None:
            return
        query = query_of(message.text) if message.text else None
        if query is None:
            before = reader.search.query if reader.search else None
            self._view.set_finder(finder(before) if before else None)
        else:
            self._search(reader, query)

    async def _seek_line(self, reader: LogReader, number: int) -> None:
        try:
            found = await reader.log.place_of_line(number)
        except LogUnreadable as error:
            self._set_problem(reader, str(error))
            return
        if found is None:
            self.say("lines here have no numbers")
        else:
            self._view.go_to(found)

    # Searching.

    def _search(self, reader: LogReader, query: Query) -> None:
        """Search for something else, and go to the nearest line that has it."""
        was_filtered = reader.is_filtered
        place = self._view.place
        reader.begin_search(query, reader.extent.end if place is None else place)
        reader.seeks = FORWARD
        self._view.set_finder(finder(query))
        if was_filtered:
            self._view.show(reader.lines, place)
        self.start("search", partial(self._run_search, reader))

    async def _run_search(self, reader: LogReader) -> None:
        search = reader.search
        if search is None:
            return
        watching = self.set_interval(SEARCH_S, lambda: self._found_more(reader))
        try:
            await search.run()
        finally:
            watching.stop()
        if search is reader.search:
            self._found_more(reader)
            if search.state is SearchState.FAILED:
                self.notify(show(search.problem), title="search", severity="warning", markup=False)
            elif search.state is SearchState.DONE and not len(search.hits):
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
        """Go to the next line that was found, or the one before."""
        reader = self._reader
        if reader is None or reader.search is None:
            self.say("nothing is searched for: / begins")
        elif not self._go_to_hit(reader, direction):
            line = self._view.line_at_cursor
            if line is not None and reader.may_come(line.place, line.end, direction):
                reader.seeks = direction
            else:
                self.say(NOTHING[direction])

    def _go_to_hit(self, reader: LogReader, direction: int, *, nearest: bool = False) -> bool:
        """Go to the next hit; with `nearest` the line itself counts, and when all is searched any other."""
        line = self._view.line_at_cursor
        begin, end = (line.place, line.end) if line else (reader.extent.end, reader.extent.end)
        found = reader.next_hit(begin, begin if nearest and direction > 0 else end, direction)
        if found is None and nearest and not reader.may_come(begin, end, direction):
            found = reader.next_hit(begin, end, -direction)
        if found is None:
            return False
        reader.seeks = 0
        self._view.go_to(found)
        return True

    def action_matches(self) -> None:
        """Show only the lines that were found, or all again, at the same line."""
        reader = self._reader
        if reader is None or reader.search is None:
            self.say("nothing is searched for: / begins")
            return
        place = self._view.place
        if reader.is_filtered:
            place = self._place_in_all(reader)
        reader.set_filtered(place, on=not reader.is_filtered)
        self._view.show(reader.lines, place)
        self._show_status()

    def _place_in_all(self, reader: LogReader) -> Place | None:
        line = self._view.line_at_cursor
        return reader.place_in_all(line.place, line.end) if line else reader.left_from

    def _end_search(self, reader: LogReader) -> None:
        was_filtered, place = reader.is_filtered, self._place_in_all(reader)
        reader.end_search()
        reader.set_filtered(None, on=False)
        self._view.set_finder(None)
        if was_filtered:
            self._view.show(reader.lines, place)
        self._show_status()
