"""What requirements/*.txt lock: each library once, with its hashes and with who asked for it.

The format is that of pip's requirement files as `uv pip compile --generate-hashes` writes them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

REQUIREMENTS = Path(__file__).parents[1] / "requirements"
BASE = "base"
"""The lock of what jobtui needs without any extra."""
OURSELVES = "jobtui (pyproject.toml)"
_PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: *; *(?P<marker>[^\\]+?))?(?: \\)?")
_HASH = re.compile(r"--hash=sha256:(?P<digest>[0-9a-f]{64})(?: \\)?")
_VIA = re.compile(r"# (?:via)? *(?P<who>.+)?")


class Locked(NamedTuple):
    """A library in one version. `wanted_by` names who needs it, `hashes` are those of all its files."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    wanted_by: tuple[str, ...]


def read_lock(name: str) -> tuple[Locked, ...]:
    """The lock of `base` or of an extra. Raises OSError, and ValueError for a line that is none of a lock."""
    return tuple(parse_lock((REQUIREMENTS / f"{name}.txt").read_text()))


def parse_lock(text: str) -> Iterator[Locked]:
    """The libraries of a lock, in its order. Raises ValueError for a line that is none of a lock."""
    found: list[Locked] = []
    for line in map(str.strip, text.splitlines()):
        if pin := _PIN.fullmatch(line):
            found.append(Locked(pin["name"], pin["version"], pin["marker"] or "", (), ()))
        elif found and (digest := _HASH.fullmatch(line)):
            found[-1] = found[-1]._replace(hashes=(*found[-1].hashes, digest["digest"]))
        elif found and (via := _VIA.fullmatch(line)):
            wanted_by = (*found[-1].wanted_by, *_names(via["who"]))
            found[-1] = found[-1]._replace(wanted_by=wanted_by)
        elif line:
            raise ValueError(f"no line of a lock: {line!r}")
    yield from found


def _names(who: str | None) -> Iterable[str]:
    """Who is named there; a constraint asks for nothing."""
    return () if who is None or who.startswith("-c ") else (who.strip(),)


def by_name(locked: Iterable[Locked]) -> Mapping[str, Locked]:
    """The same by name."""
    return {one.name: one for one in locked}
