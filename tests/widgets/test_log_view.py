from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App
from textual.pilot import Pilot

from jobtui.model.pages import Extent, Hits, Level, LogLine, LogUnreadable, Page, Query, SearchState
from jobtui.render.log_lines import LineLook, finder
from jobtui.widgets import log_feed
from jobtui.widgets.log_feed import KEPT, FilteredLines, FoldedLines, Folds, KeptLines, LogFeed, LogWindow
from jobtui.widgets.log_view import LogView
from jobtui.widgets.row_view import Move
from tests.rows import ROWS
from tests.waiting import wait_until
from tests.widgets.widget_app import WidgetApp, text_of, watch

WHOLE = LineLook(whole=True)


class Lines:
    """Lines in memory, ten positions each; `asked` counts how many were given."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self.asked = 0
        self.broken = ""

    def line(self, nth: int) -> LogLine:
        text = self.texts[nth]
        level = Level.ERROR if "ERROR" in text else Level.PLAIN
        return LogLine(position=nth * 10, end=nth * 10 + 10, text=text, size=len(text), level=level)

    def page(self, begin: int, end: int, *, at_edge: bool) -> Page:
        if self.broken:
            raise LogUnreadable(self.broken)
        begin, end = max(0, begin), min(end, len(self.texts))
        self.asked += max(0, end - begin)
        return Page(tuple(map(self.line, range(begin, end))), at_edge)

    async def before(self, position: int, count: int) -> Page:
        stop = min(position // 10, len(self.texts))
        return self.page(stop - count, stop, at_edge=stop <= count)

    async def after(self, position: int, count: int) -> Page:
        begin = position // 10
        return self.page(begin, begin + count, at_edge=begin + count >= len(self.texts))

    @property
    def extent(self) -> Extent:
        return Extent(0, 10 * len(self.texts))


def numbered(count: int) -> Lines:
    return Lines([f"line {n}" for n in range(count)])


@asynccontextmanager
async def shown(
    lines: Lines, position: int | None = None, *, size: tuple[int, int] = (40, 10), look: LineLook = WHOLE
) -> AsyncIterator[tuple[LogView, Pilot[None]]]:
    view = LogView()
    view.set_look(look)
    app: App[None] = WidgetApp(view)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        view.show(lines, position)
        await wait_until(lambda: view.line_at_cursor is not None or not lines.texts, pilot)
        await pilot.pause()
        yield view, pilot


def seen(view: LogView) -> list[str]:
    return [line.strip() for line in text_of(view)]


async def test_a_log_of_a_million_lines_opens_at_its_end() -> None:
    lines = numbered(1_000_000)
    async with shown(lines) as (view, pilot):
        assert seen(view) == [f"line {n}" for n in range(999_990, 1_000_000)]
        assert view.follows
        assert lines.asked <= KEPT
        view.move(Move.TOP)
        await wait_until(lambda: seen(view)[0] == "line 0", pilot)
        assert view.position == 0
        view.move(Move.BOTTOM)
        await wait_until(lambda: seen(view)[-1] == "line 999999", pilot)
        assert lines.asked <= 2 * KEPT


async def test_the_view_stays_at_the_end_while_lines_come() -> None:
    lines = numbered(50)
    async with shown(lines) as (view, pilot):
        lines.texts += ["new 1", "new 2"]
        view.grown(lines.extent)
        await wait_until(lambda: seen(view)[-1] == "new 2", pilot)
        assert view.position == 510
        lines.texts[-1:] = ["new 2, finished", "new 3"]
        view.grown(lines.extent)
        await wait_until(lambda: seen(view)[-2:] == ["new 2, finished", "new 3"], pilot)


async def test_away_from_the_end_nothing_moves_and_nothing_is_painted() -> None:
    lines = numbered(50)
    async with shown(lines) as (view, pilot):
        for _ in range(20):
            view.move(Move.UP)
        await pilot.pause()
        before, painted = seen(view), watch(view)
        lines.texts += ["new"] * 30
        view.grown(lines.extent)
        await wait_until(lambda: view._window.at_end and len(view._window) == 80, pilot)
        await pilot.pause()
        assert seen(view) == before
        assert painted == []
        assert not view.follows


async def test_long_lines_go_sideways_or_are_wrapped_and_take_no_more_than_the_screen() -> None:
    lines = Lines(["short", "".join(f"{n:03d}." for n in range(50)), "end"])
    async with shown(lines) as (view, pilot):
        assert seen(view)[1].endswith("008.›")
        view.go_sideways(1)
        assert (seen(view)[1][0], seen(view)[1][-1]) == ("‹", "›")
        view.go_sideways(-5)
        view.toggle_wrap()
        text = "".join(seen(view)[1:8])
        assert text.startswith("000.001.")
        assert text.endswith("049.end")
        view.show(Lines(["first", "x" * 10_000, "last"]))
        await wait_until(lambda: seen(view)[-1] == "last", pilot)
        assert seen(view) == ["x" * 37] * 9 + ["last"]
        view.move(Move.UP)
        assert all(row == "x" * 37 for row in seen(view))
        view.move(Move.UP)
        assert seen(view) == ["first"] + ["x" * 37] * 9
        await pilot.pause()


async def test_selection_goes_over_lines_and_ends_and_bookmarks_are_found_again() -> None:
    async with shown(numbered(3_000), 10_000) as (view, pilot):
        view.select(Move.DOWN)
        view.select(Move.DOWN)
        assert view.selection == (10_000, 10_029)
        view.toggle_selection()
        assert view.selection is None
        view.toggle_selection()
        view.move(Move.UP)
        assert view.selection == (10_010, 10_029)
        view.toggle_selection()
        view.toggle_bookmark()
        assert any(row.startswith("◆") for row in seen(view))
        view.go_to(20)
        await wait_until(lambda: view.position == 20, pilot)
        view.toggle_bookmark()
        for position in (10_010, 20):
            view.next_bookmark()
            await wait_until(lambda position=position: view.position == position, pilot)
        view.toggle_bookmark()
        assert view.bookmarks == {10_010}


@pytest.mark.parametrize(("pattern", "tried"), ROWS["expressions that are tried or not"])
def test_only_quick_expressions_are_tried_where_keys_wait(pattern: str, tried: bool) -> None:
    assert (finder(Query(pattern, True, False)) is not None) is tried


def test_lines_far_from_the_screen_are_dropped() -> None:
    lines = numbered(5_000)
    window = LogWindow(tuple(map(lines.line, range(KEPT))), at_begin=True)
    window.append(Page(tuple(map(lines.line, range(KEPT - 1, KEPT + 300))), at_edge=False))
    gone = window.trim(KEPT, KEPT + 10)
    assert len(window) == KEPT
    assert window.lines[0].position == gone * 10
    assert not window.at_begin


class Found:
    def __init__(self, positions: Sequence[int]) -> None:
        self.query = Query("x", False, False)
        self.hits = Hits(0)
        self.hits.add_above(sorted(positions), 1 << 40)
        self.state = SearchState.DONE
        self.problem = ""

    async def run(self) -> None: ...

    async def extend(self) -> None: ...

    def cancel(self) -> None: ...


@given(st.sets(st.integers(0, 199), max_size=60), st.integers(0, 199), st.integers(1, 30))
async def test_only_lines_with_hits_are_given_in_both_directions(
    found: set[int], at: int, count: int
) -> None:
    lines = FilteredLines(numbered(200), Found([nth * 10 + 3 for nth in found]))
    wanted = sorted(found)
    after = await lines.after(at * 10 + 5, count)
    assert [line.position // 10 for line in after.lines] == [nth for nth in wanted if nth >= at][:count]
    assert after.at_edge == (len([nth for nth in wanted if nth >= at]) <= count)
    before = await lines.before(at * 10 + 5, count)
    assert [line.position // 10 for line in before.lines] == [nth for nth in wanted if nth < at][-count:]
    assert before.at_edge == (len([nth for nth in wanted if nth < at]) <= count)


HEAD = "Nov 20 20:34:01 7 0 a/b.py:1:f "
KINDS = (f"{HEAD}GET /1", f"{HEAD}idle", "  more", f"{HEAD}error=1", "A=1")


async def whole(source: KeptLines | FoldedLines, start: int, rng: Callable[[int], int]) -> list[LogLine]:
    """All lines of a source as a view comes to hold them: from a position, on at both ends."""
    feed = LogFeed(source)
    await feed.jump(start)
    while (await feed.fill(rng(len(feed.window)), rng(len(feed.window)))) is not None:
        pass
    window = feed.window
    while not window.at_begin:
        window.prepend(await source.before(window.lines[0].position, 3))
    while window.append(await source.after(window.lines[-1].position, 3)):
        pass
    return window.lines


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=60), st.integers(0, 59), st.data())
async def test_lines_left_out_and_folded_are_the_same_from_every_place(
    texts: list[str], at: int, data: st.DataObject
) -> None:
    lines = Lines([KINDS[0], *texts])
    raw = [lines.line(nth) for nth in range(len(lines.texts))]
    start = min(at, len(raw) - 1) * 10
    with patch.object(log_feed, "RAW", data.draw(st.integers(1, 20))):
        kept = KeptLines(lines, lambda line: "idle" not in line.text and "=1" not in line.text)
        found = await whole(kept, start, lambda most: data.draw(st.integers(0, max(0, most))))
        folds = Folds()
        folds.toggle_all()
        runs = await whole(FoldedLines(lines, folds), start, lambda most: 0)
    left_out = {line.position for line in raw} - {line.position for line in found}
    assert [line.position for line in found] == sorted(line.position for line in found)
    assert all("GET" in line.text or line.text in ("  more", "A=1") for line in found)
    assert all("GET" not in raw[position // 10].text for position in left_out)
    assert [run.position for run in runs] == [0, *(run.end for run in runs[:-1])]
    assert runs[-1].end == len(raw) * 10
    assert all(run.end - run.position == 10 * (run.folded + 1) for run in runs)
