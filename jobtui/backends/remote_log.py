"""The end of a log file on a cluster, read over ssh and looked at again now and then.

Only `tail` is run there. What an agent's log says of its environment is masked, as in the copies of it.
"""

import posixpath
import time
from collections.abc import Sequence

from jobtui.backends.journal.ssh import SshShell
from jobtui.backends.remote_dirs import answer_of
from jobtui.formats.agent_copies import CopiedLine, added_lines, without_environment
from jobtui.formats.levels import level_of
from jobtui.formats.parser import LogParser
from jobtui.model.clock import Nanos
from jobtui.model.pages import Level, LogLine

TAIL_LINES = 2_000
MOST_BYTES = 8 << 20
LOOK_EVERY_S = 15.0
TEXT_SHOWN = 8_192
GAP = "── lines before these were not read ──"
_TAIL = 'tail -n "$2" -- "$1"'


class RemoteLines:
    """The `Lines` of a file whose path is an address, `ssh://[user@]host[:port]/path`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._parser = LogParser(source=address, role="agent")
        self._texts: tuple[str, ...] = ()
        self._place = 0
        self._looked_at: float | None = None

    async def load(self) -> Sequence[LogLine]:
        """What has come at its end since the last time. Raises SourceError."""
        if self._looked_at is not None and not await self.is_changed():
            return ()
        shell = SshShell(self._address)
        path = posixpath.normpath(shell.directory or "/")
        data = await answer_of(shell, _TAIL, path, str(TAIL_LINES), MOST_BYTES)
        self._looked_at = time.monotonic()
        texts = data.decode("utf-8", "replace").split("\n")
        if texts and not texts[-1]:
            texts.pop()
        return self._added(tuple(without_environment(texts)))

    async def is_changed(self) -> bool:
        """Whether the last look was long ago: a cluster is not asked more often."""
        return self._looked_at is None or time.monotonic() - self._looked_at >= LOOK_EVERY_S

    def close(self) -> None:
        """Nothing is held."""

    def _added(self, texts: tuple[str, ...]) -> list[LogLine]:
        copied = [CopiedLine(number, 0, text) for number, text in enumerate(texts, 1)]
        added, is_gap = added_lines(self._texts, copied)
        self._texts = texts or self._texts
        newest = Nanos(time.time_ns())
        lines = [self._line(GAP, newest, Level.WARNING)] if is_gap else []
        return [*lines, *(self._line(line.text, newest) for line in added)]

    def _line(self, text: str, newest: Nanos, level: Level | None = None) -> LogLine:
        data = text.encode("utf-8", "replace")
        place, self._place = self._place, self._place + len(data) + 1
        return LogLine(
            place=place,
            end=self._place,
            text=text[:TEXT_SHOWN],
            size=len(data),
            level=level_of(text) if level is None else level,
            at=self._parser.time_of(data, newest),
            note="cut" if len(text) > TEXT_SHOWN else "",
        )
