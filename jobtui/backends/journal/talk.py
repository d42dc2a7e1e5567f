"""One line for a shell, here or on another host, and the answers to it.

Before each answer comes a mark that nobody can know, so that what a login prints by itself is not taken for
entries.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol

from jobtui.backends.base import SourceError
from jobtui.backends.journal.faults import in_words
from jobtui.backends.journal.process import Running
from jobtui.backends.journal.shell import command_line
from jobtui.formats.journal_export import ExportParser
from jobtui.formats.journal_fields import entry_of_export
from jobtui.model.journal import JournalEntry

SILENCE_S = 60.0
"""journalctl searches by index: when nothing comes for so long, nothing will."""
NOISE_BYTES = 2_000


class Shell(Protocol):
    """Where a line can be run."""

    @property
    def name(self) -> str:
        """The journal there, as it was configured."""
        ...

    @property
    def start_s(self) -> float:
        """How long it may take until the line runs."""
        ...

    async def run(self, line: str) -> Running:
        """Run a line. Raises SourceError."""
        ...

    def fault(self, said: str, code: int, printed: str) -> SourceError:
        """What it means that the program ended with this code, said and printed this."""
        ...

    def silence(self, seconds: float) -> SourceError:
        """What it means that nothing came for so long."""
        ...


class Talk:
    """The answers to one line, one after the other."""

    def __init__(self, shell: Shell, running: Running, mark: str) -> None:
        self._shell = shell
        self._running = running
        self._mark = mark
        self._number = 0
        self._rest = b""
        self._noise = b""

    async def begin(self) -> None:
        """Wait for the first answer; what comes before is noise."""
        await self._to_mark(self._hear_noise, self._shell.start_s)

    async def entries(self) -> list[JournalEntry]:
        """The entries of an answer that is followed by another one; only a few are asked for so."""
        parser = ExportParser()
        found: list[JournalEntry] = []
        await self._to_mark(lambda data: _extend(found, parser, data), SILENCE_S)
        return found

    async def pieces(self, silence_s: float | None) -> AsyncGenerator[bytes, None]:
        """The last answer. Raises SourceError when the program fails at its end."""
        piece, self._rest = self._rest, b""
        while True:
            if piece:
                yield piece
            piece = await self._read(silence_s)
            if not piece:
                break
        code = await self._end()
        if code:
            raise self._fault(code)

    @property
    def said(self) -> str:
        """What came on stderr so far."""
        return self._running.said

    async def _to_mark(self, take: Callable[[bytes], object], silence_s: float) -> None:
        mark = f"{self._mark}{self._number}\n".encode()
        self._number += 1
        while (at := self._rest.find(mark)) < 0:
            surely = max(len(self._rest) - len(mark) + 1, 0)
            take(self._rest[:surely])
            self._rest = self._rest[surely:]
            piece = await self._read(silence_s)
            if not piece:
                take(self._rest)
                raise self._fault(await self._end())
            self._rest += piece
        take(self._rest[:at])
        self._rest = self._rest[at + len(mark) :]

    def _hear_noise(self, data: bytes) -> None:
        self._noise = (self._noise + data)[:NOISE_BYTES]

    def _fault(self, code: int) -> SourceError:
        return self._shell.fault(self.said, code, in_words(self._noise.decode("utf-8", "replace")))

    async def _read(self, silence_s: float | None) -> bytes:
        try:
            async with asyncio.timeout(silence_s):
                return await self._running.read()
        except TimeoutError:
            raise self._shell.silence(silence_s or 0.0) from None

    async def _end(self) -> int:
        try:
            async with asyncio.timeout(SILENCE_S):
                return await self._running.ended()
        except TimeoutError:
            raise self._shell.silence(SILENCE_S) from None


def _extend(found: list[JournalEntry], parser: ExportParser, data: bytes) -> None:
    found.extend(entry for raw in parser.feed(data) if (entry := entry_of_export(raw)) is not None)


def line_of(mark: str, commands: Sequence[Sequence[str]]) -> str:
    """The line that runs the commands one after the other, each behind its mark."""
    marked = (f"echo {mark}{number}; {command_line(command)}" for number, command in enumerate(commands))
    return "; ".join(marked)
