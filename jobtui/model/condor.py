"""The words of HTCondor and of jobsub's wrapper: states of jobs, kinds of events, shapes of lines."""

from collections.abc import Mapping
from typing import NamedTuple

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
