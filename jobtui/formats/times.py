"""Times of log lines that carry neither a year nor a zone: they are UTC, and never in the future."""

from datetime import UTC, datetime

from jobtui.model.clock import SECOND, Nanos

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(MONTHS, 1)}
TIME_LENGTH = len("Nov 20 20:34:30")
SKEW = 600 * SECOND
"""How far a line may be ahead of its file's newest time before it is taken for last year's: clocks differ."""


class TimeReader:
    """Times of one file: `Mon DD HH:MM:SS` at the head of a line, the year taken from what is newest."""

    def __init__(self) -> None:
        self._text = ""
        self._newest = Nanos(-1)
        self._at: Nanos | None = None

    def read(self, text: str, newest: Nanos) -> Nanos | None:
        """The time `text` stands for, the latest one not after `newest`; None when it is no time.

        Lines come in runs of the same second, so the last answer is kept.
        """
        if text != self._text or newest != self._newest:
            self._text, self._newest = text, newest
            self._at = latest(text, newest)
        return self._at


def latest(text: str, newest: Nanos) -> Nanos | None:
    """The latest time written `Mon DD HH:MM:SS` that is not more than SKEW after `newest`.

    Feb 29 is looked for in up to eight years back. None when `text` is not such a time,
    or `newest` not one of the years 1 to 9999: a file's mtime can be anything.
    """
    try:
        month = _MONTHS[text[:3]]
        day, hour, minute, second = int(text[4:6]), int(text[7:9]), int(text[10:12]), int(text[13:15])
        year = datetime.fromtimestamp((newest + SKEW) // SECOND, UTC).year
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    for candidate in range(year, year - 9, -1):
        try:
            moment = datetime(candidate, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            continue
        at = Nanos(int(moment.timestamp()) * SECOND)
        if at <= newest + SKEW:
            return at
    return None
