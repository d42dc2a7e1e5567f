"""A screen on one job that can put it beside another one."""

from functools import partial

from jobtui.model.ids import JobId
from jobtui.screens.base import LiveScreen
from jobtui.screens.job_tab import start


class BesideScreen(LiveScreen):
    """Subclasses say which job it is."""

    job_id: JobId

    def action_compare(self) -> None:
        """Put the job beside the last good run."""
        from jobtui.screens.comparing import open_comparison  # few look so far

        comparing = partial(open_comparison, self, self.board, self.job_id)
        start(self, comparing, group="compare", exclusive=True)
