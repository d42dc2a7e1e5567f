"""Lines that widgets draw: painted when they change, selected, wrapped and scrolled; views of a log."""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from textual.app import App
from textual.pilot import Pilot

from jobtui.model import pages
from jobtui.model.secret_blocks import SecretBlocks
from jobtui.render.log_lines import LineLook, finder
from jobtui.render.spans import Line, Paragraph, Piece, rows, width_of
from jobtui.render.text import safe, width, wrapped
from jobtui.theme import DARK
from jobtui.widgets import log_feed
from jobtui.widgets.frame import RuleLine
from jobtui.widgets.lines import STYLE, LineView, TextSelection
from jobtui.widgets.log_feed import KEPT, FilteredLines, FoldedLines, Folds, KeptLines, LogFeed, LogWindow
from jobtui.widgets.log_view import LogView
from jobtui.widgets.row_view import Move
from jobtui.widgets.text_pane import SpanPane, TextPane
from tests.builders import HOSTILE
from tests.offenders import each
from tests.rows import ROWS, table
from tests.screens.captured import copied, on_logs, until
from tests.waiting import wait_until
from tests.widgets.widget_app import WidgetApp, press, screen_text, text_of, watch

WHOLE = LineLook(whole=True)


class Lines:
    """Lines in memory, ten positions each; `asked` counts how many were given."""

    def __init__(self, texts: Sequence[str], origins: Sequence[str] = ()) -> None:
        self.texts, self.origins = list(texts), origins
        self.asked = 0
        self.broken = ""

    def line(self, nth: int) -> pages.LogLine:
        text = self.texts[nth]
        level = pages.Level.ERROR if "ERROR" in text else pages.Level.PLAIN
        line = pages.LogLine(position=nth * 10, end=nth * 10 + 10, text=text, size=len(text), level=level)
        return replace(line, origin=self.origins[nth]) if self.origins else line

    def page(self, begin: int, end: int, *, at_edge: bool) -> pages.Page:
        if self.broken:
            raise pages.LogUnreadable(self.broken)
        begin, end = max(0, begin), min(end, len(self.texts))
        self.asked += max(0, end - begin)
        return pages.Page(tuple(map(self.line, range(begin, end))), at_edge)

    async def before(self, position: int, count: int) -> pages.Page:
        stop = min(position // 10, len(self.texts))
        return self.page(stop - count, stop, at_edge=stop <= count)

    async def after(self, position: int, count: int) -> pages.Page:
        begin = max(0, position // 10)
        return self.page(begin, begin + count, at_edge=begin + count >= len(self.texts))

    @property
    def extent(self) -> pages.Extent:
        return pages.Extent(0, 10 * len(self.texts))


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


@each(*ROWS["expressions that are tried or not"])
def test_only_quick_expressions_are_tried_where_keys_wait(pattern: str, tried: bool) -> None:
    assert (finder(pages.Query(pattern, True, False)) is not None) is tried


def test_lines_far_from_the_screen_are_dropped() -> None:
    lines = numbered(5_000)
    window = LogWindow(tuple(map(lines.line, range(KEPT))), at_begin=True)
    window.append(pages.Page(tuple(map(lines.line, range(KEPT - 1, KEPT + 300))), at_edge=False))
    gone = window.trim(KEPT, KEPT + 10)
    assert len(window) == KEPT
    assert window.lines[0].position == gone * 10
    assert not window.at_begin


@given(st.sets(st.integers(0, 199), max_size=60), st.integers(0, 199), st.integers(1, 30))
async def test_only_lines_with_hits_are_given_in_both_ways(found: set[int], at: int, count: int) -> None:
    wanted, hits = sorted(found), pages.Hits(0)
    hits.add_above([nth * 10 + 3 for nth in wanted], 1 << 40)
    lines = FilteredLines(numbered(200), lambda: hits)
    after = await lines.after(at * 10 + 5, count)
    assert [line.position // 10 for line in after.lines] == [nth for nth in wanted if nth >= at][:count]
    assert after.at_edge == (len([nth for nth in wanted if nth >= at]) <= count)
    before = await lines.before(at * 10 + 5, count)
    assert [line.position // 10 for line in before.lines] == [nth for nth in wanted if nth < at][-count:]
    assert before.at_edge == (len([nth for nth in wanted if nth < at]) <= count)


HEAD = "Nov 20 20:34:01 7 0 a/b.py:1:f "
KINDS = (f"{HEAD}GET /1", f"{HEAD}idle", "  more", f"{HEAD}error=1", "A=1")


async def whole(source: pages.LineSource, start: int, rng: Callable[[int], int]) -> list[pages.LogLine]:
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


BELOW = table("secrets")["below"]
BLOCKS = [
    (head + text.replace("\n", f"\n{head}")).split("\n") for head in BELOW["heads"] for text in BELOW["texts"]
]
BETWEEN = [
    ["the next step begins"],
    [f"{HEAD}said 12 words"],
    [""],
    ["  in a block"],
    ["lone"],
    ["commit 9f86d081884c"],
]


@given(
    st.lists(
        st.tuples(st.sampled_from([*BLOCKS, *BETWEEN]), st.sampled_from("abc")), min_size=1, max_size=12
    ),
    st.integers(0, 59),
    st.randoms(use_true_random=False),
)
async def test_what_is_secret_by_lines_above_is_masked_the_same_from_every_place(
    blocks: list[tuple[list[str], str]], at: int, rng: random.Random
) -> None:
    texts: dict[str, list[str]] = {}
    for block, origin in blocks:
        texts.setdefault(origin, []).extend(("all of it is well", *block))
    origins = [origin for origin, of_one in texts.items() for _ in of_one]
    rng.shuffle(origins)
    masked = {origin: map(SecretBlocks().hide, of_one) for origin, of_one in texts.items()}
    wanted = [next(masked[origin]) for origin in origins]
    lines = Lines([texts[origin].pop(0) for origin in origins], origins)
    start = min(at, len(origins) - 1) * 10
    found = await whole(pages.MaskedLines(lines), start, lambda most: rng.randint(0, max(0, most)))
    assert [line.text for line in found] == wanted


class Numbers(LineView):
    def __init__(self) -> None:
        super().__init__()
        self.values = ["one"] * 10

    def line(self, y: int) -> Line:
        value = self.values[y] if y < len(self.values) else ""
        return (Piece(f"line {y} ", "dim"), Piece(value, "error"), Piece(" end"))


@asynccontextmanager
async def numbers(rows: int = 10, theme: str = DARK.name) -> AsyncIterator[tuple[Numbers, Pilot[None]]]:
    view = Numbers()
    async with WidgetApp(view, theme=theme).run_test(size=(40, rows)) as pilot:
        await pilot.pause()
        yield view, pilot


async def test_only_changed_lines_are_painted_and_all_at_a_resize() -> None:
    async with numbers() as (view, pilot):
        painted = watch(view)
        view.repaint()
        await pilot.pause()
        assert painted == []
        view.values[3] = view.values[7] = "two"
        view.repaint()
        await pilot.pause()
        assert painted == [3, 7]
        assert screen_text(pilot.app)[2:4] == ["line 2 one end", "line 3 two end"]
        painted.clear()
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        assert set(painted) == set(range(8))


async def test_a_removed_widget_drops_its_drawn_lines() -> None:
    rule = RuleLine("words")
    async with WidgetApp(rule).run_test(size=(40, 3)) as pilot:
        await pilot.pause()
        assert rule._styles_cache._cache
        await rule.remove()
        assert not rule._styles_cache._cache


LINES: list[Line] = [(Piece("alpha ", "dim"), Piece("beta")), (Piece("表 wide"),), (Piece("gamma   "),)]


@each(*ROWS["cell to cell"])
def test_a_selection_goes_from_cell_to_cell_in_either_direction(
    anchor: tuple[int, int], end: tuple[int, int], text: str
) -> None:
    assert TextSelection(anchor, end).text(LINES, 20) == text


def test_selected_text_is_marked_in_place() -> None:
    chosen = TextSelection((0, 6), (1, 1))
    for y, line in enumerate(LINES):
        drawn = chosen.marked(line, y, 20)
        assert "".join(span.text for span in drawn).rstrip() == "".join(span.text for span in line).rstrip()
        marked = "".join(span.text for span in drawn if STYLE in span.style)
        assert marked == ("beta" + " " * 10, "表", "")[y]
        assert width_of(drawn) == (20 if y < 2 else 8)


async def test_lines_of_a_log_are_selected_by_mouse_and_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "x.log"
    log.write_text("one\ntwo\nthree\nfour\n")
    async with on_logs(log, size=(80, 24)) as (app, pilot):
        await pilot.press("2")
        await until(app, pilot, "four")
        texts = copied(app, monkeypatch)
        view = app.screen.query_one(LogView)
        await pilot.mouse_down(LogView, offset=(4, 0))
        await pilot.hover(LogView, offset=(5, 2))
        await pilot.mouse_up(LogView, offset=(5, 2))
        await wait_until(lambda: view.selected_text, pilot)
        selected = view.selected_text
        await press(pilot, "y", until=lambda: texts == [selected])
        assert [part.strip() for part in selected.split("\n")][1] == "two"
        await press(pilot, "v", "k", "y", until=lambda: texts[1:] == ["three\nfour"])


def test_a_line_is_broken_after_a_blank_near_the_end_of_a_row() -> None:
    line = (Piece("sbatch "), Piece("--time=10 x", "accent"), Piece("y" * 12))
    broken = ["".join(span.text for span in row) for row in rows(line, 10)]
    assert broken == ["sbatch --t", "ime=10 xyy", "yyyyyyyyyy"]
    assert len(rows((Piece("a b " * 400),), 10, 3)) == 3


async def test_the_wheel_scrolls_as_far_up_as_down() -> None:
    texts, spans = TextPane(), SpanPane()
    async with WidgetApp(texts).run_test(size=(40, 10)) as pilot:
        await pilot.app.mount(spans)
        await pilot.pause()
        texts.set_text(Paragraph(str(number)) for number in range(100))
        spans.set_lines([(Piece(str(number)),) for number in range(100)])
        for pane in (texts, spans):
            pane.scroll_rows(6)
            pane.scroll_rows(-3)
            assert pane.top == 3


@each(*HOSTILE)
def test_wrapped_lines_are_never_too_wide(text: str) -> None:
    for cells in (2, 7, 40):
        lines = wrapped(safe(text), cells, hang=3)
        assert all(width(line) <= cells for line in lines)
        assert sum(map(len, lines)) >= len(safe(text).replace(" ", ""))
