"""A journal through journalctl, wherever it runs: here, or on another host.

Slices have no `--lines` with `--since`: some releases then count from the end.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from jobtui.backends.journal.client import NEAR_ENTRIES, Ask, ExportReader, check_field, from_micros
from jobtui.formats.journal_export import not_understood
from jobtui.model.health import SourceError, SourceUnreachable
from jobtui.model.journal import At, AtCursor, JournalCondition, JournalEntry, Matches
from jobtui.model.numbers import and_more
from jobtui.model.specs import journal_words
from jobtui.transport.ssh import ANSWER_BYTES, SILENCE_S, LocalShell, Shell, SshAnswers, SshShell, line_of

AGAIN_S = 30.0
"""journalctl cannot follow a single file: it is asked again this often."""
NOTED_FILES = 3
"""How many files are named in a note; the others are counted."""

_OWN_ONLY = re.compile(r"not seeing messages from other users", re.IGNORECASE)
_NO_FILES = re.compile(r"No journal files were found", re.IGNORECASE)
_UNREADABLE = re.compile(
    r"^(?:Journal file )?(?P<file>\S*?)(?P<why>(?: is)? [\w ]+), ignoring file"
    r"|^Failed to (?:open|read) .*|.*: Permission denied",
    re.MULTILINE,
)
_FILE = re.compile(rb"^File path:", re.IGNORECASE | re.MULTILINE)

Words = list[str]


class JournalctlReader(ExportReader):
    """A journal over journalctl: `local`, a directory, or `ssh://[user@]host[:port][/directory]`.

    A directory may also be one file of a journal, `X.journal`.

    It connects when it is first asked.
    """

    def __init__(self, target: str) -> None:
        self._shell: Shell
        if target.startswith("ssh://"):
            self._shell = SshShell(target)
            place = self._shell.directory
        else:
            self._shell = LocalShell(target)
            place = target
        self.name = self._shell.name
        self._where = journal_words(place)
        self.is_one_host = not self._where
        self._is_file = "".join(self._where).startswith("--file=")
        self._is_closed = False

    async def values(self, *fields: str) -> dict[str, tuple[str, ...]]:
        for field in fields:
            check_field(field, self.name)
        if not fields:
            return {}
        printed, _ = await self._print([self._command([f"--field={field}"]) for field in fields])
        lines = [text.decode("utf-8", "replace").splitlines() for text in printed]
        return {field: tuple(dict.fromkeys(values)) for field, values in zip(fields, lines, strict=True)}

    async def condition(self) -> JournalCondition:
        (printed,), stderr = await self._print([["env", "LC_ALL=C", "journalctl", "--header", *self._where]])
        notes = [*filter(None, [not_understood(self.skipped)])]
        if _OWN_ONLY.search(stderr):
            notes.append("only entries of this user are visible; join the group systemd-journal to see all")
        if _NO_FILES.search(stderr):
            notes.append("it has no journal files yet")
        files = len(_FILE.findall(printed))
        unreadable = [
            f"{os.path.basename(found['file'])}{found['why']}" if found["file"] else found[0]
            for found in _UNREADABLE.finditer(stderr)
        ]
        if unreadable:
            named = ", ".join(unreadable[:NOTED_FILES]) + and_more(len(unreadable), NOTED_FILES)
            notes.append(f"{files} of {files + len(unreadable)} journal files read, not {named}")
        return JournalCondition(files, len(unreadable), "; ".join(notes))

    async def aclose(self) -> None:
        self._is_closed = True

    async def _ask(self, asks: Sequence[Ask]) -> AsyncGenerator[list[JournalEntry], None]:
        last = asks[-1]
        if last.follows and self._is_file:
            await asyncio.sleep(AGAIN_S)
            return
        async with self._answers_to([self._command(words_of(ask), ask.matches) for ask in asks]) as talk:
            for _ in asks[1:]:
                yield await self._whole(await talk.answer())
            limit = contextlib.nullcontext() if last.most is None else talk.deadline()
            async with limit, contextlib.aclosing(talk.pieces(None if last.follows else SILENCE_S)) as pieces:
                async for some in self._entries(pieces):
                    yield some
            if last.follows:
                if talk.stderr:
                    raise self._shell.fault(talk.stderr, 0, "")
                raise SourceUnreachable(f"{self.name}: journalctl stopped following; it is started again")

    def _command(self, words: Words, wanted: Matches = ()) -> Words:
        # Without --merge, following gives entries of the last boot only, which in a directory is one host's
        every_boot = ["--merge"] if self._where and "--follow" in words else []
        return [
            *("env", "LC_ALL=C", "journalctl", "--quiet", "--no-pager", "--output=export"),
            *(*self._where, *every_boot, *words, *match_words(wanted)),
        ]

    @contextlib.asynccontextmanager
    async def _answers_to(self, commands: Sequence[Words]) -> AsyncIterator[SshAnswers]:
        if self._is_closed:
            raise SourceError(f"{self.name}: is closed")
        mark = f"jobtui-{os.urandom(8).hex()}-"
        try:
            line = line_of(mark, commands)
        except ValueError as error:
            raise SourceError(f"{self.name}: cannot be read this way: {error}") from error
        running = await self._shell.run(line)
        try:
            talk = SshAnswers(self._shell, running, mark)
            await talk.begin()
            yield talk
        finally:
            await running.stop()

    async def _print(self, commands: Sequence[Words]) -> tuple[list[bytes], str]:
        printed = bytearray()
        async with self._answers_to(commands) as talk:
            answers = [await talk.answer() for _ in commands[1:]]
            async with talk.deadline(), contextlib.aclosing(talk.pieces(SILENCE_S)) as pieces:
                async for piece in pieces:
                    printed += piece
                    if len(printed) >= ANSWER_BYTES:
                        break
            return [*answers, bytes(printed)], talk.stderr


def words_of(ask: Ask) -> Words:
    words = ["--follow", "--no-tail"] if ask.follows else ["--reverse"] if ask.back else []
    start = ask.start
    if isinstance(start, At):
        micros = max(from_micros(start.time) - ask.back, 0)
        words += [f"--{'until' if ask.back else 'since'}=@{micros // 1_000_000}.{micros % 1_000_000:06d}"]
    if isinstance(start, AtCursor):
        words += [f"--cursor={start.cursor}"]
    if ask.most is not None and (ask.back or isinstance(start, AtCursor)):
        words += [f"--lines={ask.most + (NEAR_ENTRIES if isinstance(start, AtCursor) else 0)}"]
    return words


def match_words(matches: Matches) -> Words:
    words: Words = []
    for group in matches:
        words += ["+"] if words else []
        words += [f"{field}={value}" for field, value in group]
    return words
