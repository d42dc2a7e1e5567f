"""Short names for sources, as they stand in front of lines."""

from collections.abc import Mapping, Sequence

from jobtui.model.health import SourceHealth
from jobtui.render.sources import labels
from jobtui.render.text import show


class SourceNames:
    """The shortest name of each source that no other of them has."""

    def __init__(self, sources: Sequence[SourceHealth]) -> None:
        self._labels: Mapping[str, str] = dict(
            zip((source.name for source in sources), labels(sources), strict=True)
        )

    def short(self, source: str) -> str:
        """The short name of a source, safe to show."""
        return self._labels.get(source) or show(source)

    def place(self, source: str, line: int, offset: int, cursor: str | None = None) -> str:
        """Where a line stands: its number, or the byte where it begins when the lines are not counted.

        An entry of a journal, which has a cursor, has no such place.
        """
        name = self.short(source)
        if cursor is not None:
            return name
        return f"{name}:{line}" if line > 0 else f"{name}@{offset}"
