"""The streams of a session's journals as logs to be opened by name.

A name is that of a stream, `sirepo_job_supervisor@v3`, or a journal and what is wanted of it as journalctl
takes it: `ssh://v7 CONTAINER_NAME=srj-p-VUlhaMOD`, with `+` between groups.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from jobtui.backends.base import Source
from jobtui.backends.journal.opening import maker_of
from jobtui.backends.journal.page_lines import Selection, matches_of
from jobtui.backends.journal.pages import JournalPages
from jobtui.backends.journal.source import Journal
from jobtui.backends.journal.streams import Stream, StreamKind, StreamNames, Wanted
from jobtui.backends.window import Until
from jobtui.model.journal import Match, Matches
from jobtui.model.specs import parse_journal

_QUERY = re.compile(r"(?P<journal>.+?) (?P<words>[A-Z_][A-Z0-9_]*=.*)", re.DOTALL)
_ANY = Wanted(["*"], ["*"], ["*"])


def journals_of(sources: Iterable[Source]) -> Iterator[Journal]:
    """The journals among sources."""
    for source in sources:
        inner = source.source if isinstance(source, Until) else source
        if isinstance(inner, Journal):
            yield inner


def stream_names(sources: Iterable[Source]) -> tuple[str, ...]:
    """Every stream that is known, services before containers; one that two journals have comes once."""
    found: dict[str, Stream] = {}
    for journal in journals_of(sources):
        for name, stream in journal.streams.items():
            found.setdefault(name, stream)
    return tuple(sorted(found, key=lambda name: (found[name].kind is StreamKind.CONTAINER, name)))


def open_stream(sources: Iterable[Source], name: str) -> JournalPages | None:
    """The log of a stream, or of what a name asks a journal for; None for any other name."""
    known = list(journals_of(sources))
    for journal in known:
        if (stream := journal.names.stream_called(name)) is not None:
            return _pages(journal, name, [stream])
    asked = query_of_name(name)
    if asked is None:
        return None
    target, matches = asked
    make = next((journal.make_reader for journal in known if journal.name == target), maker_of(target))
    return JournalPages(name, make, Selection(StreamNames(target), _ANY, None, matches))


def query_of_name(name: str) -> tuple[str, Matches] | None:
    """The journal and the matches that a name asks for; None when it is no such name."""
    found = _QUERY.fullmatch(name)
    if found is None:
        return None
    try:
        target = parse_journal(found["journal"]).target
    except ValueError:
        return None
    groups = [_group(words) for words in found["words"].split(" + ")]
    return (target, tuple(groups)) if all(groups) else None


def _group(words: str) -> tuple[Match, ...]:
    pairs = [word.partition("=") for word in words.split(" ") if word]
    return tuple((field, value) for field, equals, value in pairs if equals)


def merged_journals(sources: Iterable[Source], chosen: Sequence[str] | None) -> dict[str, JournalPages]:
    """For each journal a log of those of its streams that were chosen; None: of all, also those to come."""
    found: dict[str, JournalPages] = {}
    taken: set[str] = set()
    for journal in journals_of(sources):
        if chosen is None:
            found[journal.name] = _pages(journal, journal.name, None)
            continue
        names = [name for name in chosen if name in journal.streams and name not in taken]
        taken.update(names)
        if names:
            streams = [journal.streams[name] for name in names]
            found[journal.name] = _pages(journal, journal.name, streams)
    return found


def _pages(journal: Journal, name: str, streams: Sequence[Stream] | None) -> JournalPages:
    matches = journal.matches if streams is None else matches_of(streams)
    selection = Selection(journal.names, journal.wanted, streams, matches)
    return JournalPages(name, journal.make_reader, selection)
