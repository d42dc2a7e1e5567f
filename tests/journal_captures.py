"""A capture of Sirepo as it would stand in journals: its own export, its containers' output as entries."""

from pathlib import Path

from jobtui.formats.times import TIME_LENGTH, latest
from jobtui.model.clock import SECOND, Nanos
from tests.journal_memory import MemoryJournal, Row, in_order, row_of, rows_of_export

ROOT = Path(__file__).parent / "fixtures" / "sirepo"
NEWEST = Nanos(1_795_300_000 * SECOND)
DELAY = Nanos(SECOND // 3)
"""How long after the second that a line names it is received."""


def supervisor_rows(capture: str) -> list[Row]:
    """What the supervisor's and the servers' host has."""
    return rows_of_export((ROOT / capture / "journal.export").read_bytes())


def container_rows(capture: str, host: str = "docker7.sirepo.example") -> list[Row]:
    """What the docker host has. A container is another one when its agent starts anew."""
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
                    monotonic_us=len(rows) + 1,
                    priority=3,
                )
            )
    return rows


def one_journal(capture: str) -> MemoryJournal:
    """All in one, as a collector has it."""
    return MemoryJournal(in_order([*supervisor_rows(capture), *container_rows(capture)]))
