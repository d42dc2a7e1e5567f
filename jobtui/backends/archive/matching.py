"""Which of the scripts that a service has under a number is the job's that is meant."""

from collections.abc import Sequence

from jobtui.backends.archive.lookup import OTHER_JOB_DAYS
from jobtui.backends.archive.periods import DAY
from jobtui.model.clock import to_rfc3339
from jobtui.model.scripts import ArchivedScript, Outcome, Tried, Wanted


def fits(script: ArchivedScript, wanted: Wanted) -> bool:
    """Whether it is the script of the job, by number, cluster and time."""
    return _is_named(script, wanted) and _is_of_cluster(script, wanted) and _is_of_time(script, wanted)


def best(scripts: Sequence[ArchivedScript], wanted: Wanted) -> ArchivedScript | None:
    """The one that fits best: nearest to the submission, else the newest."""
    at = wanted.submitted_at
    good = [script for script in scripts if fits(script, wanted)]
    if at is None:
        return max(good, key=lambda script: script.archived_at or 0, default=None)
    return min(good, key=lambda script: abs((script.archived_at or 0) - at), default=None)


def missed(where: str, found: Sequence[ArchivedScript], wanted: Wanted) -> Tried:
    """What came of looking where nothing fits."""
    named = [script for script in found if _is_named(script, wanted)]
    here = [script for script in named if _is_of_cluster(script, wanted)]
    if here:
        times = ", ".join(to_rfc3339(script.archived_at) for script in here[:2] if script.archived_at)
        note = f"it has another job of this number, archived {times}; --at TIME shows it"
        return Tried(where, Outcome.NOT_THERE, note)
    if named:
        names = ", ".join(sorted({script.cluster for script in named}))
        return Tried(where, Outcome.OTHER_CLUSTER, f"the job of this number is one of {names}")
    return Tried(where, Outcome.NOT_THERE)


def _is_named(script: ArchivedScript, wanted: Wanted) -> bool:
    if wanted.server:
        return script.number == wanted.number + wanted.server
    return script.number.partition(".")[0] == wanted.number


def _is_of_cluster(script: ArchivedScript, wanted: Wanted) -> bool:
    return not wanted.cluster or not script.cluster or script.cluster == wanted.cluster


def _is_of_time(script: ArchivedScript, wanted: Wanted) -> bool:
    at = script.archived_at
    if at is None:
        return True
    if wanted.submitted_at is not None:
        return abs(at - wanted.submitted_at) <= OTHER_JOB_DAYS * DAY
    return wanted.until is None or at <= wanted.until
