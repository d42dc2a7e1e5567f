"""What the names of styles look like: the only place with colours.

Our own dark and light theme, two in the colours of the user's terminal, dark and light, and one without
colours, in which weight and reverse carry what colour carries elsewhere. Widgets find a style under the theme
variable `jobtui-<name>`, with a dash for each dot of the name.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from textual.theme import Theme

from jobtui.model.settings import AUTO

VARIABLE = "jobtui-"
_DARK, _LIGHT, _ANSI, _ANSI_LIGHT = range(4)
_COLORS: Mapping[str, tuple[str, str, str, str]] = {
    "text": ("#cdd2da", "#24282f", "default", "default"),
    "settled": ("#7c8594", "#6a717d", "bright_black", "bright_black"),
    "faint": ("#363c47", "#cbc8c0", "bright_black", "bright_black"),
    "accent": ("#7ea6e0", "#1f5fa8", "cyan", "blue"),
    "good": ("#8fbc8f", "#2e6b34", "green", "green"),
    "bad": ("#e57373", "#b3261e", "red", "red"),
    "care": ("#dcae62", "#8a5a00", "yellow", "magenta"),
    "cursor": ("on #263145", "on #dbe5f3", "not dim default reverse", "not dim default reverse"),
    "cursor.weak": ("on #1a1d24", "on #f0efe9", "bold", "bold"),
    "hit": ("not dim #0d0e11 on #dcae62", "on #f3d27a", "black on yellow", "black on yellow"),
    "selected": ("on #1d2430", "on #e6ecf5", "underline", "underline"),
    "service.0": ("#7ea6e0", "#1f5fa8", "cyan", "blue"),
    "service.1": ("#8fbc8f", "#2e6b34", "green", "green"),
    "service.2": ("#b79ad8", "#6b3fa0", "magenta", "magenta"),
    "service.3": ("#5fb8b8", "#0f6b70", "blue", "cyan"),
    "service.4": ("#c8a97e", "#7a5518", "bright_cyan", "red"),
    "service.5": ("#9aa7bd", "#50607a", "bright_magenta", "black"),
}
"""As Rich names them: dark, light, and of the terminal's own on dark and on light."""
NO_STYLES = frozenset({"text", "faint", "bad", "care"})
"""Colours that only other styles are made of."""
_SAME: Mapping[str, str] = {
    "dim": "settled", "rule": "faint", "heading": "settled", "key": "accent", "error": "bad",
    "warning": "care", "source.0": "accent", "source.1": "good", "source.2": "care", "source.3": "text",
    "source.4": "settled", "status.running": "good", "status.pending": "text", "status.completed": "settled",
    "status.failed": "bad", "status.canceled": "settled", "status.missing": "settled",
    "status.purged": "settled", "status.unknown": "care",
}  # fmt: skip
"""Styles that are plain colours."""


def _colors(column: int) -> dict[str, str]:
    return {name: found[column] for name, found in _COLORS.items()}


def _styles(column: int) -> dict[str, str]:
    colors = _colors(column)
    return {
        **{name: color for name, color in colors.items() if name not in NO_STYLES},
        **{name: colors[same] for name, same in _SAME.items()},
        "title": f"bold {colors['text']}",
        "strong": f"bold {colors['text']}",
        "sorted": f"bold {colors['accent']}",
        "selection": "reverse",
        "marked": f"bold {colors['accent']}",
        "mistake": f"underline {colors['bad']}",
        "path": "bold",
        "status.needs_person": f"bold {colors['care']}",
    }


def _variables(styles: Mapping[str, str]) -> dict[str, str]:
    return {VARIABLE + name.replace(".", "-"): style for name, style in styles.items()}


