"""The run directory of a job on a cluster, read over ssh: which files there are, and a bounded part of one.

Only reads: `find`, `stat`, `head` and `tail` are run there, on what is right in the directory and no link. An
answer is good for some seconds, so that looking at it costs a cluster little. One call at a time.
"""

import asyncio
import posixpath
import stat
import time
from urllib.parse import quote

from jobtui.model.bounded import Bounded
from jobtui.model.clock import time_of_seconds
from jobtui.model.health import SourceError
from jobtui.model.job_reader import FileKind, FilePart, RunFile, RunListing, Unreadable, part_of
from jobtui.model.numbers import of_base, real, whole
from jobtui.model.secrets import mask_text
from jobtui.transport.ssh import FAILED_ITSELF, SshShell, printed_by

ANSWER_S = 30.0
GOOD_FOR_S = 15.0
MOST_ENTRIES = 2_000
PART_BYTES = 256 << 10
LISTING_BYTES = 1 << 20
ANSWERS_KEPT = 50
STDERR_CHARACTERS = 300

_KINDS = {"f": FileKind.FILE, "d": FileKind.DIRECTORY, "l": FileKind.LINK}
MOST_MODE = 0xFFFF
"""The mode of a file has 16 bits; `stat.S_ISREG` raises for more than 32."""
_LIST = r"""find "$1" -mindepth 1 -maxdepth 1 -printf "%y %s %T@ %f\0" """
_PART = 'stat -c "%f %s %Y" -- "$1" && test -f "$1" && test ! -L "$1" && {how} -c "$2" -- "$1"'


class RemoteDirs:
    """Reads directories whose paths are addresses, `ssh://[user@]host[:port]/path`."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._answers = Bounded[tuple[str, ...], tuple[float, bytes]](ANSWERS_KEPT)

    async def list_files(self, address: str) -> RunListing:
        answer = await self._ask(address, _LIST, SshShell(address).directory, LISTING_BYTES)
        entries = [file for text in answer.split(b"\0") if (file := _file_of(text)) is not None]
        files = sorted(entries, key=lambda file: file.name)
        return RunListing(address, tuple(files[:MOST_ENTRIES]), max(0, len(files) - MOST_ENTRIES))

    async def read_file(self, address: str, name: str, *, tail: bool) -> FilePart:
        if {"/", "\0"} & {*name} or name in ("", ".", ".."):
            raise Unreadable(f"{name}: is not the name of a file in {address}")
        path = posixpath.join(SshShell(address).directory, name)
        script = _PART.format(how="tail" if tail else "head")
        answer = await self._ask(address, script, path, PART_BYTES + LISTING_BYTES)
        head, _, data = answer.partition(b"\n")
        mode, size, written = (*head.decode("ascii", "replace").split(), "", "", "")[:3]
        kind, full, at = of_base(mode, 16), whole(size), time_of_seconds(whole(written))
        where = f"{address}/{quote(name)}"
        if kind is None or kind > MOST_MODE or full is None or at is None:
            raise Unreadable(f"{where}: the answer is not understood")
        if not stat.S_ISREG(kind):
            raise Unreadable(f"{where}: is not a regular file and is not read")
        return part_of(name, data, max(0, full - len(data)) if tail else 0, full, at)

    async def _ask(self, address: str, script: str, path: str, most: int) -> bytes:
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
            return answer


async def answer_of(shell: SshShell, script: str, path: str, count: str, most: int) -> bytes:
    """What a script prints that is given a path and a count, up to `most` bytes. Raises SourceError."""
    printed = await printed_by(
        shell, script, [path, count], most, ANSWER_S, lambda begun: shell.silence(ANSWER_S)
    )
    if printed.code == FAILED_ITSELF or printed.data is None:
        raise shell.fault(printed.stderr, printed.code, printed.noise)
    if printed.code and not printed.data:
        stderr = mask_text(" ".join(printed.stderr.split()))[-STDERR_CHARACTERS:]
        raise SourceError(f"{shell.name}: {stderr or f'cannot be read, code {printed.code}'}")
    return printed.data


def _file_of(text: bytes) -> RunFile | None:
    """One entry of a listing, None for what is none."""
    kind, size, written, name = (*text.decode("utf-8", "replace").split(" ", 3), "", "", "", "")[:4]
    number, at = whole(size), time_of_seconds(real(written))
    if number is None or at is None or not name:
        return None
    return RunFile(name, _KINDS.get(kind, FileKind.OTHER), number, at)
