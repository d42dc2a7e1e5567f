"""A journal through journalctl, wherever it runs: here, or on another host."""

import contextlib
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from jobtui.backends.base import SourceError, SourceUnreachable
from jobtui.backends.journal import asking, order
from jobtui.backends.journal.asking import Words
from jobtui.backends.journal.connected import follow_apart
from jobtui.backends.journal.contract import Following
from jobtui.backends.journal.following import ConnectedFollowing
from jobtui.backends.journal.talk import SILENCE_S, Shell, Talk, line_of
from jobtui.formats.journal_export import ExportParser, Raw
from jobtui.formats.journal_fields import entry_of_export, stored_fields
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
        self._directory = directory
        self._skipped = 0
        self._is_closed = False

    @property
    def name(self) -> str:
        """As it was configured."""
        return self._shell.name

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""
        wanted = asking.checked(matches, self.name)
        words = asking.forward_words(start, _bound(start, wanted, most))
        last, found, lost = await self._read(start, words, wanted, most + 1)
        entries = tuple(found[:most])
        stand = entries[-1].cursor if entries else stand_of(start, last)
        return Slice(entries, stand, len(found) <= most, lost)

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`, oldest first."""
        wanted = asking.checked(matches, self.name)
        words = asking.backward_words(start, _bound(start, wanted, most))
        last, found, lost = await self._read(start, words, wanted, most + 1, back=True)
        entries = tuple(reversed(found[:most]))
        stand = entries[0].cursor if entries else own_cursor(start) or stand_of(start, last)
        return Slice(entries, stand, len(found) <= most, lost)

    async def fields(self, cursor: Cursor) -> Fields | None:
        """Everything one entry holds."""
        near = await self._raw(asking.near_words(cursor), ())
        wanted = cursor.encode("utf-8", "surrogateescape")
        return next((stored_fields(raw) for raw in near if raw.get(b"__CURSOR") == wanted), None)

    async def values(self, field: str) -> tuple[str, ...]:
        """The values that occur in a field."""
        asking.check_field(field, self.name)
        printed, _ = await self._print(self._command([f"--field={field}"]))
        return tuple(dict.fromkeys(printed.decode("utf-8", "replace").splitlines()))

    async def condition(self) -> JournalCondition:
        """How many files journalctl reads, what it says of the others, and what made no sense on the way."""
        printed, said = await self._print(["env", "LC_ALL=C", "journalctl", "--header", *self._place_words])
        notes = [f"{self._skipped} pieces of what came made no sense"] if self._skipped else []
        if _OWN_ONLY.search(said):
            notes.append("only entries of this user are to be seen; join the group systemd-journal for all")
        if _NO_FILES.search(said):
            notes.append("there are no journal files")
        unreadable = len(_UNREADABLE.findall(said))
        return JournalCondition(len(_FILE.findall(printed)), unreadable, "; ".join(notes))

    def follow(self, start: Start, matches: Matches) -> Following:
        """What is written from `start` on."""
        wanted = asking.checked(matches, self.name)
        if not self._directory:  # one host's alone
            return ConnectedFollowing(self.name, lambda place: self._listen(place, wanted), start)
        return follow_apart(self, self._one_of_each, self._listen, start, wanted)

    async def aclose(self) -> None:
        """Ask no more."""
        self._is_closed = True

    # Slices.

    async def _read(
        self, start: Start, words: Words, wanted: Matches, count: int, *, back: bool = False
    ) -> tuple[JournalEntry | None, list[JournalEntry], bool]:
        """The last entry of all, as it was before; up to `count` wanted ones; whether the place is gone."""
        behind = order.Behind(own_cursor(start), back=back)
        own = own_cursor(start)
        commands = [self._command(asking.LAST_WORDS), self._command(words, wanted)]
        async with self._talking([*self._place_commands(own), *commands]) as talk:
            lost = own is not None and _gone(await talk.entries(), own)
            last = _last(await talk.entries())
            found: list[JournalEntry] = []
            async with contextlib.aclosing(self._entries(talk, wanted, SILENCE_S)) as entries:
                async for some in entries:
                    found += behind(some)
                    if len(found) >= count:
                        break
        return last, found[:count], lost

    async def _one_of_each(self, groups: Sequence[Matches]) -> list[JournalEntry | None]:
        commands = [self._command(asking.LAST_WORDS, group) for group in groups]
        found: list[JournalEntry | None] = []
        for at in range(0, len(commands), ASKED_AT_ONCE):
            some = commands[at : at + ASKED_AT_ONCE]
            async with self._talking([*some, ["true"]]) as talk:
                found += [_last(await talk.entries()) for _ in some]
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

    async def _listen(
        self, start: Start, wanted: Matches, scope: Matches = ()
    ) -> AsyncGenerator[Slice, None]:
        """All that is there, then what is written: two questions, as journalctl does not tell the edge."""
        place = start
        async with contextlib.aclosing(self._catch_up(start, wanted, scope)) as slices:
            async for found in slices:
                place = place if found.cursor is None else Beside(found.cursor)
                yield found
        place = Head() if isinstance(place, Tail) else place
        follow = [*self._every_boot, *asking.follow_words(place)]
        async with self._talking([self._command(follow, wanted)]) as talk:
            behind = order.Behind(own_cursor(place))
            async with contextlib.aclosing(self._entries(talk, wanted, None)) as entries:
                async for some in entries:
                    if fresh := behind(some):
                        yield Slice(tuple(fresh), fresh[-1].cursor, True)
        raise SourceUnreachable(f"{self.name}: journalctl stopped following; it is started anew")

    async def _catch_up(self, start: Start, wanted: Matches, scope: Matches) -> AsyncGenerator[Slice, None]:
        """What is there from `start` on, up to the edge: the last entry of `scope`."""
        own = own_cursor(start)
        main = (
            ["true"] if isinstance(start, Tail) else self._command(asking.forward_words(start, None), wanted)
        )
        behind = order.Behind(own)
        commands = [*self._place_commands(own), self._command(asking.LAST_WORDS, scope), main]
        async with self._talking(commands) as talk:
            lost = own is not None and _gone(await talk.entries(), own)
            last = _last(await talk.entries())
            stand = stand_of(start, last)
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

    @property
    def _every_boot(self) -> Words:
        """Without it `--follow` gives entries of the last boot only, which in a directory is one host's."""
        return ["--merge"] if self._directory else []

    def _place_commands(self, own: Cursor | None) -> list[Words]:
        """What finds out whether the entry to begin beside is there."""
        return [] if own is None else [self._command(asking.near_words(own))]

    def _command(self, words: Words, wanted: Matches = ()) -> Words:
        return [
            *("env", "LC_ALL=C", "journalctl", "--quiet", "--no-pager", "--output=export"),
            *self._place_words,
            *words,
            *asking.match_words(wanted),
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
        """What a command prints, and what it says on stderr."""
        printed = b""
        async with self._talking([command]) as talk:
            async with contextlib.aclosing(talk.pieces(SILENCE_S)) as pieces:
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
        skipped, exact = 0, asking.is_exact(wanted)
        async with contextlib.aclosing(talk.pieces(silence_s)) as pieces:
            async for piece in pieces:
                some = [raw for raw in parser.feed(piece) if exact or asking.fulfils(raw, wanted)]
                self._skipped += parser.skipped - skipped
                skipped = parser.skipped
                if made := [entry for entry in map(entry_of_export, some) if entry is not None]:
                    yield made
        if parser.pending:
            raise SourceUnreachable(f"{self.name}: it broke off in the middle of an entry; it is read anew")


def stand_of(start: Start, last: JournalEntry | None) -> Cursor | None:
    """Where reading stands that found nothing: at the end as it was, unless it begins later than that."""
    if last is None or (isinstance(start, At) and last.at < start.time):
        return own_cursor(start)
    return last.cursor


def _bound(start: Start, wanted: Matches, most: int) -> int | None:
    """How many entries are asked for: one more tells whether this is the edge; some may precede a place."""
    if not asking.is_exact(wanted):
        return None
    return most + 1 + (asking.NEAR_ENTRIES if isinstance(start, Beside) else 0)


def _last(entries: Sequence[JournalEntry]) -> JournalEntry | None:
    return entries[-1] if entries else None


def _gone(near: Sequence[JournalEntry], cursor: Cursor) -> bool:
    """Whether what a cursor stands for is not among what was found at its place."""
    return all(entry.cursor != cursor for entry in near)
