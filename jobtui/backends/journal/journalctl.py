"""A journal through journalctl, wherever it runs: here, or on another host."""

import contextlib
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from jobtui.backends.journal import client
from jobtui.backends.journal.client import Following, Words
from jobtui.backends.journal.following import ConnectedFollowing, follow_apart, listening
from jobtui.formats.journal_export import ExportParser, Raw, entry_of_export, stored_fields
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
    JournalCondition,
    JournalEntry,
    Matches,
    Slice,
    Start,
    Tail,
    own_cursor,
)
from jobtui.model.source_errors import SourceError, SourceUnreachable
from jobtui.transport.ssh import SILENCE_S, LocalShell, Shell, SshShell, Talk, line_of

ANSWER_BYTES = 4 << 20
"""Of an answer that is no entries: the values of a field, the headers of files."""

ASKED_AT_ONCE = 50
"""Questions in one line for a shell."""

_OWN_ONLY = re.compile(r"not seeing messages from other users", re.IGNORECASE)
_NO_FILES = re.compile(r"No journal files were found", re.IGNORECASE)
_UNREADABLE = re.compile(r"ignoring file|^Failed to (?:open|read) |: Permission denied", re.MULTILINE)
_FILE = re.compile(rb"^File path:", re.IGNORECASE | re.MULTILINE)


