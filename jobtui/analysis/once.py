"""Records that come twice, out of two journals that hold the same entries. Knows a bounded number of them."""

from collections import OrderedDict

from jobtui.model.logs import LogRecord

KNOWN = 200_000
"""Records known again; those that came longest ago are forgotten."""


class Once:
    """Tells records that came before; those out of files have no identity and are always new."""

    def __init__(self, known: int = KNOWN) -> None:
        self._most = known
        self._known: OrderedDict[int, None] = OrderedDict()
        self.repeats = 0

    def is_new(self, record: LogRecord) -> bool:
        """Whether it comes for the first time."""
        identity = record.identity
        if identity is None:
            return True
        if identity in self._known:
            self.repeats += 1
            return False
        self._known[identity] = None
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return True
