"""Recorded Balsam lists as records, for tests of what is computed from them."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import Nanos
from jobtui.model.ids import system_job_id

FOLDER = Path(__file__).parents[1] / "fixtures" / "balsam"


def load(name: str) -> list[dict[str, object]]:
    """The results of a recorded list, or a recorded list itself."""
    document = json.loads((FOLDER / f"{name}.json").read_text())
    results: list[dict[str, object]] = document["results"] if isinstance(document, dict) else document
    return results


def nanos(text: str) -> Nanos:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return Nanos(int(moment.timestamp()) * 10**9 + moment.microsecond * 1_000)


def change_of(event: Mapping[str, object]) -> StateChange:
    data = event["data"]
    assert isinstance(data, dict)
    nodes = data.get("num_nodes")
    return StateChange(
        int(str(event["id"])), system_job_id("balsam", str(event["job_id"])), nanos(str(event["timestamp"])),
        str(event["from_state"]), str(event["to_state"]), "recorded",
        None if nodes is None else float(nodes), data,
    )  # fmt: skip


def allocation_of(row: Mapping[str, object]) -> Allocation:
    start, end, tags = row["start_time"], row["end_time"], row["filter_tags"]
    assert isinstance(tags, dict)
    return Allocation(
        id=int(str(row["id"])),
        source="recorded",
        site_id=int(str(row["site_id"])),
        state=str(row["state"]),
        nodes=int(str(row["num_nodes"])),
        scheduler_id=None if row["scheduler_id"] is None else str(row["scheduler_id"]),
        start_at=nanos(str(start)) if start else None,
        end_at=nanos(str(end)) if end else None,
        tags=tuple(tags.items()),
    )
