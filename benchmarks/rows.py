"""The one form every benchmark reports in: what was measured, beside what, against which budget."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from statistics import median

HEAD = ("what", "budget", "measured", "reference", "ratio", "holds")
Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure, not a number where it could not be measured.

    `reference` is in the same unit; `holds` is None without a budget.
    """

    what: str
    measured: float
    unit: str
    reference: float | None = None
    ratio: float | None = None
    budget: str | None = None
    holds: bool | None = None


def at_most(what: str, measured: float, unit: str, limit: float) -> Row:
    budget, holds = f"<= {figure(limit)} {unit}", measured <= limit
    return Row(what=what, measured=measured, unit=unit, budget=budget, holds=holds)


def at_least(what: str, measured: float, unit: str, limit: float) -> Row:
    budget, holds = f">= {figure(limit)} {unit}", measured >= limit
    return Row(what=what, measured=measured, unit=unit, budget=budget, holds=holds)


def at_most_times(what: str, ours: Sequence[float], theirs: Sequence[float], limit: float) -> Row:
    """Milliseconds in turn with their reference, which they may pass `limit` times at most: medians."""
    ratio = median(a / b for a, b in zip(ours, theirs, strict=True))
    return Row(
        what=what,
        measured=median(ours),
        unit="ms",
        reference=median(theirs),
        ratio=ratio,
        budget=f"<= {limit:g} x reference",
        holds=ratio <= limit,
    )


def at_most_over(what: str, measured: float, unit: str, *, reference: float, limit: float) -> Row:
    """A figure that may pass its reference by `limit`, no more."""
    return Row(
        what=what,
        measured=measured,
        unit=unit,
        reference=reference,
        ratio=measured / reference,
        budget=f"<= reference + {limit:g} {unit}",
        holds=measured - reference <= limit,
    )


def report(rows: Iterable[Row], as_json: bool) -> int:
    """Print rows as a table or as JSON; 1 when a budget does not hold."""
    kept = list(rows)
    if as_json:
        json.dump({"rows": [asdict(row) for row in kept]}, sys.stdout, indent=1)
        print()
    else:
        print(table(kept))
    return int(any(row.holds is False for row in kept))


def table(rows: Sequence[Row], before: Sequence[Cells] = ()) -> str:
    """A Markdown table that also reads well as plain text; rows there were `before` are renewed or stay."""
    fresh = {row.what: _cells(row) for row in rows}
    kept = [fresh.pop(cells[0], cells) for cells in before]
    lines = [HEAD, *kept, *fresh.values()]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    drawn = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    drawn.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(drawn)


def rows_in(text: str) -> list[Cells]:
    rows = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in text.splitlines()]
    return [row for row in rows if len(row) == len(HEAD) and row != HEAD]


def _cells(row: Row) -> Cells:
    verdict = {None: "", True: "yes", False: "NO"}[row.holds]
    reference = "" if row.reference is None else f"{figure(row.reference)} {row.unit}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    measured = "" if isnan(row.measured) else f"{figure(row.measured)} {row.unit}"
    return (row.what, row.budget or "", measured, reference, ratio, verdict)


def figure(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def main(description: str, measure: Callable[[bool], Iterable[Row]]) -> int:
    """The command line of a benchmark program: `--json` for the common form, `--quick` for a rough run."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--quick", action="store_true", help="fewer repeats and less data: rough figures")
    options = parser.parse_args()
    return report(measure(options.quick), options.json)
