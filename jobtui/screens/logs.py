"""The logs: one of them or the ends of all, followed or read, searched, filtered, copied."""

from collections.abc import AsyncIterator, Iterable
from functools import partial

from jobtui.actions import Place as At
from jobtui.model.pages import LogLine, LogUnreadable
from jobtui.render.text import Zone, date_time, show
from jobtui.screens.base import Taken, bindings_at
from jobtui.screens.log_reader import LogReader
from jobtui.screens.log_searching import SearchedLogScreen
from jobtui.widgets.row_view import Move
from jobtui.widgets.text_pane import Paragraph

COPIED_LINES = 5_000
"""Lines that are copied at most; a terminal takes fewer as a rule."""


class LogsScreen(SearchedLogScreen):
    """Opened at a byte of one source, or at the end."""

    PLACE = At.LOGS
    BINDINGS = bindings_at(At.LOGS)

    # Moving and looking.

    def action_select(self, move: str) -> None:
        """Move the cursor and select lines."""
        self._view.select(Move(move))

    def action_select_lines(self) -> None:
        """Begin or end selecting lines."""
        self._view.toggle_selection()
        self._show_status()

    def action_sideways(self, steps: int) -> None:
        """Show what is farther to the right or left."""
        self._view.go_sideways(steps)

    def action_wrap(self) -> None:
        """Break long lines into rows, or not."""
        self._view.toggle_wrap()

    def action_heads(self) -> None:
        """Show the heads of lines as they are, or the time of day only."""
        self._view.toggle_heads()

    def action_follow(self) -> None:
        """Stay at the end while lines come, or no longer."""
        if self._view.follows:
            self._view.stop_following()
            self._show_status()
        else:
            self._view.go_to(None)

    def action_bookmark(self) -> None:
        """Keep the line in mind."""
        self._view.toggle_bookmark()

    def action_next_bookmark(self) -> None:
        """Go to the next line kept in mind."""
        if not self._view.bookmarks:
            self.say("no bookmarks: m sets one")
        self._view.next_bookmark()

    def action_back(self) -> None:
        """Take away one after the other: the selection, the search, the screen."""
        if self._view.selection is not None:
            self.action_select_lines()
        elif self._reader is not None and self._reader.search is not None:
            self._end_search(self._reader)
        else:
            self.app.pop_screen()

    async def action_open(self) -> None:
        """Read the whole line."""
        line = self._view.line_at_cursor
        if line is not None:
            # Imported here, as the first paint does not need it
            from jobtui.screens.reading import ReadingScreen

            taken = await self.taken()
            self.app.push_screen(ReadingScreen(self.board, "log line", self._about(line), taken))

    def _about(self, line: LogLine) -> Iterable[Paragraph]:
        name = line.origin or (self._reader.name if self._reader else None) or ""
        number = f":{self._number:,}" if self._number is not None and not line.origin else ""
        yield Paragraph(f"{show(name)}{number}", "accent")
        if line.at is not None:
            yield Paragraph(f"{date_time(line.at)}{Zone.mark()}", "dim")
        if line.note:
            yield Paragraph(line.note, "warning")
        yield Paragraph("")
        yield Paragraph(show(line.text))

    # Taking along.

    def action_copy(self) -> None:
        """Copy the selected lines, or the line under the cursor."""
        line = self._view.line_at_cursor
        if self._view.selection is not None:
            self.action_copy_block()
        elif line is not None:
            self.copy(show(line.text))

    async def taken(self) -> Taken | None:
        """The line under the cursor, its log, and the command that shows the same."""
        # Imported here, as the first paint does not need it
        from jobtui.screens import taking

        line, reader = self._view.line_at_cursor, self._reader
        if line is None or reader is None:
            return None
        name = line.origin or reader.name or ""
        if not taking.is_file(self.board, name):
            return Taken(show(line.text), taking.jobtui_command(self.board, "find", line.text))
        taken = taking.file_taken(name, *((self._number or 0, line.place) if reader.name else ()))
        if reader.name is None and self._view.follows:
            names = [known for known in self._names if known and taking.is_file(self.board, known)]
            taken = taken._replace(command=taking.ends_taken(names).command)
        elif reader.name and reader.is_filtered and reader.search is not None:
            taken = taken._replace(command=taking.found_taken(name, reader.search.query).command)
        return taken._replace(block=show(line.text))

    def action_copy_block(self) -> None:
        """Copy the selected lines, or the line with those that belong to it."""
        reader = self._reader
        if reader is not None and self._view.line_at_cursor is not None:
            self.start("copy", partial(self._copy_block, reader))

    async def _copy_block(self, reader: LogReader) -> None:
        try:
            lines = [line async for line in self._block(reader)]
        except LogUnreadable as error:
            self._set_problem(reader, str(error))
            return
        self.copy("\n".join(show(line.text) for line in lines))

    async def _block(self, reader: LogReader) -> AsyncIterator[LogLine]:
        chosen = self._view.selection
        first = self._view.line_at_cursor
        if chosen is None and first is not None:
            yield first
            page = await reader.lines.after(first.end, COPIED_LINES // 10)
            for line in page.lines:
                if line.at is not None or line.origin != first.origin or first.at is None:
                    return
                yield line
        elif chosen is not None:
            page = await reader.lines.after(chosen[0], COPIED_LINES)
            for line in page.lines:
                if line.place <= chosen[1]:
                    yield line
