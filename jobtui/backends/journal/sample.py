"""The lines at the end of what is read of a journal, for judging how much of it is understood."""

from jobtui.backends.journal.contract import JournalReader
from jobtui.backends.journal.source import Journal
from jobtui.backends.journal.split_lines import SplitLines
from jobtui.model.clock import Nanos
from jobtui.model.journal import At, Beside, JournalEntry, Tail

SAMPLE_ENTRIES = 20_000
"""At most about so many entries are looked at."""
PIECE = 1_000


async def sample_lines(journal: Journal, until: Nanos | None) -> list[bytes]:
    """The last lines of its streams in what is read, before `until`. Raises SourceError."""
    reader = journal.make_reader()
    try:
        entries = await _last_entries(reader, journal, until)
    finally:
        await reader.aclose()
    wanted = (entry for entry in entries if journal.wanted.stream_of(entry) is not None)
    whole = SplitLines().joined(wanted)
    return [line for entry in whole for line in entry.message.encode("utf-8", "replace").split(b"\n")]


async def _last_entries(reader: JournalReader, journal: Journal, until: Nanos | None) -> list[JournalEntry]:
    """Oldest first."""
    pieces: list[tuple[JournalEntry, ...]] = []
    start: Tail | At | Beside = Tail() if until is None else At(until)
    count, at_edge = 0, False
    while count < SAMPLE_ENTRIES and not at_edge:
        found = await reader.backward(start, journal.matches, PIECE)
        pieces.insert(0, tuple(entry for entry in found.entries if not journal.begins_after(entry.at)))
        count += len(pieces[0])
        at_edge = found.at_edge or found.cursor is None or len(pieces[0]) < len(found.entries)
        start = start if found.cursor is None else Beside(found.cursor)
    return [entry for piece in pieces for entry in piece]
