"""Journals that are being written: systemd-journal-remote at work on a file, and a real systemd-journald.

journald runs as an instance of its own (a namespace), so that neither the machine's journal nor another test
is in its way; it needs root.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.backends.journal.make import journal_remote
from tests.waiting import wait_for

JOURNALD = "/lib/systemd/systemd-journald"
_NUMBERS = count()

needs_journald = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(JOURNALD).exists(), reason="needs systemd-journald and root to run it"
)


class Writer:
    """A journal file that entries are written to as they are given."""

    def __init__(self, directory: Path, name: str = "remote-node1.journal") -> None:
        remote = journal_remote()
        assert remote is not None
        self._process = subprocess.Popen(
            [remote, "--split-mode=none", f"--output={directory / name}", "-"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def write(self, entries: Iterable[bytes]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(entries))
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


@contextlib.contextmanager
def writer(directory: Path, name: str = "remote-node1.journal") -> Iterator[Writer]:
    made = Writer(directory, name)
    try:
        yield made
    finally:
        made.close()


class Journald:
    """A running systemd-journald; `directory` is where it writes."""

    def __init__(self) -> None:
        self.namespace = f"jobtui-{os.getpid()}-{next(_NUMBERS)}"
        self.runtime = Path(f"/run/systemd/journal.{self.namespace}")
        self.runtime.mkdir(parents=True)
        Path("/run/log/journal").mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [JOURNALD, self.namespace], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def start(self) -> None:
        """Wait until it takes messages."""
        place = self.runtime / "socket"
        wait_for(lambda: self._process.poll() is not None or place.exists())
        if self._process.poll() is not None:
            pytest.skip(f"systemd-journald ended with {self._process.returncode}")
        self._socket.connect(str(place))
        self.send(MESSAGE="begin")
        wait_for(lambda: self._files())
        self.directory = self._files()[0].parent

    def send(self, **fields: str) -> None:
        """One entry, over the native protocol."""
        lines = [f"{name}={value}\n" for name, value in fields.items()]
        self._socket.send("".join(lines).encode())

    def rotate(self) -> None:
        """Close the file, begin the next one."""
        before = len(list(self.directory.iterdir()))
        self._process.send_signal(signal.SIGUSR2)
        wait_for(lambda: len(list(self.directory.iterdir())) > before)

    def end(self) -> None:
        self._socket.close()
        self._process.terminate()
        self._process.wait(30)
        for root in (Path("/var/log/journal"), Path("/run/log/journal")):
            for left in root.glob(f"*.{self.namespace}"):
                shutil.rmtree(left)
        shutil.rmtree(self.runtime, ignore_errors=True)
        with contextlib.suppress(OSError):  # it stays where others use it
            Path("/run/log/journal").rmdir()

    def _files(self) -> list[Path]:
        opened = []
        for link in Path(f"/proc/{self._process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                opened.append(link.readlink())
        return [path for path in opened if path.suffix == ".journal"]


@contextlib.contextmanager
def journald() -> Iterator[Journald]:
    made = Journald()
    try:
        made.start()
        yield made
    finally:
        made.end()
