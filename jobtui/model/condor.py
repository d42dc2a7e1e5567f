"""What files say of jobs of HTCondor and jobsub, piece by piece: events, job ads, lines of a job's output.

A fact is what one place of one file says. What became of a job is made of all of its facts
(`model.condor_life`). Attributes have the names of HTCondor's job ads and events
(https://htcondor.readthedocs.io/en/latest/classad-attributes/job-classad-attributes.html).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from jobtui.model.clock import Nanos


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
    written: not masked, not safe for a terminal.
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
    21: EventKind("remote_error", "error of the execute host"),
    22: EventKind("disconnected", "disconnected"),
    23: EventKind("reconnected", "reconnected"),
    24: EventKind("reconnect_failed", "could not be reconnected", IDLE),
    27: EventKind("grid_submit", "submitted to the grid"),
    28: EventKind("ad_information", "attributes"),
    29: EventKind("status_unknown", "its state is not known there"),
    30: EventKind("status_known", "its state is known there again"),
    31: EventKind("stage_in", "stage in"),
    32: EventKind("stage_out", "stage out"),
    33: EventKind("attribute_update", "attribute changed"),
    35: EventKind("cluster_submit", "cluster submitted"),
    36: EventKind("cluster_remove", "cluster removed"),
    40: EventKind("file_transfer", "file transfer"),
}
"""By the number in event logs (HTCondor's JobEventType); others are taken for a note."""
LOST = frozenset({"evicted", "shadow_exception", "reconnect_failed"})
"""Events by which a run ends before its job does."""
BEGIN, END, SIGNAL = "begin_execution", "completed", "signal"
"""Shapes of the lines that jobsub's wrapper writes into a job's output."""
TRACEPARENT = "TraceParent"
