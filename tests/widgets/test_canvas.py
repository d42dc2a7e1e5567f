"""What is sent to a terminal: the cells that differ, in the fewest bytes."""

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from benchmarks.painted import Cell, Painted
from jobtui.terminal.canvas import ONE_CELL, PLAIN, Canvas, CanvasPainter, codes_of, transition
from tests.offenders import each
from tests.widgets.widget_app import LOOKS

COLORS = ColorSystem.TRUECOLOR
WIDTH, HEIGHT = 24, 3
SPILT = Cell("#", frozenset({"7"}), "31", "42")
CHARS = st.sampled_from("  abc✓─▁\u28ff")
PARTS = st.lists(st.tuples(st.text(CHARS, min_size=1, max_size=14), st.sampled_from(LOOKS)), max_size=6)
PICTURE = st.lists(PARTS, min_size=HEIGHT, max_size=HEIGHT)

Picture = list[list[tuple[str, Style]]]


def strips(picture: Picture) -> list[Strip]:
    return [
        Strip([Segment(text, style) for text, style in line]).adjust_cell_length(WIDTH, Style(bgcolor="blue"))
        for line in picture
    ]


def full(lines: Sequence[Strip]) -> LayoutUpdate:
    return LayoutUpdate([[line] for line in lines], Region(0, 0, WIDTH, HEIGHT))


def part(lines: Sequence[Strip], spans: list[tuple[int, int, int]]) -> ChopsUpdate:
    return ChopsUpdate([{0: line} for line in lines], spans, [[WIDTH] for _ in lines])


def shown(lines: Sequence[Strip]) -> Painted:
    terminal = Painted(WIDTH, HEIGHT)
    terminal.feed(Canvas(erases_in_color=False).draw(full(lines), COLORS).encode())
    return terminal


SPANS = st.lists(
    st.tuples(st.integers(0, HEIGHT - 1), st.integers(0, WIDTH - 1), st.integers(1, WIDTH)).filter(
        lambda span: span[1] < span[2]
    ),
    min_size=1,
    max_size=4,
)


@given(
    st.lists(st.tuples(PICTURE, st.none() | SPANS | st.just("lost")), min_size=1, max_size=6), st.booleans()
)
def test_the_terminal_shows_the_last_picture(
    steps: list[tuple[Picture, list[tuple[int, int, int]] | str | None]], erases: bool
) -> None:
    canvas = Canvas(erases_in_color=erases)
    terminal = Painted(WIDTH, HEIGHT, erases_in_color=erases)
    wanted = Painted(WIDTH, HEIGHT)
    wanted.feed(Canvas().draw(full(strips([[]] * HEIGHT)), COLORS).encode())
    terminal.feed(canvas.draw(full(strips([[]] * HEIGHT)), COLORS).encode())
    for picture, what in steps:
        lines = strips(picture)
        if isinstance(what, list):
            terminal.feed(canvas.draw(part(lines, what), COLORS).encode())
            for y, _, _ in what:
                wanted.cells[y] = shown(lines).cells[y]
        else:
            if what == "lost":
                terminal.clear(SPILT)
                canvas.forget()
            terminal.feed(canvas.draw(full(lines), COLORS).encode())
            wanted = shown(lines)
        assert (terminal.seen(), terminal.strays) == (wanted.seen(), [])


def test_nothing_is_sent_twice_and_of_a_change_only_the_cells_that_differ() -> None:
    canvas = Canvas()
    red, green = Style(color="red"), Style(color="green")
    lines = strips([[("one", red)], [("two", Style.null())], []])
    assert canvas.draw(full(lines), COLORS)
    assert canvas.draw(full(lines), COLORS) == ""
    assert canvas.draw(part(lines, [(0, 0, WIDTH)]), COLORS) == ""
    canvas.forget()
    assert canvas.draw(full(lines), COLORS)
    canvas.draw(full(strips([[("12:30:01   9 running", red)], [], []])), COLORS)
    after = strips([[("12:30:02   8 running", red)], [], []])
    assert canvas.draw(full(after), COLORS) == "\x1b[1;8H\x1b[31m2   8\x1b[0m"
    canvas.draw(full(strips([[("a   b", red)], [], []])), COLORS)
    unseen = strips([[("a", red), ("   ", green), ("b", red)], [], []])
    assert canvas.draw(full(unseen), COLORS) == ""


