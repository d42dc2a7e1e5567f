"""Which colours fit a terminal, as it tells of itself."""

import pytest
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style

from jobtui.theme import (
    ANSI,
    ANSI_LIGHT,
    DARK,
    LIGHT,
    PLAIN,
    THEMES,
    VARIABLE,
    colors_for,
    theme_for,
    with_colors,
)


@pytest.mark.parametrize(
    ("wish", "environ", "theme"),
    [
        ("auto", {"TERM": "xterm-256color"}, DARK),
        ("auto", {"TERM": "xterm-256color", "COLORFGBG": "15;0"}, DARK),
        ("auto", {"TERM": "xterm-256color", "COLORFGBG": "0;default;15"}, LIGHT),
        ("auto", {"TERM": "xterm", "COLORTERM": "truecolor", "COLORFGBG": "0;7"}, LIGHT),
        ("auto", {"TERM": "xterm"}, ANSI),
        ("auto", {"TERM": "screen"}, ANSI),
        ("auto", {"TERM": "screen", "COLORFGBG": "0;15"}, ANSI_LIGHT),
        ("auto", {"TERM": "linux", "COLORTERM": "truecolor"}, ANSI),
        ("auto", {"TERM": "dumb"}, ANSI),
        ("auto", {}, ANSI),
        ("auto", {"TERM": "xterm-256color", "NO_COLOR": "1"}, PLAIN),
        ("auto", {"TERM": "xterm-256color", "NO_COLOR": ""}, DARK),
        ("dark", {"TERM": "linux"}, DARK),
        ("light", {"NO_COLOR": "1"}, LIGHT),
        ("ansi", {"TERM": "xterm-256color"}, ANSI),
        ("ansi", {"TERM": "xterm-256color", "COLORFGBG": "0;15"}, ANSI_LIGHT),
        ("none", {}, PLAIN),
    ],
)
def test_the_theme_fits_the_terminal(wish: str, environ: dict[str, str], theme: object) -> None:
    assert theme_for(wish, environ) == getattr(theme, "name", None)


@pytest.mark.parametrize(
    "environ",
    [
        {"TERM": "xterm"}, {"TERM": "screen"}, {"TERM": "rxvt-16color"}, {"TERM": "tmux-256color"},
        {"TERM": "xterm-kitty"}, {"TERM": "alacritty"}, {"TERM": "vt100", "COLORTERM": ""},
        {"TERM": "xterm", "COLORTERM": "24bit"},
    ],
)  # fmt: skip
def test_many_colours_are_used_only_where_they_are_sent(environ: dict[str, str]) -> None:
    """Whoever gets our own colours is sent them: textual would send 16 to others, which look like nothing."""
    console = Console(_environ={"FORCE_COLOR": "1", **environ}, legacy_windows=False)
    has_many = console._color_system in (ColorSystem.EIGHT_BIT, ColorSystem.TRUECOLOR)
    assert (theme_for("auto", environ) == DARK.name) is has_many


def test_in_256_colours_the_cursor_is_grey_and_not_teal() -> None:
    assert colors_for({"COLORTERM": "truecolor"}) == {}
    for style in colors_for({"TERM": "xterm-256color"}).values():
        color = Style.parse(style).bgcolor
        assert color is not None
        red, green, blue = color.downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
        assert red == green == blue


def test_a_user_may_have_other_colours() -> None:
    mine, name = with_colors(DARK, {"status.failed": "bold red"}), f"{VARIABLE}status-failed"
    assert mine.variables == {**DARK.variables, name: "bold red"}
    assert with_colors(LIGHT, {}) is LIGHT


def test_all_themes_have_all_styles_that_are_colours() -> None:
    assert DARK.variables.keys() == LIGHT.variables.keys()
    assert len({theme.name for theme in THEMES}) == len(THEMES)
