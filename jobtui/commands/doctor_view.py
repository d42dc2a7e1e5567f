"""What `doctor` found, as text."""

from collections.abc import Iterator, Sequence

from jobtui.commands.doctor import Finding
from jobtui.commands.names import SourceNames
from jobtui.model.clock import Nanos, seconds_between
from jobtui.render.table import Cell, Head, paint, table_lines
from jobtui.render.text import NONE, age, show

HEADS = (
    Head("", least=1),
    Head("SOURCE", least=12),
    Head("KIND", least=7, drop=3),
    Head("STATE", least=7),
    Head("RECORDS", "right", least=7, drop=1),
    Head("SKIPPED", "right", least=7),
    Head("UNKNOWN", "right", least=7),
    Head("NEWEST", "right", least=6, drop=2),
)


def view(findings: Sequence[Finding], now: Nanos, width: int | None, colour: bool) -> Iterator[str]:
    """A row for each source, and under the table what there is to say of them."""
    yield from table_lines(HEADS, [_row(finding, now) for finding in findings], width, colour)
    names = SourceNames([finding.source for finding in findings])
    for finding in findings:
        name = names.short(finding.source.name)
        for fault in finding.faults:
            yield f"{paint('✗', 'error', colour)} {name}: {show(fault)}"
        for remark in finding.remarks:
            yield f"  {name}: {show(remark)}"
        for example in finding.examples:
            yield f"  {name}: of unknown shape: {show(example)}"


def _row(finding: Finding, now: Nanos) -> list[Cell]:
    source = finding.source
    mark = Cell("✗", "error") if finding.faults else Cell("✓")
    newest = NONE if finding.newest_at is None else age(seconds_between(finding.newest_at, now))
    share = NONE if finding.unknown_share is None else f"{finding.unknown_share:.2%}"
    return [
        mark,
        Cell(show(source.name)),
        Cell(source.kind),
        Cell(source.state.value, "error" if finding.faults else ""),
        Cell(f"{source.records}"),
        Cell(f"{source.skipped}", "warning" if source.skipped else ""),
        Cell(share),
        Cell(newest),
    ]
