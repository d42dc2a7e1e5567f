"""Looking for a script in one place after the other, until one has it. What came of each is kept.

No place can hold up the others: one that hangs is left alone after a while.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing
from jobtui.model.scripts import Answer, ArchivedScript, Outcome, ScriptPlace, Tried, Wanted

ANSWER_S = 30.0
"""How long a place may take."""
OUTCOMES = (
    (SourceDenied, Outcome.DENIED),
    (SourceMissing, Outcome.NO_PLACE),
    (SourceError, Outcome.NO_ANSWER),
)
EXACT_FIRST = ("archive", "slurm", "elastic", "kafka")
"""Kinds of places, those that keep scripts byte for byte first."""
NO_SCRIPT = "srun and salloc submit none"


async def find_script(places: Iterable[object], wanted: Wanted) -> Answer:
    """The script of a job out of the first place that has it exactly, else out of any that has it."""
    if not wanted.is_batch:
        return Answer(None, (Tried(wanted.shown, Outcome.INTERACTIVE, NO_SCRIPT),))
    found: list[ArchivedScript] = []
    tried: list[Tried] = list(_of_array(wanted))
    for place in in_order(places):
        answer = await _ask(place, wanted)
        tried += answer.tried
        if answer.script is not None:
            found.append(answer.script)
            if wanted.cluster and not answer.script.is_lossy:
                break
    chosen = next((script for script in found if not script.is_lossy), found[0] if found else None)
    return Answer(_doubted(chosen, found) if chosen is not None else None, tuple(tried))


def in_order(places: Iterable[object]) -> list[ScriptPlace]:
    """Those that keep scripts, in the order in which they are asked."""
    kept = [place for place in places if isinstance(place, ScriptPlace)]
    return sorted(kept, key=_rank)


def _rank(place: ScriptPlace) -> int:
    kind = getattr(place, "kind", "")
    return EXACT_FIRST.index(kind) if kind in EXACT_FIRST else 0


def _of_array(wanted: Wanted) -> Iterator[Tried]:
    """That a task has no script of its own."""
    if wanted.task:
        yield Tried(wanted.shown, Outcome.ARRAY, f"under job {wanted.number}")


async def _ask(place: ScriptPlace, wanted: Wanted) -> Answer:
    if wanted.cluster and place.cluster and wanted.cluster != place.cluster:
        return Answer(None, (Tried(place.name, Outcome.OTHER_CLUSTER, place.cluster),))
    try:
        async with asyncio.timeout(ANSWER_S):
            return await place.find(wanted)
    except TimeoutError:
        return Answer(None, (Tried(place.name, Outcome.NO_ANSWER, f"not within {ANSWER_S:g} s"),))
    except SourceError as error:
        outcome = next(outcome for kind, outcome in OUTCOMES if isinstance(error, kind))
        return Answer(None, (Tried(place.name, outcome, _without(place.name, str(error))),))


def _without(name: str, text: str) -> str:
    """An error without the name that stands beside it anyway."""
    return text.removeprefix(f"{name}: ")


def _doubted(chosen: ArchivedScript, found: Sequence[ArchivedScript]) -> ArchivedScript:
    """The script, and that other clusters have a job of this number, where that was not told apart."""
    clusters = sorted({one.cluster for one in found if one.cluster != chosen.cluster and one.cluster})
    if not clusters:
        return chosen
    note = f"there is one of {', '.join(clusters)} as well; CLUSTER/{chosen.number} tells them apart"
    return msgspec.structs.replace(chosen, notes=(*chosen.notes, note))
