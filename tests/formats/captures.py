"""The captured logs, and records out of any bytes as a log backend would ask for them."""

from collections.abc import Iterable
from pathlib import Path

from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord

CAPTURES = Path(__file__).parents[1] / "fixtures" / "sirepo"
LOGS = sorted(path for path in CAPTURES.rglob("*.log") if "user" not in path.parts)
"""Every log of a supervisor, server, container or agent; not what programs wrote into run directories."""
NEWEST = Nanos(1_795_300_000 * SECOND)
"""A day after the captures were taken."""


def name_of(path: Path) -> str:
    return str(path.relative_to(CAPTURES))


def records_of(data: bytes, parser: LogParser | None = None) -> list[LogRecord]:
    return (parser or LogParser("log")).parse(data, 0, 1, NEWEST).records


def records_of_blocks(blocks: Iterable[bytes], parser: LogParser) -> list[LogRecord]:
    found: list[LogRecord] = []
    offset, line = 0, 1
    for block in blocks:
        parsed = parser.parse(block, offset, line, NEWEST)
        found += parsed.records
        offset += len(block)
        line += parsed.lines
    return found
