"""What a journal is worth: files that were opened, what is missing of it, how old its newest entry is."""

from collections.abc import Iterator
from typing import NamedTuple

from jobtui.backends.base import Source
from jobtui.backends.journal.gaps import gap_words
from jobtui.backends.journal.source import Journal
from jobtui.backends.window import unwrapped
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.words import counted
from jobtui.render.text import duration

STREAMS_NAMED = 8


class Verdict(NamedTuple):
    """What is not fine, and what else to know."""

    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def journal_of(source: Source) -> Journal | None:
    """The journal that a source reads, if it is one."""
    journal = unwrapped(source)
    return journal if isinstance(journal, Journal) else None


def examine_journal(source: Source, now: Nanos) -> tuple[Verdict, Nanos | None]:
    """What was found out by reading it, and when its newest entry came in."""
    if (journal := journal_of(source)) is None:
        return Verdict(), None
    return Verdict(tuple(_faults(journal)), tuple(_remarks(journal, now))), journal.newest_at


def _faults(journal: Journal) -> Iterator[str]:
    condition = journal.condition
    if condition.unreadable:
        told = f": {condition.note}" if condition.note else ""
        yield f"{condition.unreadable} of its files cannot be read{told}"
    elif not journal.streams and condition.note:
        yield condition.note
    for gap in journal.gaps:
        if not gap.recovered:
            yield gap_words(gap)


def _remarks(journal: Journal, now: Nanos) -> Iterator[str]:
    condition = journal.condition
    if condition.files is not None:
        yield f"{counted(condition.files, 'file')} opened"
    names = list(journal.streams)
    if names:
        more = f" and {len(names) - STREAMS_NAMED} more" if len(names) > STREAMS_NAMED else ""
        yield f"reads {', '.join(names[:STREAMS_NAMED])}{more}"
    else:
        yield "no entry of Sirepo's units or containers in what was read"
    if journal.newest_at is not None:
        yield f"its newest entry is {duration(max(0.0, seconds_between(journal.newest_at, now)))} old"
    for gap in journal.gaps:
        if gap.recovered:
            yield gap_words(gap)
