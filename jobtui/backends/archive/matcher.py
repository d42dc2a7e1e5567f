"""Matching scripts against a pattern in a process of its own, which is ended when it takes too long."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jobtui.backends.archive.match_child import SIZE_BYTES

PATIENCE_S = 2.0
"""How long the pattern may take for one script."""
CHILD = Path(__file__).with_name("match_child.py")


class Matches(NamedTuple):
    """In how many lines of a script the pattern was found, and the numbers of the first of them."""

    total: int
    lines: tuple[int, ...]


class TooSlow(Exception):
    """The pattern took too long for a script, and was not matched further."""


class Matcher:
    """One pattern. An async context manager that ends the process."""

    def __init__(self, pattern: str, patience_s: float = PATIENCE_S) -> None:
        self._pattern = pattern
        self._patience_s = patience_s
        self._process: asyncio.subprocess.Process | None = None

    async def matches(self, script: bytes) -> Matches:
        """Where in a script it is found. Raises TooSlow."""
        process = await self._started()
        try:
            async with asyncio.timeout(self._patience_s):
                answer = await _asked(process, script)
        except TimeoutError:
            await self._end()
            raise TooSlow from None
        total, _, numbers = answer.decode().strip().partition(":")
        return Matches(int(total or 0), tuple(map(int, filter(None, numbers.split(",")))))

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(CHILD), self._pattern,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL, env={"LC_ALL": "C.UTF-8"},
            )  # fmt: skip
            # An answer is to be waited for, the start of the process is not
            await _asked(self._process, b"")
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def __aenter__(self) -> "Matcher":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._end()


async def _asked(process: asyncio.subprocess.Process, script: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(len(script).to_bytes(SIZE_BYTES, "little") + script)
    with suppress(ConnectionError):
        await process.stdin.drain()
    return await process.stdout.readline()
