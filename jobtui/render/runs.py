"""The runs of a job as a table, and two of them beside each other: facts, steps, files. Masked and safe."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.jobs import JobStatus, Run
from jobtui.render.columns import Cells, TableColumn, TimeLook, fixed, head, in_style, table_rows
from jobtui.render.json_output import fields_of
from jobtui.render.spans import Line, Paragraph, Piece, words_of
from jobtui.render.styles import GLYPHS, STATUS_STYLES, WORDS
from jobtui.render.text import NONE, Zone, date_time, duration, show

if TYPE_CHECKING:
    from jobtui.analysis.compare import Comparison, RunSide, StepPair, StepTime


def _time(get: Callable[[Run], Nanos | None]) -> Callable[[Run, TimeLook], str]:
    return lambda run, look: NONE if (at := get(run)) is None else date_time(at)


RUN_COLUMNS: tuple[TableColumn[Run, TimeLook], ...] = in_style(
    lambda run, look: STATUS_STYLES[run.status],
    TableColumn("run", "RUN", lambda run, look: str(run.number), fixed(3), 100, "right"),
    TableColumn("state", "STATE", lambda run, look: state_text(run), Cells(10, 11, 11), 99),
    TableColumn("queued", "QUEUED", _time(lambda run: run.queued_at), fixed(19), 70),
    TableColumn("started", "STARTED", _time(lambda run: run.started_at), fixed(19), 40),
    TableColumn("ended", "ENDED", _time(lambda run: run.ended_at), fixed(19), 50),
    TableColumn("waited", "WAITED", lambda run, look: duration(waited_s(run, look.now)), fixed(6), 60,
                "right"),
    TableColumn("ran", "RAN", lambda run, look: duration(ran_s(run, look.now)), fixed(6), 80, "right"),
    TableColumn("result", "RESULT", lambda run, look: result_text(run), Cells(10, 30, 10_000), 90),
)  # fmt: skip


def state_text(run: Run) -> str:
    return f"{GLYPHS[run.status]} {WORDS[run.status]}"


def result_text(run: Run) -> str:
    text = run.error or run.alert or run.message
    return show(text) if text else f"limit {duration(run.limit_s)}" if run.limit_s else ""


def waited_s(run: Run, now: Nanos) -> float | None:
    """Seconds from submission to start, to its end when it never started, or to now while it is pending."""
    return _between(run, run.queued_at, run.ended_at if run.started_at is None else run.started_at, now)


def ran_s(run: Run, now: Nanos) -> float | None:
    return _between(run, run.started_at, run.ended_at, now)


def _between(run: Run, begin: Nanos | None, end: Nanos | None, now: Nanos) -> float | None:
    if begin is None or (end is None and not run.status.is_live):
        return None
    seconds = max(0.0, seconds_between(begin, now if end is None else end))
    return float(int(seconds)) if run.status.is_live else seconds


def side_by_side(run: Run, good: Run | None, now: Nanos, cells: int) -> Iterator[Paragraph]:
    """The facts of a run next to those of a good one; equal ones are dim."""
    left, right = _facts(run, now), _facts(good, now) if good else {}
    heads = [head("", 8), head(f"RUN {run.number} {state_text(run)}", 20)]
    if good:
        heads.append(head(f"RUN {good.number} {state_text(good)}, the last good one", 20))
    names = [name for name in left if left[name] or right.get(name)]
    rows = [
        [Piece(name), Piece(left[name] or NONE), Piece(right.get(name) or NONE)][: len(heads)]
        for name in names
    ]
    heading, *lines = map(words_of, table_rows(heads, rows, cells))
    yield Paragraph(heading, "heading")
    for name, line in zip(names, lines, strict=True):
        differs = not good or left[name] != right[name]
        yield Paragraph(line, ("error" if name == "error" else "") if differs else "dim")


def _facts(run: Run, now: Nanos) -> Mapping[str, str]:
    zone = Zone.mark()
    times = {
        "queued": run.queued_at,
        "started": run.started_at,
        "ended": run.ended_at,
        "updated": run.updated_at,
    }
    texts = {name: "" if at is None else f"{date_time(at)}{zone}" for name, at in times.items()}
    spans = {"waited": waited_s(run, now), "ran": ran_s(run, now), "limit": run.limit_s}
    texts |= {name: "" if seconds is None else duration(seconds) for name, seconds in spans.items()}
    own = {"status": run.native_status, "mode": run.mode, "driver": run.driver, "host": run.host}
    matter = {"error": run.error, "alert": run.alert, "message": run.message}
    return {name: show(text or "") for name, text in (*matter.items(), *own.items())} | texts


def step_lines(pairs: "Sequence[StepPair]", numbers: tuple[int, int], cells: int) -> Iterator[Paragraph]:
    """A heading and a line for each step, at most `cells` wide; equal steps are dim."""
    heads = step_heads(*(f"RUN {number}" for number in numbers))
    heading, *lines = map(words_of, table_rows(heads, [_step_row(pair) for pair in pairs], cells))
    yield Paragraph(heading, "heading")
    for pair, line in zip(pairs, lines, strict=True):
        style = "" if pair.is_in_one or pair.is_slower else "dim"
        yield Paragraph(line, "warning" if pair.parts else "strong" if pair.component is None else style)


FACT_HEADS = (head("", 8), head("THIS", 12), head("OTHER", 12))


def step_heads(left: str, right: str) -> tuple[TableColumn[Any, Any], ...]:
    return head("STEP", 16), head(left, 6, "right"), head(right, 6, "right"), head("")


PARTS, SLOWER = "first difference", "slower"


def step_records(found: "Comparison") -> list[dict[str, object]]:
    return [
        {
            **fields_of(pair, "step=text component"),
            "this": pair.left and fields_of(pair.left, "seconds times"),
            "other": pair.right and fields_of(pair.right, "seconds times"),
            **fields_of(pair, "parts slower=is_slower"),
        }
        for pair in found.steps
    ]


def comparison_lines(found: "Comparison", width: int | None) -> Iterator[Line]:
    """A comparison as a person reads it: what differs, step by step, and in the files."""
    yield (Piece(show(found.left.title), "heading"),)
    yield from ((Piece(f"not sure: {show(doubt)}", "warning"),) for doubt in found.doubts)
    yield from ((Piece(f"not known: {show(spot)}"),) for spot in found.blind_spots)
    yield (Piece(f"compared with {show(found.right.title)}: {show(found.why)}"),)
    yield from ((Piece(words),) for words in _summary(found))
    yield ()
    rows = []
    for pair in found.facts:
        style = "warning" if pair.differs else "settled"
        values = (Piece(show(value) or NONE, style) for value in (pair.left, pair.right))
        rows.append([Piece(pair.name), *values])
    yield from table_rows(FACT_HEADS, rows, width)
    if found.steps:
        yield ()
        yield from table_rows(step_heads("THIS", "OTHER"), [_step_row(pair) for pair in found.steps], width)
    for file in found.files:
        yield ()
        yield (Piece(f"{show(file.name)}{f': {show(file.note)}' if file.note else ''}", "heading"),)
        for line in file.lines:
            style = "good" if line.startswith("+") else "error" if line.startswith("-") else "settled"
            yield (Piece(show(line), style),)
        if file.left_out:
            yield (Piece(f"{file.left_out} more lines differ"),)


def _summary(found: "Comparison") -> Iterator[str]:
    parts, slow = next((pair for pair in found.steps if pair.parts), None), found.slowest
    if parts is not None and parts.is_in_one:
        is_good = (found.right.run or found.right.job).status is JobStatus.COMPLETED
        whose = "this run" if parts.left is not None else f"the {'good' if is_good else 'other'} run"
        known = "as far as is known, " if found.doubts else ""
        yield f"{known}first difference: only {whose} has {show(parts.text)}"
    if slow is not None and slow.lost_s >= 1:
        yield f"most time was lost at: {show(slow.text)}, {duration(slow.lost_s)} more"
    if not found.steps:
        yield "no ops of either run were read"


def _step_row(pair: "StepPair") -> list[Piece]:
    part = "" if pair.component is None else pair.component.value
    indent = f"  {part} " if part and not pair.text.startswith(part) else "  " if part else ""
    mark = PARTS if pair.parts else SLOWER if pair.component is not None and pair.is_slower else ""
    style = "warning" if pair.parts else "" if pair.component is None or pair.is_in_one else "settled"
    counts = [took.times if took else 0 for took in (pair.left, pair.right)]
    often = f" {', '.join(dict.fromkeys(f'×{count}' for count in counts))}" if max(counts) > 1 else ""
    words = Piece(f"{indent}{show(pair.text)}{often}", style)
    return [
        words,
        Piece(_took_cell(pair.left), style),
        Piece(_took_cell(pair.right), style),
        Piece(mark, "warning"),
    ]


def _took_cell(took: "StepTime | None") -> str:
    return NONE if took is None else "" if took.seconds is None else duration(took.seconds)


def comparison_record(found: "Comparison") -> dict[str, object]:
    return {
        "this": _side_record(found.left),
        "other": _side_record(found.right),
        **fields_of(found, "why doubts blind_spots"),
        "facts": [fields_of(pair, "name this=left other=right differs") for pair in found.facts],
        "steps": step_records(found),
        "files": [fields_of(file, "name note diff=lines left_out") for file in found.files],
    }


def _side_record(side: "RunSide") -> dict[str, object]:
    return {"id": side.job.id, "run": side.run.number if side.run is not None else None}
