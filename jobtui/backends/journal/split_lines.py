"""Lines that docker has split, put together: it gives a long one in pieces of 16 KiB, each an entry.

All pieces but the last have CONTAINER_PARTIAL_MESSAGE=true: docker's documentation of its journald driver.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

import msgspec

from jobtui.formats.journal_fields import MESSAGE_LIMIT
from jobtui.model.journal import JournalEntry

LINES_OPEN = 200
"""Lines of which the last piece is yet to come; those that began longest ago are given as they are."""

_Writer = tuple[str, str, str, int | None]


class SplitLines:
    """Takes entries in order. Pieces of the two outputs of a container may stand between each other."""

    def __init__(self) -> None:
        self._open: OrderedDict[_Writer, JournalEntry] = OrderedDict()

    def joined(self, entries: Iterable[JournalEntry]) -> Iterator[JournalEntry]:
        """The entries, those of pieces as one, as the first of them; its message may be cut."""
        for entry in entries:
            writer = entry.host, entry.container, entry.container_id, entry.priority
            begun = self._open.pop(writer, None) if entry.container else None
            whole = entry if begun is None else _joined(begun, entry)
            if not entry.is_begun or not entry.container:
                yield whole
                continue
            self._open[writer] = whole
            if len(self._open) > LINES_OPEN:
                yield self._open.popitem(last=False)[1]


def _joined(begun: JournalEntry, entry: JournalEntry) -> JournalEntry:
    message = (begun.message + entry.message)[:MESSAGE_LIMIT]
    return msgspec.structs.replace(
        begun, message=message, size=begun.size + entry.size, is_begun=entry.is_begun
    )
