"""One log that is open on a screen: its extent, search and position. No widgets."""

from collections.abc import Mapping
from pathlib import Path

from jobtui.actions import key_of
from jobtui.analysis.log_shapes import Condition, keeper
from jobtui.backends.registry import of_kind
from jobtui.model import pages
from jobtui.model.clock import Nanos
from jobtui.render.log_lines import Tags, facet_words, stream_label
from jobtui.render.sources import labels
from jobtui.render.text import fit, safe, show, telling
from jobtui.screens.shared import Shared
from jobtui.widgets.log_feed import FIRST, RAW, FilteredLines, FoldedLines, Folds, KeptLines
from jobtui.widgets.log_view import LogView

Names = tuple[str | None, ...]
"""Names of logs; None for all in one."""


def all_names(shared: Shared, extra: str | None) -> Names:
    """The names of logs: first None for all in one where there are several, `extra` last."""
    known = shared.logs.names()
    more = () if extra is None or extra in known else (extra,)
    return (*((None,) if len(known) > 1 else ()), *known, *more)


def labels_of(shared: Shared, names: Names) -> Mapping[str, str]:
    """A short name for each, safe to show."""
    health = [source for source in shared.store.sources() if source.name in names]
    short = dict(zip((source.name for source in health), labels(health), strict=True))
    return {name: short.get(name) or stream_label(name) for name in names if name is not None}


def tags_of(shared: Shared, known: Mapping[str, str], most: int) -> Tags:
    """The tag before the lines of each log, at most `most` cells wide; a journal as a whole has one, too."""
    sources = shared.store.sources()
    short = zip(sources, labels(sources), strict=True)
    names = {source.name: label for source, label in short if of_kind(source.kind).is_journal}
    names.update(known)
    return Tags({name: label.removesuffix(".log") for name, label in names.items()}, most)


STATE_WORDS = {
    pages.SearchState.TIMED_OUT: " (out of time)",
    pages.SearchState.FULL: " (and more)",
    pages.SearchState.CANCELED: " (stopped)",
}


