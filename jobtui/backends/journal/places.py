"""Places of entries along a journal: numbers out of the time of receipt, for whom nothing else is at hand.

Entries received in the same microsecond, and after the clock was set back, get the next number: so places
grow along the journal. They are the same in every reading as long as the clock was not set back.
"""

from collections.abc import Sequence

from jobtui.model.clock import Nanos
from jobtui.model.journal import place_at
from jobtui.model.pages import Place


class Places:
    """Gives entries their places, one after the other."""

    def __init__(self, behind: Place = -1) -> None:
        self._last = behind

    def next(self, at: Nanos) -> Place:
        """The place of the next entry, received at this time."""
        self._last = max(place_at(at), self._last + 1)
        return self._last


def places_before(times: Sequence[Nanos], limit: Place) -> list[Place]:
    """The places of entries received at these times, all before `limit`; the last entry comes last."""
    numbering = Places()
    places = [numbering.next(at) for at in times]
    for index in range(len(places) - 1, -1, -1):
        if places[index] < limit:
            break
        places[index] = limit = limit - 1
    return places
