"""A capture of Sirepo as it would stand in journals: its own export, its containers' output as entries."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from jobtui.model.clock import SECOND, TIME_LENGTH, Nanos, latest
from jobtui.model.journal import JournalEntry
from tests.journal_memory import Fields, MemoryJournal, Row, in_order, row_of, rows_of_export

ROOT = Path(__file__).parent / "fixtures" / "sirepo"
NEWEST = Nanos(1_795_300_000 * SECOND)
BOOTED_US = 1_795_000_000_000_000
DELAY = Nanos(SECOND // 3)
"""How long after the second that a line names it is received."""


def supervisor_rows(capture: str) -> list[Row]:
    return rows_of_export((ROOT / capture / "journal.export").read_bytes())


def container_rows(capture: str, host: str = "docker7.sirepo.example") -> list[Row]:
    rows: list[Row] = []
    for path in sorted((ROOT / capture).glob("container-*.log")):
        name = path.stem.removeprefix("container-")
        at, instance = Nanos(0), 0
        for line in path.read_text().splitlines():
            at = latest(line[:TIME_LENGTH], NEWEST) or at
            instance += ":start {'agent_id'" in line
            received = Nanos(at + DELAY)
            rows.append(
                row_of(
                    len(rows),
                    received,
                    line,
                    host=host,
                    unit="docker.service",
                    container=name,
                    container_id=f"{instance}{abs(hash(name)) % 10**9:09d}".ljust(64, "0"),
                    pid=812,
                    boot="b" * 32,
                    machine="d" * 32,
                    priority=3,
                )
            )
    rows.sort(key=lambda row: row[0].at)
    return [
        (msgspec.structs.replace(entry, monotonic_us=entry.at // 1_000 - BOOTED_US), fields)
        for entry, fields in rows
    ]


def one_journal(capture: str) -> MemoryJournal:
    return MemoryJournal(in_order([*supervisor_rows(capture), *container_rows(capture)]))


def exported(rows: Iterable[Row]) -> bytes:
    return b"".join(_exported(entry, fields) for entry, fields in rows)


def _exported(entry: JournalEntry, fields: Fields) -> bytes:
    head = f"__REALTIME_TIMESTAMP={entry.at // 1_000}\n__MONOTONIC_TIMESTAMP={entry.monotonic_us or 1}\n"
    named = (name.encode() + b"=" + value for name, values in fields.items() for value in values)
    return head.encode() + b"\n".join(line for line in named if not line.startswith(b"__")) + b"\n\n"
