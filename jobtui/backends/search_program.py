"""Searching lines in a process of its own: ripgrep where it is installed, else a small filter in Python.

The arguments are fixed but for the pattern; there is no shell. The file is handed over open, so that it is
the one that is shown, whatever has become of its name. Blocks; `stop` may be called from another thread.
"""

import shutil
import subprocess
import sys
import threading
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jobtui.model.pages import Query

READ_BYTES = 64 << 10
FILTER = Path(__file__).with_name("line_filter.py")
NOTHING_FOUND = 1
MESSAGE_BYTES = 500


class SearchFailed(Exception):
    """The program refused the pattern, or could not be run; the text is what it said."""


def ripgrep() -> str | None:
    """Where ripgrep is, None where it is not installed."""
    return shutil.which("rg")


def arguments(query: Query, target: str, *, program: str | None) -> list[str]:
    """The whole command that searches `target`, `-` for standard input. Only `-` without ripgrep."""
    if program is None:
        case = ["--ignore-case"] if query.ignores_case else []
        return [sys.executable, "-I", "-S", str(FILTER), *case, "--", query.text]
    return [
        program,
        *("--no-config", "--no-messages", "--color=never", "--no-heading", "--no-filename"),
        *("--text", "--encoding=none", "--crlf", "--only-matching", "--line-number", "--byte-offset"),
        *("--replace=", "--ignore-case" if query.ignores_case else "--case-sensitive"),
        *(() if query.is_regex else ("--fixed-strings",)),
        *(f"--regexp={query.text}", "--", target),
    ]


class SearchProgram:
    """One run of the program. `found` gives the offsets of hits, one in each line, in ascending order."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def found_in_file(self, fd: int) -> Iterator["array[int]"]:
        """Hits in the whole open file, with ripgrep. Raises SearchFailed."""
        program = ripgrep()
        if program is None:
            raise SearchFailed("ripgrep is not installed")
        command = arguments(self._query, f"/dev/fd/{fd}", program=program)
        yield from self._run(command, None, (fd,))

    def found_in_text(self, pieces: Iterator[bytes]) -> Iterator["array[int]"]:
        """Hits in text that is handed over piece by piece. Raises SearchFailed."""
        yield from self._run(arguments(self._query, "-", program=ripgrep()), pieces, ())

    def stop(self) -> None:
        """End it at once. May be called at any time, from any thread."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def _run(
        self, command: list[str], pieces: Iterator[bytes] | None, fds: tuple[int, ...]
    ) -> Iterator["array[int]"]:
        process = self._start(command, fds, with_input=pieces is not None)
        if process is None:
            return
        feeding = threading.Thread(target=_feed, args=(process, pieces), daemon=True) if pieces else None
        if feeding is not None:
            feeding.start()
        try:
            yield from _offsets(process)
        finally:
            with self._lock:
                self._process = None
                process.kill()
            if feeding is not None:
                feeding.join()
            message = _message(process)
        if process.returncode not in (0, NOTHING_FOUND) and not self._stopped:
            raise SearchFailed(message or f"the search ended with {process.returncode}")

    def _start(
        self, command: list[str], fds: tuple[int, ...], *, with_input: bool
    ) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._stopped:
                return None
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=fds,
                    env={"LC_ALL": "C.UTF-8"},
                )
            except (OSError, ValueError) as error:
                raise SearchFailed(str(error)) from error
            return self._process


def _feed(process: "subprocess.Popen[bytes]", pieces: Iterator[bytes]) -> None:
    """Write the text; an end of the program or of the file before that ends it."""
    assert process.stdin is not None
    try:
        with suppress(OSError, ValueError):
            for piece in pieces:
                process.stdin.write(piece)
    finally:
        with suppress(OSError):
            process.stdin.close()


def _offsets(process: "subprocess.Popen[bytes]") -> Iterator["array[int]"]:
    """The first hit in each line, out of `line:offset:` on lines of their own."""
    assert process.stdout is not None
    rest, last = b"", b""
    while data := process.stdout.read1(READ_BYTES):  # type: ignore[attr-defined]
        *lines, rest = (rest + data).split(b"\n")
        found = array("q")
        for line in lines:
            number, _, offset = line.partition(b":")
            if number != last:
                last = number
                found.append(int(offset.rstrip(b":\r")))
        yield found


def _message(process: "subprocess.Popen[bytes]") -> str:
    assert process.stderr is not None
    assert process.stdout is not None
    with process.stdout, process.stderr:
        text = process.stderr.read(MESSAGE_BYTES).decode("utf-8", "replace")
    process.wait()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else ""
