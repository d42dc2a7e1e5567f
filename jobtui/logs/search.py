"""A search through lines as they are shown, of a file or in memory, off the event loop and bounded in time.

A text is searched for here; in a large file by ripgrep, if it is installed. A regular expression is evaluated
in a process of its own, which can be stopped: ripgrep, else a small filter in Python. Its arguments are fixed
except for the pattern; there is no shell. The file is passed open, so that it is the one that is shown, even
if it was renamed. A hit in a file counts only if it is in the line as it is shown, with secrets masked.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from array import array
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path

from jobtui.logs.segments import Segment, line_start
from jobtui.model.health import SourceError
from jobtui.model.numbers import whole
from jobtui.model.pages import Hits, LogLine, LogUnreadable, Query, SearchState
from jobtui.model.secret_blocks import SecretBlocks, is_settled
from jobtui.model.secret_words import CUT, MASK
from jobtui.model.secrets import mask_line, may_hide_below
from jobtui.model.tables import tables_of
from jobtui.transport.files import ByteSource
from jobtui.transport.worker import Worker, start

READ_BYTES = 64 << 10
FILTER = Path(__file__).with_name("line_filter.py")
NOTHING_FOUND = 1
MESSAGE_BYTES = 500


class SearchFailed(Exception):
    """The program refused the pattern, or could not be run; the text is what it said."""


def ripgrep() -> str | None:
    return shutil.which("rg")


def is_plain(query: Query) -> bool:
    """Whether bytes can be compared: ignoring case is easy for ASCII, and a text may be part of the mask."""
    is_simple = not query.is_regex and (not query.ignores_case or query.text.isascii())
    return is_simple and not set(query.text) & {*MASK, *CUT}


def arguments(query: Query, target: str, *, program: str | None, also: str = "") -> list[str]:
    """The whole command that searches `target`, `-` for standard input. Only `-` without ripgrep.

    `also` is a pattern for lines that are given too; without ripgrep there is none.
    """
    if program is None:
        case = ["--ignore-case"] if query.ignores_case else []
        pattern = query.text if query.is_regex else re.escape(query.text)
        return [sys.executable, "-I", "-S", str(FILTER), *case, "--", pattern]
    pattern = query.text if query.is_regex else "".join(f"\\x{{{ord(char):x}}}" for char in query.text)
    return [
        program,
        *("--no-config", "--no-messages", "--color=never", "--no-heading", "--no-filename"),
        *("--text", "--encoding=none", "--crlf", "--only-matching", "--line-number", "--byte-offset"),
        *("--replace=", "--ignore-case" if query.ignores_case else "--case-sensitive"),
        *((f"--regexp={also}",) if also else ()),
        *(f"--regexp={pattern}", "--", target),
    ]


def holds(query: Query, text: str) -> bool:
    return query.text.casefold() in text.casefold() if query.ignores_case else query.text in text


class SearchProgram:
    """One run of the program. What it finds is one in each line, in ascending order."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def found_in_file(self, fd: int) -> Iterator["array[int]"]:
        """Offsets of hits in the whole open file as it is stored, with ripgrep. Raises SearchFailed.

        Where bytes cannot be compared, lines that may be masked are given too: they may be hits when shown.
        """
        program = ripgrep()
        if program is None:
            raise SearchFailed("ripgrep is not installed")
        masks = tables_of("jobtui.model", "secrets")["ripgrep"]
        also = "" if is_plain(self._query) else masks["may_be_masked"]
        command = arguments(self._query, f"/dev/fd/{fd}", program=program, also=also)
        for hits in self._run(command, None, (fd,)):
            yield array("q", [offset for _, offset in hits])

    def found_in_lines(self, lines: Iterable[str]) -> Iterator[list[int]]:
        """Which of these lines are hits, by their numbers from 0 on. Raises SearchFailed."""
        pieces = (line.replace("\n", " ").encode("utf-8", "replace") + b"\n" for line in lines)
        for hits in self._run(arguments(self._query, "-", program=ripgrep()), pieces, ()):
            yield [number - 1 for number, _ in hits]

    def positions(self, lines: Sequence[LogLine], above: Iterable[LogLine] = ()) -> list[int]:
        """The positions of lines that are hits as they are shown, below others. Raises SearchFailed."""
        blocks = defaultdict[str, SecretBlocks](SecretBlocks)
        for line in above:
            blocks[line.origin].hide(line.text)
        shown = [mask_line(blocks[line.origin].hide(line.text)) for line in lines]
        if self._query.is_regex:
            return [lines[nth].position for some in self.found_in_lines(shown) for nth in some]
        return [line.position for line, text in zip(lines, shown, strict=True) if holds(self._query, text)]

    def stop(self) -> None:
        """End it at once. May be called at any time, from any thread."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def _run(
        self, command: list[str], pieces: Iterator[bytes] | None, fds: tuple[int, ...]
    ) -> Iterator[list[tuple[int, int]]]:
        process = self._start(command, fds, with_input=pieces is not None)
        if process is None:
            return
        failures: list[SearchFailed] = []
        feeding = threading.Thread(target=_feed, args=(process, pieces or (), failures), daemon=True)
        try:
            start(feeding)
        except SourceError as error:
            self.stop()
            process.communicate()
            raise SearchFailed(str(error)) from error
        try:
            yield from _hits(process)
        finally:
            with self._lock:
                self._process = None
                process.kill()
            feeding.join()
            assert process.stderr is not None
            assert process.stdout is not None
            with process.stdout, process.stderr:
                said = process.stderr.read(MESSAGE_BYTES).decode("utf-8", "replace")
            process.wait()
        if failures:
            raise failures[0]
        if process.returncode not in (0, NOTHING_FOUND) and not self._stopped:
            lines = [line.strip() for line in said.splitlines() if line.strip()]
            message = lines[-1].removeprefix("error: ") if lines else ""
            raise SearchFailed(message or f"the search ended with exit code {process.returncode}")

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


def _feed(process: "subprocess.Popen[bytes]", pieces: Iterable[bytes], failures: list[SearchFailed]) -> None:
    """Write the text until it, the program or the file ends, or what gives it fails."""
    try:
        with suppress(OSError, ValueError):
            for piece in pieces:
                assert process.stdin is not None
                process.stdin.write(piece)
    except SearchFailed as error:
        failures.append(error)
    finally:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()


def _hits(process: "subprocess.Popen[bytes]") -> Iterator[list[tuple[int, int]]]:
    """Number and offset of the first hit in each line, out of `line:offset:` on lines of their own."""
    assert process.stdout is not None
    rest, last = b"", b""
    while data := process.stdout.read1(READ_BYTES):  # type: ignore[attr-defined]
        *lines, rest = (rest + data).split(b"\n")
        found = []
        for line in lines:
            number, _, offset = line.partition(b":")
            if number != last:
                last = number
                found.append((whole(number, 0), whole(offset.rstrip(b":\r"), 0)))
        yield found


LIMIT_S = 20.0
HITS_KEPT = 1_000_000
"""Lines that are kept; more are not looked for."""
CHUNK_BYTES = 1 << 20
ABOVE_BYTES, KEY_BYTES = 64 << 10, 64
"""Read above a hit at most, to know whether it is the value of a secret key; how long a key is at most."""
CHECKED_BYTES = 64 << 10
"""Read from a hit on to see the line it is in; of a longer line the rest is not looked at."""


class Search(ABC):
    """A search as model.pages.LogSearch says. `hits` may be read while it runs; `most` of them are kept."""

    limit_s = LIMIT_S

    def __init__(self, query: Query, hits: Hits, most: int | None = None) -> None:
        self.query = query
        self.hits = hits
        self.state = SearchState.RUNNING
        self.problem = ""
        self._most = most
        self._stopping = False
        self._program: SearchProgram | None = None
        self._worker = Worker("search")

    @abstractmethod
    async def _search_all(self) -> None: ...

    async def _search_new(self) -> None:
        await self._search_all()

    async def run(self) -> None:
        await self._within_limit(self._search_all())

    async def extend(self) -> None:
        if self.state is SearchState.DONE:
            await self._within_limit(self._search_new())

    def cancel(self) -> None:
        if self.state is SearchState.RUNNING:
            self.state = SearchState.CANCELED
        self._stop()
        self._worker.close()

    def _stop(self) -> None:
        self._stopping = True
        if self._program is not None:
            self._program.stop()

    async def _within_limit(self, search: Coroutine[None, None, None]) -> None:
        working = asyncio.ensure_future(search)
        try:
            async with asyncio.timeout(self.limit_s):
                await asyncio.shield(working)
            if self.state is SearchState.RUNNING:
                self.state = SearchState.DONE
        except TimeoutError:
            self.state = SearchState.TIMED_OUT
        except (SearchFailed, LogUnreadable, OSError) as error:
            if not self._stopping:
                self.state, self.problem = SearchState.FAILED, str(error)
        finally:
            if self.state is not SearchState.DONE:
                self._stop()
                # Nobody waits any more to hear how it ends
                working.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _new_program(self) -> SearchProgram:
        program = self._program = SearchProgram(self.query)
        if self._stopping:
            program.stop()
        return program

    def _stop_when_full(self) -> None:
        is_full = self._most is not None and len(self.hits) >= self._most
        if is_full and self.state is SearchState.RUNNING:
            self.state = SearchState.FULL
            self._stop()


class _ShownLines:
    """Lines of a file as they are shown, by a byte in them; read in blocks, as hits may lie together.

    Lines above are read until one says nothing of those below it; `above` gives the end of the file before.
    """

    def __init__(self, source: ByteSource, above: Callable[[], bytes]) -> None:
        self._source, self._above = source, above
        self._begin = 0
        self._data = b""
        self._has_key = cache(self._may_hold_key)
        self._blocks, self._known_to = SecretBlocks(), 0
        """What is known of the lines up to there in the data."""

    def whole(self, offsets: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Those lines in which nothing is hidden by what is above: it would tell whether they are found."""
        read = ((at, *self._read(at)) for at in offsets)
        return ((at, mask_line(line)) for at, line, shown in read if line == shown)

    def at(self, offset: int) -> str:
        return mask_line(self._read(offset)[1])

    def _read(self, offset: int) -> tuple[str, str]:
        at = offset - self._begin
        before = self._data.rfind(b"\n", 0, at) if 0 < at < len(self._data) else -1
        end = self._data.find(b"\n", at) if before >= 0 else -1
        if end < 0:
            begin = line_start(self._source, offset)
            first = max(0, begin - ABOVE_BYTES)
            head = b"\n" if first else b"\n" + self._above().removesuffix(b"\n") + b"\n"
            ahead = CHECKED_BYTES * (8 if 0 < offset - self._begin - len(self._data) < CHECKED_BYTES else 1)
            self._data = head + self._source.read(first, offset - first + ahead)
            self._begin = first - len(head)
            before, self._known_to = begin - self._begin - 1, 0
            self._has_key.cache_clear()
            end = self._data.find(b"\n", offset - self._begin)
        end = end if end >= 0 else len(self._data)
        line = _text(self._data[before + 1 : end])
        part = before // ABOVE_BYTES
        is_below_key = (self._has_key(part) or self._has_key(part - 1)) and not is_settled(line)
        return line, self._hidden(line, before + 1, end) if is_below_key else line

    def _may_hold_key(self, part: int) -> bool:
        data = self._data[max(0, part) * ABOVE_BYTES : (part + 1) * ABOVE_BYTES + KEY_BYTES]
        return may_hide_below(data.decode("utf-8", "replace"))

    def _hidden(self, line: str, begin: int, end: int) -> str:
        above, at, is_known = list[str](), begin, False
        floor = self._known_to if self._known_to <= begin else 1
        while not is_known and at > max(floor, begin - ABOVE_BYTES):
            start = self._data.rfind(b"\n", 0, at - 1) + 1
            above.append(_text(self._data[start : at - 1]))
            at, is_known = start, is_settled(above[-1])
        if at != self._known_to:
            self._blocks = SecretBlocks()
        for text in reversed(above):
            self._blocks.hide(text)
        self._known_to = end + 1
        return self._blocks.hide(line)


