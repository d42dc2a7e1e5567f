"""What was typed into an input before, to be had again. It is kept in memory only, and not for ever."""

MOST = 100
"""Of more than these the oldest are forgotten."""


class History:
    """Typed lines, of which one goes back and forth. The line that is being typed is kept meanwhile."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._at = 0
        self._draft = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """All of them, oldest first."""
        return tuple(self._lines)

    def add(self, line: str) -> None:
        """Keep a line; the same one again only moves to the end."""
        line = line.strip()
        if line:
            self._lines = [*(before for before in self._lines if before != line), line][-MOST:]
        self.begin()

    def begin(self) -> None:
        """A new line is typed."""
        self._at = len(self._lines)
        self._draft = ""

    def earlier(self, now: str) -> str:
        """The line before the one that is shown, which is `now`."""
        if self._at == len(self._lines):
            self._draft = now
        self._at = max(0, self._at - 1)
        return self._lines[self._at] if self._lines else now

    def later(self, now: str) -> str:
        """The line after it; after the last one what was typed."""
        if self._at >= len(self._lines):
            return now
        self._at += 1
        return self._draft if self._at == len(self._lines) else self._lines[self._at]
