"""Line shapes as data: reads a `*.toml` of this folder and compiles it.

The file says what it may hold; `load` refuses anything else with a FormatError that names the shape.
"""

import re
import tomllib
from functools import cache
from importlib import resources
from typing import NamedTuple

from jobtui.model.ops import Component

DRIVER_HEAD = "*Driver"
_MACRO = re.compile(r"\{([a-z]+)\}")
_GROUP = re.compile(r"\{[a-z]+\}|\((?:[^()\\]|\\.)*\)[?*+]*|\[(?:[^\]\\]|\\.)*\][?*+]*")
_PLAIN = re.compile(r"(?:[\w =,:/'\"<>-](?![?*]))+")
_SHAPE_KEYS = frozenset({"name", "component", "step", "heads", "pattern", "func", "sample"})


class FormatError(Exception):
    """A format file does not say what it must; names the file and the shape."""


class Sample(NamedTuple):
    """A message a shape must match, and the fields it must give."""

    text: str
    func: str
    fields: dict[str, str]


class Shape(NamedTuple):
    """One kind of message. `step` is its words in a timeline, None when it is not shown there.

    `from_agent` tells that an agent or its job_cmd writes it. `literal` must be in a message that matches:
    looking for it first spares most failing matches.
    """

    name: str
    component: Component
    step: str | None
    heads: tuple[str, ...]
    pattern: re.Pattern[str]
    literal: str
    from_agent: bool
    func: str | None
    samples: tuple[Sample, ...]


class LogFormat(NamedTuple):
    """Every shape of a system, by the word its message begins with, and what to look for in raw bytes."""

    shapes: tuple[Shape, ...]
    by_head: "_ByHead"
    needles: tuple[bytes, ...]
    dense: bytes

    def match(self, message: str, func: str, head: str) -> tuple[Shape, dict[str, str | None]] | None:
        """The shape of a message that begins with the word `head`, with its fields; None when it has none."""
        for shape in self.by_head[head]:
            if shape.literal not in message or (shape.func is not None and shape.func != func):
                continue
            if found := shape.pattern.fullmatch(message):
                return shape, found.groupdict()
        return None


class _ByHead(dict[str, tuple[Shape, ...]]):
    """Shapes by the first word of their messages. One key serves all drivers; other words have no shapes."""

    def __missing__(self, head: str) -> tuple[Shape, ...]:
        return self.get(DRIVER_HEAD, ()) if head.endswith("Driver") else ()


@cache
def load(name: str) -> LogFormat:
    """The format in `<name>.toml`. Raises FormatError when the file breaks its own rules."""
    text = resources.files("jobtui.formats").joinpath(f"{name}.toml").read_text("utf-8")
    document = tomllib.loads(text)
    macros: dict[str, str] = document.get("macros", {})
    shapes = tuple(_shape(name, entry, macros) for entry in document["shape"])
    by_head: dict[str, list[Shape]] = {}
    for shape in shapes:
        for head in shape.heads:
            by_head.setdefault(head, []).append(shape)
    return LogFormat(
        shapes=shapes,
        by_head=_ByHead((head, tuple(found)) for head, found in by_head.items()),
        needles=tuple(needle.encode() for needle in document.get("needles", ())),
        dense=document.get("dense", "").encode(),
    )


def _shape(file: str, entry: dict[str, object], macros: dict[str, str]) -> Shape:
    where = f"{file}.toml, shape {entry.get('name')!r}"
    if unknown := entry.keys() - _SHAPE_KEYS:
        raise FormatError(f"{where}: unknown key {sorted(unknown)[0]!r}")
    try:
        return Shape(
            name=str(entry["name"]),
            component=Component(str(entry["component"])),
            step=str(entry["step"]) if "step" in entry else None,
            heads=tuple(_strings(entry["heads"])),
            pattern=re.compile(_expand(str(entry["pattern"]), macros), re.ASCII),
            literal=longest_literal(str(entry["pattern"])),
            from_agent=str(entry["component"]) in (Component.AGENT, Component.JOB_CMD),
            func=str(entry["func"]) if "func" in entry else None,
            samples=tuple(_samples(entry.get("sample", []))),
        )
    except (KeyError, ValueError, TypeError, re.error) as error:
        raise FormatError(f"{where}: {error!r}") from error


def _expand(pattern: str, macros: dict[str, str]) -> str:
    return _MACRO.sub(lambda macro: macros[macro[1]], pattern)


def longest_literal(pattern: str) -> str:
    """The longest text in every match of `pattern`, as far as it stands outside groups and classes."""
    outside = re.sub(r"\\\W", "\0", pattern)
    while (fewer := _GROUP.sub("\0", outside)) != outside:
        outside = fewer
    outside = re.sub(r"\\\w[?*+]*|[.][?*+]*", "\0", outside)
    return max((run.strip("\0") for run in _PLAIN.findall(outside)), key=len, default="")


def _strings(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"expected a list of words, not {value!r}")
    return value


def _samples(value: object) -> list[Sample]:
    if not isinstance(value, list):
        raise TypeError(f"expected tables, not {value!r}")
    return [Sample(s["text"], s.get("func", ""), s.get("fields", {})) for s in value]
