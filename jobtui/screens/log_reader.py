"""One log that is open on a screen: how far it goes, what is searched in it, where one was. No widgets."""

from jobtui.model.clock import Nanos
from jobtui.model.pages import CanRest, Extent, LineSource, Log, LogSearch, Place, Query, SearchState
from jobtui.widgets.log_filter import FilteredLines

STATE_WORDS = {
    SearchState.TIMED_OUT: " (out of time)",
    SearchState.FULL: " (and more)",
    SearchState.CANCELED: " (stopped)",
}


class LogReader:
    """A log and what a user does with it. `name` is None for all logs in one."""

    def __init__(self, log: Log, name: str | None, place: Place | None = None) -> None:
        self.log = log
        self.name = name
        self.place = place
        """Where one was when another log was chosen; None at the end."""
        self.extent = Extent(0, 0)
        self.search: LogSearch | None = None
        self.is_filtered = False
        self.left_from: Place | None = None
        """Where one was when all but the hits was hidden."""
        self.problem = ""
        self.read_at: Nanos | None = None
        """When it was last looked at with success."""
        self.seeks = 0
        """Towards where a hit is awaited: 1 behind the cursor, -1 before it, 0 none."""
        self.bookmarks: set[Place] = set()

    @property
    def lines(self) -> LineSource:
        """The lines that are shown."""
        if self.is_filtered and self.search is not None:
            return FilteredLines(self.log, self.search)
        return self.log

    def begin_search(self, query: Query, around: Place) -> LogSearch:
        """A new search instead of the one before."""
        self.end_search()
        self.search = self.log.search(query, around)
        return self.search

    def end_search(self) -> None:
        """Stop searching, and forget what was found."""
        if self.search is not None:
            self.search.cancel()
        self.search, self.seeks = None, 0

    def rest(self) -> None:
        """Nobody looks: what can be read again need not be held. Places that are kept in mind stay."""
        if self.search is None and not self.bookmarks and isinstance(self.log, CanRest):
            self.log.rest()

    @property
    def is_searching(self) -> bool:
        """Whether a search is going on."""
        return self.search is not None and self.search.state is SearchState.RUNNING

    def next_hit(self, begin: Place, end: Place, direction: int) -> Place | None:
        """The nearest hit behind `end` or before `begin`."""
        if self.search is None:
            return None
        hits = self.search.hits
        return hits.next_after(end) if direction > 0 else hits.last_before(begin)

    def may_come(self, begin: Place, end: Place, direction: int) -> bool:
        """Whether a search that is going on may still find something in that direction."""
        if self.search is None or not self.is_searching:
            return False
        hits = self.search.hits
        return hits.high < self.extent.end if direction > 0 else hits.low > self.extent.begin

    def set_filtered(self, place: Place | None, *, on: bool) -> None:
        """Show only hits, or all lines; `place` is where one is."""
        self.is_filtered = on
        self.left_from = place if on else None

    def place_in_all(self, begin: Place, end: Place) -> Place:
        """Where to go when all lines are shown again, with the cursor on the hit at `begin` .. `end`.

        Back to where one came from, if one is still on the hit that was the nearest to that.
        """
        left = self.left_from
        if left is None or self.search is None:
            return begin
        nearest = self.search.hits.last_before(left + 1)
        nearest = self.search.hits.next_after(left) if nearest is None else nearest
        return left if nearest is not None and begin <= nearest < end else begin

    def search_words(self, begin: Place, end: Place) -> str:
        """How the search stands, "14 of 52": which hit is in the line at `begin` .. `end`."""
        if self.search is None:
            return ""
        if self.search.state is SearchState.FAILED:
            return "search failed"
        hits = self.search.hits
        more = "+" if self.is_searching else ""
        here = hits.rank(end) if hits.rank(end) > hits.rank(begin) else None
        count = f"{len(hits):,}{more}"
        return (f"{here:,} of {count}" if here else count) + STATE_WORDS.get(self.search.state, "")
