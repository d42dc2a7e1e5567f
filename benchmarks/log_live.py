"""The log screen alone on one file: a program to be measured from outside.

    python -c "from benchmarks.log_live import main; main()" FILE

It opens at the end of the file, so the last line on the wire shows that it is painted. The collector of
garbage is disabled before it is imported, as jobtui does until it has painted.
"""

import sys
from pathlib import Path
from typing import cast

from textual.screen import Screen

from jobtui.analysis.correlation import EmptyCorrelation
from jobtui.backends.job_reader import JobReader
from jobtui.logs.catalog import SessionLogs
from jobtui.model.clock import SystemClock
from jobtui.screens.logs import LogsScreen
from jobtui.screens.shared import Shared
from jobtui.store.store import Store
from jobtui.terminal.app import TerminalApp
from jobtui.theme import DARK, LAYOUT, THEMES


class LogApp(TerminalApp[None]):
    CSS = LAYOUT

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.animation_level = "none"
        clock = SystemClock()
        store, job_reader = Store(EmptyCorrelation(), clock), cast("JobReader", None)  # asked nothing here
        self._path = path
        self._shared = Shared(store, clock, job_reader, logs=SessionLogs(lambda: []))
        for known in THEMES:
            self.register_theme(known)
        self.theme = DARK.name

    def get_default_screen(self) -> Screen[None]:
        return LogsScreen(self._shared, str(self._path))


def main() -> None:
    LogApp(Path(sys.argv[1])).run(mouse=False)
