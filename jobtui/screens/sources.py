"""The sources: how old their news is, what went wrong, and what was left out."""

from collections.abc import Iterable, Iterator, Mapping

from jobtui.actions import ScreenName
from jobtui.backends.registry import LOG_FILE
from jobtui.model.commands import Command
from jobtui.model.health import FAULTS, FAULTS_KIND, SourceHealth, SourceState
from jobtui.render.columns import Cells, TableColumn, TimeLook, fixed
from jobtui.render.sources import judge, labels
from jobtui.render.spans import Paragraph
from jobtui.render.styles import signs_of
from jobtui.render.text import Zone, clock_time, date_time, duration, show
from jobtui.screens.base import HeadedScreen
from jobtui.screens.shared import CopyTarget, Shared
from jobtui.screens.text import ReadingScreen
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import TextPane

GLYPHS = signs_of("sources")
LEAST_ROWS = 3
"""With fewer a list has no heading."""


class SourcesScreen(HeadedScreen):
    NAME = ScreenName.SOURCES

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._labels: Mapping[str, str] = {}
        self._main = self._list = RecordTable[SourceHealth](self._columns(), self.look, lambda one: one.name)
        self._about = TextPane()

    def show_all(self) -> None:
        sources = self.shared.store.sources()
        self._strip.sources = sources
        if (ours := FAULTS.health()) is not None:
            sources = (*sources, ours)
        names = [source.name for source in sources]
        self._labels = dict(zip(names, labels(sources), strict=True))
        self._list.set_records(sources)
        self._list.styles.height = max(LEAST_ROWS, len(sources) + self._list.HEADINGS)

    def _columns(self) -> tuple[TableColumn[SourceHealth, TimeLook], ...]:
        def words(source: SourceHealth, look: TimeLook) -> str:
            if not look.relative and source.read_at is not None:
                return f"read {clock_time(source.read_at)}{Zone.mark()}"
            return judge(source, look.now).text

        return (
            TableColumn("state", "", lambda source, look: GLYPHS[source.state][0], fixed(1), 100,
                        style=lambda source, look: GLYPHS[source.state][1]),
            TableColumn("source", "SOURCE", lambda source, look: self._labels[source.name],
                        Cells(16, 40, 10_000), 99, keeps_ends=True),
            TableColumn("kind", "KIND", lambda source, look: source.kind, fixed(12), 60,
                        style=lambda source, look: "dim"),
            TableColumn("age", "AGE", words, Cells(7, 24, 24), 90, times_header="WHEN",
                        style=lambda source, look: judge(source, look.now).style),
            TableColumn("records", "RECORDS", lambda source, look: f"{source.records:,}", fixed(9), 50,
                        style=lambda source, look: "dim", align="right"),
            TableColumn("skipped", "SKIPPED",
                        lambda source, look: f"{source.skipped:,}" if source.skipped else "", fixed(9), 70,
                        style=lambda source, look: "warning", align="right"),
        )  # fmt: skip

    async def action_open(self) -> None:
        if self._list.record is not None:
            self.app.push_screen(ReadingScreen(self.shared, "source", self.paragraphs(), await self.taken()))

    action_error = action_open

    def paragraphs(self) -> Iterable[Paragraph]:
        return about(self._list.record) if self._list.record is not None else ()

    def command(self) -> Command:
        return self.shared.command("doctor")

    async def taken(self) -> CopyTarget | None:
        source = self._list.record
        path = source.name if source is not None and LOG_FILE.made(source) else ""
        return CopyTarget(self.block(), self.command(), path)

    def copied(self) -> str:
        return show(self._list.record.name) if self._list.record is not None else ""


def about(source: SourceHealth) -> Iterator[Paragraph]:
    yield Paragraph(show(source.name), "title")
    for line in source.reason.splitlines():
        yield Paragraph(show(line), "error" if source.state is SourceState.DOWN else "warning")
    if source.kind == FAULTS_KIND:
        return
    if source.note:
        yield Paragraph(show(source.note))
    if source.news_at is not None:
        usual = f"; usually it arrives every {duration(source.pause_s)} or sooner" if source.pause_s else ""
        yield Paragraph(f"new data last arrived at {date_time(source.news_at)}{Zone.mark()}{usual}", "dim")
    if not source.error and not source.note and not source.skipped:
        yield Paragraph("no errors" if source.read_at is not None else "not read yet", "dim")
    if source.skipped:
        yield Paragraph("")
        yield Paragraph(f"input not understood: {source.skipped:,}; the newest:", "warning")
    for skip in source.last_skips:
        yield Paragraph(show(f"{skip.where}: {skip.why}"))
