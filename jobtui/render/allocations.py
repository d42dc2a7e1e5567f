"""Sites and the nodes a scheduler gives them, as lines: what runs or waits, who was not heard of lately."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobtui.model.changes import RUNNING, Allocation, Site
from jobtui.model.clock import Nanos, seconds_between
from jobtui.render.spans import Span
from jobtui.render.text import NONE, age, duration, fit, show

ENDED = frozenset({"finished", "submit_failed"})
BAD = frozenset({"submit_failed", "pending_deletion"})
GLYPHS = {RUNNING: "●", "queued": "○", "pending_submission": "○", "finished": "✓", "submit_failed": "✗"}
OTHER_GLYPH = "?"
ORDER = (RUNNING, "pending_deletion", "queued", "pending_submission")
"""What lasts comes first, in this order; what is over comes last, the newest first."""


class Column(NamedTuple):
    """One column: its heading, its cells, and from how many cells of the whole on it is there."""

    head: str
    cells: int
    least: int = 0
    align: str = "left"


SERVER = "SERVER"
"""Only there when there are several."""
MOST_LABEL_CELLS = 24
"""More of what distinguishes servers is cut."""
COLUMNS = (
    Column("STATE", 20), Column("ID", 6, 0, "right"), Column(SERVER, 14, 50),
    Column("SCHEDULER", 10, 50, "right"),
    Column("NODES", 6, 0, "right"), Column("FOR", 8, 0, "right"), Column("OF", 8, 70, "right"),
    Column("LAUNCHER", 10, 60, "right"), Column("SITE", 16, 80),
    Column("QUEUE", 12, 100),
    Column("TAGS", 24, 140),
)  # fmt: skip


NARROW_CELLS, NARROW_STATE_CELLS = 60, 10
"""Below so many cells there are that many for the state."""


def lines(
    sites: Sequence[Site],
    allocations: Iterable[Allocation],
    now: Nanos,
    cells: int,
    labels: Mapping[str, str] | None = None,
    clocks: Mapping[str, Nanos] | None = None,
) -> Iterator[Span]:
    """Sites first, then allocations; what a person must look at stands out.

    `labels` tell several servers apart, by the name of the source: in a column, or above the rows of each.
    `clocks` are the times of the servers' own clocks, by which their words are judged; `now` is of others.
    """
    label_of, now_of = labels or {}, clocks or {}
    yield Span(fit(" SITES", cells), "heading")
    for site in sorted(sites, key=lambda site: (label_of.get(site.source, ""), site.name)):
        yield _site_line(site, now_of.get(site.source, now), cells, label_of.get(site.source, ""))
    if not sites:
        none = "none is known yet" if label_of else "no source of sites: give --balsam URL"
        yield Span(f" {none}", "dim")
    yield Span("")
    several = any(label_of.values())
    shown = _shown_columns(cells, label_of.values() if several else ())
    yield Span(fit(" " + " ".join(_fit(column.head, column) for column in shown), cells), "heading")
    names = {(site.source, site.id): site.name for site in sites}
    is_grouped = several and all(column.head != SERVER for column in shown)
    last = None
    for one in sorted(allocations, key=lambda one: (label_of.get(one.source, "") * is_grouped, _order(one))):
        if is_grouped and one.source != last:
            last = one.source
            yield Span(fit(f" {label_of.get(last, '')}", cells).rstrip(), "dim")
        its_now = now_of.get(one.source, now)
        row_cells = _cells(one, names, its_now, label_of.get(one.source, ""))
        row = dict(zip((column.head for column in COLUMNS), row_cells, strict=True))
        text = " ".join(_fit(row[column.head], column) for column in shown)
        yield Span(fit(f" {text}", cells).rstrip(), _style(one, its_now))
        if one.note and one.state in BAD:
            yield Span(fit(f"   {show(' '.join(one.note.split()))}", cells).rstrip(), "error")


def _shown_columns(cells: int, labels: Collection[str]) -> list[Column]:
    """The columns that there is room for; that of the server only where there are `labels` to tell apart."""
    shown = [column for column in COLUMNS if cells >= column.least and (labels or column.head != SERVER)]
    longest = min(MOST_LABEL_CELLS, max(map(len, (SERVER, *labels))))
    shown = [one._replace(cells=longest) if one.head == SERVER else one for one in shown]
    if cells < NARROW_CELLS:
        shown[0] = shown[0]._replace(cells=NARROW_STATE_CELLS)
    return shown


def _site_line(site: Site, now: Nanos, cells: int, label: str) -> Span:
    is_down = site.is_down(now)
    heard = NONE if site.seen_at is None else f"{age(max(0.0, seconds_between(site.seen_at, now)))} ago"
    words = [
        f" {'!' if is_down else '●'} {show(site.name)}{f'@{label}' if label else ''}",
        f"agent last heard of {heard}" if is_down or site.seen_at is None else f"agent heard of {heard}",
        f"{site.queued} jobs in its scheduler" if site.queued else "",
        show(site.path),
    ]
    return Span(fit("   ".join(word for word in words if word), cells).rstrip(), "warning" if is_down else "")


def _order(one: Allocation) -> tuple[int, int]:
    return (ORDER.index(one.state) if one.state in ORDER else len(ORDER), -one.id)


def _style(one: Allocation, now: Nanos) -> str:
    if one.is_stale(now):
        return "warning"
    return "error" if one.state == "submit_failed" else "settled" if one.state in ENDED else ""


def _cells(one: Allocation, names: dict[tuple[str, int], str], now: Nanos, label: str) -> tuple[str, ...]:
    mark = "!" if one.is_stale(now) else GLYPHS.get(one.state, OTHER_GLYPH)
    estimated = "~" if one.start_estimated else ""
    heard = one.heartbeat_at
    launcher = NONE if heard is None else age(max(0.0, seconds_between(heard, now)))
    return (
        f"{mark} {show(one.state)}",
        f"{one.id}",
        label,
        show(one.scheduler_id or NONE),
        f"{one.nodes}",
        estimated + _taken(one, now),
        NONE if one.wall_time_s is None else duration(one.wall_time_s),
        launcher if one.state == RUNNING else "",
        show(names.get((one.source, one.site_id), f"{one.site_id}")),
        show(one.queue),
        show(" ".join(f"{name}:{value}" for name, value in one.tags)),
    )


def _taken(one: Allocation, now: Nanos) -> str:
    start = one.start_at if one.start_at is not None else one.submitted_at
    if start is None:
        return NONE
    if one.state in ENDED and one.end_at is None:
        return NONE
    return duration(float(int(max(0.0, seconds_between(start, one.end_at or now)))))


def _fit(text: str, column: Column) -> str:
    return fit(text, column.cells, align="right" if column.align == "right" else "left")
