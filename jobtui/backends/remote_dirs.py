"""The run directory of a job on a cluster, read over ssh: which files there are, and a bounded part of one.

Only reads: `find`, `stat`, `head` and `tail` are run there, on what is right in the directory and no link. An
answer is good for some seconds, so that looking at it costs a cluster little. One call at a time.
"""

import asyncio
import posixpath
import secrets
import stat
import time
from collections import OrderedDict
from urllib.parse import quote

from jobtui.backends.base import SourceError
from jobtui.backends.journal.faults import in_words
from jobtui.backends.journal.process import Running
from jobtui.backends.journal.shell import command_line
from jobtui.backends.journal.ssh import FAILED_ITSELF, SshShell
from jobtui.model.clock import Nanos, from_seconds
from jobtui.model.job_desk import FileKind, FilePart, RunFile, RunListing, Unreadable

SCHEME = "ssh://"
ANSWER_S = 30.0
"""How long a cluster may take to answer."""
GOOD_FOR_S = 15.0
"""How long an answer is taken for what is there now."""
MOST_ENTRIES = 2_000
PART_BYTES = 256 << 10
LISTING_BYTES = 1 << 20
ANSWERS_KEPT = 50
SAID_LENGTH = 300

_KINDS = {"f": FileKind.FILE, "d": FileKind.DIRECTORY, "l": FileKind.LINK}
_LIST = r"""find "$1" -mindepth 1 -maxdepth 1 -printf "%y %s %T@ %f\0" """
_PART = 'stat -c "%f %s %Y" -- "$1" && test -f "$1" && test ! -L "$1" && {how} -c "$2" -- "$1"'
_SNIFFED_BYTES = 4_096


class RemoteDirs:
    """Reads directories whose paths are addresses, `ssh://[user@]host[:port]/path`."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._answers: OrderedDict[tuple[str, ...], tuple[float, bytes]] = OrderedDict()

    async def list_files(self, address: str) -> RunListing:
        """The entries of a directory, by name. Raises Unreadable."""
        answer = await self._ask(address, _LIST, SshShell(address).directory, LISTING_BYTES)
        entries = [file for text in answer.split(b"\0") if (file := _file_of(text)) is not None]
        files = sorted(entries, key=lambda file: file.name)
        return RunListing(address, tuple(files[:MOST_ENTRIES]), max(0, len(files) - MOST_ENTRIES))

    async def read_file(self, address: str, name: str, *, tail: bool) -> FilePart:
        """The beginning or the end of a regular file in a directory. Raises Unreadable."""
        if "/" in name or name in ("", ".", ".."):
            raise Unreadable(f"{name}: is not the name of a file in {address}")
        path = posixpath.join(SshShell(address).directory, name)
        script = _PART.format(how="tail" if tail else "head")
        answer = await self._ask(address, script, path, PART_BYTES + LISTING_BYTES)
        head, _, data = answer.partition(b"\n")
        return _part(name, f"{address}/{quote(name)}", head.decode("ascii", "replace"), data, tail=tail)

    async def _ask(self, address: str, script: str, path: str, most: int) -> bytes:
        """What a script prints that is given a path and a number of bytes."""
        if not path.startswith("/"):
            raise Unreadable(f"{address}: names no directory")
        key = (address, script, path)
        async with self._lock:
            known = self._answers.get(key)
            if known is not None and time.monotonic() - known[0] < GOOD_FOR_S:
                return known[1]
            try:
                answer = await answer_of(SshShell(address), script, path, str(PART_BYTES), most)
            except SourceError as error:
                raise Unreadable(str(error)) from error
            self._answers[key] = time.monotonic(), answer
            if len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
            return answer


async def answer_of(shell: SshShell, script: str, path: str, count: str, most: int) -> bytes:
    """What a script prints that is given a path and a count, up to `most` bytes of it. Raises SourceError.

    It prints behind a mark: a login may print things of its own.
    """
    mark = secrets.token_hex(8)
    words = ["sh", "-c", f"echo {mark}; {script}", "sh", path, count]
    running = await shell.run(command_line(words))
    try:
        async with asyncio.timeout(ANSWER_S):
            printed = await _read(running, most)
            code = await running.ended() if len(printed) < most else 0
    except TimeoutError:
        raise shell.silence(ANSWER_S) from None
    finally:
        await running.stop()
    noise, found, answer = printed.partition(f"{mark}\n".encode())
    if code == FAILED_ITSELF or not found:
        raise shell.fault(running.said, code, in_words(noise.decode("utf-8", "replace")))
    if code and not answer:
        said = " ".join(running.said.split())[-SAID_LENGTH:]
        raise SourceError(f"{shell.name}: {said or f'cannot be read, code {code}'}")
    return answer


async def _read(running: Running, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size < most and (piece := await running.read()):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)[:most]


def _file_of(text: bytes) -> RunFile | None:
    """One entry of a listing, None for what is none."""
    parts = text.decode("utf-8", "replace").split(" ", 3)
    if len(parts) != 4:
        return None
    kind, size, written, name = parts
    try:
        return RunFile(name, _KINDS.get(kind, FileKind.OTHER), int(size), from_seconds(float(written)))
    except (ValueError, OverflowError):
        return None


def _part(name: str, where: str, head: str, data: bytes, *, tail: bool) -> FilePart:
    """A part of a file out of what `stat` said of it and what came behind that. Raises Unreadable."""
    try:
        mode, size, written = head.split()
        kind, whole, at = int(mode, 16), int(size), Nanos(from_seconds(int(written)))
    except ValueError:
        raise Unreadable(f"{where}: the answer makes no sense") from None
    if not stat.S_ISREG(kind):
        raise Unreadable(f"{where}: is not a regular file and is not read")
    begin = max(0, whole - len(data)) if tail else 0
    if begin:
        cut = data.find(b"\n") + 1
        begin, data = begin + cut, data[cut:]
    is_binary = b"\0" in data[:_SNIFFED_BYTES]
    return FilePart(
        name=name,
        text="" if is_binary else data.decode("utf-8", "replace"),
        begin=begin,
        size=whole,
        written_at=at,
        is_to_end=begin + len(data) >= whole,
        is_binary=is_binary,
    )
