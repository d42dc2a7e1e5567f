"""The bottom line: the keys that matter here."""

from collections.abc import Sequence
from typing import Protocol

from jobtui.render.spans import Line, Span
from jobtui.render.text import width
from jobtui.widgets.lines import LineView


class Hint(Protocol):
    """A key, the word for what it does, and how early it is left out: the highest rank first."""

    @property
    def key(self) -> str:
        """As a person would write it."""
        ...

    @property
    def word(self) -> str:
        """What it does."""
        ...

    @property
    def rank(self) -> int:
        """1 stays longest."""
        ...


class KeyLine(LineView):
    """Keys with a word each, as many as fit."""

    DEFAULT_CSS = "KeyLine { height: 1; }"

    def __init__(self, hints: Sequence[Hint], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._hints = tuple(hints)

    def line(self, y: int) -> Line:
        """The keys."""
        spans: list[Span] = [Span(" ")]
        for hint in fitting_hints(self._hints, self.cells - 1):
            spans += [Span(hint.key, "key"), Span(f" {hint.word}  ", "dim")]
        return tuple(spans)


def fitting_hints(hints: Sequence[Hint], cells: int) -> list[Hint]:
    """As many hints as fit, in their order; of equal rank the last ones go first."""
    kept = list(hints)
    while kept and sum(width(hint.key) + width(hint.word) + 3 for hint in kept) > cells + 2:
        kept.reverse()
        kept.remove(max(kept, key=lambda hint: hint.rank))
        kept.reverse()
    return kept
