"""The copies of a cluster agent's log that the supervisor keeps: one file read, several put together.

A copy is `agent-sbatch/<host>/<YYYYmmddHHMMSS>-<kind>.log`, JSON with `filename`, `stderr` and `stdout`. That
holds the last 200 lines of the log as it was then. Kinds are `remote-before-start`,
`remote-after-start` and `start`, in 2020 `remote` and `start`. The time in the name is that of the
supervisor's host. The log begins with what `env` printed, of which only the names are kept. Reads no file.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobtui.model.clock import SECOND, Nanos, time_of_iso
from jobtui.model.secret_words import MASK

NAME = re.compile(r"(?P<time>\d{14})-(?P<kind>[a-z][a-z-]{0,40})\.log", re.ASCII)
LINES_READ = 2_000
"""How many lines of a copy are read, the last ones; the supervisor writes 200."""
POSITION_BITS = 24
"""A position in a copy is below 2 to this."""
FIRST_POSITION = 2
"""The position of the first line of a copy; those before it are for words about the copy."""

_RANKS = {"remote-before-start": 0, "start": 1, "remote": 2, "remote-after-start": 3}
_ENVIRONMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=", re.ASCII)
_RECORD = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d +\d+ +\d+ \S+:\d+:", re.ASCII)


class CopyName(NamedTuple):
    """What the name of a copy says. `at` is the time in it, taken as one of the zone of this machine."""

    at: Nanos
    base: int
    kind: str


class CopiedLine(NamedTuple):
    """One line of a copy: its number there, and the position of its first byte."""

    number: int
    position: int
    text: str


class AgentCopy(NamedTuple):
    """One copy, its environment masked. `stderr` is that of the command that fetched it."""

    name: CopyName
    lines: tuple[CopiedLine, ...]
    stderr: str = ""


def read_name(name: str) -> CopyName | None:
    found = NAME.fullmatch(name)
    if found is None:
        return None
    written = f"{found['time'][:8]}T{found['time'][8:]}"
    at, utc = time_of_iso(written, is_local=True), time_of_iso(written)
    if at is None or utc is None:
        return None
    # positions do not depend on the zone, in which an hour of a year comes twice
    base = (utc // SECOND * len(_RANKS) + _RANKS.get(found["kind"], 2)) << POSITION_BITS
    return CopyName(at, max(0, base), found["kind"])


def read_copy(name: CopyName, document: object) -> AgentCopy:
    """A copy from its decoded JSON. Raises ValueError if it is none."""
    if not isinstance(document, dict):
        raise ValueError("no object")
    stdout, stderr = document.get("stdout"), document.get("stderr")
    if not isinstance(stdout, str) or not isinstance(stderr, str | None):
        raise ValueError("no stdout in it")
    texts = stdout.removesuffix("\n").split("\n") if stdout else []
    lines, offset = list[CopiedLine](), 0
    skipped = max(0, len(texts) - LINES_READ)
    for number, text in enumerate(without_environment(texts), 1):
        if number > skipped and offset + FIRST_POSITION < 1 << POSITION_BITS:
            lines.append(CopiedLine(number, name.base + FIRST_POSITION + offset, text))
        offset += len(text.encode("utf-8", "replace")) + 1
    return AgentCopy(name, tuple(lines), stderr or "")


def without_environment(texts: Iterable[str]) -> Iterable[str]:
    """Lines with all values of an environment masked, as it may hold anything.

    A dump begins with a line `NAME=value` and ends with the next record; a value may go over several lines.
    """
    in_dump = False
    for text in texts:
        if _RECORD.match(text):
            in_dump = False
        elif found := _ENVIRONMENT.match(text):
            in_dump = True
            yield f"{found[0]}{MASK if len(text) > found.end() else ''}"
            continue
        elif in_dump:
            yield MASK
            continue
        yield text


def added_lines(before: Sequence[str], after: Sequence[CopiedLine]) -> tuple[Sequence[CopiedLine], bool]:
    """The lines of a copy that are not in the ones before, and whether lines in between may be in neither.

    Both are ends of the same growing log: what the earlier ends with, the later begins with, unless more was
    written in between than a copy holds, or the log was started again, as it was in 2020 at each start.
    """
    texts = [line.text for line in after]
    for length in range(min(len(before), len(texts)), 0, -1):
        if before[-1] == texts[length - 1] and list(before[-length:]) == texts[:length]:
            return after[length:], False
    # A log begins with the environment
    return after, bool(before) and bool(texts) and _ENVIRONMENT.match(texts[0]) is None
