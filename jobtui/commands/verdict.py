"""The exit code that a job's state asks for, and the line that says why."""

from jobtui.analysis.flags import needs_person, waits_for
from jobtui.commands.exits import Exit
from jobtui.commands.streams import complain
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job, JobStatus


def judge(job: Job, now: Nanos) -> Exit:
    """FAILED, ATTENTION (stuck, or needs a person) or FINE; said on stderr when it is not fine."""
    if job.status is JobStatus.FAILED:
        complain(f"{job.id} failed: {job.error or 'without a reason in its record'}")
        return Exit.FAILED
    if needs_person(job, now):
        complain(f"{job.id} needs a person: {job.status.value}, {waits_for(job, now) or 'no news'}")
        return Exit.ATTENTION
    return Exit.FINE
