"""A journal file that grows while it is read, written by systemd-journal-remote."""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.backends.journal.make import entry, journal_remote


class LiveFile:
    """A journal in `directory`; a context manager. Entries are numbered, their messages say the number."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.written = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        program = journal_remote()
        assert program is not None
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [program, "--split-mode=none", f"--output={self.directory}/live.journal", "-"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def write(self, count: int, **fields: str) -> list[str]:
        """Append entries; gives their messages."""
        assert self._process is not None
        assert self._process.stdin is not None
        numbers = range(self.written, self.written + count)
        self.written += count
        text = b"".join(entry(number, f"line {number}", **fields) for number in numbers)
        self._process.stdin.write(text)
        self._process.stdin.flush()
        return [f"line {number}" for number in numbers]