class LogReader:
    """An open log: its position, search and bookmarks. `name` is None for all logs in one."""

    def __init__(self, log: pages.Log, name: str | None) -> None:
        self.log, self._masked = log, pages.MaskedLines(log)
        self.name = name
        self.position: int | None = None
        """The position when another log was chosen; None at the end."""
        self.extent = pages.Extent(0, 0)
        self.search: pages.LogSearch | None = None
        self.is_filtered = self.is_counting = False
        self.left_from: int | None = None
        """The position when all lines but the hits were hidden."""
        self.problem = ""
        self.read_at: Nanos | None = None
        """When it was last read without an error."""
        self.seeks = 0
        """The direction of the hit that is awaited: 1 after the cursor, -1 before it, 0 none."""
        self.bookmarks: set[int] = set()
        self.folds = Folds()
        self.conditions: tuple[Condition, ...] = ()
        self._kept: tuple[object, pages.Hits] = None, pages.Hits(0)
        """Which hits are left by which conditions."""

    @property
    def unfolded(self) -> pages.LineSource:
        if self.is_filtered and self.search is not None:
            return FilteredLines(self._masked, lambda: self.hits)
        return KeptLines(self._masked, keeper(self.conditions)) if self.conditions else self._masked

    @property
    def lines(self) -> pages.LineSource:
        return FoldedLines(self.unfolded, self.folds) if self.folds else self.unfolded

    @property
    def hidden_words(self) -> str:
        """Why there is no line where some may be left out, "" where all are shown."""
        if not (self.is_filtered or self.conditions):
            return ""
        return "searching" if self.is_searching else f"no line passes; {key_of('back')} shows the others"

    def end_search(self) -> None:
        if self.search is not None:
            self.search.cancel()
        self.search, self.seeks = None, 0

    @property
    def is_searching(self) -> bool:
        return self.search is not None and self.search.state is pages.SearchState.RUNNING

    @property
    def hits(self) -> pages.Hits:
        """Those in lines that are not left out."""
        found = self.search.hits if self.search is not None else pages.Hits(0)
        if not self.conditions:
            return found
        return self._kept[1] if self._kept[0] == (found, self.conditions) else pages.Hits(0)

    async def keep_hits(self) -> None:
        """Find the hits that are in lines that are not left out. Raises LogUnreadable."""
        if (search := self.search) is None or not self.conditions:
            return
        if (known := (search.hits, self.conditions)) != self._kept[0]:
            self._kept = known, pages.Hits(FIRST, wide=True)
        kept = self._kept[1]
        lines = FilteredLines(KeptLines(self._masked, keeper(self.conditions)), lambda: search.hits)
        while page := (await lines.after(kept.high, RAW)).lines:
            kept.add_above([line.position for line in page], page[-1].end)

    def next_hit(self, begin: int, end: int, direction: int) -> int | None:
        return self.hits.next_after(end) if direction > 0 else self.hits.last_before(begin)

    def may_come(self, direction: int) -> bool:
        return self.is_searching and (direction < 0 or self.hits.high < self.extent.end)

    def set_filtered(self, position: int | None, *, on: bool) -> None:
        """Show only hits, or all lines; `position` is the present one."""
        self.is_filtered = on
        self.left_from = position if on else None

    def position_in_all(self, begin: int, end: int) -> int:
        """Where to go when all lines are shown again, with the cursor on the hit at `begin` .. `end`: where
        one was before, if the cursor is still on the hit nearest to it.
        """
        if (left := self.left_from) is None:
            return begin
        nearest = self.hits.last_before(left + 1)
        nearest = self.hits.next_after(left) if nearest is None else nearest
        return left if nearest is not None and begin <= nearest < end else begin

    def search_words(self, begin: int, end: int) -> str:
        if self.search is None:
            return ""
        if self.search.state is pages.SearchState.FAILED:
            return "search failed"
        hits = self.hits
        more = "+" if self.is_searching else ""
        here = hits.rank(end) if hits.rank(end) > hits.rank(begin) else None
        count = f"{len(hits):,}{more}"
        return (f"{here:,} of {count}" if here else count) + STATE_WORDS.get(self.search.state, "")


QUERY_CELLS = CONDITION_CELLS = 24
PROBLEM_CELLS = 40

Words = list[tuple[str, str]]
"""Words with their styles, the most important first; safe to show."""


def status_words(reader: LogReader | None, view: LogView, place: pages.FilePosition | None) -> Words:
    if reader is None:
        return [("no logs to read", "warning")]
    problem = reader.problem.removeprefix(f"{reader.name}: ")
    words = [(fit(show(problem), PROBLEM_CELLS).rstrip(), "error")] if problem else []
    words += [("counting …", "accent")] if reader.is_counting else []
    if reader.search is not None:
        line = view.line_at_cursor
        begin, end = (line.position, line.end) if line else (0, 0)
        sign = "&" if reader.is_filtered else "/"
        typed = safe(reader.search.query.text)
        short = typed if len(typed) <= QUERY_CELLS else fit(typed, QUERY_CELLS)
        words.append((f"{sign}{short} {reader.search_words(begin, end)}", "accent"))
    words.append(("following", "good") if view.follows else (_position(reader, view, place), "dim"))
    for facet, keeps in reader.conditions:
        sign = "only" if keeps else "without"
        words.append((f"{sign} {telling(facet_words(facet), CONDITION_CELLS)}", "accent"))
    words += [("selecting", "accent")] if view.selection is not None else []
    words += [("folded", "dim")] if reader.folds.are_all else []
    words += [(show(reader.extent.event), "warning")] if reader.extent.event else []
    return words


def _position(reader: LogReader, view: LogView, place: pages.FilePosition | None) -> str:
    if place is not None and place.line is not None:
        is_rotated = reader.name is not None and Path(place.path) != Path(reader.name)
        return f"line {place.line:,}" + f" of {show(Path(place.path).name)}" * is_rotated
    position, extent = view.position, reader.extent
    if position is None or extent.end <= extent.begin or reader.name is None:
        return ""
    return f"{(position - extent.begin) * 100 // (extent.end - extent.begin)} %"
