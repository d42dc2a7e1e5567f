"""What the witness noted, put together: every op with its counts, every status of every job with its time."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.demo.workload import TrueOp, Witness


class Status(NamedTuple):
    """One status a job record was written with, and when (epoch seconds)."""

    at: float
    state: str


class Truth(NamedTuple):
    """All ops in the order they were made; of each job the statuses its record went through."""

    ops: tuple[TrueOp, ...]
    statuses: Mapping[str, Sequence[Status]]


def read_truth(path: Path) -> Truth:
    """The truth out of a witness's file, also while it is still written to."""
    text = path.read_text() if path.exists() else ""
    witness, statuses = Witness(), defaultdict[str, list[Status]](list)
    for note in map(json.loads, text[: text.rfind("\n") + 1].splitlines()):
        match note["what"]:
            case "made":
                witness.created(TrueOp(note["op_id"], note["name"], note.get("jid")))
            case "sent":
                witness.sent(note["op_id"], note["agent"])
            case "received":
                witness.received(note.get("op_id"), note["name"], note.get("jid"))
            case "written":
                before = statuses[note["jid"]]
                if not before or before[-1].state != note["state"]:
                    before.append(Status(note["at"], note["state"]))
    return Truth(witness.ops, dict(statuses))
