"""Events of HTCondor that several files tell of, each of which counts once. Pure.

A schedd notes an event in its user's log and in its own, in the form and to the fraction of a second that is
set for each; and a log may be copied. So events of one job are the same if they are of one kind and of one
second, and each is as far among such ones of its file as the other is in its own.
"""

from collections.abc import Iterable, Iterator

from jobtui.model.clock import SECOND
from jobtui.model.condor_facts import CondorFact, Teller

PASSING = frozenset({"image_size", "file_transfer", "attribute_update", "generic"})
"""What comes again and again, changes no state, and of which the last one in each file tells enough."""


class Once:
    """Tells events of one job that are told for the first time from those that another file told before.

    It holds texts and numbers only, at which the garbage collector does not look.
    """

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._told_in: dict[str, int] = {}

    def is_new(self, fact: CondorFact) -> bool:
        """Take in one more fact, its time settled; whether no other file told the same event before."""
        if fact.teller is not Teller.EVENT or fact.what in PASSING:
            return True
        second = fact.text if fact.at is None else fact.at // SECOND
        moment = f"{fact.what} {second}"
        place = f"{fact.rotation} {fact.source} {moment}"
        count = self._told_in[place] = self._told_in.get(place, 0) + 1
        if count <= self._told.get(moment, 0):
            return False
        self._told[moment] = count
        return True


def told_once(facts: Iterable[CondorFact]) -> Iterator[CondorFact]:
    """The facts of a job in order of time, of each event the one that comes first."""
    return filter(Once().is_new, facts)


def files_in(facts: Iterable[CondorFact]) -> set[tuple[str, int]]:
    """The logs whose events are among facts. Where there is one, no event is told twice."""
    return {(fact.source, fact.rotation) for fact in facts if fact.teller is Teller.EVENT}
