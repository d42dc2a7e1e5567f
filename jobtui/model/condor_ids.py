"""Ids of HTCondor jobs, as condor_q, jobsub and job logs write them.

`<cluster>.<proc>@<schedd>` is how jobsub names a job, also `<cluster>@<schedd>` and `<cluster>.@<schedd>` for
all processes of a cluster; HTCondor itself writes `<cluster>.<proc>`, in event logs with leading zeros, and
GlobalJobId, `<schedd>#<cluster>.<proc>#<time>`.
"""

import re
from typing import NamedTuple

from jobtui.model.ids import JobId

_HOST = r"[A-Za-z0-9](?:[\w.@-]{0,250}[A-Za-z0-9])?"
JOBSUB_ID = rf"\d{{1,12}}(?:\.\d{{0,9}})?@{_HOST}"
"""With the schedd, as jobsub writes it: nothing else looks so."""
_ID = re.compile(rf"(?P<cluster>\d{{1,12}})(?:\.(?P<proc>\d{{0,9}}))?(?:@(?P<schedd>{_HOST}))?", re.ASCII)
_GLOBAL = re.compile(rf"(?P<schedd>{_HOST})#(?P<cluster>\d{{1,12}})\.(?P<proc>\d{{1,9}})#\d+", re.ASCII)
_WITH_SCHEDD = re.compile(rf"(?<![\w.@-]){JOBSUB_ID}", re.ASCII)


class CondorId(NamedTuple):
    """A job, or all processes of a cluster where `proc` is None. `schedd` is "" where it is not written."""

    cluster: int
    proc: int | None
    schedd: str = ""

    @property
    def number(self) -> str:
        """Cluster and process, without the schedd."""
        return str(self.cluster) if self.proc is None else f"{self.cluster}.{self.proc}"

    @property
    def job_id(self) -> JobId:
        """The id of the job, as jobsub writes it; without the schedd while that is not known."""
        return JobId(f"{self.number}@{self.schedd}" if self.schedd else self.number)

    def holds(self, other: "CondorId") -> bool:
        """Whether another id may be of this job or cluster: what one of them does not say may be so."""
        return (
            self.cluster == other.cluster
            and (self.proc is None or self.proc == other.proc)
            and (not self.schedd or not other.schedd or self.schedd == other.schedd)
        )


def condor_id(text: str) -> CondorId | None:
    """The job or cluster that a whole text names; None when it is no such id."""
    match = _ID.fullmatch(text) or _GLOBAL.fullmatch(text)
    if match is None:
        return None
    proc = match["proc"]
    return CondorId(int(match["cluster"]), int(proc) if proc else None, match["schedd"] or "")


def find_condor_id(text: str) -> CondorId | None:
    """The first job that a text names with its schedd."""
    found = _WITH_SCHEDD.search(text)
    return condor_id(found[0]) if found else None
