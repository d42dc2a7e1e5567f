"""Line shapes as data: reads a `*.toml` of this folder, compiles it, and finds the lines that can match.

A shape that breaks the rules raises a FormatError that names file and shape. Tests check that a file holds
nothing else, and that each shape matches its samples.

In a quiet block (most lines matter to nobody) searching the block for each needle costs a fraction of
looking at the lines. In a busy one the search costs more than it saves: then every line is given.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import accumulate, count
from operator import add
from typing import Any, NamedTuple

from jobtui.model.ops import Component
from jobtui.model.patterns import regex
from jobtui.model.tables import tables_of

DRIVER_HEAD = "*Driver"
DRIVERS = ("DockerDriver", "LocalDriver", "SbatchDriver")
"""The drivers of most lines, which are looked up first."""
ANY_HEAD = "*"
"""Head of messages that may begin with any word; such a shape must name its functions."""

MATCH_LIMIT = 16_384
"""How many characters of a message are matched: some patterns take time with their square."""

_MACRO = re.compile(r"\{([a-z]+)\}")
_GROUP = re.compile(r"\{[a-z]+\}|\((?:[^()\\]|\\.)*\)[?*+]*|\[(?:[^\]\\]|\\.)*\][?*+]*")
_PLAIN = re.compile(r"(?:[\w =,:/'\"<>-](?![?*]))+")
_HEAD = re.compile(r"(\w*)(?:$|\\\W|[ =:;,/.!'\"<>#-](?![?*+{]))")


class FormatError(Exception):
    """A format file is wrong; the text names the file and the shape."""


class Shape(NamedTuple):
    """One kind of message. `step` is its words in a timeline, None when it is not shown there.

    `from_agent`: an agent or its job_cmd writes it. `literal` must be in a message that matches: looking for
    it first spares most failing matches. With `funcs` it counts only if one of them wrote it. A `catch_all`
    matches messages without a shape of their own that are of use.
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


_Row = tuple[str, frozenset[str], Callable[[str, int, int], re.Match[str] | None], Shape]


class LogFormat(NamedTuple):
    """Every shape of a system, by the word its message begins with, and what to look for in raw bytes."""

    shapes: tuple[Shape, ...]
    by_head: Mapping[str, tuple[_Row, ...]]
    needles: tuple[bytes, ...]
    dense: bytes

    def match(self, message: str, func: str, head: str) -> tuple[Shape, dict[str, str | None]] | None:
        """The shape of a message that begins with the word `head`, with its fields; None without one."""
        rows = self.by_head.get(head)
        if rows is None:  # one key serves all other drivers, one all other words
            rows = self.by_head.get(DRIVER_HEAD if head.endswith("Driver") else ANY_HEAD, ())
        for literal, funcs, fullmatch, shape in rows:
            if literal not in message or (funcs and func not in funcs):
                continue
            if found := fullmatch(message, 0, MATCH_LIMIT):
                return shape, found.groupdict()
        return None


@cache
def load(name: str) -> LogFormat:
    """The format in `<name>.toml` of this folder. Raises FormatError if the file is wrong."""
    # Reading the samples, which only tests need, takes as long as reading the rest
    return read_format(name, tables_of("jobtui.formats", name, without="shape.sample"))


@cache
def step_words(shape: str) -> tuple[str, Component]:
    """The words of a timeline for a shape of Sirepo or of a Balsam site, and what writes such lines."""
    found = next(one for name in ("sirepo", "balsam_site") for one in load(name).shapes if one.name == shape)
    return found.step or shape.replace("_", " "), found.component


def read_format(name: str, document: Mapping[str, Any]) -> LogFormat:
    """The format that `<name>.toml` describes, which holds this. Raises FormatError."""
    several = (
        {**lines, "pattern": pattern} for lines in document.get("lines", ()) for pattern, _ in lines["shapes"]
    )
    macros = document.get("macros", {})
    shapes = [_shape(f"{name}.toml", entry, macros) for entry in (*document.get("shape", ()), *several)]
    by_head: dict[str, list[_Row]] = {}
    for shape in shapes:
        for head in shape.heads if DRIVER_HEAD not in shape.heads else (*shape.heads, *DRIVERS):
            row = shape.literal, shape.funcs, shape.pattern.fullmatch, shape
            by_head.setdefault(head, []).append(row)
    anywhere = by_head.pop(ANY_HEAD, [])
    return LogFormat(
        shapes=tuple(shapes),
        by_head={head: (*found, *anywhere) for head, found in by_head.items()} | {ANY_HEAD: tuple(anywhere)},
        needles=tuple(needle.encode() for needle in document.get("needles", ())),
        dense=document.get("dense", "").encode(),
    )


def _shape(file: str, entry: Mapping[str, Any], macros: Mapping[str, str]) -> Shape:
    try:
        pattern = _MACRO.sub(lambda macro: macros[macro[1]], entry["pattern"])
        component = Component(entry["component"])
        heads = tuple(entry.get("heads", ()))
        if ANY_HEAD in heads and not entry.get("funcs"):
            raise ValueError("a message that may begin with anything needs funcs")
        if not heads:
            head = _HEAD.match(pattern)
            if head is None:
                raise ValueError(f"heads are needed where a pattern does not begin with a word: {pattern!r}")
            heads = (head[1],)
        return Shape(
            name=entry["name"],
            component=component,
            step=entry.get("step"),
            heads=heads,
            pattern=regex(pattern, re.ASCII | re.DOTALL),
            literal=longest_literal(entry["pattern"]),
            from_agent=component in (Component.AGENT, Component.JOB_CMD),
            funcs=frozenset(entry.get("funcs", ())),
            catch_all=entry.get("catch_all", False),
        )
    except (KeyError, ValueError) as error:
        raise FormatError(f"{file}, shape {entry.get('name')!r}: {error!r}") from error


def longest_literal(pattern: str) -> str:
    """The longest text in every match of `pattern` that is outside of groups and classes."""
    outside = re.sub(r"\\\W", "\0", pattern)
    while (fewer := _GROUP.sub("\0", outside)) != outside:
        outside = fewer
    if "|" in outside:
        return ""
    outside = re.sub(r"\\\w[?*+]*|[.][?*+]*", "\0", outside)
    return max((run.strip("\0") for run in _PLAIN.findall(outside)), key=len, default="")


BUSY = 4
"""A block is busy when at least one line in this many holds the format's dense needle."""
SAMPLE = 1 << 14
"""How many bytes show whether a block is busy: counting in all of it takes as long as splitting it."""


def sift(block: bytes, log_format: LogFormat) -> tuple[int, Iterator[tuple[int, int, str]]]:
    """How many lines a block of whole lines has; and of each that holds a needle, in order, its number
    (from 0), the byte where it begins, and its text (without the newline, errors replaced).

    A busy block gives other lines too.
    """
    sample = block[:SAMPLE]
    if sample.count(log_format.dense) * BUSY > sample.count(b"\n"):
        lines = block.decode("utf-8", "replace").split("\n")
        sizes = map(len, lines if block.isascii() else block.split(b"\n"))
        starts = map(add, accumulate(sizes, initial=0), count())  # and the newlines
        return len(lines) - 1, zip(count(), starts, lines)
    return block.count(b"\n"), _lines_with(block, log_format.needles)


def _lines_with(block: bytes, needles: tuple[bytes, ...]) -> Iterator[tuple[int, int, str]]:
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
        yield number, start, block[start:end].decode("utf-8", "replace")