class FileSearch(Search):
    """A search in a file and the ones rotated away from it, on from where it was searched.

    All but `_search_all` is for its own thread.
    """

    def __init__(
        self,
        segments: Callable[[], Sequence[Segment]],
        segment_before: Callable[[int], Awaitable[Segment | None]],
        query: Query,
    ) -> None:
        now = segments()
        begin = now[0].base if now else 0
        super().__init__(query, Hits(begin), HITS_KEPT)
        self._segments, self._segment_before = segments, segment_before

    async def _search_all(self) -> None:
        segment = await self._segment_before(self.hits.low)
        await self._search_new()
        while segment is not None and not self._stopping:
            above = await self._segment_before(segment.base)
            found = await self._worker.run(partial(self._found_whole, segment, above))
            self.hits.add_below(found, segment.base)
            self._stop_when_full()
            segment = above

    async def _search_new(self) -> None:
        await self._worker.run(self._search_on)

    def _found_whole(self, segment: Segment, above: Segment | None) -> "array[int]":
        lines = _ShownLines(segment.source, partial(_end_of, above))
        found = (segment.base + at for some in self._found(segment, 0, lines) for at in some)
        return array("q", islice(found, HITS_KEPT))

    def _search_on(self) -> None:
        segments = self._segments()
        end = segments[-1].end if segments else 0
        self.hits.forget_from(self.hits.high)
        for nth, segment in enumerate(segments):
            if self.hits.high >= segment.end or self._stopping:
                continue
            begin = max(0, self.hits.high - segment.base)
            lines = _ShownLines(segment.source, partial(_end_of, segments[nth - 1] if nth else None))
            for offsets in self._found(segment, begin, lines):
                positions = array("q", [segment.base + offset for offset in offsets])
                self.hits.add_above(positions, positions[-1] if positions else self.hits.high)
                self._stop_when_full()
            self.hits.high = segment.end
        if segments and not self._stopping:
            last = segments[-1]
            offset = min(end - last.base, last.size)
            # a last line that is not finished is searched again
            self.hits.high = last.base + line_start(last.source, max(0, offset))

    def _found(self, segment: Segment, begin: int, lines: _ShownLines) -> Iterator["array[int]"]:
        """Offsets in the lines that are hits, in order, from byte `begin` of a file on."""
        # ripgrep can search a whole file, as it is stored
        is_for_program = not begin and not segment.is_packed and ripgrep() is not None
        if not is_for_program:
            tried = lines.whole(self._lines_from(segment, begin))
            yield from self._found_text(segment, begin, lines) if is_plain(self.query) else self._tried(tried)
            return
        descriptor = segment.opened.plain.duplicate()
        try:
            found = self._new_program().found_in_file(descriptor)
            if is_plain(self.query):
                for some in found:
                    yield array("q", [at for at in some if holds(self.query, lines.at(at))])
            else:
                yield from self._tried(lines.whole(at for some in found for at in some))
        finally:
            os.close(descriptor)

    def _found_text(self, segment: Segment, begin: int, lines: _ShownLines) -> Iterator["array[int]"]:
        needle = self.query.text.encode("utf-8", "surrogateescape")
        while begin < segment.size and not self._stopping:
            data = segment.source.read(begin, min(CHUNK_BYTES, segment.size - begin))
            if begin + len(data) < segment.size:
                data = data[: data.rfind(b"\n") + 1] or data
            if not data:
                return
            text = data.lower() if self.query.ignores_case else data
            found, at = array("q"), text.find(needle)
            while at >= 0 and not self._stopping:
                if holds(self.query, lines.at(begin + at)):
                    found.append(begin + at)
                end = data.find(b"\n", at)
                at = text.find(needle, end) if end >= 0 else -1
            yield found
            begin += len(data)

    def _tried(self, lines: Iterator[tuple[int, str]]) -> Iterator["array[int]"]:
        """The offsets of those lines, as they are shown, that the program finds."""
        offsets = array("q")

        def texts() -> Iterator[str]:
            for offset, text in lines:
                offsets.append(offset)
                yield text

        for some in self._new_program().found_in_lines(texts()):
            yield array("q", [offsets[nth] for nth in some])

    def _lines_from(self, segment: Segment, begin: int) -> Iterator[int]:
        while begin < segment.size and not self._stopping:
            data = segment.source.read(begin, min(CHUNK_BYTES, segment.size - begin))
            *starts, last = begin, *(begin + found.end() for found in re.finditer(b"\n", data))
            yield from starts or (begin,)
            begin = last if starts else begin + CHUNK_BYTES


def _end_of(segment: Segment | None) -> bytes:
    return b"" if segment is None else segment.source.read(max(0, segment.size - ABOVE_BYTES), ABOVE_BYTES)


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").lstrip(b"\0").decode("utf-8", "replace")
