"""Signs for terminals that cannot show all of ours."""

import ast
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from jobtui.render.styles import GLYPHS
from jobtui.render.terminal import (
    MAX_ENCODED,
    Glyphs,
    TooLong,
    clipboard_sequence,
    glyphs_for,
    lowering,
    notification_sequence,
)
from jobtui.render.text import safe

ROOT = Path(__file__).parents[2] / "jobtui"
UTF8 = "utf-8"


def drawn() -> Iterator[str]:
    """Every character beyond ASCII in what widgets, screens and render write."""
    for layer in ("render", "widgets", "screens", "analysis"):
        for path in (ROOT / layer).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60:
                    yield from (char for char in node.value if not char.isascii())


@pytest.mark.parametrize("glyphs", [Glyphs.ASCII, Glyphs.CONSOLE])
@given(text=st.text(max_size=40))
def test_every_text_keeps_its_width(glyphs: Glyphs, text: str) -> None:
    table = lowering(glyphs)
    assert table is not None
    shown = safe(text)
    assert cell_len(shown.translate(table)) == cell_len(shown)
    if glyphs is Glyphs.ASCII:
        assert shown.translate(table).isascii()


def test_what_we_draw_has_a_sign_of_its_own_in_ascii() -> None:
    table = lowering(Glyphs.ASCII)
    assert table is not None
    without = {char for char in drawn() if table[ord(char)] == "?"}
    known = set("␀␡␦◊�◌ᅟᅠㅤﾠ⠀͏") | {chr(0x2400 + code) for code in range(33)}
    ranges = set("␤¡¬®˿ͰͷͻͿ΄ΊΎΡΣ҂Ҋԯ‧‰※‽⁈⊕⊙▩◯⣿")  # ends of ranges of widths, never drawn
    assert without - known - ranges == set()


def test_statuses_differ_in_ascii_as_commands_without_unicode_have_them() -> None:
    table = lowering(Glyphs.ASCII)
    assert table is not None
    signs = {glyph.translate(table) for glyph in GLYPHS.values()}
    assert len(signs) == len(GLYPHS)
    assert all(sign.isascii() for sign in signs)


def test_the_console_keeps_what_its_fonts_have() -> None:
    table = lowering(Glyphs.CONSOLE)
    assert "─│┌é· ✓●▇╰".translate(table) == "─│┌é· +*█└"  # type: ignore[arg-type]
    assert lowering(Glyphs.UNICODE) is None


@pytest.mark.parametrize(
    ("wish", "environ", "encoding", "glyphs"),
    [
        ("auto", {"LANG": "en_US.UTF-8"}, UTF8, Glyphs.UNICODE),
        ("auto", {}, UTF8, Glyphs.UNICODE),
        ("auto", {"LANG": "C.UTF-8"}, UTF8, Glyphs.UNICODE),
        ("auto", {"LANG": "C", "LC_CTYPE": "C.UTF-8"}, UTF8, Glyphs.ASCII),
        ("auto", {"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, UTF8, Glyphs.ASCII),
        ("auto", {"LANG": "de_DE.ISO-8859-1"}, "iso8859-1", Glyphs.ASCII),
        ("auto", {"LANG": "en_US.UTF-8", "TERM": "linux"}, "UTF_8", Glyphs.CONSOLE),
        ("auto", {"LANG": "C", "TEXTUAL_DRIVER": "a.browser:Driver"}, "ascii", Glyphs.UNICODE),
        ("unicode", {"LANG": "C"}, "ascii", Glyphs.UNICODE),
        ("ascii", {"LANG": "C.UTF-8"}, UTF8, Glyphs.ASCII),
        ("console", {}, UTF8, Glyphs.CONSOLE),
    ],
)
def test_what_a_terminal_shows(wish: str, environ: dict[str, str], encoding: str, glyphs: Glyphs) -> None:
    assert glyphs_for(wish, environ, encoding) is glyphs


def test_the_text_is_in_the_sequence() -> None:
    sequence = clipboard_sequence("EPRSqtUW-IVh7w74d-x \u8868", {})
    assert sequence.startswith("\x1b]52;c;")
    assert sequence.endswith("\x07")
    assert b64decode(sequence[7:-1]).decode() == "EPRSqtUW-IVh7w74d-x \u8868"


def test_tmux_hands_it_on() -> None:
    plain = clipboard_sequence("abc", {})
    wrapped = clipboard_sequence("abc", {"TMUX": "/tmp/tmux"})
    assert wrapped == "\x1bPtmux;\x1b" + plain + "\x1b\\"


def test_hostile_text_is_only_data() -> None:
    assert "\x1b" not in clipboard_sequence("\x1b]52;c;x\x07\x9c", {})[1:-1]
    assert clipboard_sequence("\ud800", {})


def test_what_no_terminal_takes_is_refused() -> None:
    longest = MAX_ENCODED // 4 * 3
    assert len(clipboard_sequence("x" * longest, {})) <= MAX_ENCODED + 8
    with pytest.raises(TooLong, match="74,994"):
        clipboard_sequence("x" * (longest + 3), {})


def test_the_desktop_is_notified_as_the_terminal_can() -> None:
    assert notification_sequence("abc", {"TERM": "xterm-kitty"}) == "\x1b]9;abc\x07"
    assert notification_sequence("abc", {"TERM": "foot"}) == "\x1b]777;notify;jobtui;abc\x07"
