"""Rules for Sirepo's jobs whose Slurm job is known: where its word tells more than the record."""

from jobtui.analysis.explain.case import Case
from jobtui.analysis.explain.finding import SURE, Finding
from jobtui.analysis.explain.flow import Mark
from jobtui.analysis.slurm_join import ENDS, is_polled
from jobtui.model.verdicts import Code


def ended_in_slurm(case: Case) -> Finding | None:
    """A live record whose Slurm job has ended some time ago: nobody noticed."""
    slurm = case.slurm
    if case.job is None or slurm is None or slurm.status not in ENDS:
        return None
    if not is_polled(case.job, slurm, case.now):
        return None
    why = f": {slurm.error or slurm.message}" if slurm.error or slurm.message else ""
    return Finding(
        Code.REPLY_LOST,
        f"Its job in Slurm, {slurm.id}, is {slurm.status.value}{why}; its record does not know that.",
        SURE,
        (case.last(Mark.SENT), case.last(Mark.UPDATED)),
        doubts=("it is seen again when its user logs in to the cluster and looks at it",),
    )
