from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from jobtui.terminal.canvas import PLAIN, Pen, codes_of, transition
from tests.widgets.terminal import FakeTerminal
from tests.widgets.widget_app import LOOKS

STYLES = st.sampled_from(LOOKS)
COLORS = ColorSystem.TRUECOLOR


def drawn(text: str) -> FakeTerminal:
    terminal = FakeTerminal(60, 3)
    terminal.feed(text)
    return terminal


@given(st.lists(st.tuples(STYLES, st.sampled_from(["a", "bc", " "])), max_size=8))
def test_a_terminal_draws_the_same_with_fewer_bytes(parts: list[tuple[Style, str]]) -> None:
    pen = Pen(COLORS)
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
    pen = Pen(COLORS)
    red, blue = (codes_of(Style(color=name), COLORS) for name in ("red", "blue"))
    for text, codes in (("a", red), ("  ", blue), ("b", red)):
        pen.write(text, codes)
    assert pen.text() == "\x1b[31ma  b\x1b[0m"


def test_what_is_seen_on_a_blank_is_written_there() -> None:
    pen = Pen(COLORS)
    pen.write("a", PLAIN)
    pen.write(" ", codes_of(Style(underline=True, color="red"), COLORS))
    pen.write(" ", codes_of(Style(color="blue"), COLORS))
    pen.write(" ", codes_of(Style(bgcolor="blue"), COLORS))
    cells = drawn(pen.text()).cells[0]
    assert cells[1].attributes == {"4"}
    assert cells[1].foreground == "31"
    assert (cells[2].attributes, cells[2].background) == (frozenset(), "")
    assert cells[3].background == "44"


def test_the_shortest_way_to_a_place_is_taken() -> None:
    pen = Pen(COLORS)
    for x, y in ((0, 0), (5, 0), (0, 1), (0, 2), (3, 1)):
        pen.move(x, y)
        pen.write("x", PLAIN)
    assert pen.text() == "\x1b[1Hx\x1b[4Cx\r\nx\r\nx\x1b[2;4Hx"


def test_a_link_is_written_as_textual_writes_it() -> None:
    pen = Pen(COLORS)
    red = Style(color="red")
    for style in (red, Style(link="https://example.org", color="red"), red):
        pen.write_odd("x", style)
    sent = pen.text()
    assert "https://example.org" in sent
    assert [cell.foreground for cell in drawn(sent).cells[0][:3]] == ["31"] * 3
