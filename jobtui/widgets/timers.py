"""Timers that fire once do so, whatever else the machine does.

A timer of textual 8.2.8 leaves out what is due already when it looks at the clock for the first time, also
where it is to fire but once: held up for that long while it begins, it never does, and a key, an update or a
resize that waits for it is never seen. One that was due before it began, as that of a toast which is shown
again on another screen when its time is over, goes round for ever and holds up everything.
"""

from textual.timer import Timer, TimerCallback
from textual.types import MessageTarget

_begin = Timer.__init__


def mend_timers() -> None:
    """Let timers that fire once leave out nothing. May be called twice.

    Leans on an inside of the textual version that pyproject pins: `skip`, which `set_timer` does not pass on.
    """
    Timer.__init__ = _begin_mended  # type: ignore[method-assign]


def _begin_mended(
    self: Timer,
    event_target: MessageTarget,
    interval: float,
    *,
    name: str | None = None,
    callback: TimerCallback | None = None,
    repeat: int | None = None,
    skip: bool = True,
    pause: bool = False,
) -> None:
    leaves_out = skip and repeat is None
    _begin(
        self,
        event_target,
        interval,
        name=name,
        callback=callback,
        repeat=repeat,
        skip=leaves_out,
        pause=pause,
    )
