"""Two runs beside each other as lines of text and as a JSON document."""

from collections.abc import Iterator

from jobtui.analysis.compare import Comparison, FactPair, FileDiff, Side, lost_s
from jobtui.analysis.run_steps import StepPair, Took
from jobtui.analysis.time_words import duration
from jobtui.model.secrets import mask_text
from jobtui.render.table import Cell, Head, paint, table_lines
from jobtui.render.text import NONE, show

FACT_HEADS = (Head("", least=8), Head("THIS", least=12), Head("GOOD", least=12))
STEP_HEADS = (
    Head("STEP", least=16), Head("THIS", "right", least=6), Head("GOOD", "right", least=6), Head("", least=4),
)  # fmt: skip
PARTS, SLOWER = "here they part", "slower"


def comparison_lines(found: Comparison, width: int | None, colour: bool) -> Iterator[str]:
    """A comparison as a person reads it: what differs, step by step, and in the files."""
    yield paint(show(found.left.title), "heading", colour)
    yield f"beside {show(found.right.title)}: {show(found.why)}"
    yield from _said(found)
    yield ""
    yield from table_lines(FACT_HEADS, [_fact_row(pair) for pair in found.facts], width, colour)
    if found.steps:
        yield ""
        yield from table_lines(STEP_HEADS, [_step_row(pair) for pair in found.steps], width, colour)
    for file in found.files:
        yield ""
        yield from _file_lines(file, colour)


def _said(found: Comparison) -> Iterator[str]:
    parts, slow = found.first_difference, found.slowest
    if parts is not None and parts.is_in_one:
        whose = "this run has" if parts.left is not None else "the good run has"
        yield f"they part where only {whose}: {show(parts.text)}"
    if slow is not None and lost_s(slow) >= 1:
        yield f"most time was lost at: {show(slow.text)}, {duration(lost_s(slow))} more"
    if not found.steps:
        yield "no ops of either were read"


def _fact_row(pair: FactPair) -> list[Cell]:
    style = "warning" if pair.differs else "settled"
    return [Cell(pair.name), Cell(show(pair.left) or NONE, style), Cell(show(pair.right) or NONE, style)]


def _step_row(pair: StepPair) -> list[Cell]:
    indent = "" if pair.component is None else f"  {pair.component.value} "
    mark = PARTS if pair.parts else SLOWER if pair.component is not None and pair.is_slower else ""
    style = "warning" if pair.parts else "" if pair.component is None or pair.is_in_one else "settled"
    words = Cell(f"{indent}{show(pair.text)}", style)
    return [words, Cell(_took(pair.left), style), Cell(_took(pair.right), style), Cell(mark, "warning")]


def _took(took: Took | None) -> str:
    return NONE if took is None else "" if took.seconds is None else duration(took.seconds)


def _file_lines(file: FileDiff, colour: bool) -> Iterator[str]:
    yield paint(f"{show(file.name)}{f': {show(file.note)}' if file.note else ''}", "heading", colour)
    for line in file.lines:
        style = "good" if line.startswith("+") else "error" if line.startswith("-") else "settled"
        yield paint(show(line), style, colour)
    if file.left_out:
        yield f"{file.left_out} more lines differ"


def comparison_record(found: Comparison) -> dict[str, object]:
    """A comparison as a JSON document, texts masked."""
    return {
        "this": _side_record(found.left),
        "other": _side_record(found.right),
        "why": found.why,
        "facts": [
            {
                "name": pair.name,
                "this": mask_text(pair.left),
                "other": mask_text(pair.right),
                "differs": pair.differs,
            }
            for pair in found.facts
        ],
        "steps": [_step_record(pair) for pair in found.steps],
        "files": [
            {"name": file.name, "note": file.note, "diff": list(file.lines), "left_out": file.left_out}
            for file in found.files
        ],
    }


def _side_record(side: Side) -> dict[str, object]:
    return {"id": side.job.id, "run": side.run.number if side.run is not None else None}


def _step_record(pair: StepPair) -> dict[str, object]:
    return {
        "step": pair.text,
        "component": None if pair.component is None else pair.component.value,
        "this": _took_record(pair.left),
        "other": _took_record(pair.right),
        "parts": pair.parts,
        "slower": pair.is_slower,
    }


def _took_record(took: Took | None) -> dict[str, object] | None:
    return None if took is None else {"seconds": took.seconds, "times": took.times}
