"""All that is known of a job of HTCondor, for whoever looks at it."""

from collections.abc import Iterator, Sequence

from jobtui.model.condor import LOST
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_jobs import job_of
from jobtui.model.condor_life import CondorLife
from jobtui.model.condor_once import told_once
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.store.condor_changes import changes_of

_LOST = LOST | {"held"}


def detail_of(job_id: JobId, life: CondorLife, facts: Sequence[CondorFact]) -> JobDetail:
    """A job by its life, and by the facts in order of time, at least one, that made it.

    An event that several files tell of is given as one of them has it.
    """
    runs = tuple(life.runs)
    source = min(facts, key=lambda fact: fact.teller.rank).source
    ads = [fact.values for fact in facts if fact.teller is Teller.AD]
    return JobDetail(
        job=job_of(job_id, life, source),
        runs=runs,
        history=runs,
        native={"ad": dict(ads[-1]) if ads else None, "told": [_native(fact) for fact in told_once(facts)]},
        path=source,
        changes=changes_of(job_id, life.turns),
        facts=tuple(_sayings(life, facts)),
    )


def _native(fact: CondorFact) -> dict[str, object]:
    return {
        "what": fact.what, "by": fact.teller.value, "source": fact.source, "offset": fact.offset,
        "text": fact.text,
    }  # fmt: skip


def _sayings(life: CondorLife, facts: Sequence[CondorFact]) -> Iterator[tuple[str, str]]:
    """What a person asks of a job beside how it stands."""
    for trace, fact in life.traces.items():
        yield "trace", f"{trace}, named in {fact.source}"
    if life.exit is not None:
        yield "ended with", str(life.exit)
    if life.lost:
        counts = ((what.replace("_", " "), life.counts[what]) for what in sorted(_LOST & life.counts.keys()))
        yield "lost runs", ", ".join(f"{count} {what}" for what, count in counts)
    if life.hold_code:
        yield "hold code", life.hold_code
    for name in ("args", "RequestMemory", "SlotName"):
        if text := life.values.get(name):
            yield name, text
    yield "told by", ", ".join(dict.fromkeys(fact.source for fact in facts))
