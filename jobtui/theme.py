"""What the names of styles look like: the only place with colours.

Our own dark and light theme, two in the colours of the user's terminal, dark and light, and one without
colours, in which weight and reverse carry what colour carries elsewhere. Widgets find a style under the theme
variable `jobtui-<name>`, with a dash for each dot of the name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from textual.theme import Theme

from jobtui.model.looks import AUTO

VARIABLE = "jobtui-"


@dataclass(frozen=True, kw_only=True)
class Colors:
    """The few colours a theme is made of, as Rich names them."""

    text: str
    settled: str
    faint: str
    accent: str
    good: str
    bad: str
    care: str
    cursor: str
    weak_cursor: str
    changed: str
    hit: str
    selected: str
    services: Sequence[str]

    @property
    def styles(self) -> Mapping[str, str]:
        """What each name of a style looks like."""
        return {
            "title": f"bold {self.text}",
            "strong": f"bold {self.text}",
            "dim": self.settled,
            "settled": self.settled,
            "rule": self.faint,
            "heading": self.settled,
            "accent": self.accent,
            "sorted": f"bold {self.accent}",
            "key": self.accent,
            "good": self.good,
            "error": self.bad,
            "warning": self.care,
            "cursor": self.cursor,
            "cursor.weak": self.weak_cursor,
            "changed": self.changed,
            "hit": self.hit,
            "selected": self.selected,
            "selection": "reverse",
            "marked": f"bold {self.accent}",
            "mistake": f"underline {self.bad}",
            "source.0": self.accent,
            "source.1": self.good,
            "source.2": self.care,
            "source.3": self.text,
            "source.4": self.settled,
            "path": "bold",
            **{f"service.{number}": colour for number, colour in enumerate(self.services)},
            **{f"status.{status}": colour for status, colour in self._of_status.items()},
        }

    @property
    def _of_status(self) -> Mapping[str, str]:
        return {
            "running": self.good,
            "pending": self.text,
            "completed": self.settled,
            "failed": self.bad,
            "canceled": self.settled,
            "missing": self.settled,
            "purged": self.settled,
            "unknown": self.care,
            "needs_person": f"bold {self.care}",
        }

    @property
    def variables(self) -> dict[str, str]:
        """The styles as theme variables."""
        return {VARIABLE + name.replace(".", "-"): style for name, style in self.styles.items()}


DARK = Theme(
    name="jobtui-dark",
    primary="#7ea6e0",
    secondary="#5d7ba6",
    accent="#7ea6e0",
    warning="#dcae62",
    error="#e57373",
    success="#8fbc8f",
    foreground="#cdd2da",
    background="#0d0e11",
    surface="#16181d",
    panel="#1e2128",
    dark=True,
    variables=Colors(
        text="#cdd2da",
        settled="#7c8594",
        faint="#363c47",
        accent="#7ea6e0",
        good="#8fbc8f",
        bad="#e57373",
        care="#dcae62",
        cursor="on #263145",
        weak_cursor="on #1a1d24",
        changed="on #2c3326",
        hit="not dim #0d0e11 on #dcae62",
        selected="on #1d2430",
        services=("#7ea6e0", "#8fbc8f", "#b79ad8", "#5fb8b8", "#c8a97e", "#9aa7bd"),
    ).variables,
)
LIGHT = Theme(
    name="jobtui-light",
    primary="#1f5fa8",
    secondary="#5b7ea8",
    accent="#1f5fa8",
    warning="#8a5a00",
    error="#b3261e",
    success="#2e6b34",
    foreground="#24282f",
    background="#fbfaf7",
    surface="#f1efe9",
    panel="#e7e4dc",
    dark=False,
    variables=Colors(
        text="#24282f",
        settled="#6a717d",
        faint="#cbc8c0",
        accent="#1f5fa8",
        good="#2e6b34",
        bad="#b3261e",
        care="#8a5a00",
        cursor="on #dbe5f3",
        weak_cursor="on #f0efe9",
        changed="on #efe8c8",
        hit="on #f3d27a",
        selected="on #e6ecf5",
        services=("#1f5fa8", "#2e6b34", "#6b3fa0", "#0f6b70", "#7a5518", "#50607a"),
    ).variables,
)


def _native(name: str, styles: Mapping[str, str], *, dark: bool = True) -> Theme:
    """A theme that leaves fore- and background to the terminal."""
    own = "ansi_default"
    return Theme(
        name=name,
        ansi=True,
        dark=dark,
        primary=own,
        secondary=own,
        warning=own,
        error=own,
        success=own,
        accent=own,
        foreground=own,
        background=own,
        surface=own,
        panel=own,
        boost=own,
        variables={
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "border": own,
            "border-blurred": own,
            "block-cursor-foreground": own,
            "block-cursor-background": own,
            "block-cursor-text-style": "reverse",
            "input-cursor-background": own,
            "input-cursor-foreground": own,
            "input-cursor-text-style": "reverse",
            "input-selection-background": own,
            "input-selection-foreground": own,
            "screen-selection-background": own,
            "screen-selection-foreground": own,
        }
        | {VARIABLE + key.replace(".", "-"): style for key, style in styles.items()},
    )


ANSI = _native(
    "jobtui-ansi",
    Colors(
        text="default",
        settled="bright_black",
        faint="bright_black",
        accent="cyan",
        good="green",
        bad="red",
        care="yellow",
        cursor="not dim default reverse",
        weak_cursor="bold",
        changed="underline",
        hit="black on yellow",
        selected="underline",
        services=("cyan", "green", "magenta", "blue", "bright_cyan", "bright_magenta"),
    ).styles,
)
ANSI_LIGHT = _native(
    "jobtui-ansi-light",
    Colors(
        text="default",
        settled="bright_black",
        faint="bright_black",
        accent="blue",
        good="green",
        bad="red",
        care="magenta",
        cursor="not dim default reverse",
        weak_cursor="bold",
        changed="underline",
        hit="black on yellow",
        selected="underline",
        services=("blue", "green", "magenta", "cyan", "red", "black"),
    ).styles,
    dark=False,
)
PLAIN = _native(
    "jobtui-plain",
    {
        "title": "bold",
        "strong": "bold",
        "dim": "dim",
        "settled": "dim",
        "rule": "dim",
        "heading": "dim",
        "sorted": "bold",
        "key": "bold",
        "error": "bold",
        "warning": "bold",
        "cursor": "not dim reverse",
        "cursor.weak": "bold",
        "changed": "underline",
        "hit": "bold reverse",
        "selected": "underline",
        "selection": "reverse",
        "marked": "bold",
        "path": "bold",
        "mistake": "underline",
        "status.completed": "dim",
        "status.failed": "bold",
        "status.canceled": "dim",
        "status.missing": "dim",
        "status.purged": "dim",
        "status.needs_person": "bold",
    },
)
THEMES = (DARK, LIGHT, ANSI, ANSI_LIGHT, PLAIN)
SMALL_TERMINALS = frozenset({"linux", "ansi", "vt100", "vt220", "dumb", ""})
"""Terminals whose own few colours fit better than ours."""
TRUE_COLORS = ("truecolor", "24bit")
MANY_COLORS = ("256color", "kitty", "direct", "truecolor")
"""Ends of the names of terminals that have more than 16 colours."""
IN_256_COLORS = {
    "cursor": "on #444444",
    "cursor.weak": "on #1c1c1c",
    "changed": "on #303030",
    "selected": "on #262626",
}
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
    if not has_many_colors(environment):
        return own
    return (LIGHT if is_light else DARK).name


def has_many_colors(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is known to have more than 16 colours; known as Textual knows it."""
    term = environment.get("TERM", "").strip().lower()
    if term in SMALL_TERMINALS:
        return False
    return has_true_colors(environment) or term.rpartition("-")[2] in MANY_COLORS


def colors_for(environment: Mapping[str, str]) -> Mapping[str, str]:
    """What of our dark theme looks otherwise where there are 256 colours: none of them is a dark blue."""
    return {} if has_true_colors(environment) else IN_256_COLORS


def has_true_colors(environment: Mapping[str, str]) -> bool:
    """Whether the terminal says so, or Textual was told."""
    said = (environment.get(name, "").strip().lower() for name in ("COLORTERM", "TEXTUAL_COLOR_SYSTEM"))
    return any(words in TRUE_COLORS for words in said)


def with_colors(theme: Theme, colors: Mapping[str, str]) -> Theme:
    """The same theme with some styles as a user wants them, by their names."""
    if not colors:
        return theme
    own = {VARIABLE + name.replace(".", "-"): style for name, style in colors.items()}
    return replace(theme, variables=theme.variables | own)