def _own(name: str, column: int, *, secondary: str, background: str, surface: str, panel: str) -> Theme:
    colors = _colors(column)
    return Theme(
        name=name,
        primary=colors["accent"],
        secondary=secondary,
        accent=colors["accent"],
        warning=colors["care"],
        error=colors["bad"],
        success=colors["good"],
        foreground=colors["text"],
        background=background,
        surface=surface,
        panel=panel,
        dark=column == _DARK,
        variables=_variables(_styles(column)),
    )


DARK = _own(
    "jobtui-dark", _DARK, secondary="#5d7ba6", background="#0d0e11", surface="#16181d", panel="#1e2128"
)
LIGHT = _own(
    "jobtui-light", _LIGHT, secondary="#5b7ea8", background="#fbfaf7", surface="#f1efe9", panel="#e7e4dc"
)


def _native(name: str, styles: Mapping[str, str], *, dark: bool = True) -> Theme:
    parts = ("primary", "secondary", "warning", "error", "success", "accent", "foreground", "background",
             "surface", "panel", "boost")  # fmt: skip
    both = ("block-cursor", "input-cursor", "input-selection", "screen-selection")
    own = "ansi_default"
    variables = {
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "border": own,
        "border-blurred": own,
        **{f"{name}-{ground}": own for name in both for ground in ("foreground", "background")},
        "block-cursor-text-style": "reverse",
        "input-cursor-text-style": "reverse",
    }
    colors: dict[str, Any] = dict.fromkeys(parts, own)
    return Theme(name=name, ansi=True, dark=dark, variables=variables | _variables(styles), **colors)


ANSI = _native("jobtui-ansi", _styles(_ANSI))
ANSI_LIGHT = _native("jobtui-ansi-light", _styles(_ANSI_LIGHT), dark=False)
PLAIN = _native(
    "jobtui-plain",
    {
        **dict.fromkeys(("title", "strong", "sorted", "key", "error", "warning"), "bold"),
        **dict.fromkeys(("cursor.weak", "marked", "path", "status.failed", "status.needs_person"), "bold"),
        **dict.fromkeys(("dim", "settled", "rule", "heading"), "dim"),
        **dict.fromkeys((f"status.{word}" for word in ("completed", "canceled", "missing", "purged")), "dim"),
        **dict.fromkeys(("selected", "mistake"), "underline"),
        "cursor": "not dim reverse",
        "hit": "bold reverse",
        "selection": "reverse",
    },
)
THEMES = (DARK, LIGHT, ANSI, ANSI_LIGHT, PLAIN)
SMALL_TERMINALS = frozenset({"linux", "ansi", "vt100", "vt220", "dumb", ""})
"""Terminals whose own few colours fit better than ours."""
TRUE_COLORS = ("truecolor", "24bit")
MANY_COLORS = ("256color", "kitty", "direct", "truecolor")
"""Ends of the names of terminals that have more than 16 colours."""
IN_256_COLORS = {"cursor": "on #444444", "cursor.weak": "on #1c1c1c", "selected": "on #262626"}
LIGHT_BACKGROUNDS = frozenset({"7", "11", "14", "15"})
"""Backgrounds on which dark letters are read, as `COLORFGBG` numbers them."""


def theme_for(wish: str, environment: Mapping[str, str]) -> str:
    """The name of the theme that the user wants, else of that which fits the terminal.

    `NO_COLOR` and `COLORFGBG` are believed, and who has 16 colours gets those of the terminal.
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
    """What of our dark theme looks otherwise where there are 256 colours: none of them is a dark blue."""
    return {} if has_true_colors(environment) else IN_256_COLORS


def has_true_colors(environment: Mapping[str, str]) -> bool:
    """Whether the terminal says so, or Textual was told."""
    said = (environment.get(name, "").strip().lower() for name in ("COLORTERM", "TEXTUAL_COLOR_SYSTEM"))
    return any(words in TRUE_COLORS for words in said)


def with_colors(theme: Theme, colors: Mapping[str, str]) -> Theme:
    if not colors:
        return theme
    return replace(theme, variables=theme.variables | _variables(colors))
