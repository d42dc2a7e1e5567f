"""Line shapes as data: reads a `*.toml` of this folder, compiles it, and finds the lines that can match.

The file says what it may hold; `load` refuses anything else with a FormatError that names file and shape.

In a quiet block (most lines matter to nobody) searching the block for each needle costs a fraction of
looking at the lines. In a busy one the search costs more than it saves: then every line is given.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from jobtui.model.ops import Component

DRIVER_HEAD = "*Driver"
ANY_HEAD = "*"
"""Head of messages that may begin with any word; such a shape must name its functions."""

MATCH_LIMIT = 16_384
"""Characters of a message that are looked at: the time some patterns take grows with the square of it."""

_MACRO = re.compile(r"\{([a-z]+)\}")
_GROUP = re.compile(r"\{[a-z]+\}|\((?:[^()\\]|\\.)*\)[?*+]*|\[(?:[^\]\\]|\\.)*\][?*+]*")
_PLAIN = re.compile(r"(?:[\w =,:/'\"<>-](?![?*]))+")
_HEAD = re.compile(r"(\w*)(?:$|\\\W|[ =:;,/.!'\"<>#-](?![?*+{]))")
_DOCUMENT_KEYS = frozenset({"needles", "dense", "macros", "shape", "lines"})
_SHAPE_KEYS = frozenset({"name", "component", "step", "heads", "pattern", "funcs", "catch_all", "sample"})
_LINES_KEYS = frozenset({"name", "component", "heads", "funcs", "shapes"})
_SAMPLE_KEYS = frozenset({"text", "func", "fields"})


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
    looking for it first spares most failing matches. With `funcs` it counts only when one of them wrote it.
    A `catch_all` takes what has no shape of its own: the message is of use, and yet not known.
    """

    name: str
    component: Component
    step: str | None
    heads: tuple[str, ...]
    pattern: re.Pattern[str]
    literal: str
    from_agent: bool
    funcs: frozenset[str]
    catch_all: bool
    samples: tuple[Sample, ...]


class LogFormat(NamedTuple):
    """Every shape of a system, by the word its message begins with, and what to look for in raw bytes."""

    shapes: tuple[Shape, ...]
    by_head: "_ByHead"
    needles: tuple[bytes, ...]
    dense: bytes

    def match(self, message: str, func: str, head: str) -> tuple[Shape, dict[str, str | None]] | None:
        """The shape of a message that begins with the word `head`, with its fields; None when it has none."""
        message = message[:MATCH_LIMIT]
        for shape in self.by_head[head]:
            if shape.literal not in message or (shape.funcs and func not in shape.funcs):
                continue
            if found := shape.pattern.fullmatch(message):
                return shape, found.groupdict()
        return None


class _ByHead(dict[str, tuple[Shape, ...]]):
    """Shapes by the first word of their messages. One key serves all drivers, one all other words."""

    def __missing__(self, head: str) -> tuple[Shape, ...]:
        return self.get(DRIVER_HEAD if head.endswith("Driver") else ANY_HEAD, ())


@cache
def load(name: str) -> LogFormat:
    """The format in `<name>.toml` of this folder. Raises FormatError when the file breaks its own rules."""
    return read_format(name, text_of(name))


@cache
def step_words(shape: str) -> tuple[str, Component]:
    """How a timeline calls a line of Sirepo's logs of this shape, and who writes it."""
    found = next(one for one in load("sirepo").shapes if one.name == shape)
    return found.step or shape.replace("_", " "), found.component


def text_of(name: str) -> str:
    """The content of `<name>.toml` of this folder."""
    return resources.files("jobtui.formats").joinpath(f"{name}.toml").read_text("utf-8")


