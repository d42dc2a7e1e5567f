"""What programs write when they fail, as data: reads `causes.toml`, and finds the shape of a line."""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from jobtui.formats.schema import FormatError, document_of, longest_literal, text_of
from jobtui.model.numbers import whole

_KEYS = frozenset({"role", "family", "weight", "shapes"})
_REPEATS = re.compile(r"\{\d+,?\d*\}")
ROLES = frozenset(("cause", "symptom", "wrapper", "stop", "harmless", "handled", "success", "about"))


class CauseShape(NamedTuple):
    """One kind of line. `literal` must be in a line that matches; `sample` is one."""

    role: str
    family: str
    weight: int
    pattern: re.Pattern[str]
    literal: str
    sample: str


class CauseFormat(NamedTuple):
    """All shapes by role, the heaviest first; `exceptions` by what they tell; `words` of trouble."""

    by_role: Mapping[str, tuple[CauseShape, ...]]
    exceptions: Mapping[str, frozenset[str]]
    needles: tuple[str, ...]
    strong: re.Pattern[str]
    weak: re.Pattern[str]
    parts: Mapping[str, re.Pattern[str]]

    def may_tell(self, text: str) -> bool:
        """Whether a line may say anything of a failure."""
        lower = text.lower()
        return any(needle in lower for needle in self.needles)

    def first(self, role: str, text: str) -> CauseShape | None:
        """The shape of a role that a line has; the heaviest of them."""
        return next(
            (s for s in self.by_role[role] if s.literal in text and s.pattern.search(text) is not None), None
        )


@cache
def load_causes() -> CauseFormat:
    """Raises FormatError when the file breaks its own rules."""
    document = document_of("causes", text_of("causes"))
    try:
        shapes = [shape for entry in document["lines"] for shape in _shapes(entry)]
        words = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in document["words"].items()}
        parts = {name: re.compile(pattern) for name, pattern in document["parts"].items()}
        exceptions = {name: frozenset(names) for name, names in document["exceptions"].items()}
    except (re.error, KeyError, ValueError) as error:
        raise FormatError(f"causes.toml: {error!r}") from error
    shapes.sort(key=lambda shape: -shape.weight)
    by_role = {role: tuple(shape for shape in shapes if shape.role == role) for role in ROLES}
    return CauseFormat(by_role, exceptions, tuple(document["needles"]), words["strong"], words["weak"], parts)


def _shapes(entry: dict[str, object]) -> list[CauseShape]:
    role, pairs = entry["role"], entry["shapes"]
    if entry.keys() - _KEYS or role not in ROLES or not isinstance(pairs, list):
        raise ValueError(f"not as it must be: {entry}")
    family, weight = str(entry.get("family", "")), whole(str(entry.get("weight", 0)), 0)
    return [
        CauseShape(str(role), family, weight, re.compile(pattern), _literal(pattern), sample)
        for pattern, sample in pairs
    ]


def _literal(pattern: str) -> str:
    return "" if "(?i" in pattern else longest_literal(_REPEATS.sub("*", pattern))
