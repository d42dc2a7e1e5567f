"""What the tabs of a job's screen are told: its record, and of its ops those of the chosen run."""

from typing import NamedTuple

from jobtui.analysis.last_good import last_good
from jobtui.analysis.run_windows import Window, ops_in, unlinked_in, window_of
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail, Run
from jobtui.screens.job_states import ops_of_states
from jobtui.screens.job_tab import Subject
from jobtui.screens.reaching import Reaching
from jobtui.store.store import Store


class Known(NamedTuple):
    """What was read of the record, and why not."""

    detail: JobDetail | None = None
    problem: str = ""


def subject_of(store: Store, job_id: JobId, known: Known, run: Run | None, reaching: Reaching) -> Subject:
    """A job as it is known now, and the run of it that was chosen."""
    runs = known.detail.runs if known.detail else ()
    window = window_of(runs, run.number) if run else Window()
    all_ops = store.correlation.ops_of(job_id) or ops_of_states(store, job_id, known.detail)
    ops = ops_in(window, all_ops)
    good = last_good(runs, run.number) if run else None
    return Subject(
        job_id=job_id,
        job=store.job(job_id),
        ops=ops,
        unlinked=unlinked_in(window, store.correlation.unlinked_of(job_id)),
        detail=known.detail,
        run=run,
        silence=() if ops else reaching.silence(job_id, run.number if run else None),
        problem=known.problem,
        good=good,
        good_ops=ops_in(window_of(runs, good.number), all_ops) if good else (),
    )
