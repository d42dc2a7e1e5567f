"""An op's timeline as lines: a lane for each component where there is room, a plain list where not."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from jobtui.analysis.timeline import GAP_S, Fold, TimelineRow
from jobtui.model.clock import SECOND
from jobtui.model.ops import LANES, Certainty, Component, Op
from jobtui.model.tables import tables_of
from jobtui.render.spans import Line, Piece, padded, width_of
from jobtui.render.text import clock_time, duration, fit, show

SHORT_CELLS = 7
"""Cells of a lane's name where there is no room for lanes, with a blank after it."""
TIME_CELLS = 9
"""Cells of a column of times, with a blank before it."""

CERTAINTY_WORDS: Mapping[Certainty, str] = {
    Certainty.FULL_ID: "sure: the line has the op's full id",
    Certainty.JID: "sure: the line names the job",
    Certainty.PREFIX: "likely: by the first four characters of the id, with user, agent and time",
    Certainty.ADJACENT: "inferred: only from the line next to it",
}

CERTAINTY_OF_TRACE = {certainty: words.partition(":")[0] for certainty, words in CERTAINTY_WORDS.items()}
"""How sure it is that a trace is that of a job."""


def certainty_words(component: Component, certainty: Certainty) -> str:
    """How sure it is that a line, or a span, belongs where it is shown."""
    if component is Component.SPAN:
        return f"{CERTAINTY_OF_TRACE[certainty]}: a span of the job's trace"
    if component is Component.JOB and certainty is Certainty.FULL_ID:
        return "in a file to which its program writes"
    return CERTAINTY_WORDS[certainty]


class TimeStyle(NamedTuple):
    """How times are written: to the millisecond if logs have that, and as times of day if wanted."""

    fine: bool = False
    absolute: bool = False


class Lanes(NamedTuple):
    """The first cell of each lane, and how many cells all of them have."""

    columns: Mapping[Component, int]
    cells: int


def lanes_in(cells: int, of: Component = Component.SERVER) -> Lanes | None:
    """The lanes of a timeline of this width in cells, None when there is no room for lanes.

    They are those of the system to which the component `of` belongs.
    """
    room = cells - 2 * TIME_CELLS - 1
    system = next(lanes for lanes in LANES if of in lanes)
    each = (room - 8) // len(system)  # the last lane has words
    if each < 11:  # a name and an arrow fit
        return None
    return Lanes({lane: 1 + at * each for at, lane in enumerate(system)}, room)


def heading(op: Op | None, cells: int) -> Line:
    lanes = lanes_in(cells, op.steps[0].component if op and op.steps else Component.SERVER)
    times = fit("start", TIME_CELLS, align="right")
    if lanes is None:
        words = " " + fit("step", cells - TIME_CELLS - 2) + times
        return (Piece(fit(words, cells), "heading", cells),)
    more = {Component.DRIVER: show(op.driver or "").removesuffix("Driver")} if op else {}
    more |= {Component.AGENT: show(op.any_agent or "")} if op else {}
    names = ""
    ends = [*lanes.columns.values(), lanes.cells][1:]
    for (lane, at), end in zip(lanes.columns.items(), ends, strict=True):
        names = fit(names, at) + fit(f"{lane.value} {more.get(lane, '')}", end - at - 1) + " "
    times += fit("step", TIME_CELLS, align="right")
    return padded((Piece(fit(names, lanes.cells) + times, "heading"),), cells, "heading")


def is_fine(rows: Sequence[TimelineRow]) -> bool:
    """Whether the times are finer than seconds."""
    return any(row.step.at is not None and row.step.at % SECOND for row in rows)


def row_line(row: TimelineRow, before: TimelineRow | None, cells: int, times: TimeStyle) -> Line:
    """One step. `before` is the step before it, whose lane an arrow comes from."""
    lanes = lanes_in(cells, row.step.component)
    start = _start(row, times)
    if lanes is None:
        room = max(0, cells - SHORT_CELLS - TIME_CELLS - 2)
        lane = row.step.component.value.replace("_", "")[: SHORT_CELLS - 1]
        name = Piece(f" {fit(lane, SHORT_CELLS)}", "dim")
        words = f"✗ {show(row.step.step)}" if row.is_bad else show(row.step.step)
        return (name, Piece(fit(words, room), _style(row), room), Piece(start, "dim", TIME_CELLS))
    since = _time(row.since_prev_s, times.fine, sign="+") if row.since_prev_s else " " * TIME_CELLS
    drawn = padded(_lane_line(row, before, lanes), lanes.cells)
    since_span = Piece(since, "warning" if row.is_gap else "dim", TIME_CELLS)
    return (*drawn, Piece(start, "dim", TIME_CELLS), since_span)


