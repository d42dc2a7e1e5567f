"""Themes: how each named style looks. All colours are in `theme.toml`.

Our own dark and light theme, two in the colours of the user's terminal, dark and light, and one without
colours, which uses weight and reverse instead. Widgets find a style under the theme variable `jobtui-<name>`,
with a dash for each dot of the name.
"""

from collections.abc import Mapping
from dataclasses import replace
from pkgutil import get_data
from typing import Any

from textual.theme import Theme

from jobtui.model.settings import AUTO
from jobtui.model.tables import tables_of

LAYOUT = (get_data("jobtui", "layout.tcss") or b"").decode()
"""The stylesheet of all our apps: place and size of widgets."""
VARIABLE = "jobtui-"
_TABLE = tables_of("jobtui", "theme")
_DARK, _LIGHT, _ANSI, _ANSI_LIGHT = range(4)
NO_STYLES = frozenset({"text", "faint", "bad", "care"})
"""Colours that are only used in other styles."""


def _colors(column: int) -> dict[str, str]:
    return {name: found[column] for name, found in _TABLE["colors"].items()}


def _styles(column: int) -> dict[str, str]:
    colors = _colors(column)
    styles = {name: style.format(**colors) for name, style in _TABLE["styles"].items()}
    return {name: color for name, color in colors.items() if name not in NO_STYLES} | styles


def _variables(styles: Mapping[str, str]) -> dict[str, str]:
    return {VARIABLE + name.replace(".", "-"): style for name, style in styles.items()}


def _own(name: str, column: int) -> Theme:
    colors = _colors(column)
    return Theme(
        name=f"jobtui-{name}",
        primary=colors["accent"],
        accent=colors["accent"],
        warning=colors["care"],
        error=colors["bad"],
        success=colors["good"],
        foreground=colors["text"],
        dark=column == _DARK,
        variables=_variables(_styles(column)),
        **_TABLE[name],
    )


DARK, LIGHT = _own("dark", _DARK), _own("light", _LIGHT)


def _native(name: str, styles: Mapping[str, str], *, dark: bool = True) -> Theme:
    parts = ("primary", "secondary", "warning", "error", "success", "accent", "foreground", "background",
             "surface", "panel", "boost")  # fmt: skip
    both = ("input-cursor", "input-selection", "screen-selection")
    own = "ansi_default"
    variables = {
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        **{f"{name}-{ground}": own for name in both for ground in ("foreground", "background")},
        "input-cursor-text-style": "reverse",
    }
    colors: dict[str, Any] = dict.fromkeys(parts, own)
    return Theme(name=name, ansi=True, dark=dark, variables=variables | _variables(styles), **colors)


ANSI = _native("jobtui-ansi", _styles(_ANSI))
ANSI_LIGHT = _native("jobtui-ansi-light", _styles(_ANSI_LIGHT), dark=False)
PLAIN = _native("jobtui-plain", {name: style for style, names in _TABLE["plain"].items() for name in names})
THEMES = (DARK, LIGHT, ANSI, ANSI_LIGHT, PLAIN)
SMALL_TERMINALS = frozenset({"linux", "ansi", "vt100", "vt220", "dumb", ""})
"""Terminals whose own few colours are better than ours."""
TRUE_COLORS = ("truecolor", "24bit")
MANY_COLORS = ("256color", "kitty", "direct", "truecolor")
"""Ends of the names of terminals that have more than 16 colours."""
LIGHT_BACKGROUNDS = frozenset({"7", "11", "14", "15"})
"""Backgrounds for dark letters, as `COLORFGBG` numbers them."""


def theme_for(wish: str, environment: Mapping[str, str]) -> str:
    """The name of the theme that the user wants, else of one that fits the terminal.

    `NO_COLOR` and `COLORFGBG` are followed, and a terminal with 16 colours keeps its own.
    """
    is_light = environment.get("COLORFGBG", "").rpartition(";")[2] in LIGHT_BACKGROUNDS
    own = (ANSI_LIGHT if is_light else ANSI).name
    if wish != AUTO:
        return {"dark": DARK.name, "light": LIGHT.name, "ansi": own, "none": PLAIN.name}[wish]
    if environment.get("NO_COLOR"):
        return PLAIN.name
    term = environment.get("TERM", "").strip().lower()
    is_rich = has_true_colors(environment) or term.rpartition("-")[2] in MANY_COLORS
    if term in SMALL_TERMINALS or not is_rich:
        return own
    return (LIGHT if is_light else DARK).name


def colors_for(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The styles of our dark theme that differ with 256 colours: none of them is a dark blue."""
    return {} if has_true_colors(environment) else _TABLE["in_256_colors"]


def has_true_colors(environment: Mapping[str, str]) -> bool:
    said = (environment.get(name, "").strip().lower() for name in ("COLORTERM", "TEXTUAL_COLOR_SYSTEM"))
    return any(words in TRUE_COLORS for words in said)


def with_colors(theme: Theme, colors: Mapping[str, str]) -> Theme:
    if not colors:
        return theme
    return replace(theme, variables=theme.variables | _variables(colors))