class JournalctlReader:
    """A `JournalReader` over journalctl in a shell. `directory` instead of the journal of the host itself."""

    def __init__(self, shell: Shell, directory: str = "") -> None:
        self._shell = shell
        self.name = shell.name
        self._directory = directory
        self._skipped = 0
        self._is_closed = False

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""
        wanted = client.checked(matches, self.name)
        words = client.forward_words(start, _bound(start, wanted, most))
        last, found, lost = await self._read(start, words, wanted, most + 1)
        return client.slice_of(found, most, client.reached(start, last), lost)

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`, oldest first."""
        wanted = client.checked(matches, self.name)
        words = client.backward_words(start, _bound(start, wanted, most))
        last, found, lost = await self._read(start, words, wanted, most + 1, back=True)
        stand = own_cursor(start) or client.reached(start, last)
        return client.slice_of(found[::-1], most, stand, lost, back=True)

    async def fields(self, cursor: Cursor) -> Fields | None:
        near = await self._raw(client.near_words(cursor), ())
        wanted = cursor.encode("utf-8", "surrogateescape")
        return next((stored_fields(raw) for raw in near if raw.get(b"__CURSOR") == wanted), None)

    async def values(self, field: str) -> tuple[str, ...]:
        client.check_field(field, self.name)
        printed, _ = await self._print(self._command([f"--field={field}"]))
        return tuple(dict.fromkeys(printed.decode("utf-8", "replace").splitlines()))

    async def condition(self) -> JournalCondition:
        printed, said = await self._print(["env", "LC_ALL=C", "journalctl", "--header", *self._place_words])
        notes = [f"{self._skipped} pieces of what came made no sense"] if self._skipped else []
        if _OWN_ONLY.search(said):
            notes.append("only entries of this user are to be seen; join the group systemd-journal for all")
        if _NO_FILES.search(said):
            notes.append("there are no journal files")
        unreadable = len(_UNREADABLE.findall(said))
        return JournalCondition(len(_FILE.findall(printed)), unreadable, "; ".join(notes))

    def follow(self, start: Start, matches: Matches) -> Following:
        wanted = client.checked(matches, self.name)
        if not self._directory:  # one host's alone
            return ConnectedFollowing(self.name, lambda place: self._listen(place, wanted), start)
        return follow_apart(self, self._one_of_each, self._listen, start, wanted)

    async def aclose(self) -> None:
        self._is_closed = True

    # Slices.

    async def _read(
        self, start: Start, words: Words, wanted: Matches, count: int, *, back: bool = False
    ) -> tuple[JournalEntry | None, list[JournalEntry], bool]:
        """The last entry of all, as it was before; up to `count` wanted ones; whether the place is gone."""
        behind = client.Behind(own_cursor(start), back=back)
        own = own_cursor(start)
        commands = [self._command(client.LAST_WORDS), self._command(words, wanted)]
        async with self._talking([*self._place_commands(own), *commands]) as talk:
            lost = own is not None and _gone(await _entries_of(talk), own)
            last = _last(await _entries_of(talk))
            found: list[JournalEntry] = []
            async with contextlib.aclosing(self._entries(talk, wanted, SILENCE_S)) as entries:
                async for some in entries:
                    found += behind(some)
                    if len(found) >= count:
                        break
        return last, found[:count], lost

    async def _one_of_each(self, groups: Sequence[Matches]) -> list[JournalEntry | None]:
        commands = [self._command(client.LAST_WORDS, group) for group in groups]
        found: list[JournalEntry | None] = []
        for at in range(0, len(commands), ASKED_AT_ONCE):
            some = commands[at : at + ASKED_AT_ONCE]
            async with self._talking([*some, ["true"]]) as talk:
                found += [_last(await _entries_of(talk)) for _ in some]
        return found

    async def _raw(self, words: Words, wanted: Matches) -> list[Raw]:
        parser = ExportParser()
        found: list[Raw] = []
        async with (
            self._talking([self._command(words, wanted)]) as talk,
            contextlib.aclosing(talk.pieces(SILENCE_S)) as pieces,
        ):
            async for piece in pieces:
                found += parser.feed(piece)
        return found

    # Following.

    def _listen(self, start: Start, wanted: Matches, scope: Matches = ()) -> AsyncGenerator[Slice, None]:
        """Two questions, as journalctl does not tell the edge."""
        return listening(
            start, lambda at: self._catch_up(at, wanted, scope), lambda at: self._written(at, wanted)
        )

    async def _written(self, place: Start, wanted: Matches) -> AsyncGenerator[Slice, None]:
        # Without it `--follow` gives entries of the last boot only, which in a directory is one host's
        every_boot = ["--merge"] if self._directory else []
        follow = [*every_boot, *client.follow_words(place)]
        async with self._talking([self._command(follow, wanted)]) as talk:
            behind = client.Behind(own_cursor(place))
            async with contextlib.aclosing(self._entries(talk, wanted, None)) as entries:
                async for some in entries:
                    if fresh := behind(some):
                        yield Slice(tuple(fresh), fresh[-1].cursor, True)
        raise SourceUnreachable(f"{self.name}: journalctl stopped following; it is started anew")

    async def _catch_up(self, start: Start, wanted: Matches, scope: Matches) -> AsyncGenerator[Slice, None]:
        """What is there from `start` on, up to the edge: the last entry of `scope`."""
        own = own_cursor(start)
        words = client.forward_words(start, None)
        main = ["true"] if isinstance(start, Tail) else self._command(words, wanted)
        behind = client.Behind(own)
        commands = [*self._place_commands(own), self._command(client.LAST_WORDS, scope), main]
        async with self._talking(commands) as talk:
            lost = own is not None and _gone(await _entries_of(talk), own)
            last = _last(await _entries_of(talk))
            stand = client.reached(start, last)
            yield Slice((), None if lost or not isinstance(start, Tail) else stand, False, lost)
            async with contextlib.aclosing(self._entries(talk, wanted, SILENCE_S)) as entries:
                async for some in entries:
                    if fresh := behind(some):
                        stand = fresh[-1].cursor
                        yield Slice(tuple(fresh), stand, False)
        yield Slice((), stand, True)

    # Asking.

    @property
    def _place_words(self) -> Words:
        return [f"--directory={self._directory}"] if self._directory else []

    def _place_commands(self, own: Cursor | None) -> list[Words]:
        return [] if own is None else [self._command(client.near_words(own))]

    def _command(self, words: Words, wanted: Matches = ()) -> Words:
        return [
            *("env", "LC_ALL=C", "journalctl", "--quiet", "--no-pager", "--output=export"),
            *self._place_words,
            *words,
            *client.match_words(wanted),
        ]

    @contextlib.asynccontextmanager
    async def _talking(self, commands: Sequence[Words]) -> AsyncIterator[Talk]:
        if self._is_closed:
            raise SourceError(f"{self.name}: is closed")
        mark = f"jobtui-{secrets.token_hex(8)}-"
        try:
            line = line_of(mark, commands)
        except ValueError as error:
            raise SourceError(f"{self.name}: cannot be asked for that: {error}") from error
        running = await self._shell.run(line)
        try:
            talk = Talk(self._shell, running, mark)
            await talk.begin()
            yield talk
        finally:
            await running.stop()

    async def _print(self, command: Words) -> tuple[bytes, str]:
        printed = b""
        async with self._talking([command]) as talk:
            async with talk.deadline(), contextlib.aclosing(talk.pieces(SILENCE_S)) as pieces:
                async for piece in pieces:
                    printed += piece
                    if len(printed) >= ANSWER_BYTES:
                        break
            return printed, talk.said

    async def _entries(
        self, talk: Talk, wanted: Matches, silence_s: float | None
    ) -> AsyncGenerator[list[JournalEntry], None]:
        """The entries of the last answer as they come. Raises SourceError when it ends inside one."""
        parser = ExportParser()
        skipped, exact = 0, client.is_exact(wanted)
        async with contextlib.aclosing(talk.pieces(silence_s)) as pieces:
            async for piece in pieces:
                some = [raw for raw in parser.feed(piece) if exact or client.fulfils(raw, wanted)]
                self._skipped += parser.skipped - skipped
                skipped = parser.skipped
                if made := [entry for entry in map(entry_of_export, some) if entry is not None]:
                    yield made
        if parser.pending:
            raise SourceUnreachable(f"{self.name}: it broke off in the middle of an entry; it is read anew")


def _bound(start: Start, wanted: Matches, most: int) -> int | None:
    """How many entries are asked for: one more tells whether this is the edge; some may precede a place."""
    if not client.is_exact(wanted):
        return None
    return most + 1 + (client.NEAR_ENTRIES if isinstance(start, Beside) else 0)


def _last(entries: Sequence[JournalEntry]) -> JournalEntry | None:
    return entries[-1] if entries else None


def _gone(near: Sequence[JournalEntry], cursor: Cursor) -> bool:
    """Whether what a cursor stands for is not among what was found at its place."""
    return all(entry.cursor != cursor for entry in near)


class LocalJournalctl(JournalctlReader):
    """A `JournalReader` over the journalctl of this machine, for where systemd-python is not installed."""

    def __init__(self, name: str, directory: str | None) -> None:
        super().__init__(LocalShell(name), directory or "")


class SshJournal(JournalctlReader):
    """The journal that `ssh://[user@]host[:port][/directory]` names. Connects when it is asked something."""

    def __init__(self, spec: str) -> None:
        shell = SshShell(spec)
        super().__init__(shell, shell.directory)


async def _entries_of(talk: Talk) -> list[JournalEntry]:
    """The entries of an answer that is followed by another one; only a few are asked for so."""
    parser = ExportParser()
    raws: list[Raw] = []
    await talk.answer(lambda data: raws.extend(parser.feed(data)))
    return [entry for raw in raws if (entry := entry_of_export(raw)) is not None]
