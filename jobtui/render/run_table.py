"""The runs of a job as a table, and two of them side by side. Masked and safe."""

from collections.abc import Iterator, Mapping, Sequence

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.jobs import Run
from jobtui.render.spans import Span
from jobtui.render.status import STYLES, WORDS, glyph
from jobtui.render.table import Cell, Head, table_lines
from jobtui.render.text import NONE, Zone, date_time, duration, show

HEADS = (
    Head("RUN", "right"),
    Head("STATE", least=6),
    Head("QUEUED", drop=1, least=19),
    Head("STARTED", drop=4, least=19),
    Head("ENDED", drop=3, least=19),
    Head("WAITED", "right", least=6, drop=2),
    Head("RAN", "right", least=6),
    Head("RESULT", least=12),
)


def run_lines(runs: Sequence[Run], now: Nanos, cells: int) -> tuple[Span, list[Span]]:
    """The heading and a line for each run, oldest first, no wider than `cells`."""
    heading, *lines = table_lines(HEADS, [_row(run, now) for run in runs], cells)
    return Span(heading, "heading"), [
        Span(line, STYLES[run.status]) for run, line in zip(runs, lines, strict=True)
    ]


def _row(run: Run, now: Nanos) -> list[Cell]:
    return [
        Cell(str(run.number)),
        Cell(state_text(run)),
        *(Cell(_time(at)) for at in (run.queued_at, run.started_at, run.ended_at)),
        Cell(duration(waited_s(run, now))),
        Cell(duration(ran_s(run, now))),
        Cell(result_text(run)),
    ]


def state_text(run: Run) -> str:
    """Sign and word of its status."""
    return f"{glyph(run.status)} {WORDS[run.status]}"


def result_text(run: Run) -> str:
    """What it ended with, in one line."""
    told = run.error or run.alert or run.message
    return show(told) if told else f"limit {duration(run.limit_s)}" if run.limit_s else ""


def waited_s(run: Run, now: Nanos) -> float | None:
    """Seconds from submission to start, to its end when it never started, or to now while it is pending."""
    if run.queued_at is None:
        return None
    until = run.started_at if run.started_at is not None else run.ended_at
    if until is None and not run.status.is_live:
        return None
    return max(0.0, _whole(run, seconds_between(run.queued_at, now if until is None else until)))


def ran_s(run: Run, now: Nanos) -> float | None:
    """Seconds from start to end, or to now while it runs."""
    if run.started_at is None or (run.ended_at is None and not run.status.is_live):
        return None
    return max(
        0.0, _whole(run, seconds_between(run.started_at, now if run.ended_at is None else run.ended_at))
    )


def _whole(run: Run, seconds: float) -> float:
    return float(int(seconds)) if run.status.is_live else seconds


def _time(at: Nanos | None) -> str:
    return NONE if at is None else date_time(at)


def side_by_side(run: Run, good: Run | None, now: Nanos, cells: int) -> Iterator[Span]:
    """What is known of a run, beside the same of a good one; what is alike steps back."""
    left, right = _facts(run, now), _facts(good, now) if good else {}
    heads = [Head("", least=8), Head(f"RUN {run.number} {state_text(run)}", least=20)]
    if good:
        heads.append(Head(f"RUN {good.number} {state_text(good)}, the last good one", least=20))
    names = [name for name in left if left[name] or right.get(name)]
    rows = [
        [Cell(name), Cell(left[name] or NONE), Cell(right.get(name) or NONE)][: len(heads)] for name in names
    ]
    heading, *lines = table_lines(heads, rows, cells)
    yield Span(heading, "heading")
    for name, line in zip(names, lines, strict=True):
        differs = not good or left[name] != right[name]
        yield Span(line, ("error" if name == "error" else "") if differs else "dim")


def _facts(run: Run, now: Nanos) -> Mapping[str, str]:
    """In the order in which one asks."""
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
    told = {"error": run.error, "alert": run.alert, "message": run.message}
    return {name: show(text or "") for name, text in (*told.items(), *own.items())} | texts
