"""Lengths of time in words, and back."""

import math
import re

NONE = "–"
"""Stands for a value that is not known."""

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_COARSE_FROM_S = 10 * _MINUTE


def age(seconds: float | None, *, coarse_from_s: float = _COARSE_FROM_S) -> str:
    """How long ago, as coarse as is useful: "41s", "6m12s", "12m", "1h04m", "3d 2h", "12d"; "–" for None.

    From ten minutes on, or `coarse_from_s`, it changes only once a minute, so that a table of ages costs few
    bytes.
    """
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 0:
        return f"-{age(-seconds, coarse_from_s=coarse_from_s)}" if seconds <= -1 else "0s"
    if coarse_from_s <= seconds < _HOUR:
        return f"{int(seconds) // _MINUTE}m"
    return _in_units(int(seconds))


def duration(seconds: float | None) -> str:
    """How long: "40ms", "2.9s", "41s", "6m12s", "1h04m", "3d 2h", "12d"; "–" for None."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if 0 < seconds < 0.1:
        return f"{seconds * 1000:.0f}ms" if seconds >= 0.001 else "<1ms"
    if seconds < 9.95 and seconds != int(seconds):
        return f"{seconds:.1f}s".replace(".0s", "s")
    return _in_units(int(seconds))


def _in_units(seconds: int) -> str:
    if seconds < _MINUTE:
        return f"{seconds}s"
    if seconds < _HOUR:
        minutes, rest = divmod(seconds, _MINUTE)
        return f"{minutes}m{rest:02d}s" if rest else f"{minutes}m"
    if seconds < _DAY:
        hours, rest = divmod(seconds, _HOUR)
        return f"{hours}h{rest // _MINUTE:02d}m" if rest >= _MINUTE else f"{hours}h"
    days, rest = divmod(seconds, _DAY)
    return f"{days}d {rest // _HOUR}h" if rest >= _HOUR and days < 10 else f"{days}d"


_UNITS_S = {"s": 1.0, "m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
_DURATION = (
    r"(?:(?P<w>\d{1,9})w)?(?:(?P<d>\d{1,9})d)?(?:(?P<h>\d{1,9})h)?(?:(?P<m>\d{1,9})m)?"
    r"(?:(?P<s>\d{1,9}(?:\.\d{1,9})?)s)?"
)


def parse_duration(text: str) -> float | None:
    """Seconds of "90s", "10m", "2h30m", "1d", "3d 2h" or "0.5s"; None when `text` is no duration."""
    found = re.fullmatch(_DURATION, text.replace(" ", "").lower(), re.ASCII)
    if found is None or not any(found.groups()):
        return None
    return sum(float(amount) * _UNITS_S[unit] for unit, amount in found.groupdict().items() if amount)
