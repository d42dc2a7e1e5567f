"""The run of a job that another one is compared with."""

from collections.abc import Sequence

from jobtui.model.jobs import JobStatus, Run


def last_good(runs: Sequence[Run], number: int) -> Run | None:
    """The newest other run that completed: the last one before run `number`, else the newest after it."""
    good = [run for run in runs if run.status is JobStatus.COMPLETED and run.number != number]
    before = [run for run in good if run.number < number]
    return next(reversed(before or good), None)
