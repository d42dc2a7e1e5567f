"""How spans and jobs name each other: by attributes that hold the id of a job, in one of its spellings."""

from collections.abc import Mapping

from jobtui.model.condor_ids import condor_id
from jobtui.model.ids import numbered


def spellings(job_id: str) -> tuple[str, ...]:
    """The ways in which spans may write the id of a job, the likeliest first."""
    if (condor := condor_id(job_id)) is not None:
        return tuple(dict.fromkeys((condor.job_id, condor.number)))
    parts = numbered(job_id)
    return (job_id,) if parts is None else (job_id, parts.number)


def names_job(attributes: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """The job that attributes name, as it is written there; None for none."""
    for name in names:
        if (value := attributes.get(name)) is not None and str(value):
            return str(value)
    return None


def is_same_job(written: str, job_id: str) -> bool:
    """Whether an id as a span writes it means a job."""
    if written == job_id or written in spellings(job_id):
        return True
    one, other = condor_id(written), condor_id(job_id)
    return one is not None and other is not None and one.proc is not None and other.holds(one)
