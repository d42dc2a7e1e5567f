"""Searching archives for a script: by job, or by its text.

No source delays the others for long: one that hangs is given up after a while.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from jobtui.backends.registry import of_kind
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, contained
from jobtui.model.scripts import (
    Answer,
    ArchivedScript,
    Outcome,
    ScriptArchive,
    ScriptPeriod,
    ScriptSource,
    Tried,
    Wanted,
    text_of,
)

ANSWER_S = 30.0
OUTCOMES = (
    (SourceDenied, Outcome.DENIED),
    (SourceMissing, Outcome.NO_ARCHIVE),
    (SourceError, Outcome.NO_ANSWER),
)


async def find_script(sources: Iterable[object], wanted: Wanted) -> Answer:
    """The script of a job from the first source that has it exactly, else from any that has it."""
    if not wanted.is_batch:
        return Answer(None, (Tried(wanted.shown, Outcome.INTERACTIVE, "srun and salloc submit no script"),))
    found: list[ArchivedScript] = []
    array = Tried(wanted.shown, Outcome.ARRAY, f"under job {wanted.number}")  # a task has none of its own
    tried: list[Tried] = [array] if wanted.task else []
    for source in in_order(sources):
        answer = await _ask(source, wanted)
        tried += answer.tried
        if answer.script is not None:
            found.append(answer.script)
            if wanted.cluster and not answer.script.is_lossy:
                break
    chosen = next((script for script in found if not script.is_lossy), found[0] if found else None)
    if chosen is not None:
        clusters = sorted({one.cluster for one in found if one.cluster != chosen.cluster and one.cluster})
        if clusters:
            names = ", ".join(clusters)
            note = f"{names} has one too; CLUSTER/{chosen.number} tells them apart"
            chosen = msgspec.structs.replace(chosen, notes=(*chosen.notes, note))
    return Answer(chosen, tuple(tried))


def in_order(sources: Iterable[object]) -> list[ScriptSource]:
    kept = [source for source in sources if isinstance(source, ScriptSource)]
    return sorted(kept, key=lambda source: of_kind(getattr(source, "kind", "")).script_rank)


async def _ask(source: ScriptSource, wanted: Wanted) -> Answer:
    if wanted.cluster and source.cluster and wanted.cluster != source.cluster:
        return Answer(None, (Tried(source.name, Outcome.OTHER_CLUSTER, source.cluster),))
    with contained("looking for a script") as asking:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await source.find(wanted)
        except TimeoutError:
            return Answer(None, (Tried(source.name, Outcome.NO_ANSWER, f"not within {ANSWER_S:g} s"),))
        except SourceError as error:
            outcome = next(outcome for kind, outcome in OUTCOMES if isinstance(error, kind))
            why = str(error).removeprefix(f"{source.name}: ")
            return Answer(None, (Tried(source.name, outcome, why),))
    return Answer(None, (Tried(source.name, Outcome.NO_ANSWER, asking.words),))


USER_VARIABLES = ("USER", "LOGNAME", "SLURM_JOB_USER", "PBS_O_LOGNAME")
MOST_REASONS = 5
MOST_LINES = 20
"""How many matching lines of a script are given, the first ones."""


class Hit(NamedTuple):
    """A script with matches: how many lines, and the first of them with their numbers."""

    script: ArchivedScript
    user: str
    total: int
    lines: tuple[tuple[int, str], ...]


class ScriptQuery(NamedTuple):
    """The search: a pattern, a user ("" for any), a period, and the most scripts to read.

    The pattern is evaluated in this process: it must be a safe one.
    """

    pattern: str
    user: str
    span: ScriptPeriod
    most_hits: int = 1_000


class Tally:
    """Its progress, and what could not be read."""

    def __init__(self) -> None:
        self.scripts = 0
        self.unreadable = 0
        self.where = ""
        self.reasons: list[str] = []
        """The first few reasons why something was not read."""
        self.cuts: list[str] = []
        """Counts of what was left out because there is too much."""

    def miss(self, why: str) -> None:
        self.unreadable += 1
        if len(self.reasons) < MOST_REASONS:
            self.reasons.append(why)


async def search(sources: Iterable[object], query: ScriptQuery, tally: Tally) -> AsyncIterator[Hit]:
    """The scripts with matches, as they are found. What cannot be read is counted."""
    hits, pattern = 0, re.compile(query.pattern.encode("utf-8", "surrogatepass"))
    for source in (one for one in in_order(sources) if isinstance(one, ScriptArchive)):
        with contained("searching scripts") as walking:
            try:
                async for script in _scripts(source, query, tally):
                    if (hit := _hit(pattern, script)) is None:
                        continue
                    yield hit
                    hits += 1
                    if hits >= query.most_hits:
                        tally.cuts.append(f"more than {query.most_hits:,} contain it")
                        return
            except SourceError as error:
                tally.miss(str(error))
        if walking.fault is not None:
            tally.miss(f"{source.name}: {walking.words}")


async def _scripts(source: ScriptArchive, query: ScriptQuery, tally: Tally) -> AsyncIterator[ArchivedScript]:
    def at(where: str) -> None:
        tally.where = where

    count, most = 0, query.span.most
    async with aclosing(source.walk(query.span, at)) as found:
        async for walked in found:
            count += 1
            if count > most:
                tally.cuts.append(f"{source.name}: more than {most:,} scripts, the others were left out")
                return
            if walked.cut:
                tally.cuts.append(walked.cut)
            if walked.unreadable:
                tally.miss(walked.unreadable)
            if walked.script is not None:
                tally.scripts += 1
                if not query.user or user_of(walked.script) == query.user:
                    yield walked.script


def _hit(pattern: re.Pattern[bytes], script: ArchivedScript) -> Hit | None:
    lines = script.script.split(b"\n")
    found = [number for number, line in enumerate(lines, 1) if pattern.search(line.rstrip(b"\r"))]
    if not found:
        return None
    first = tuple((number, text_of(lines[number - 1])) for number in found[:MOST_LINES])
    return Hit(script, user_of(script), len(found), first)


def user_of(script: ArchivedScript) -> str:
    """The user who submitted it, by its environment; "" if that is not in it."""
    environment = script.environment
    if environment is None:
        return ""
    if environment.is_files:
        owners = (v.value.partition(b"<owner>")[2] for v in environment.variables if v.value is not None)
        first = next(filter(None, owners), b"")
        return text_of(first.partition(b"<")[0].partition(b"@")[0])
    return next(filter(None, map(environment.value, USER_VARIABLES)), None) or ""