def folded(rows: Sequence[TimelineRow], fold: Fold, times: TimeStyle, sign: str = "") -> TimelineRow:
    """One row in place of those that repeat: what, how often, from when to when, and the longest wait."""
    first, last = rows[fold.first], rows[fold.last]
    whole = times._replace(fine=False)
    ends = " – ".join(_start(row, whole).strip() for row in (first, last))
    others = dict.fromkeys(row.step.step for row in rows[fold.first : fold.first + fold.together - 1])
    after = f"  each after {', '.join(others)}" if others else ""
    wait = f"  waits up to {duration(fold.longest_s)}" if (fold.longest_s or 0.0) >= GAP_S else ""
    links = (row.step.certainty for row in rows[fold.first : fold.last + 1])
    step = msgspec.structs.replace(
        last.step,
        step=f"{sign}{last.step.step} × {fold.times:,}  {ends}{wait}{after}",
        at=first.step.at,
        certainty=max(links, key=lambda certainty: certainty.rank),
    )
    return first._replace(step=step)


def wait_line(row: TimelineRow, seconds: float, cells: int, sign: str = "┊") -> Line:
    """Below a step: for how long nothing came."""
    lanes = lanes_in(cells, row.step.component)
    return (
        _blanks(SHORT_CELLS + 1 if lanes is None else lanes.columns[row.step.component]),
        Piece(f"{sign} {duration(int(seconds))}", "warning"),
    )


def _lane_line(row: TimelineRow, before: TimelineRow | None, lanes: Lanes) -> Line:
    at = lanes.columns[row.step.component]
    source = at if before is None else lanes.columns.get(before.step.component, at)
    stroke = "┄" if row.step.certainty is Certainty.ADJACENT else "─"
    style = _style(row)
    mark = Piece("✗" if style else "●", style or "accent", 1)
    arrow_style = "dim"
    if source < at:
        arrow = "╰" + stroke * (at - source - 2) + "▶"
        drawn: Line = (_blanks(source), Piece(arrow, arrow_style, at - source), mark)
    elif source > at:
        arrow = "◀" + stroke * (source - at - 1) + "╯"
        drawn = (_blanks(at), mark, Piece(arrow, arrow_style, source - at + 1))
    else:
        drawn = (_blanks(at), mark)
    text = show(row.step.step)
    room = lanes.cells - width_of(drawn) - 1
    return (*drawn, Piece(" ", "", 1), Piece(fit(text, room).rstrip(), style))


def _blanks(cells: int) -> Piece:
    return Piece(" " * cells, "", cells)


def _style(row: TimelineRow) -> str:
    return "error" if row.is_bad else ""


def _start(row: TimelineRow, times: TimeStyle) -> str:
    if times.absolute and row.step.at is not None:
        return fit(clock_time(row.step.at), TIME_CELLS, align="right")
    return _time(row.from_start_s, times.fine)


def _time(seconds: float | None, fine: bool, sign: str = "") -> str:
    if seconds is None:
        return fit("–", TIME_CELLS, align="right")
    text = f"{seconds:.3f}" if fine and abs(seconds) < 1000 else duration(seconds)
    return fit(sign + text if seconds >= 0 else text, TIME_CELLS, align="right")


OP_GLYPHS: Mapping[str, tuple[str, str]] = tables_of("jobtui", "theme")["op_glyphs"]
"""Sign and style of each status, while it is not known how the op ended."""
RESULT_GLYPHS: Mapping[str, tuple[str, str]] = tables_of("jobtui", "theme")["result_glyphs"]
"""The same by how it ended."""
FAILED = RESULT_GLYPHS["error"]


def op_glyph(op: Op) -> tuple[str, str]:
    """Sign and style of an op: how it ended where that is known, else how far it has come."""
    if op.result is not None and not op.status.is_open:
        return FAILED if op.error else RESULT_GLYPHS.get(op.result, ("?", "warning"))
    return FAILED if op.error else OP_GLYPHS[op.status]
