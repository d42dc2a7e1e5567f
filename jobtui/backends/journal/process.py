"""One program, run for what it prints: read when asked to, so that a full pipe makes the program wait.

The program has no terminal, no input and a session of its own: it can ask nobody for a password, and ctrl+c
ends only who ran it. What it says on stderr is kept, the first and the last of it. Nothing blocks.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO

READ_BYTES = 64 << 10
SAID_BYTES = 4096
"""Kept of stderr at either end: the reason is in one of them."""

STOP_S = 1.0
EXIT_POLL_S = 0.02


class Running:
    """A program that was started. Whoever starts one stops it; `stop` ends it, whatever its state."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it, with `environment` added to this process's own. Raises OSError, ValueError for a NUL."""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._out: IO[bytes] = self._process.stdout
        self._errors: IO[bytes] = self._process.stderr
        self._said_first = b""
        self._said_last = b""
        self._loop = asyncio.get_running_loop()
        for pipe in (self._out, self._errors):
            os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(self._errors.fileno(), self._hear)

    @property
    def said(self) -> str:
        """What came on stderr so far, its middle left out when it is long."""
        return (self._said_first + self._said_last).decode("utf-8", "replace")

    async def read(self) -> bytes:
        """The next piece of what it prints, b"" when there is no more."""
        await asyncio.sleep(0)  # others get their turn also while it prints quicker than it is read
        while True:
            try:
                return os.read(self._out.fileno(), READ_BYTES)
            except BlockingIOError:
                await self._readable(self._out.fileno())

    async def ended(self) -> int:
        """Its exit code, negative for a signal, once it has ended."""
        try:
            exit_fd = os.pidfd_open(self._process.pid)
        except OSError:
            while self._process.poll() is None:  # noqa: ASYNC110 - nothing else tells of its end
                await asyncio.sleep(EXIT_POLL_S)
        else:
            try:
                while self._process.poll() is None:
                    await self._readable(exit_fd)
            finally:
                os.close(exit_fd)
        while not self._errors.closed and self._hear():
            pass
        return self._process.wait()

    async def stop(self) -> None:
        """End it with all that it started, and let go of it. May be called twice."""
        try:
            if self._process.poll() is None:
                self._signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.ended(), STOP_S)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._process.poll() is None:
            self._signal(signal.SIGKILL)
            self._process.wait()
        if not self._errors.closed:
            self._loop.remove_reader(self._errors.fileno())
            self._errors.close()
        self._out.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _hear(self) -> bool:
        """Keep what is on stderr now; whether there may be more."""
        try:
            data = os.read(self._errors.fileno(), READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._errors.fileno())
            return False
        room = SAID_BYTES - len(self._said_first)
        self._said_first += data[:room]
        self._said_last = (self._said_last + data[room:])[-SAID_BYTES:]
        return True

    async def _readable(self, fd: int) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(fd, _set, ready)
        try:
            await ready
        finally:
            self._loop.remove_reader(fd)


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
