import re
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from jobtui.render.spans import Line, Span
from jobtui.widgets.lines import LineView
from jobtui.widgets.wire import LeanChops, LeanScreen, Pen, transition

STYLES = st.sampled_from(
    [
        Style.null(),
        Style(color="red"),
        Style(color="#aabbcc", bgcolor="#112233"),
        Style(color="#ddbbcc", bgcolor="#112233"),
        Style(bold=True, color="#aabbcc", bgcolor="#112233"),
        Style(bold=True, underline=True),
        Style(reverse=True, bgcolor="blue"),
        Style(color="default", bgcolor="default"),
    ]
)


ENDS = {"22": {"1", "2"}, "24": {"4", "21"}, "27": {"7"}}


class Terminal:
    """What a terminal makes of a text: each character with the colours and attributes it is drawn in."""

    def __init__(self) -> None:
        self.attributes: set[str] = set()
        self.colors = {"fg": "", "bg": ""}

    def draw(self, text: str) -> Iterator[tuple[str, frozenset[str], str, str]]:
        for part in re.split(r"(\x1b\[[\d;]*m)", text):
            if part.startswith("\x1b["):
                self._set(part[2:-1].split(";"))
                continue
            for char in part:
                yield char, frozenset(self.attributes), self.colors["fg"], self.colors["bg"]

    def _set(self, codes: list[str]) -> None:
        while codes:
            code = codes.pop(0)
            if code in ("0", ""):
                self.attributes.clear()
                self.colors = {"fg": "", "bg": ""}
            elif code in ("38", "48"):
                length = 4 if codes[0] == "2" else 2
                self.colors["fg" if code == "38" else "bg"] = ";".join(codes[:length])
                del codes[:length]
            elif code in ("39", "49"):
                self.colors["fg" if code == "39" else "bg"] = ""
            elif code in ENDS:
                self.attributes -= ENDS[code]
            elif int(code) >= 30:
                self.colors["fg" if int(code) % 60 < 40 else "bg"] = code
            else:
                self.attributes.add(code)


def console() -> Console:
    return Console(force_terminal=True, color_system="truecolor")


@given(st.lists(st.tuples(STYLES, st.sampled_from(["a", "bc", " "])), max_size=8))
def test_a_terminal_draws_the_same_with_fewer_bytes(parts: list[tuple[Style, str]]) -> None:
    strip = Strip([Segment(text, style) for style, text in parts])
    pen = Pen(console())
    pen.write(strip)
    lean = pen.text()
    plain = strip.render(console())
    assert list(Terminal().draw(lean)) == list(Terminal().draw(plain))
    assert len(lean) <= len(plain) or not parts


@given(STYLES, STYLES)
def test_a_transition_leads_from_one_style_to_the_other(before: Style, after: Style) -> None:
    reached, wanted = Terminal(), Terminal()
    list(reached.draw(transition(Style.null(), before, ColorSystem.TRUECOLOR)))
    list(reached.draw(transition(before, after, ColorSystem.TRUECOLOR)))
    list(wanted.draw(transition(Style.null(), after, ColorSystem.TRUECOLOR)))
    assert (reached.attributes, reached.colors) == (wanted.attributes, wanted.colors)


def test_a_link_is_written_as_textual_writes_it() -> None:
    strip = Strip(
        [Segment("x", Style(link="https://example.org", color="red")), Segment("y", Style(color="red"))]
    )
    pen = Pen(console())
    pen.write(strip)
    assert "https://example.org" in pen.text()


class View(LineView):
    def line(self, y: int) -> Line:
        return (Span(f"{y:03d} left "), Span("middle"), Span(" right"))


class ViewScreen(LeanScreen):
    def compose(self) -> ComposeResult:
        yield View()


class ViewApp(App[None]):
    def get_default_screen(self) -> Screen[None]:
        return ViewScreen()


async def test_an_update_sends_only_the_changed_cells() -> None:
    async with ViewApp().run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        compositor = pilot.app.screen._compositor
        compositor._dirty_regions = {Region(9, 4, 6, 1)}
        update = compositor.render_partial_update()
        assert isinstance(update, LeanChops)
        sent = update.render_segments(console())
        assert sent.startswith("\x1b[5;10H")
        assert re.sub(r"\x1b\[[\d;]*[mH]", "", sent) == "middle"


async def test_a_full_update_has_every_line_once() -> None:
    async with ViewApp().run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        sent = pilot.app.screen._compositor.render_full_update().render_segments(console())
        text = re.sub(r"\x1b\[[\d;]*m", "", sent)
        lines = re.split(r"\x1b\[\d+;1H", text)[1:]
        assert [line.rstrip() for line in lines] == [f"{y:03d} left middle right" for y in range(10)]
        assert all(len(line) == 40 for line in lines)
