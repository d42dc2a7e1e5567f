"""How two scripts and environments differ: beside each other, as a unified diff, and as a JSON document."""

from collections.abc import Iterator, Sequence

from jobtui.analysis.script_diff import DiffRow, Kind, ScriptDiff, VariableDiff, hunks, unified
from jobtui.render.spans import Line, Span
from jobtui.render.text import fit, safe

STYLES = {
    Kind.SAME: "settled",
    Kind.NOISE: "settled",
    Kind.CHANGED: "warning",
    Kind.THIS: "good",
    Kind.OTHER: "error",
}
BESIDE_CELLS = 100
"""Cells from which on the two stand beside each other."""
LEAST_CELLS = 20
ABSENT = "–"
SECRET_DIFFERS = " (differs)"


def diff_lines(found: ScriptDiff, cells: int | None, *, beside: bool) -> Iterator[Line]:
    """The difference as lines of at most so many cells, None for no limit."""
    if found.is_same:
        yield (Span("no difference that counts", "good"),)
    differs = any(hunks(found.rows))
    if differs:
        yield (Span("script", "title"),)
        yield from _beside(found.rows, cells) if beside and cells else _unified(found.rows)
    changed = [v for v in found.variables if v.kind not in (Kind.SAME, Kind.NOISE)]
    if changed:
        yield ()
        yield (Span("environment", "title"),)
        yield from (line for variable in changed for line in _variable(variable))
    if found.folded:
        yield ()
        yield (Span(f"{found.folded} more differ in dates, ids or ports only", "dim"),)
    if found.note:
        yield (Span(safe(found.note), "warning"),)


def _unified(rows: Sequence[DiffRow]) -> Iterator[Line]:
    for line in unified(rows):
        style = {"+": "good", "-": "error", "@": "accent"}.get(line[0], "settled")
        yield (Span(safe(line), style),)


def _beside(rows: Sequence[DiffRow], cells: int) -> Iterator[Line]:
    """This on the left, the other on the right."""
    half = max(LEAST_CELLS, (cells - 3) // 2)
    heads = (Span(fit("this", half), "dim"), Span(" │ ", "dim"), Span("other", "dim"))
    yield heads
    for number, hunk in enumerate(hunks(rows)):
        if number:
            yield (Span("┄" * (2 * half + 3), "dim"),)
        for row in hunk:
            yield _pair(row, half)


def _pair(row: DiffRow, half: int) -> Line:
    style = STYLES[row.kind]
    left, right = (fit(side or "", half) for side in (row.this, row.other))
    return (Span(left, style), Span(" │ ", "dim"), Span(right.rstrip(), style))


def _variable(variable: VariableDiff) -> Iterator[Line]:
    if variable.other is not None:
        mark = SECRET_DIFFERS if variable.other == variable.this else ""
        yield (Span(safe(f"-{variable.name}={variable.other}{mark}"), "error"),)
    if variable.this is not None:
        mark = SECRET_DIFFERS if variable.other == variable.this else ""
        yield (Span(safe(f"+{variable.name}={variable.this}{mark}"), "good"),)


def diff_record(found: ScriptDiff) -> dict[str, object]:
    """The difference as part of a JSON document."""
    return {
        "same": found.is_same,
        "script": list(unified(found.rows)),
        "environment": [
            {"name": v.name, "kind": v.kind.value, "this": v.this, "other": v.other}
            for v in found.variables
            if v.kind is not Kind.SAME
        ],
        "folded": found.folded,
        "note": found.note,
    }
