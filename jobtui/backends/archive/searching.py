"""Which scripts of all archives contain something: one archive after the other, and no more than so many."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import NamedTuple

from jobtui.backends.archive.finding import in_order
from jobtui.backends.archive.matcher import Matcher, Matches, TooSlow
from jobtui.backends.base import SourceError
from jobtui.model.scripts import ArchivedScript, ScriptArchive, Span, text_of

USER_VARIABLES = ("USER", "LOGNAME", "SLURM_JOB_USER", "PBS_O_LOGNAME")
OWNER = b"<owner>"
"""What stands before the user in the file of a job of Torque."""
MOST_REASONS = 5
MOST_SLOW = 10
"""Scripts for which a pattern may take too long before no more are tried."""


class Hit(NamedTuple):
    """A script that contains it: in how many lines, the first of them with their numbers."""

    script: ArchivedScript
    user: str
    total: int
    lines: tuple[tuple[int, str], ...]


class Query(NamedTuple):
    """What is sought: a pattern, of which user, "" for any, when, and in how many scripts at most."""

    pattern: str
    user: str
    span: Span
    most_hits: int = 1_000


class Tally:
    """How far it has come, and what could not be looked at."""

    def __init__(self) -> None:
        self.scripts = 0
        self.unreadable = 0
        self.too_slow = 0
        self.where = ""
        self.reasons: list[str] = []
        """Why something was not looked at, the first few."""
        self.cuts: list[str] = []
        """What was left out because it is too much."""

    def miss(self, why: str) -> None:
        """Count what could not be read."""
        self.unreadable += 1
        if len(self.reasons) < MOST_REASONS:
            self.reasons.append(why)

    def at(self, where: str) -> None:
        """Note where it is now."""
        self.where = where


async def search(places: Iterable[object], query: Query, tally: Tally) -> AsyncIterator[Hit]:
    """The scripts that contain it, as they are found. What cannot be read is tallied."""
    hits = 0
    async with Matcher(query.pattern) as matcher:
        for place in (one for one in in_order(places) if isinstance(one, ScriptArchive)):
            try:
                async for script in _scripts(place, query, tally):
                    hit = await _hit(matcher, script, tally)
                    if tally.too_slow >= MOST_SLOW:
                        tally.cuts.append("the pattern takes too long: no more were tried; make it simpler")
                        return
                    if hit is None:
                        continue
                    yield hit
                    hits += 1
                    if hits >= query.most_hits:
                        tally.cuts.append(f"more than {query.most_hits:,} contain it")
                        return
            except SourceError as error:
                tally.miss(str(error))


async def _scripts(place: ScriptArchive, query: Query, tally: Tally) -> AsyncIterator[ArchivedScript]:
    """The scripts of a place that are of the user."""
    told: Callable[[str], None] = tally.at
    async for walked in place.walk(query.span, told):
        if walked.cut:
            tally.cuts.append(walked.cut)
        if walked.unreadable:
            tally.miss(walked.unreadable)
        if walked.script is not None:
            tally.scripts += 1
            if not query.user or user_of(walked.script) == query.user:
                yield walked.script


async def _hit(matcher: Matcher, script: ArchivedScript, tally: Tally) -> Hit | None:
    try:
        found: Matches = await matcher.matches(script.script)
    except TooSlow:
        tally.too_slow += 1
        tally.miss(f"{script.source}: the pattern takes too long for it")
        return None
    if not found.total:
        return None
    lines = script.script.split(b"\n")
    return Hit(script, user_of(script), found.total, tuple((n, text_of(lines[n - 1])) for n in found.lines))


def user_of(script: ArchivedScript) -> str:
    """Who submitted it, as its environment says; "" where it does not."""
    environment = script.environment
    if environment is None:
        return ""
    if environment.is_files:
        owners = (v.value.partition(OWNER)[2] for v in environment.variables if v.value is not None)
        first = next(filter(None, owners), b"")
        return text_of(first.partition(b"<")[0].partition(b"@")[0])
    return next(filter(None, map(environment.value, USER_VARIABLES)), None) or ""
