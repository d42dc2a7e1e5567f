"""Sites in a line each, and a table of the nodes a scheduler gives them: what runs, who is silent."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from jobtui.model.changes import RUNNING, Allocation, Site
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.numbers import counted
from jobtui.render.columns import Cells, Narrow, TableColumn, fixed, in_style, text_column
from jobtui.render.spans import Paragraph
from jobtui.render.text import NONE, age, duration, show

ENDED = frozenset({"finished", "submit_failed"})
NOTED = frozenset({"submit_failed", "pending_deletion"})
"""States of which the scheduler's note says why."""
GLYPHS = {RUNNING: "●", "queued": "○", "pending_submission": "○", "finished": "✓", "submit_failed": "✗"}
ORDER = (RUNNING, "pending_deletion", "queued", "pending_submission")
"""Live ones come first, in this order; ended ones come last, the newest first."""
_RANKS = {state: rank for rank, state in enumerate(ORDER)}


class ServerLook(NamedTuple):
    """What is known beside the records: the time, and by the name of the source: `labels`, `clocks`, sites.

    `labels` tell several servers apart. `clocks` are the times of the servers' own clocks, by which their
    words are judged; `now` is of others.
    """

    now: Nanos
    labels: Mapping[str, str] = {}
    clocks: Mapping[str, Nanos] = {}
    names: Mapping[tuple[str, int], str] = {}
    """Those of sites, by source and number."""

    def label(self, one: Site | Allocation) -> str:
        return self.labels.get(one.source, "")

    def now_of(self, one: Site | Allocation) -> Nanos:
        return self.clocks.get(one.source, self.now)


def site_lines(sites: Iterable[Site], look: ServerLook) -> Iterator[Paragraph]:
    """A line for each site; what a person must look at stands out."""
    yield Paragraph("SITES", "heading")
    known = sorted(sites, key=lambda site: (look.label(site), site.name))
    for site in known:
        now, label = look.now_of(site), look.label(site)
        is_down = site.is_down(now)
        seen = NONE if site.seen_at is None else f"{age(max(0.0, seconds_between(site.seen_at, now)))} ago"
        words = [
            f"{'!' if is_down else '●'} {show(site.name)}{f'@{label}' if label else ''}",
            f"agent {'last ' if is_down or site.seen_at is None else ''}heard from {seen}",
            f"{counted(site.queued, 'job')} in its scheduler" if site.queued else "",
            show(site.path),
        ]
        yield Paragraph("   ".join(filter(None, words)), "warning" if is_down else "", whole=False)
    if not known:
        yield Paragraph(
            "none is known yet" if look.labels else "no source of sites; name one with --balsam", "dim"
        )


def in_order(allocations: Iterable[Allocation], look: ServerLook) -> list[Allocation]:
    return sorted(allocations, key=lambda one: (look.label(one), _RANKS.get(one.state, len(ORDER)), -one.id))


def _style(one: Allocation, look: ServerLook) -> str:
    if one.is_stale(look.now_of(one)):
        return "warning"
    return "error" if one.state == "submit_failed" else "settled" if one.state in ENDED else ""


def _state(one: Allocation, look: ServerLook) -> str:
    mark = "!" if one.is_stale(look.now_of(one)) else GLYPHS.get(one.state, "?")
    return f"{mark} {show(one.state)}"


def _taken(one: Allocation, look: ServerLook) -> str:
    start = one.start_at if one.start_at is not None else one.submitted_at
    if start is None or (one.state in ENDED and one.end_at is None):
        return NONE
    seconds = max(0.0, seconds_between(start, one.end_at or look.now_of(one)))
    return "~" * one.start_estimated + duration(float(int(seconds)))


def _launcher(one: Allocation, look: ServerLook) -> str:
    seen = one.heartbeat_at
    if one.state != RUNNING or seen is None:
        return ""
    return age(max(0.0, seconds_between(seen, look.now_of(one))))


ALLOCATION_COLUMNS: tuple[TableColumn[Allocation, ServerLook], ...] = in_style(
    _style,
    TableColumn("state", "  STATE", _state, fixed(20), 100, narrow=(Narrow(60, fixed(10)),)),
    TableColumn("id", "ID", lambda one, look: f"{one.id}", fixed(6), 95, "right"),
    TableColumn("server", "SERVER", lambda one, look: look.label(one), Cells(6, 14, 24), 71),
    TableColumn("scheduler", "SCHEDULER", lambda one, look: show(one.scheduler_id or NONE), fixed(10),
                60, "right"),
    TableColumn("nodes", "NODES", lambda one, look: f"{one.nodes}", fixed(6), 75, "right"),
    TableColumn("for", "FOR", _taken, fixed(8), 72, "right"),
    TableColumn("of", "OF", lambda one, look: duration(one.wall_time_s), fixed(8), 50, "right"),
    TableColumn("launcher", "LAUNCHER", _launcher, fixed(10), 55, "right"),
    TableColumn("site", "SITE",
                lambda one, look: show(look.names.get((one.source, one.site_id), f"{one.site_id}")),
                Cells(8, 16, 24), 45),
    text_column("queue", "QUEUE", lambda one: one.queue, Cells(8, 12, 16), 40),
    text_column("note", "NOTE", lambda one: " ".join((one.note or "").split()) if one.state in NOTED else "",
                Cells(12, 40, 10_000), 70),
    text_column("tags", "TAGS", lambda one: " ".join(f"{name}:{value}" for name, value in one.tags),
                Cells(12, 24, 60), 20),
)  # fmt: skip
