"""The columns of the table of recent traces. Cells are masked and safe for a terminal."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from jobtui.analysis.traces.standing import ListedTrace, Standing
from jobtui.model.clock import Nanos, seconds_between
from jobtui.render.columns import Cells
from jobtui.render.span_words import span_time
from jobtui.render.text import NONE, Align, age, short_time, show
from jobtui.render.trace_facts import short_id

GLYPHS: Mapping[Standing, tuple[str, str]] = {
    Standing.GROWING: ("●", "status.running"),
    Standing.COMPLETE: ("■", "settled"),  # no check mark: it may have failed
    Standing.INCOMPLETE: ("◌", "warning"),
    Standing.UNKNOWN: ("?", "settled"),
}
"""Sign and style of how a trace stands."""
_ORDER = tuple(GLYPHS)
SortKey = str | int | None


class TraceLook(NamedTuple):
    """What a cell depends on beside its trace. `relative` shows ages instead of times."""

    now: Nanos
    relative: bool = True


class TraceColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column, as `columns.Column` is one of jobs."""

    key: str
    header: str
    cell: Callable[[ListedTrace, TraceLook], str]
    sort: Callable[[ListedTrace], SortKey]
    cells: Cells
    priority: int
    style: Callable[[ListedTrace, TraceLook], str] = lambda listed, look: ""
    align: Align = "left"
    narrow: "TraceColumn | None" = None
    narrow_below: int = 0


def _started(listed: ListedTrace, look: TraceLook) -> str:
    at = listed.told.started_at
    if at is None:
        return NONE
    return age(max(0.0, seconds_between(at, look.now))) if look.relative else short_time(at, look.now)


def _count(number: int | None) -> str:
    return NONE if number is None else f"{number:,}"


def _errors(listed: ListedTrace, look: TraceLook) -> str:
    errors = listed.told.errors
    return f"✗ {errors:,}" if errors else "" if errors == 0 else NONE


def _state(listed: ListedTrace, look: TraceLook) -> str:
    return f"{GLYPHS[listed.standing][0]} {listed.standing}"


def _state_style(listed: ListedTrace, look: TraceLook) -> str:
    return GLYPHS[listed.standing][1]


def _text(get: Callable[[ListedTrace], str]) -> Callable[[ListedTrace, TraceLook], str]:
    return lambda listed, look: show(get(listed)) or NONE


def _source(listed: ListedTrace) -> str:
    """The name of a file without its directories, the address of a server as it is."""
    source = listed.told.source
    return source if "://" in source else source.rstrip("/").rpartition("/")[2]


def _newest(listed: ListedTrace) -> SortKey:
    return None if listed.told.started_at is None else -listed.told.started_at


TRACE_COLUMNS: tuple[TraceColumn, ...] = (
    TraceColumn(
        key="state", header="  STATE", cell=_state,
        sort=lambda listed: _ORDER.index(listed.standing), style=_state_style, cells=Cells(12, 12, 12),
        priority=100,
        narrow=TraceColumn(
            key="state", header="", cell=lambda listed, look: GLYPHS[listed.standing][0],
            sort=lambda listed: _ORDER.index(listed.standing), style=_state_style, cells=Cells(1, 1, 1),
            priority=100,
        ),
        narrow_below=70,
    ),
    TraceColumn(
        key="started", header="START", cell=_started, sort=_newest, cells=Cells(6, 6, 6), priority=90,
        align="right",
    ),
    TraceColumn(
        key="took", header="TOOK", cell=lambda listed, look: span_time(listed.duration_ns),
        sort=lambda listed: -(listed.duration_ns or 0), cells=Cells(6, 7, 7), priority=80, align="right",
    ),
    TraceColumn(
        key="errors", header="ERRORS", cell=_errors, sort=lambda listed: -(listed.told.errors or 0),
        style=lambda listed, look: "error" if listed.told.errors else "settled", cells=Cells(6, 6, 7),
        priority=95,
    ),
    TraceColumn(
        key="spans", header="SPANS", cell=lambda listed, look: _count(listed.told.spans),
        sort=lambda listed: -(listed.told.spans or 0), cells=Cells(6, 6, 8), priority=60, align="right",
    ),
    TraceColumn(
        key="service", header="SERVICE", cell=_text(lambda listed: listed.told.service),
        sort=lambda listed: listed.told.service.lower(), cells=Cells(10, 18, 24), priority=70,
    ),
    TraceColumn(
        key="root", header="ROOT", cell=_text(lambda listed: listed.told.name),
        sort=lambda listed: listed.told.name.lower(), cells=Cells(14, 24, 10_000), priority=98,
    ),
    TraceColumn(
        key="id", header="TRACE", cell=lambda listed, look: short_id(listed.told.trace_id),
        sort=lambda listed: listed.told.trace_id, style=lambda listed, look: "dim", cells=Cells(13, 13, 13),
        priority=50,
    ),
    TraceColumn(
        key="source", header="SOURCE", cell=_text(_source), sort=lambda listed: listed.told.source,
        style=lambda listed, look: "dim", cells=Cells(12, 14, 30), priority=30,
    ),
)  # fmt: skip


def sort_traces(
    traces: Iterable[ListedTrace], key: str | None = None, *, reverse: bool = False
) -> list[ListedTrace]:
    """Traces by a column, those without a value last; without one the newest first."""
    ordered = sorted(traces, key=lambda listed: (_newest(listed) or 0, listed.told.trace_id))
    column = next((column for column in TRACE_COLUMNS if column.key == key), None)
    if column is None:
        return ordered[::-1] if reverse else ordered
    with_value = [listed for listed in ordered if column.sort(listed) is not None]
    with_value.sort(key=column.sort, reverse=reverse)  # type: ignore[arg-type]
    return with_value + [listed for listed in ordered if column.sort(listed) is None]
