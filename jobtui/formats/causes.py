"""What programs write when they fail, and others when they end one: reads `causes.toml` and `kills.toml`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from jobtui.model.patterns import regex
from jobtui.model.tables import tables_of

_LONG = 5
"""A literal of this many characters counts as much as a longer one."""


class CauseShape(NamedTuple):
    """One kind of line, and a sample. A line that matches holds one of the `literals`, in lower case."""

    role: str
    family: str
    weight: int
    pattern: re.Pattern[str]
    literals: tuple[str, ...]
    sample: str


class CauseFormat(NamedTuple):
    """All shapes by role, the heaviest first; `exceptions` by what they tell; patterns of parts of lines.

    `telling` are those that tell for or against one.
    """

    by_role: Mapping[str, tuple[CauseShape, ...]]
    exceptions: Mapping[str, frozenset[str]]
    needles: tuple[str, ...]
    parts: Mapping[str, re.Pattern[str]]
    telling: tuple[str, ...]

    def may_tell(self, text: str) -> bool:
        return any(map(text.lower().__contains__, self.needles))

    def first(self, role: str, text: str) -> CauseShape | None:
        """The shape of a role that a line has; the heaviest of them."""
        lower = text.lower()
        for shape in self.by_role[role]:
            for literal in shape.literals:
                if literal in lower:
                    if shape.pattern.search(text) is not None:
                        return shape
                    break
        return None

    def fails(self, text: str) -> bool:
        """Whether a line has the shape of a cause, or of an end by one."""
        return any(self.first(role, text) for role in ("cause", "symptom"))


@cache
def load_causes() -> CauseFormat:
    """What `causes.toml` holds; that it keeps its own rules is tested."""
    document = tables_of("jobtui.formats", "causes")
    shapes = [shape for entry in document["lines"] for shape in _shapes(entry)]
    parts = {name: regex(pattern) for name, pattern in document["parts"].items()}
    exceptions = {name: frozenset(names) for name, names in document["exceptions"].items()}
    shapes.sort(key=lambda shape: -shape.weight)
    roles = {shape.role for shape in shapes}
    by_role = {role: tuple(shape for shape in shapes if shape.role == role) for role in roles}
    return CauseFormat(by_role, exceptions, tuple(document["needles"]), parts, tuple(document["telling"]))


def _shapes(entry: dict[str, Any]) -> Iterator[CauseShape]:
    role, family, weight = entry["role"], entry.get("family", ""), entry.get("weight", 0)
    for pattern, sample in entry["shapes"]:
        literals = _literals(_parser.parse(pattern))
        yield CauseShape(role, family, weight, regex(pattern), literals, sample)


def _literals(parts: Iterable[tuple[Any, Any]]) -> tuple[str, ...]:
    """Texts of which every match of a parsed pattern holds one, in lower case; ("",) where there are none."""
    found: list[tuple[str, ...]] = [("",)]
    run = ""
    for kind, what in (*parts, (None, None)):
        letters = {chr(c).lower() for k, c in what if k is sre.LITERAL} if kind is sre.IN else set()
        if kind is sre.LITERAL:
            run += chr(what).lower()
        elif len(letters) == 1 and all(k is sre.LITERAL for k, _ in what):
            run += letters.pop()
        elif kind not in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
            found.append((run,))
            run = ""
            if kind is sre.SUBPATTERN:
                found.append(_literals(what[3]))
            elif kind is sre.BRANCH:
                found.append(tuple({one: None for branch in what[1] for one in _literals(branch)}))
            elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT) and what[0]:
                found.append(_literals(what[2]))
    return max(found, key=lambda some: (min(len(min(some, key=len)), _LONG), -len(some)))


class CauseWeights(NamedTuple):
    """The weight of each feature of a line, and the least chance from which a line is named."""

    least: float
    by_feature: Mapping[str, float]

    def weigh(self, features: Iterable[str]) -> float:
        return sum(self.by_feature.get(feature, 0.0) for feature in features)


@cache
def load_weights() -> CauseWeights:
    """What `python -m release.cause_weights` learnt."""
    document = tables_of("jobtui.formats", "cause_weights")
    weights = document["features"].items()
    by_feature = {name: float(weight) for weight, names in weights for name in names.split(", ")}
    return CauseWeights(float(document["least"]), by_feature)


class KillShape(NamedTuple):
    """One kind of message, who may write it, and a sample. Of `says` the first counts that can be filled."""

    role: str
    writers: tuple[str, ...]
    weight: int
    says: tuple[str, ...]
    pattern: re.Pattern[str]
    sample: str


class KillFormat(NamedTuple):
    """All shapes in their order, and who puts a job of HTCondor on hold by the code of the reason."""

    shapes: tuple[KillShape, ...]
    hold_codes: Mapping[str, str]

    @property
    def writers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(writer for shape in self.shapes for writer in shape.writers))

    def first(self, writer: str, text: str) -> tuple[KillShape, dict[str, str]] | None:
        for shape in self.shapes:
            if writer in shape.writers and (found := shape.pattern.search(text)) is not None:
                return shape, {name: value for name, value in found.groupdict().items() if value}
        return None


@cache
def load_kills() -> KillFormat:
    """What `kills.toml` holds; that it keeps its own rules is tested."""
    document = tables_of("jobtui.formats", "kills")
    shapes = tuple(
        KillShape(
            entry["role"], tuple(entry["writers"]), entry.get("weight", 0), tuple(entry.get("says", ())),
            regex(pattern), sample,
        )
        for entry in document["lines"]
        for pattern, sample in entry["shapes"]
    )  # fmt: skip
    return KillFormat(shapes, document["hold_codes"])
