"""How much of a log is understood: every line looked at, none turned into a record.

Lines that say nothing about a job have shapes too (`known.toml`), so that a line without any shape is news:
a message of a release that is not known yet.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from jobtui.formats.parser import split_line
from jobtui.formats.schema import load

EXAMPLES_KEPT = 5
"""Examples of unknown messages kept, each of a call site of its own."""
EXAMPLE_LENGTH = 160


class Survey(NamedTuple):
    """Counts of lines. `records` begin with a call site, `unknown` of these have no known shape.

    `continuations` are lines without a record: they belong to the one before them, such as tracebacks,
    scripts on stdin, output of programs. One line of a container's output can hold several records.
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
    count = records = continuations = unknown = 0
    examples: dict[str, str] = {}
    for line in lines:
        count += 1
        split = split_line(line.decode("utf-8", "replace").rstrip("\r\n"))
        continuations += not split
        for found, may_be_cut in split:
            records += 1
            if not _is_known(found) and not may_be_cut:
                unknown += 1
                if len(examples) < EXAMPLES_KEPT:
                    examples.setdefault(found["func"], found["message"][:EXAMPLE_LENGTH])
    return Survey(count, records, continuations, unknown, tuple(examples.values()))


def _is_known(found: re.Match[str]) -> bool:
    message, func, head = found["message"], found["func"], found["head"]
    matches = (load(name).match(message, func, head) for name in ("sirepo", "known"))
    return any(matched and not matched[0].catch_all for matched in matches)
