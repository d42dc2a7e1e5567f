"""How much of a log is understood: every line looked at, none turned into a record.

Lines that say nothing about a job have shapes too (`known.toml`), so that a line without any shape is news:
a message of a release that is not known yet.
"""

from collections.abc import Iterable
from typing import NamedTuple

from jobtui.formats.parser import LINE, split_forwarded
from jobtui.formats.schema import load

EXAMPLES_KEPT = 5
"""Examples of unknown messages kept, each of a call site of its own."""
EXAMPLE_LENGTH = 160


class Survey(NamedTuple):
    """Counts of lines. `records` begin with a call site, `unknown` of these have no known shape.

    `continuations` belong to the record before them: tracebacks, scripts on stdin, output of programs.
    """

    lines: int
    records: int
    continuations: int
    unknown: int
    examples: tuple[str, ...]

    @property
    def unknown_share(self) -> float:
        """Which part of the records has no known shape, 0 to 1."""
        return self.unknown / self.records if self.records else 0.0


def survey(lines: Iterable[bytes]) -> Survey:
    """Look at every line. Never raises on any bytes; examples are outside text, not masked."""
    count = records = unknown = 0
    examples: dict[str, str] = {}
    for line in lines:
        count += 1
        for func, message in _messages(line):
            records += 1
            if not _is_known(message, func):
                unknown += 1
                if len(examples) < EXAMPLES_KEPT:
                    examples.setdefault(func, message[:EXAMPLE_LENGTH])
    return Survey(count, records, max(0, count - records), unknown, tuple(examples.values()))


def _messages(line: bytes) -> list[tuple[str, str]]:
    """Call sites' functions and messages in a line: one, none, or several glued ones."""
    found = LINE.match(line.decode("utf-8", "replace").rstrip("\r\n"))
    if found is None:
        return []
    return split_forwarded(found[4], found[5])


def _is_known(message: str, func: str) -> bool:
    return load("sirepo").match(message, func) is not None or load("known").match(message, func) is not None
