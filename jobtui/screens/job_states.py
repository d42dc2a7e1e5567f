"""The timeline of a job whose system tells of its states, where no log tells of its ops."""

from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.model.ops import Op
from jobtui.store.store import Store


def ops_of_states(store: Store, job_id: JobId, detail: JobDetail | None) -> tuple[Op, ...]:
    """The runs of a job by the changes of its state, those that were read with its record where more."""
    changes = store.changes_of(job_id)
    if detail is not None and len(detail.changes) > len(changes):
        changes = detail.changes
    if not changes:
        return ()
    # Imported here, as the first paint does not need it
    from jobtui.analysis.state_ops import ops_of_changes

    return ops_of_changes(store.job(job_id), changes)
