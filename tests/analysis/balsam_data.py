"""Recorded Balsam lists as records, for tests of what is computed from them."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from jobtui.backends.balsam import records
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import Nanos

FOLDER = Path(__file__).parents[1] / "fixtures" / "balsam"


def load(name: str) -> list[dict[str, object]]:
    document = json.loads((FOLDER / f"{name}.json").read_text())
    results: list[dict[str, object]] = document["results"] if isinstance(document, dict) else document
    return results


def nanos(text: str) -> Nanos:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return Nanos(int(moment.timestamp()) * 10**9 + moment.microsecond * 1_000)


def change_of(event: dict[str, object]) -> StateChange:
    return records.change_of(msgspec.convert(event, records.EventRow), "recorded", "balsam")


def allocation_of(row: dict[str, object]) -> Allocation:
    return records.allocation_of(msgspec.convert(row, records.BatchJobRow), "recorded", ())
