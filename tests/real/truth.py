"""What the witness noted, put together: every op with its counts, every status of every job with its time."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OWNS_UPDATES = ("run", "run_status")
"""Ops to which the news of a run count: the latest of these that was made for the job."""


@dataclass(slots=True, kw_only=True)
class TrueOp:
    """One op as the supervisor had it. `agent` is the one it was sent to, four characters of it."""

    op_id: str
    name: str
    uid: str | None
    jid: str | None
    agent: str | None = None
    sends: int = 0
    replies: int = 0
    updates: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """One status a job record was written with, and when (epoch seconds)."""

    at: float
    state: str


@dataclass(frozen=True, slots=True)
class Truth:
    """All ops in the order they were made; of each job the statuses its record went through."""

    ops: tuple[TrueOp, ...]
    statuses: Mapping[str, tuple[Status, ...]]


@dataclass(slots=True)
class _Fold:
    ops: dict[str, TrueOp] = field(default_factory=dict)
    owners: dict[str, TrueOp] = field(default_factory=dict)
    statuses: dict[str, list[Status]] = field(default_factory=lambda: defaultdict(list))

    def made(self, note: Mapping[str, Any]) -> None:
        op = TrueOp(op_id=note["op_id"], name=note["name"], uid=note.get("uid"), jid=note.get("jid"))
        self.ops[op.op_id] = op
        if op.jid is not None and op.name in OWNS_UPDATES:
            self.owners[op.jid] = op

    def sent(self, note: Mapping[str, Any]) -> None:
        op = self.ops[note["op_id"]]
        op.sends += 1
        op.agent = note["agent"][:4]

    def received(self, note: Mapping[str, Any]) -> None:
        if (op_id := note.get("op_id")) is not None:
            if op_id in self.ops:
                self.ops[op_id].replies += 1
        elif note["name"] == "run_status_update" and note["jid"] in self.owners:
            self.owners[note["jid"]].updates += 1

    def written(self, note: Mapping[str, Any]) -> None:
        before = self.statuses[note["jid"]]
        if not before or before[-1].state != note["state"]:
            before.append(Status(note["at"], note["state"]))


def truth_of(notes: Iterable[Mapping[str, Any]]) -> Truth:
    fold = _Fold()
    take = {"made": fold.made, "sent": fold.sent, "received": fold.received, "written": fold.written}
    for note in notes:
        take[note["what"]](note)
    return Truth(tuple(fold.ops.values()), {jid: tuple(seen) for jid, seen in fold.statuses.items()})


def read_truth(path: Path) -> Truth:
    """The truth out of a witness's file, also while it is still written to."""
    text = path.read_text() if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    return truth_of(map(json.loads, whole.splitlines()))
