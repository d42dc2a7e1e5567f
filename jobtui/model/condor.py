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
    "0": "UNEXPANDED",
    "1": IDLE,
    "2": RUNNING,
    "3": REMOVED,
    "4": COMPLETED,
    "5": HELD,
    "6": TRANSFERRING,
    "7": SUSPENDED,
}
"""JobStatus of a job ad, in the words of condor_q."""


class EventKind(NamedTuple):
    """One kind of event: its name here, its words, and the state it brings a job into, None for none."""

    name: str
    words: str
    state: str | None = None


EVENTS: Mapping[int, EventKind] = {
    0: EventKind("submit", "submitted", IDLE),
    1: EventKind("execute", "executing", RUNNING),
    2: EventKind("executable_error", "its executable cannot be run"),
    3: EventKind("checkpointed", "checkpointed"),
    4: EventKind("evicted", "evicted", IDLE),
    5: EventKind("terminated", "terminated", COMPLETED),
    6: EventKind("image_size", "image size"),
    7: EventKind("shadow_exception", "shadow exception", IDLE),
    8: EventKind("generic", "a note"),
    9: EventKind("aborted", "removed", REMOVED),
    10: EventKind("suspended", "suspended", SUSPENDED),
    11: EventKind("unsuspended", "goes on", RUNNING),
    12: EventKind("held", "held", HELD),
    13: EventKind("released", "released", IDLE),
    14: EventKind("node_execute", "a node executes"),
    15: EventKind("node_terminated", "a node terminated"),
    16: EventKind("post_script_terminated", "post script terminated"),
    17: EventKind("globus_submit", "submitted to Globus"),
    18: EventKind("globus_submit_failed", "could not be submitted to Globus"),
    19: EventKind("globus_resource_up", "Globus resource up"),
    20: EventKind("globus_resource_down", "Globus resource down"),
    21: EventKind("remote_error", "error of the execute host"),
    22: EventKind("disconnected", "disconnected"),
    23: EventKind("reconnected", "reconnected"),
    24: EventKind("reconnect_failed", "could not be reconnected", IDLE),
    25: EventKind("grid_resource_up", "grid resource up"),
    26: EventKind("grid_resource_down", "grid resource down"),
    27: EventKind("grid_submit", "submitted to the grid"),
    28: EventKind("ad_information", "attributes"),
    29: EventKind("status_unknown", "its state is not known there"),
    30: EventKind("status_known", "its state is known there again"),
    31: EventKind("stage_in", "stage in"),
    32: EventKind("stage_out", "stage out"),
    33: EventKind("attribute_update", "attribute changed"),
    34: EventKind("pre_skip", "skipped by its pre script"),
    35: EventKind("cluster_submit", "cluster submitted"),
    36: EventKind("cluster_remove", "cluster removed"),
    37: EventKind("factory_paused", "making of jobs paused"),
    38: EventKind("factory_resumed", "making of jobs goes on"),
    40: EventKind("file_transfer", "file transfer"),
    41: EventKind("reserve_space", "space reserved"),
    42: EventKind("release_space", "space released"),
    43: EventKind("file_complete", "file complete"),
    44: EventKind("file_used", "file used"),
    45: EventKind("file_removed", "file removed"),
    46: EventKind("dataflow_skipped", "skipped, as its output is newer than its input", COMPLETED),
}
"""By the number in event logs (HTCondor's JobEventType); others are taken for a note."""
LOST = frozenset({"evicted", "shadow_exception", "reconnect_failed"})
"""Events by which a run ends before its job does."""
BEGIN, END, SIGNAL = "begin_execution", "completed", "signal"
"""Shapes of the lines that jobsub's wrapper writes into a job's output."""
TRACEPARENT = "TraceParent"
LOG_GAP = "log_gap"
"""That a part of a log was gone before it was read. Such a fact names no job."""

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
    match = _ID.fullmatch(text) or _GLOBAL.fullmatch(text)
    if match is None:
        return None
    proc = match["proc"]
    return CondorId(whole(match["cluster"], 0), whole(proc), match["schedd"] or "")


def find_condor_id(text: str) -> CondorId | None:
    found = _WITH_SCHEDD.search(text)
    return condor_id(found[0]) if found else None


class Teller(StrEnum):
    """What kind of text a fact was read in, the one that knows best first."""

    EVENT = "event"
    AD = "ad"
    OUTPUT = "output"
    SUBMIT = "submit"

    @property
    def rank(self) -> int:
        """0 for the one that knows best."""
        return _RANK[self]


_RANK = {teller: rank for rank, teller in enumerate(Teller)}


class CondorFact(msgspec.Struct, frozen=True, gc=False):
    """One thing that a file says of a job.

    `job` is `<cluster>.<proc>@<schedd>`, without the schedd where the file does not tell, "" where it names
    no job. `what` is the name of an event, or the shape of a line. With `is_local` the time was written
    without a zone, and `at` is what it would be in UTC. `values` are attributes as texts. `text` is as
    written: not masked, not safe for a terminal. `rotation` counts the logs that had this name before, `part`
    the files of the same log that it went on from.
    """

    job: str
    teller: Teller
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
