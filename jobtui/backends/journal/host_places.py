"""Where following stands that follows hosts apart, in one text that is a cursor to everybody else."""

from typing import NamedTuple

from jobtui.backends.journal.order import from_micros, position, time_cursor
from jobtui.model.clock import Nanos
from jobtui.model.journal import At, Beside, Cursor, Head, Match, Start

_EACH = "each"


class Places(NamedTuple):
    """Where following stands, apart: the place of each host, and where one begins that is new."""

    for_new: Start
    of: dict[Match, Start]


def cursor_of(places: Places) -> Cursor:
    """The text of them."""
    each = [f"{field}={value}|{_text(place)}" for (field, value), place in places.of.items()]
    return Cursor(" ".join((_EACH, _text(places.for_new), *each)))


def places_of(start: Start) -> Places | None:
    """The places that a cursor stands for; None for a place that is the same for all."""
    words = start.cursor.split(" ") if isinstance(start, Beside) else ()
    if len(words) < 2 or words[0] != _EACH:
        return None
    places: dict[Match, Start] = {}
    for word in words[2:]:
        host, _, place = word.partition("|")
        field, _, value = host.partition("=")
        places[field, value] = _place(place)
    return Places(_place(words[1]), places)


def _text(place: Start) -> str:
    if isinstance(place, At):
        return time_cursor(from_micros(place.time))
    return place.cursor if isinstance(place, Beside) else ""


def _place(text: str) -> Start:
    if text.startswith("t="):
        return At(Nanos((position(Cursor(text)).realtime or 0) * 1_000))
    return Beside(Cursor(text)) if text else Head()
