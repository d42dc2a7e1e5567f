"""Regular expressions that are compiled when they are first used: a command uses few of those it imports."""

import re
from typing import Any, AnyStr, cast


class _Uncompiled:
    """In place of a compiled pattern; keeps what it was asked for, so that later calls cost no more."""

    def __init__(self, *given: Any) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, for the constants of a module: to compile one takes 0.1 ms of each start.

    Where each line of a log or each shown text passes, `re.compile` is a little quicker.
    """
    return cast("re.Pattern[AnyStr]", _Uncompiled(text, flags))
