"""Text made safe and fitted to cells, and what a terminal can show of it."""

import ast
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from jobtui.model.clock import MINUTE, Nanos
from jobtui.render import terminal
from jobtui.render.styles import GLYPHS
from jobtui.render.text import Zone, age, clock_time, date_time, duration, fit, safe, width

ANY_TEXT = st.text(st.characters() | st.sampled_from("\u200d\u0301漢👩\x1b\u202e\ud800e "), max_size=60)


@settings(deadline=None, max_examples=300)
@given(ANY_TEXT, st.integers(0, 70))
def test_fit_is_exact_and_shows_only_visible_characters(text: str, cells: int) -> None:
    fitted, shown = fit(text, cells), safe(text)
    assert (shown.isprintable(), safe(shown)) == (True, shown)
    assert width(fitted) == cell_len(fitted) == cells
    if width(text) <= cells:
        assert fitted.rstrip(" ") == shown.rstrip(" ")


AT = Nanos(1_795_207_531_204_999_999)


def test_clock_time_here_and_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert age(None) == duration(None) == "–"
    assert clock_time(AT, millis=True) == "20:45:31.204"
    assert clock_time(AT) == clock_time(AT, Nanos(AT + 180 * MINUTE)) == "20:45:31"
    assert clock_time(AT, Nanos(AT + 240 * MINUTE)) == date_time(AT) == "2026-11-20 20:45:31"
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setattr(Zone, "is_local", True)
    time.tzset()
    try:
        assert clock_time(AT, Nanos(AT + 240 * MINUTE)) == "02:15:31"
        assert date_time(AT) == "2026-11-21 02:15:31"
    finally:
        monkeypatch.undo()
        time.tzset()


ROOT = Path(__file__).parents[2] / "jobtui"


def drawn() -> Iterator[str]:
    """Every character beyond ASCII in what widgets, screens and render write."""
    for layer in ("render", "widgets", "screens", "analysis"):
        for path in (ROOT / layer).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60:
                    yield from (char for char in node.value if not char.isascii())


@pytest.mark.parametrize("glyphs", [terminal.Glyphs.ASCII, terminal.Glyphs.CONSOLE])
@given(text=st.text(max_size=40))
def test_every_text_has_its_width_on_the_terminal(glyphs: terminal.Glyphs, text: str) -> None:
    table = terminal.lowering(glyphs)
    assert table is not None
    shown = safe(text)
    assert cell_len(shown.translate(table)) == cell_len(shown)
    if glyphs is terminal.Glyphs.ASCII:
        assert shown.translate(table).isascii()


def test_every_sign_drawn_has_one_in_ascii() -> None:
    table = terminal.lowering(terminal.Glyphs.ASCII)
    assert table is not None
    without = {char for char in drawn() if table[ord(char)] == "?"}
    known = set("␀␡␦◊�◌ᅟᅠㅤﾠ⠀͏") | {chr(0x2400 + code) for code in range(33)}
    ranges = set("␤¡¬®˿ͰͷͻͿ΄ΊΎΡΣ҂Ҋԯ‧‰※‽⁈⊕⊙▩◯⣿")  # ends of ranges of widths, never drawn
    assert without - known - ranges == set()


def test_statuses_differ_in_ascii_and_the_console_keeps_what_its_fonts_have() -> None:
    table = terminal.lowering(terminal.Glyphs.ASCII)
    assert table is not None
    signs = {glyph.translate(table) for glyph in GLYPHS.values()}
    assert len(signs) == len(GLYPHS)
    assert all(sign.isascii() for sign in signs)
    table = terminal.lowering(terminal.Glyphs.CONSOLE)
    assert "─│┌é· ✓●▇╰".translate(table) == "─│┌é· +*█└"  # type: ignore[arg-type]
    assert terminal.lowering(terminal.Glyphs.UNICODE) is None


def test_text_goes_to_the_clipboard_through_tmux_too_and_is_only_data() -> None:
    sequence = terminal.clipboard_sequence("EPRSqtUW-IVh7w74d-x \u8868", {})
    assert sequence.startswith("\x1b]52;c;")
    assert sequence.endswith("\x07")
    assert b64decode(sequence[7:-1]).decode() == "EPRSqtUW-IVh7w74d-x \u8868"
    plain = terminal.clipboard_sequence("abc", {})
    wrapped = terminal.clipboard_sequence("abc", {"TMUX": "/tmp/tmux"})
    assert wrapped == "\x1bPtmux;\x1b" + plain + "\x1b\\"
    assert "\x1b" not in terminal.clipboard_sequence("\x1b]52;c;x\x07\x9c", {})[1:-1]
    assert terminal.clipboard_sequence("\ud800", {})


def test_clipboard_sequence_refuses_a_text_that_is_too_long() -> None:
    longest = terminal.MAX_ENCODED // 4 * 3
    assert len(terminal.clipboard_sequence("x" * longest, {})) <= terminal.MAX_ENCODED + 8
    with pytest.raises(terminal.TooLong, match="74,994"):
        terminal.clipboard_sequence("x" * (longest + 3), {})
