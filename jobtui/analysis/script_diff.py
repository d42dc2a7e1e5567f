"""How the scripts and environments of two jobs differ, apart from what differs between any two jobs.

Dates, times, ids and ports differ always and mean nothing: lines that differ in them only are noise, and are
counted instead of shown. What is secret is compared as it is and masked only where it is shown.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from typing import NamedTuple

from jobtui.analysis.script_text import ShownVariable, lines_of, shown_variable
from jobtui.model.scripts import ArchivedScript, Environment, Variable, text_of
from jobtui.model.secret_lines import masked_lines

MOST_LINES = 5_000
"""Lines of each side that are compared, beside what both begin and end with."""
CONTEXT = 3

_NOISE = re.compile(
    r"""\d{4}-\d\d-\d\d(?:[T_ ]?\d\d[:h.-]?\d\d(?:[:.-]?\d\d)?(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?   # dates
    |(?<!\d)20\d\d[01]\d[0-3]\d(?:[T_-]?\d{4,6})?(?!\d)
    |\b\d\d:\d\d:\d\d(?:\.\d+)?\b
    |\b1[5-9]\d{8}(?:\d{3}){0,3}\b                                                       # epoch seconds
    |\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b                            # ids
    |\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{12,64}\b
    |(?<=[:=\s"'])(?:(?<=:)|(?<=port=)|(?<=PORT=)|(?<=port\s)|(?<=port:))\d{2,5}\b         # ports
    |(?<=/tmp/)[\w.-]+""",
    re.VERBOSE | re.ASCII,
)
PLACE = "\x00"


class Kind(StrEnum):
    """How two sides stand to each other."""

    SAME = "same"
    NOISE = "noise"
    CHANGED = "changed"
    THIS = "this"
    OTHER = "other"


class DiffRow(NamedTuple):
    """A line of both sides, masked; None where one side has none. Numbers count from 1, 0 for none."""

    kind: Kind
    this: str | None
    other: str | None
    this_number: int = 0
    other_number: int = 0


class VariableDiff(NamedTuple):
    """A variable of both sides, values masked; None where one side does not have it."""

    name: str
    kind: Kind
    this: str | None
    other: str | None


class ScriptDiff(NamedTuple):
    """How two jobs differ. `folded` counts lines and variables that differ in noise only.

    `note` says what was not compared and why.
    """

    rows: tuple[DiffRow, ...]
    variables: tuple[VariableDiff, ...]
    folded: int = 0
    note: str = ""

    @property
    def is_same(self) -> bool:
        """Whether nothing differs but noise."""
        alike = (Kind.SAME, Kind.NOISE)
        return all(row.kind in alike for row in self.rows) and all(v.kind in alike for v in self.variables)


def diff_scripts(this: ArchivedScript, other: ArchivedScript) -> ScriptDiff:
    """How the script and environment of a job differ from those of another one."""
    ids = frozenset({this.number.partition(".")[0], other.number.partition(".")[0]})
    rows, note = _rows(lines_of(this.script), lines_of(other.script), ids)
    variables = tuple(_variables(this.environment, other.environment, ids))
    folded = sum(row.kind is Kind.NOISE for row in rows) + sum(v.kind is Kind.NOISE for v in variables)
    if this.environment is None or other.environment is None:
        note = "; ".join(filter(None, (note, "an environment is not there, environments are not compared")))
    return ScriptDiff(rows, variables, folded, note)


def without_noise(text: str, ids: frozenset[str] = frozenset()) -> str:
    """A text in which what differs between any two jobs is replaced."""
    text = _NOISE.sub(PLACE, text)
    for one in ids:
        text = re.sub(rf"(?<![\w.]){re.escape(one)}(?![\w])", PLACE, text)
    return text


def _rows(this: list[str], other: list[str], ids: frozenset[str]) -> tuple[tuple[DiffRow, ...], str]:
    keys = [without_noise(line, ids) for line in this], [without_noise(line, ids) for line in other]
    head, tail = _common(*keys)
    sizes = len(this) - head - tail, len(other) - head - tail
    note = ""
    if max(sizes) > MOST_LINES:
        note = f"only {MOST_LINES:,} lines from the first difference on are compared"
        this, other = this[: head + MOST_LINES], other[: head + MOST_LINES]
        keys = keys[0][: len(this)], keys[1][: len(other)]
        tail = 0
    shown = list(masked_lines(this)), list(masked_lines(other))
    raw = this, other
    middle = (keys[0][head : len(this) - tail], keys[1][head : len(other) - tail])
    # lines that are very frequent part no two scripts, and without leaving them out this can take minutes
    blocks = SequenceMatcher(None, *middle).get_opcodes()
    rows = [_row(raw, shown, at, at) for at in range(head)]
    for word, a, b, c, d in blocks:
        ours, theirs = range(a + head, b + head), range(c + head, d + head)
        if word == "equal":
            rows += [_row(raw, shown, i, j) for i, j in zip(ours, theirs, strict=True)]
        else:
            rows += _block(shown, ours, theirs)
    ends = zip(range(len(this) - tail, len(this)), range(len(other) - tail, len(other)), strict=True)
    return (*rows, *(_row(raw, shown, i, j) for i, j in ends)), note


def _common(this: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many lines both begin and end with: comparing takes the square of the others."""
    most = min(len(this), len(other))
    head = next((at for at in range(most) if this[at] != other[at]), most)
    tail = next((at for at in range(most - head) if this[-1 - at] != other[-1 - at]), most - head)
    return head, tail


_Sides = tuple[list[str], list[str]]


def _row(raw: _Sides, shown: _Sides, i: int, j: int) -> DiffRow:
    kind = Kind.SAME if raw[0][i] == raw[1][j] else Kind.NOISE
    return DiffRow(kind, shown[0][i], shown[1][j], i + 1, j + 1)


def _block(shown: _Sides, ours: range, theirs: range) -> Iterator[DiffRow]:
    """Lines that differ, beside each other as far as both sides have some."""
    paired = min(len(ours), len(theirs))
    for i, j in zip(ours[:paired], theirs[:paired], strict=True):
        yield DiffRow(Kind.CHANGED, shown[0][i], shown[1][j], i + 1, j + 1)
    for i in ours[paired:]:
        yield DiffRow(Kind.THIS, shown[0][i], None, i + 1)
    for j in theirs[paired:]:
        yield DiffRow(Kind.OTHER, None, shown[1][j], 0, j + 1)


def _variables(
    this: Environment | None, other: Environment | None, ids: frozenset[str]
) -> Iterator[VariableDiff]:
    if this is None or other is None:
        return
    ours, theirs = ({v.name: v for v in side.variables} for side in (this, other))
    for name in dict.fromkeys((*ours, *theirs)):
        yield _variable(ours.get(name), theirs.get(name), ids)


def _variable(this: Variable | None, other: Variable | None, ids: frozenset[str]) -> VariableDiff:
    kind = _kind(this, other, ids)
    shown: list[ShownVariable | None] = [None if v is None else shown_variable(v) for v in (this, other)]
    name = next(one.name for one in shown if one is not None)
    values = ["" if one is not None and one.value is None else one and one.value for one in shown]
    return VariableDiff(name, kind, values[0], values[1])


def _kind(this: Variable | None, other: Variable | None, ids: frozenset[str]) -> Kind:
    if other is None:
        return Kind.THIS
    if this is None:
        return Kind.OTHER
    if this == other:
        return Kind.SAME
    texts = (without_noise(text_of(v.value or b""), ids) for v in (this, other))
    return Kind.NOISE if len(set(texts)) == 1 else Kind.CHANGED


def unified(rows: Sequence[DiffRow], context: int = CONTEXT) -> Iterator[str]:
    """The rows as lines of a unified diff, from the other to this; noise counts as no difference."""
    for hunk in hunks(rows, context):
        theirs = [row.other_number for row in hunk if row.other is not None]
        ours = [row.this_number for row in hunk if row.this is not None]
        yield f"@@ -{_extent(theirs)} +{_extent(ours)} @@"
        yield from _unified(hunk)


def _extent(numbers: Sequence[int]) -> str:
    return f"{numbers[0] if numbers else 0},{len(numbers)}"


def _unified(rows: Sequence[DiffRow]) -> Iterator[str]:
    pending: list[str] = []
    for row in rows:
        if row.kind in (Kind.SAME, Kind.NOISE):
            yield from pending
            pending = []
            yield f" {row.this}"
            continue
        if row.other is not None:
            yield f"-{row.other}"
        if row.this is not None:
            pending.append(f"+{row.this}")
    yield from pending


def hunks(rows: Sequence[DiffRow], context: int = CONTEXT) -> Iterator[Sequence[DiffRow]]:
    """The rows that differ with some before and after, those close to each other together."""
    differs = [at for at, row in enumerate(rows) if row.kind not in (Kind.SAME, Kind.NOISE)]
    begin, end = 0, -1
    for at in differs:
        if end >= 0 and at - context > end:
            yield rows[begin:end]
            end = -1
        if end < 0:
            begin = max(0, at - context)
        end = min(len(rows), at + context + 1)
    if end >= 0:
        yield rows[begin:end]
