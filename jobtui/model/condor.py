"""Jobs of HTCondor and jobsub: states and kinds of events, ids, and what files say of a job piece by piece.

`<cluster>.<proc>@<schedd>` is how jobsub names a job, also `<cluster>@<schedd>` and `<cluster>.@<schedd>` for
all processes of a cluster; HTCondor itself writes `<cluster>.<proc>`, in event logs with leading zeros, and
GlobalJobId, `<schedd>#<cluster>.<proc>#<time>`. Attributes have the names of HTCondor's job ads and events
(https://htcondor.readthedocs.io/en/latest/classad-attributes/job-classad-attributes.html).
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.numbers import whole

IDLE, RUNNING, HELD = "IDLE", "RUNNING", "HELD"
COMPLETED, REMOVED, SUSPENDED = "COMPLETED", "REMOVED", "SUSPENDED"
TRANSFERRING = "TRANSFERRING_OUTPUT"

AD_STATES: Mapping[str, str] = {
    "0": "UNEXPANDED", "1": IDLE, "2": RUNNING, "3": REMOVED, "4": COMPLETED, "5": HELD, "6": TRANSFERRING,
    "7": SUSPENDED,
}  # fmt: skip
"""JobStatus of a job ad, in the words of condor_q."""


LOST = frozenset({"evicted", "shadow_exception", "reconnect_failed"})
"""Events by which a run ends before its job does."""
BEGIN, END, SIGNAL = "begin_execution", "completed", "signal"
"""Shapes of the lines that jobsub's wrapper writes into a job's output."""
TRACEPARENT = "TraceParent"
LOG_GAP = "log_gap"
"""That a part of a log was gone before it was read. Such a fact names no job."""
MACHINES = "slots"
"""What the ads of all slots of a pool say together: in `values` of `name=literal` which slots have that.

Slots are numbered in the order of their ads, and written `0-41,43-43`. A literal is as `literals` of
`formats.condor_events` has it, "" also where it is one of too many.
"""

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
    match = _ID.fullmatch(text) or _GLOBAL.fullmatch(text)
    if match is None:
        return None
    proc = match["proc"]
    return CondorId(whole(match["cluster"], 0), whole(proc), match["schedd"] or "")


def find_condor_id(text: str) -> CondorId | None:
    found = _WITH_SCHEDD.search(text)
    return condor_id(found[0]) if found else None


class Origin(StrEnum):
    """What kind of text a fact was read in, the one that knows best first."""

    EVENT = "event"
    AD = "ad"
    OUTPUT = "output"
    SUBMIT = "submit"

    @property
    def rank(self) -> int:
        """0 for the one that knows best."""
        return _RANK[self]


_RANK = {origin: rank for rank, origin in enumerate(Origin)}


class CondorFact(msgspec.Struct, frozen=True, gc=False):
    """One thing that a file says of a job.

    `job` is `<cluster>.<proc>@<schedd>`, without the schedd where the file does not tell, "" where it names
    no job. `what` is the name of an event, or the shape of a line. With `is_local` the time was written
    without a zone, and `at` is what it would be in UTC. `values` are attributes as texts. `text` is as
    written: not masked, not safe for a terminal. `rotation` counts the logs that had this name before, `part`
    the files of the same log that it went on from.
    """

    job: str
    origin: Origin
    what: str
    at: Nanos | None
    text: str
    source: str
    line: int
    offset: int
    values: Mapping[str, str] = {}
    is_local: bool = False
    rotation: int = 0
    part: int = 0
