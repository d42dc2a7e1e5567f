"""What journalctl is asked with, whoever runs it: its words, for slices and for following.

A place is given as `--cursor`, and its entry dropped when it comes first: with `--after-cursor`, systemd
before 254 loses the first wanted entry when the place itself is not among the wanted ones. Slices are bounded
with `--lines` only where every release counts from the place on; with `--since` some count from the end.
"""

import re

from jobtui.backends.base import SourceError
from jobtui.formats.journal_export import Raw
from jobtui.model.clock import Nanos
from jobtui.model.journal import At, Beside, Cursor, Head, Match, Matches, Tail

NEAR_ENTRIES = 16
"""Where an entry is, this many may come before it: other hosts may have sent in the same microsecond."""

FIELD_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}", re.ASCII)

Words = list[str]


def without_surplus(matches: Matches) -> Matches:
    """The same question in its shortest form: a group without any match wants every entry."""
    return () if any(not group for group in matches) else tuple(dict.fromkeys(matches))


def checked(matches: Matches, name: str) -> Matches:
    """The same question in its shortest form. Raises SourceError for what no journal can be asked."""
    check(matches, name)
    return without_surplus(matches)


def check(matches: Matches, name: str) -> None:
    """Raise SourceError for a match that no journal can be asked."""
    for field, value in (match for group in matches for match in group):
        check_field(field, name)
        if "\0" in value:
            raise SourceError(f"{name}: cannot be asked for a value of {field} with a NUL in it")


def check_field(field: str, name: str) -> None:
    """Raise SourceError for what is no name of a field."""
    if not FIELD_NAME.fullmatch(field):
        raise SourceError(f"{name}: no field of a journal is called {field!r:.80}")


def is_exact(matches: Matches) -> bool:
    """Whether a journal takes these groups for what they say: it takes one field given twice for either."""
    return all(len({field for field, _ in group}) == len(set(group)) for group in matches)


def fulfils(entry: Raw, matches: Matches) -> bool:
    """Whether an entry is wanted."""
    return not matches or any(all(_has(entry, match) for match in group) for group in matches)


def _has(entry: Raw, match: Match) -> bool:
    value = entry.get(match[0].encode())
    wanted = match[1].encode("utf-8", "surrogateescape")
    return wanted in value if isinstance(value, list) else wanted == value


def match_words(matches: Matches) -> Words:
    """The matches: of a group all, of the groups any."""
    words: Words = []
    for group in matches:
        words += ["+"] if words else []
        words += [f"{field}={value}" for field, value in group]
    return words


def forward_words(start: Head | At | Beside, count: int | None) -> Words:
    """Entries from a place on, oldest first; its own entry is among them. `count` None asks for all."""
    if isinstance(start, Beside):
        return [f"--cursor={start.cursor}", *_bound(count)]
    return [f"--since=@{_seconds(_micros_from(start.time))}"] if isinstance(start, At) else []


def backward_words(start: Tail | At | Beside, count: int | None) -> Words:
    """Entries up to a place, newest first; its own entry is among them."""
    words = ["--reverse", *_bound(count)]
    if isinstance(start, Beside):
        return [*words, f"--cursor={start.cursor}"]
    return [*words, f"--until=@{_seconds(_micros_before(start.time))}"] if isinstance(start, At) else words


def near_words(cursor: Cursor) -> Words:
    """The entry at a place among the first ones given, when it is there."""
    return [f"--cursor={cursor}", f"--lines={NEAR_ENTRIES}"]


def follow_words(start: Head | At | Beside) -> Words:
    """Everything from a place on, and what is written later."""
    return ["--follow", "--no-tail", *forward_words(start, None)]


LAST_WORDS: Words = ["--lines=1"]
"""The last entry there is."""


def _bound(count: int | None) -> Words:
    return [] if count is None else [f"--lines={count}"]


def _micros_from(time: Nanos) -> int:
    """The first microsecond that is not before a time."""
    return max(-(-time // 1_000), 0)


def _micros_before(time: Nanos) -> int:
    """The last microsecond before a time."""
    return max(_micros_from(time) - 1, 0)


def _seconds(micros: int) -> str:
    return f"{micros // 1_000_000}.{micros % 1_000_000:06d}"
