"""All jobs: the table, what it is filtered and sorted by, and whether it can be believed."""

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.timer import Timer

from jobtui.actions import Place, hints_at
from jobtui.model.words import counted
from jobtui.render.columns import DEFAULT_COLUMNS, JOB_COLUMNS, Column, RowContext
from jobtui.render.text import Zone, duration, safe
from jobtui.screens.base import Board, LiveScreen, Taken, bindings_at
from jobtui.screens.job_filter import JobFilter, Whereabouts, mistake_in
from jobtui.store.store import Changes
from jobtui.views import View
from jobtui.widgets.filter_bar import FilterBar, Mistake
from jobtui.widgets.header import Header
from jobtui.widgets.history import History
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.one_line import OneLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip

PREVIEW_S, REST_S = 0.08, 0.3
"""So long after a key the filter that is typed is tried: when that is quick, when it is not."""
QUICK_S, SLOW_S = 0.05, 1.0
"""Up to here all jobs are looked at quickly; beyond the second it is not done before it is asked for."""


class JobsScreen(LiveScreen):
    """The first screen."""

    PLACE = Place.JOBS
    BINDINGS = bindings_at(Place.JOBS)

    DEFAULT_CSS = """
    JobsScreen.-low RuleLine.-needed { display: block; }
    JobsScreen.-tiny Header, JobsScreen.-tiny NoticeLine { display: none; }
    JobsScreen.-tiny OneLine { display: block; }
    """

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._whereabouts = Whereabouts(board)
        self._filter = JobFilter(board.now, self._whereabouts.context)
        self._preview_text = ""
        self._preview_timer: Timer | None = None
        self.filters = History()
        self.columns = usual_columns(board)
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        self._one_line = OneLine(board.now)
        self._table = JobTable(self._row_context, self.columns)
        self._rule = RuleLine()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._one_line
        yield self._strip
        yield RuleLine()
        yield self._table
        yield self._rule
        yield KeyLine(hints_at(Place.JOBS))

    def on_mount(self) -> None:
        """Show what is known already."""
        looks = self.board.looks
        if looks.sort or looks.reverse:
            self.sort_by(looks.sort, reverse=looks.reverse)
        self._apply_filter()
        self._table.apply(self.board.store.jobs.values())
        self._show_surroundings()

    def take(self, changes: Changes) -> None:
        """Show what changed."""
        find = self.board.store.job
        jobs = [job for job_id in changes.jobs if (job := find(job_id)) is not None]
        self._table.apply(jobs, changes.gone)
        self._whereabouts.note(changes.jobs)
        self._show_surroundings()

    def tick(self) -> None:
        """Let ages go on, and flag what has come to be in dispute."""
        if turned := self._whereabouts.turned():
            self._table.apply(job for job_id in turned if (job := self.board.store.job(job_id)))
        self._table.tick()
        self._show_surroundings()

    def show_all(self) -> None:
        """Draw everything anew."""
        self._table.redraw()
        self._show_surroundings()

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._table.move(move)

    def action_open(self) -> None:
        """Open the job under the cursor."""
        self._table.open()

    def action_copy(self) -> None:
        """Copy the ids of the marked jobs, or that of the job under the cursor."""
        ids = sorted(self._table.selected) or [job_id for job_id in (self._table.cursor_id,) if job_id]
        if ids:
            self.copy("\n".join(ids))

    async def taken(self) -> Taken | None:
        """The job under the cursor, and the command that shows these jobs."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.taking import job_taken, jobs_taken

        job = self._table.job(self._table.cursor_id) if self._table.cursor_id else None
        chosen = await job_taken(self.board, job, self._row_context()) if job else None
        return jobs_taken(self.board, chosen, self._filter.text)

    def action_mark(self) -> None:
        """Mark the job under the cursor."""
        self._table.toggle()

    def action_sort(self) -> None:
        """Sort by the next column."""
        key, _ = self._table.sorted_by
        keys = (None, *(column.key for column in self.columns))
        self._table.sort_by(keys[(keys.index(key) + 1) % len(keys)] if key in keys else None)

    def action_reverse(self) -> None:
        """Sort the other way round."""
        key, reverse = self._table.sorted_by
        self._table.sort_by(key, reverse=not reverse)

    def action_columns(self) -> None:
        """Let columns be chosen."""
        from jobtui.screens.columns import ColumnsScreen

        self.app.push_screen(ColumnsScreen(self.board, self.view(), self._take_columns))

    def _take_columns(self, view: View) -> None:
        """Show the columns that were chosen."""
        by_key = {column.key: column for column in JOB_COLUMNS}
        self.set_columns([by_key[key] for key in view.columns])
        self.sort_by(view.sort, reverse=view.reverse)

    def action_show_hidden(self) -> None:
        """Show or hide the records of mere compute calls."""
        self._filter.shows_hidden = not self._filter.shows_hidden
        self._apply_filter()

    def action_back(self) -> None:
        """Take away one after the other: the filter, the marks."""
        if self._filter.text:
            self.set_filter("")
        elif self._table.selected:
            self._table.clear_selection()

    async def action_filter(self) -> None:
        """Let a filter be typed."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.command_table import complete_filter_at

        if not self.query(FilterBar):
            known = self.known_values()
            bar = FilterBar(
                self._filter.text,
                history=self.filters,
                completer=lambda text, cursor: complete_filter_at(text, cursor, known),
            )
            await self.mount(bar, before=self._rule)

    @on(FilterBar.Edited)
    def _preview(self, message: FilterBar.Edited) -> None:
        """Show soon what the filter does; a mistake is shown at its place, and filters nothing.

        What takes long is tried only once the keys rest, and what takes very long only when it is given.
        """
        self._preview_text = message.text
        cost_s = self._filter.cost_s(message.text, self.board.store.jobs)
        message.bar.set_mistake(mistake_in(message.text))
        if self._preview_timer is not None and cost_s > QUICK_S:
            self._preview_timer.stop()
            self._preview_timer = None
        if cost_s > SLOW_S:
            message.bar.set_note(f"looking at every job takes some {duration(cost_s)}: ↵ filters")
        elif self._preview_timer is None:
            wait_s = PREVIEW_S if cost_s <= QUICK_S else REST_S
            self._preview_timer = self.set_timer(wait_s, self._show_preview)

    def _show_preview(self) -> None:
        """Filter by what is typed."""
        self._preview_timer = None
        if self.query(FilterBar):
            self.set_filter(self._preview_text)

    @on(FilterBar.Closed)
    async def _close_filter(self, message: FilterBar.Closed) -> None:
        """Keep the filter, or the one before; a filter with a mistake stays to be mended.

        What names a job and was pasted leads there instead.
        """
        from jobtui.screens.jumping import NOWHERE, jump_to, names_a_job

        text, before = message.text, message.bar.before
        asked = text != before and (message.bar.was_pasted or names_a_job(text))
        jump = jump_to(text, self.board.store) if asked else NOWHERE
        if jump.goals and (names_a_job(text) or not jump.goals[0].filter):
            self.set_filter(before)
            await message.bar.remove()
            self.post_message(self.Pasted(text))
            return
        mistake = self.set_filter(text)
        if mistake is None:
            await message.bar.remove()
        else:
            message.bar.set_mistake(mistake)

    @on(JobTable.Opened)
    def _open_job(self, message: JobTable.Opened) -> None:
        # Imported here, as the first paint does not need it
        from jobtui.screens.job import JobScreen

        self.app.push_screen(JobScreen(self.board, message.job_id))

    @on(JobTable.Recounted)
    def _show_words(self) -> None:
        self._rule.set_words(table_words(self._table, self._filter.text))
        self._rule.set_class(bool(self._filter.text or self._table.selected), "-needed")

    def _show_surroundings(self) -> None:
        """Counts, clock and sources."""
        now = self.board.now()
        self._header.set_counts(self._table.rows.tally.counts(now), len(self._table.rows.needy))
        self._strip.set_sources(self.board.store.sources())
        self._show_one_line()

    def _show_one_line(self) -> None:
        if self.has_class("-tiny"):
            is_paused = self.board.paused_at is not None
            self._one_line.set_state(self._header.glyphs(), self._table.rows.worst, is_paused=is_paused)

    def show_pause(self) -> None:
        """Say that all is paused, or that it no longer is."""
        super().show_pause()
        self._show_one_line()

    def set_filter(self, text: str) -> Mistake | None:
        """Filter by this text, or by nothing when something is wrong with it: what it is."""
        mistake = self._filter.set(text)
        self._apply_filter()
        return mistake

    def sort_by(self, key: str | None, *, reverse: bool = False) -> None:
        """Sort by a column; None puts first what needs a person."""
        self._table.sort_by(key, reverse=reverse)

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Show these columns, without any those that are usual."""
        self.columns = tuple(columns) or usual_columns(self.board)
        self._table.set_columns(self.columns)

    def view(self) -> View:
        """How the jobs are shown now."""
        key, reverse = self._table.sorted_by
        return View(self._filter.text, key, reverse, tuple(column.key for column in self.columns))

    def _apply_filter(self) -> None:
        self._table.set_filter(self._filter.keeper(), ages=not self._filter.is_empty)

    def _row_context(self) -> RowContext:
        return RowContext(
            now=self.board.now(),
            relative=not self.board.absolute,
            local=Zone.is_local,
            host_of=self._whereabouts.host_of,
            driver_of=self._whereabouts.driver_of,
            is_disputed=self._whereabouts.is_disputed,
            late_of=self._whereabouts.late_of,
        )


def usual_columns(board: Board) -> tuple[Column, ...]:
    """The columns that the user wants, else those of everybody."""
    by_key = {column.key: column for column in JOB_COLUMNS}
    return tuple(by_key[key] for key in board.looks.columns) or DEFAULT_COLUMNS


def table_words(table: JobTable, filter_text: str) -> str:
    """How many jobs a table shows, in which order, under which filter."""
    key, reverse = table.sorted_by
    order = "urgent first" if key is None else f"by {key}"
    hidden = table.total - table.count
    if filter_text:
        count = f"{table.count:,} of {counted(table.total, 'job')}"
    else:
        count = counted(table.count, "job") + (f", {hidden:,} hidden" if hidden else "")
    parts = [
        f"{len(table.selected):,} marked" if table.selected else "",
        f"/{safe(filter_text)}" if filter_text else "",
        count,
        order + (", reversed" if reverse else "") + (" …" if table.is_sorting else ""),
    ]
    return " · ".join(filter(None, parts))