def document_of(name: str, text: str) -> dict[str, Any]:
    """What `text`, the content of `<name>.toml`, holds. Raises FormatError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{name}.toml: {error}") from error


def read_format(name: str, text: str) -> LogFormat:
    """The format that `text`, the content of `<name>.toml`, describes. Raises FormatError."""
    where, document = f"{name}.toml", document_of(name, text)
    _only(document, _DOCUMENT_KEYS, where)
    macros: dict[str, str] = document.get("macros", {})
    shapes = [_shape(where, entry, macros) for entry in document.get("shape", ())]
    for entry in document.get("lines", ()):
        shapes.extend(_shapes_of_lines(where, entry, macros))
    return LogFormat(
        shapes=tuple(shapes),
        by_head=_by_head(shapes),
        needles=tuple(needle.encode() for needle in document.get("needles", ())),
        dense=document.get("dense", "").encode(),
    )


def _by_head(shapes: Iterable[Shape]) -> _ByHead:
    by_head: dict[str, list[Shape]] = {}
    for shape in shapes:
        for head in shape.heads:
            by_head.setdefault(head, []).append(shape)
    anywhere = by_head.get(ANY_HEAD, [])
    return _ByHead(
        (head, tuple(found if head == ANY_HEAD else [*found, *anywhere])) for head, found in by_head.items()
    )


def _shape(file: str, entry: dict[str, object], macros: dict[str, str]) -> Shape:
    where = f"{file}, shape {entry.get('name')!r}"
    _only(entry, _SHAPE_KEYS, where)
    try:
        pattern = _MACRO.sub(lambda macro: macros[macro[1]], str(entry["pattern"]))
        return Shape(
            name=str(entry["name"]),
            component=Component(str(entry["component"])),
            step=str(entry["step"]) if "step" in entry else None,
            heads=_heads(entry, pattern),
            pattern=re.compile(pattern, re.ASCII | re.DOTALL),
            literal=longest_literal(str(entry["pattern"])),
            from_agent=str(entry["component"]) in (Component.AGENT, Component.JOB_CMD),
            funcs=frozenset(_strings(entry.get("funcs", []))),
            catch_all=bool(entry.get("catch_all", False)),
            samples=tuple(_samples(entry.get("sample", []))),
        )
    except (KeyError, ValueError, TypeError, re.error) as error:
        raise FormatError(f"{where}: {error!r}") from error


def _shapes_of_lines(file: str, entry: dict[str, object], macros: dict[str, str]) -> Iterator[Shape]:
    """The shapes of a `[[lines]]` table: `shapes` are pairs of a pattern and a sample, the rest is common."""
    where = f"{file}, lines {entry.get('name')!r}"
    _only(entry, _LINES_KEYS, where)
    pairs = entry.get("shapes")
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        raise FormatError(f"{where}: shapes must be pairs of a pattern and a sample")
    funcs = entry.get("funcs", [])
    common = {key: value for key, value in entry.items() if key != "shapes"}
    for pattern, text in pairs:
        sample = {"text": text, "func": next(iter(_strings(funcs)), "")}
        yield _shape(file, {**common, "pattern": pattern, "sample": [sample]}, macros)


def _only(table: dict[str, object], known: frozenset[str], where: str) -> None:
    if unknown := table.keys() - known:
        raise FormatError(f"{where}: unknown key {min(unknown)!r}")


def _heads(entry: dict[str, object], pattern: str) -> tuple[str, ...]:
    """The heads a shape names, else the word its pattern begins with."""
    if "heads" not in entry:
        found = _HEAD.match(pattern)
        if found is None:
            raise ValueError(f"heads are needed where a pattern does not begin with a word: {pattern!r}")
        return (found[1],)
    heads = tuple(_strings(entry["heads"]))
    if ANY_HEAD in heads and not entry.get("funcs"):
        raise ValueError("a message that may begin with anything needs funcs")
    return heads


def longest_literal(pattern: str) -> str:
    """The longest text in every match of `pattern`, as far as it stands outside groups and classes."""
    outside = re.sub(r"\\\W", "\0", pattern)
    while (fewer := _GROUP.sub("\0", outside)) != outside:
        outside = fewer
    if "|" in outside:
        return ""
    outside = re.sub(r"\\\w[?*+]*|[.][?*+]*", "\0", outside)
    return max((run.strip("\0") for run in _PLAIN.findall(outside)), key=len, default="")


def _strings(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"expected a list of words, not {value!r}")
    return value


def _samples(value: object) -> Iterator[Sample]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise TypeError(f"expected tables, not {value!r}")
    for sample in value:
        if unknown := sample.keys() - _SAMPLE_KEYS:
            raise ValueError(f"sample with unknown key {min(unknown)!r}")
        yield Sample(sample["text"], sample.get("func", ""), sample.get("fields", {}))


BUSY = 4
"""A block is busy when at least one line in this many holds the format's dense needle."""


def sift(block: bytes, log_format: LogFormat) -> Iterator[tuple[int, int, int]]:
    """Number (from 0), start and end (without the newline) of each line that holds a needle, in order.

    A busy block gives other lines too.
    """
    if block.count(log_format.dense) * BUSY > block.count(b"\n"):
        return _each_line(block)
    return _by_needle(block, log_format.needles)


def _each_line(block: bytes) -> Iterator[tuple[int, int, int]]:
    start = 0
    for number, line in enumerate(block.split(b"\n")):
        end = start + len(line)
        yield number, start, end
        start = end + 1


def _by_needle(block: bytes, needles: tuple[bytes, ...]) -> Iterator[tuple[int, int, int]]:
    found: dict[int, int] = {}
    for needle in needles:
        at = block.find(needle)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            found[block.rfind(b"\n", 0, at) + 1] = end
            at = block.find(needle, end)
    number = counted = 0
    for start, end in sorted(found.items()):
        number += block.count(b"\n", counted, start)
        counted = start
        yield number, start, end
