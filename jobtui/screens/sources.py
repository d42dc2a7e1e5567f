"""What is read, how old it is, what went wrong, and what was left out."""

from collections.abc import Iterator

from textual import on
from textual.widget import Widget

from jobtui.actions import Place
from jobtui.model.health import SourceHealth, SourceState
from jobtui.render.text import show
from jobtui.screens.base import Board, Taken, bindings_at
from jobtui.screens.error import ErrorScreen
from jobtui.screens.headed import HeadedScreen
from jobtui.screens.reading import ReadingScreen
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_list import SourceList
from jobtui.widgets.text_pane import Paragraph, TextPane

LEAST_ROWS = 3
"""With fewer a list has no heading."""


class SourcesScreen(HeadedScreen):
    """All sources, and all about the one under the cursor."""

    PLACE = Place.SOURCES
    BINDINGS = bindings_at(Place.SOURCES)

    DEFAULT_CSS = """
    SourcesScreen TextPane { height: 1fr; }
    SourcesScreen SourceStrip { display: none; }
    SourcesScreen.-line SourceStrip { display: block; }
    SourcesScreen.-line SourceList { display: none; }
    SourcesScreen SourceList { max-height: 50%; }
    SourcesScreen.-low SourceList, SourcesScreen.-flat SourceList { max-height: 100%; }
    SourcesScreen.-low TextPane, SourcesScreen.-flat TextPane { display: none; }
    """

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._list = SourceList(board.now)
        self._about = TextPane()

    def body(self) -> Iterator[Widget]:
        """The list, and below it all about one."""
        yield self._list
        yield RuleLine()
        yield self._about

    def show_all(self) -> None:
        """Show the sources anew; what is the same is not painted again."""
        sources = self.board.store.sources()
        self._strip.set_sources(sources)
        self._list.set_sources(sources, absolute=self.board.absolute)
        self._list.styles.height = max(LEAST_ROWS, len(sources) + self._list.HEADINGS)

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._list.move(move)

    async def action_open(self) -> None:
        """Read all about the source."""
        if self._list.source is not None:
            paragraphs = about(self._list.source)
            self.app.push_screen(ReadingScreen(self.board, "source", paragraphs, await self.taken()))

    async def taken(self) -> Taken | None:
        """All about the source under the cursor."""
        from jobtui.screens.taking import sources_taken

        if self._list.source is None:
            return None
        block = "\n".join(part.text for part in about(self._list.source))
        path = self._list.source.name if self._list.source.kind == "logfile" else ""
        return sources_taken(self.board, block)._replace(path=path)

    async def action_error(self) -> None:
        """Read the error of the source as a whole."""
        source = self._list.source
        if source is not None and source.error:
            sheet = ErrorScreen(self.board, show(source.name), source.error, await self.taken())
            self.app.push_screen(sheet)
        else:
            self.notify("nothing is wrong with this source", timeout=2)

    def action_copy(self) -> None:
        """Copy the name of the source."""
        if self._list.source is not None:
            self.copy(show(self._list.source.name))

    @on(SourceList.Highlighted)
    def _chosen(self, message: SourceList.Highlighted) -> None:
        self._about.set_text(about(message.source))


def about(source: SourceHealth) -> Iterator[Paragraph]:
    """All that is known of a source in words."""
    yield Paragraph(show(source.name), "title")
    if source.error:
        yield Paragraph(show(source.reason), "error" if source.state is SourceState.DOWN else "warning")
    if source.note:
        yield Paragraph(show(source.note))
    if not source.error and not source.note and not source.skipped:
        yield Paragraph("nothing went wrong" if source.read_at is not None else "not read yet", "dim")
    if source.skipped:
        yield Paragraph("")
        yield Paragraph(
            f"{source.skipped:,} pieces of input made no sense; the newest {len(source.last_skips)}:",
            "warning",
        )
    for skip in source.last_skips:
        yield Paragraph(show(f"{skip.where}: {skip.why}"))
