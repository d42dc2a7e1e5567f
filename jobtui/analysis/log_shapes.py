"""Groups similar lines of a log: by shape, by continuation of a record, by how often values occur."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from jobtui.model.pages import Level, LogLine

_SITE = r"[^\s:]+:\d+:[\w<>]+ "
LINE_HEAD = re.compile(
    r"(?:(?P<date>[A-Z][a-z]{2} [ \d]\d |\d{4}-\d\d-\d\d[T ]))?"
    r"(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?(?: +|$)"
    rf"(?:\d+ +\d+ (?={_SITE}))?(?P<site>{_SITE})?"
    rf"|(?={_SITE})[^\s:]+\.py:\d+:[\w<>]+ ",
    re.ASCII,
)
"""Time, process, thread and call site, if they are there."""
_VARIES = re.compile(
    r"'[^']*'|\"[^\"]*\"|(?<=\[)\d\d?/\w+/\d{4}[^\]]*"
    r"|[\w./:@%+-]*\d[\w./:@%+-]*|(?<==)(?![a-z]+\b)[\w./:@%+-]+"
    r"|\b(?=[A-Za-z]{4}\b)(?=[A-Z]*[a-z])[A-Za-z]{1,3}[A-Z][A-Za-z]{0,2}\b",
    re.ASCII,
)
"""Parts that differ between lines that say the same: quoted text, words with digits, values, short ids."""
_SETTING = re.compile(r"(?:(?:[\w.@-]+:? )?(?:export |declare -x ))?[A-Z_][A-Z0-9_]*=", re.ASCII)
_ROUTINE = re.compile(
    r"\b(?:GET|POST|PUT|HEAD|PATCH|DELETE) /|\b(?:uri|path|url)=/|\bsame status=|\brun_status_update\b",
    re.ASCII,
)
"""What access lines of servers contain, and lines that repeat a status."""
_PAIR = re.compile(r"\b([a-zA-Z]\w{1,20})=([\w./:@-]{1,40})(?=[\s,;)\]]|$)", re.ASCII)
PAIRS = 8
"""The most pairs `name=value` of one line that are counted."""
SHAPE_CHARACTERS = 300


def has_time(line: LogLine) -> bool:
    return line.stamped or ((head := LINE_HEAD.match(line.text)) is not None and head["clock"] is not None)


def message_of(line: LogLine) -> str:
    head = LINE_HEAD.match(line.text)
    return line.text[head.end() if head else 0 :]


def _begin_of(line: LogLine) -> str:
    text = message_of(line)
    return text if len(text) <= SHAPE_CHARACTERS else text[:SHAPE_CHARACTERS].rpartition(" ")[0]


def shape_of(line: LogLine) -> str:
    """The begin of its message with `#` for what varies."""
    return _VARIES.sub("#", _begin_of(line)).strip()


def continues(head: LogLine, line: LogLine) -> bool:
    if line.origin != head.origin or line.is_gap or head.is_gap or has_time(line):
        return False
    return has_time(head) or line.text[:1].isspace()


def goes_on(head: LogLine, before: LogLine, line: LogLine) -> bool:
    """Whether a line may be folded with those from `head` to `before`, the line right before it.

    It does as a further line of a record or of an environment, and when it says what `head` says or both
    are access or status lines, of whichever logs; errors are never folded for that.
    """
    if line.is_gap or head.is_gap:
        return False
    if continues(head, line) or (
        line.origin == head.origin and all(_SETTING.match(message_of(one).lstrip()) for one in (before, line))
    ):
        return True
    if not line.level is head.level is not Level.ERROR or has_time(line) != has_time(head):
        return False
    if _ROUTINE.search(line.text):
        return _ROUTINE.search(head.text) is not None
    return line.origin == head.origin and shape_of(line) == shape_of(head) != ""


class Facet(NamedTuple):
    """A value of a field that lines have; of the field `shape` it is the shape of their messages."""

    field: str
    value: str


SHAPE = "shape"
LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.PLAIN: "other"}


def facets_of(line: LogLine) -> Iterator[Facet]:
    yield Facet("level", LEVELS[line.level])
    if line.origin:
        yield Facet("log", line.origin)
    pairs = dict(_PAIR.findall(_begin_of(line)))
    yield from map(Facet, list(pairs)[:PAIRS], list(pairs.values())[:PAIRS])
    yield Facet(SHAPE, shape_of(line))


class FacetCount(NamedTuple):
    facet: Facet
    records: int


MOST_VALUES = 20
"""A field with more values differs in each line, and is not counted."""
MOST_SHAPES = 200


def count_facets(lines: Iterable[LogLine]) -> tuple[FacetCount, ...]:
    """The values of the records that these lines are, the fields in their order, the most frequent first."""
    counts = Counter(facet for line in heads_of(lines) for facet in facets_of(line))
    by_field: dict[str, list[FacetCount]] = {}
    for facet, count in counts.most_common():
        by_field.setdefault(facet.field, []).append(FacetCount(facet, count))
    shapes = by_field.pop(SHAPE, [])[:MOST_SHAPES]
    few = [(field, found) for field, found in by_field.items() if 1 < len(found) <= MOST_VALUES]
    few.sort(key=lambda one: (one[0] != "level", one[0] != "log", -sum(count.records for count in one[1])))
    return (*(one for _, found in few for one in found), *shapes)


def heads_of(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    head = None
    for line in lines:
        if head is None or not continues(head, line):
            head = line
            yield line


class Condition(NamedTuple):
    """Which lines are shown: only those with a value, or those without it."""

    facet: Facet
    keeps: bool


def keeper(conditions: Sequence[Condition]) -> Callable[[LogLine], bool]:
    """Whether a line is shown: of the kept values of each field it has one, and no dropped one."""
    kept: dict[str, set[Facet]] = {}
    for facet, keeps in conditions:
        if keeps:
            kept.setdefault(facet.field, set()).add(facet)
    dropped = {facet for facet, keeps in conditions if not keeps}

    def is_kept(line: LogLine) -> bool:
        found = set(facets_of(line))
        return dropped.isdisjoint(found) and all(not found.isdisjoint(one) for one in kept.values())

    return is_kept
