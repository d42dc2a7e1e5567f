"""Textual's DataTable on the jobs of `benchmarks.table_live`, as many of them changing: to compare ours with.

    python -m benchmarks.data_table_live [--jobs 20000] [--share 0.02]

Written as its documentation shows it, with columns of fixed width and only the changed cells updated.
"""

import argparse
import random
from time import time_ns

from textual.app import App, ComposeResult
from textual.widgets import DataTable, Static

from benchmarks.table_live import FLUSH_S, changed_job, made_jobs
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job
from jobtui.render.columns import DEFAULT_COLUMNS, RowContext, columns_for

WIDTH = 100
"""Cells for its columns, which it pads by two each, so that they fill 120."""


class DataTableApp(App[None]):
    """A title and the table."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.animation_level = "none"
        self._share = options.share
        self._rng = random.Random(1)
        self._jobs = made_jobs(options.jobs, 0.01, self._rng)
        self._columns = columns_for(WIDTH, DEFAULT_COLUMNS)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Static("table")
        yield DataTable(cursor_type="row")

    def on_mount(self) -> None:
        """Fill it, then let some change."""
        table = self.query_one(DataTable)
        for column, cells in self._columns:
            table.add_column(column.header, width=cells, key=column.key)
        for job in self._jobs:
            table.add_row(*self._cells(job), key=job.id)
        table.focus()
        self.query_one(Static).update("ready")
        self.set_interval(FLUSH_S, self._change)

    def _cells(self, job: Job) -> list[str]:
        context = RowContext(now=Nanos(time_ns()))
        return [column.cell(job, context) for column, _ in self._columns]

    def _change(self) -> None:
        table, now = self.query_one(DataTable), Nanos(time_ns())
        context = RowContext(now=now)
        for _ in range(round(len(self._jobs) * self._share * FLUSH_S)):
            at = int(self._rng.random() * len(self._jobs))
            before = self._jobs[at]
            self._jobs[at] = job = changed_job(before, now, self._rng)
            for column, _ in self._columns:
                if (text := column.cell(job, context)) != column.cell(before, context):
                    table.update_cell(job.id, column.key, text)


def main() -> None:
    """Run it until it is ended."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--share", type=float, default=0.02, help="how many of them change in a second")
    DataTableApp(parser.parse_args()).run(mouse=False)


if __name__ == "__main__":
    main()