@each("日本", "e\u0301", "❤\ufe0f", "\u202exyz", "👩\u200d🚀", "ｆ", "a\u00adb")
def test_a_line_whose_width_terminals_may_doubt_is_sent_whole(text: str) -> None:
    canvas = Canvas()
    lines = strips([[(f"{text} 1", Style(color="red"))], [("plain", Style.null())], []])
    first = canvas.draw(full(lines), COLORS)
    again = canvas.draw(full(lines), COLORS)
    assert text in first
    assert text in again
    assert "plain" not in again


def test_only_a_changed_part_of_a_doubtful_line_is_sent() -> None:
    canvas = Canvas()
    lines = strips([[("12:30:01 日本", Style.null())], [], []])
    canvas.draw(full(lines), COLORS)
    assert canvas.draw(part(lines, [(0, 6, 8)]), COLORS) == "\x1b[1;7H01"
    plain = strips([[("plain words here", Style.null())], [], []])
    canvas.draw(full(plain), COLORS)
    canvas.draw(part(strips([[("日", Style.null())], [], []]), [(0, 0, 6)]), COLORS)
    assert "plain words here" in canvas.draw(full(plain), COLORS)
    assert canvas.draw(LayoutUpdate([[Strip([])]], Region(0, 0, 0, 1)), COLORS) == ""


def test_the_characters_that_are_counted_by_ones_take_one_cell_each() -> None:
    alone = [chr(code) for code in range(0x3000) if ONE_CELL.fullmatch(chr(code))]
    assert len(alone) > 1_000
    assert [char for char in alone if cell_len(char) != 1] == []
    assert not re.search("[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e]", "".join(alone))


def test_another_size_is_another_picture() -> None:
    canvas = Canvas()
    lines = strips([[("one", Style.null())], [], []])
    canvas.draw(full(lines), COLORS)
    smaller = LayoutUpdate([[line] for line in lines[:2]], Region(0, 0, WIDTH, 2))
    assert "one" in canvas.draw(smaller, COLORS)


STYLES = st.sampled_from(LOOKS)


def drawn(text: str) -> Painted:
    terminal = Painted(60, 3)
    terminal.feed(text.encode())
    return terminal


@given(st.lists(st.tuples(STYLES, st.sampled_from(["a", "bc", " "])), max_size=8))
def test_a_terminal_draws_the_same_with_fewer_bytes(parts: list[tuple[Style, str]]) -> None:
    pen = CanvasPainter(COLORS)
    for style, text in parts:
        pen.write(text, codes_of(style, COLORS))
    lean = pen.text()
    console = Console(force_terminal=True, color_system="truecolor")
    plain = Strip([Segment(text, style) for style, text in parts]).render(console)
    assert drawn(lean).seen() == drawn(plain).seen()
    if all(text.strip() for _, text in parts):
        assert len(lean) <= len(plain)


@given(STYLES, STYLES)
def test_a_transition_leads_from_one_style_to_the_other(before: Style, after: Style) -> None:
    first, second = codes_of(before, COLORS), codes_of(after, COLORS)
    reached = drawn(transition(PLAIN, first) + transition(first, second) + "x")
    assert reached.cells[0][0] == drawn(transition(PLAIN, second) + "x").cells[0][0]


def test_colours_are_written_only_where_they_are_seen() -> None:
    pen = CanvasPainter(COLORS)
    red, blue = (codes_of(Style(color=name), COLORS) for name in ("red", "blue"))
    for text, codes in (("a", red), ("  ", blue), ("b", red)):
        pen.write(text, codes)
    assert pen.text() == "\x1b[31ma  b\x1b[0m"


def test_the_shortest_way_to_a_place_is_taken() -> None:
    pen = CanvasPainter(COLORS)
    for x, y in ((0, 0), (5, 0), (0, 1), (0, 2), (3, 1)):
        pen.move(x, y)
        pen.write("x", PLAIN)
    assert pen.text() == "\x1b[1Hx\x1b[4Cx\r\nx\r\nx\x1b[2;4Hx"


def test_a_link_is_written_as_textual_writes_it() -> None:
    pen = CanvasPainter(COLORS)
    red = Style(color="red")
    for style in (red, Style(link="https://example.org", color="red"), red):
        pen.write_odd("x", style)
    sent = pen.text()
    assert "https://example.org" in sent
    assert [cell.foreground for cell in drawn(sent).cells[0][:3]] == ["31"] * 3
