"""What job a pasted thing means: an exact id at once, anything else by ranked candidates."""

from collections.abc import Sequence
from typing import NamedTuple

from jobtui.analysis.find import Candidate, find, is_ambiguous
from jobtui.analysis.near import near
from jobtui.analysis.references import Reference, Target, references
from jobtui.commands.exits import Exit
from jobtui.commands.reading import Reader
from jobtui.commands.streams import complain
from jobtui.grammar import COMMAND_BY_NAME, nearest
from jobtui.model.clock import to_rfc3339
from jobtui.model.ids import JobId, app_of_run_dir, is_quasi_jid, numbered, split_jid
from jobtui.model.jobs import Job, JobDetail, JobStatus
from jobtui.model.servers import meant_by
from jobtui.model.specs import NUMBERING, SourceSpec

SHOWN = 10
"""How many candidates are named on stderr."""
SURE = 0.35
"""A candidate with a lower score is only spelled nearly so."""
LOG_TARGETS = frozenset({Target.OP, Target.AGENT, Target.CONTAINER})
"""What only logs know of."""


class Found(NamedTuple):
    """The job that was meant and what is stored of it; without one, what may have been meant instead."""

    job: Job | None = None
    detail: JobDetail | None = None
    candidates: tuple[Candidate, ...] = ()
    code: Exit = Exit.NOT_FOUND


async def resolve(reader: Reader, thing: str, *, to_end: bool = False) -> Found:
    """The one job that `thing` means. Reads only what that takes; says on stderr why there is none."""
    referred = list(references(thing.strip()))
    named = sorted({ref.text for ref in referred if ref.target is Target.JOB})
    number = next((ref.text for ref in referred if ref.target is Target.NUMBER), None)
    is_condor = any(ref.target is Target.CONDOR for ref in referred)  # `7@host` may be of Balsam as well
    if len(named) == 1 and not is_condor:
        return await _one_of(reader, _meant(reader, named[0]), thing, to_end=to_end)
    by_number = [] if number is None else _numbered(reader, number)
    if len(by_number) > 1:
        several = await _known_ids(reader, by_number)
        if len(several) > 1:
            return _ambiguous(thing, several)
    candidates = await candidates_for(reader, thing, referred)
    best = candidates[0] if candidates else None
    if best is not None and best.score >= SURE and best.job and not is_ambiguous(candidates):
        return await _exact(reader, best.job, to_end=to_end)
    if not by_number and len(named) == 1 and _servers(reader.specs, "balsam"):
        by_number = _meant(reader, named[0])
    if by_number and (best is None or best.score < SURE):
        # It may have ended before what is read of all jobs
        return await _one_of(reader, by_number, thing, to_end=to_end)
    if not reader.nothing_read:
        _say_why_not(thing, candidates)
    return Found(candidates=candidates)


def _servers(specs: Sequence[SourceSpec], system: str) -> dict[str, str]:
    """The label of each server or cluster of a system by its address."""
    return {spec.target: spec.label for spec in specs if spec.setting == system}


def _meant(reader: Reader, thing: str) -> list[JobId]:
    """The ids that a job's id may mean, of the servers that can have it."""
    parts = numbered(thing)
    if parts is None or parts.system not in NUMBERING:
        return [JobId(thing)]
    return meant_by(thing, _servers(reader.specs, parts.system), parts.system)


def _numbered(reader: Reader, number: str) -> list[JobId]:
    """The ids that a number may mean, of all systems that number their jobs."""
    read = [system for system in NUMBERING if _servers(reader.specs, system)]
    return [job_id for system in read for job_id in _meant(reader, f"{system}/{number}")]


async def _one_of(reader: Reader, meant: Sequence[JobId], thing: str, *, to_end: bool) -> Found:
    """The one of several ids that there is a job of; where there are several jobs, none."""
    if len(meant) > 1:
        meant = await _known_ids(reader, meant) or meant[:1]
    return await _exact(reader, meant[0], to_end=to_end) if len(meant) == 1 else _ambiguous(thing, meant)


async def _known_ids(reader: Reader, ids: Sequence[JobId]) -> list[JobId]:
    """Those of some ids that there is a job of."""
    return [job_id for job_id in ids if await reader.look_up(job_id) is not None]


def _ambiguous(thing: str, ids: Sequence[JobId]) -> Found:
    """Nothing, as several servers have a job of this number; says so."""
    candidates = tuple(Candidate("job", one, SURE, "a job of this number on its server", one) for one in ids)
    _say_why_not(thing, candidates)
    return Found(candidates=candidates)


def _say_why_not(thing: str, candidates: Sequence[Candidate]) -> None:
    best = candidates[0] if candidates else None
    if best is None or best.score < SURE:
        hint = nearest(thing, COMMAND_BY_NAME)
        complain(f"nothing is known of {thing!r}{hint and f', and there is no such command{hint}'}")
        offer(candidates, "nearest")
    else:
        complain(f"{thing!r} is {'ambiguous' if best.job else f'no job but a {best.kind}'}")
        offer(candidates, "candidate")


async def candidates_for(
    reader: Reader, thing: str, referred: Sequence[Reference] | None = None
) -> tuple[Candidate, ...]:
    """What `thing` may mean, out of all jobs, and out of the logs where only they can know."""
    known = references(thing.strip()) if referred is None else referred
    await reader.read_jobs()
    if any(reference.target in LOG_TARGETS for reference in known):
        await reader.read_logs(None)
    store = reader.session.store
    return find(thing, store.jobs, store.correlation.ops(), store.correlation.agents())


def offer(candidates: Sequence[Candidate], word: str) -> None:
    """Name candidates on stderr."""
    for candidate in candidates[:SHOWN]:
        job = f" of {candidate.job}" if candidate.job and candidate.job != candidate.id else ""
        complain(f"{word}: {candidate.kind} {candidate.id}{job} ({candidate.why})")
    if len(candidates) > SHOWN:
        complain(f"and {len(candidates) - SHOWN} more")


async def _exact(reader: Reader, job_id: JobId, *, to_end: bool) -> Found:
    detail = await reader.look_up(job_id)
    if detail is not None:
        _say_if_later(reader, detail.job)
        return Found(detail.job, detail)
    await reader.read_logs(None, to_end=to_end)
    if (job := _known_by_logs(reader, job_id)) is not None:
        complain(f"{job_id}: no record of it was read; this is what the logs tell")
        return Found(job)
    if reader.nothing_read:
        return Found()
    if any(skip.where == job_id for source in reader.sources for skip in source.last_skips):
        return Found(code=Exit.NO_SOURCE)  # it is there and cannot be read, which is said at the end
    complain(f"no job {job_id} is known")
    nearest_ids = near(job_id, await reader.job_ids())
    candidates = tuple(
        Candidate("job", id_, 0.0, "its id is spelled nearly so", JobId(id_)) for id_ in nearest_ids
    )
    offer(candidates, "nearest")
    return Found(candidates=candidates)


def _say_if_later(reader: Reader, job: Job) -> None:
    """A record holds the present state only, whatever time was asked for."""
    until = reader.context.until
    written_at = job.written_at or job.updated_at
    if until is not None and written_at is not None and written_at > until:
        complain(f"{job.id}: its record is of {to_rfc3339(written_at)}, later than was asked for")


def _known_by_logs(reader: Reader, job_id: JobId) -> Job | None:
    """A job as far as logs alone tell it: its status stays unknown. None when they do not name it."""
    correlation = reader.session.store.correlation
    ops = correlation.ops_of(job_id)
    steps = [step for op in ops for step in op.steps]
    steps += [loose.step for loose in correlation.unlinked_of(job_id)]
    if not steps:
        return None
    parts = split_jid(job_id)
    run_dir = next((op.run_dir for op in ops if op.run_dir), None)
    return Job(
        id=job_id,
        system="sirepo",
        status=JobStatus.UNKNOWN,
        native_status="",
        source=steps[0].source,
        owner=parts.uid if parts else "",
        model=parts.model if parts else "",
        app=(app_of_run_dir(run_dir) if run_dir else None) or "",
        updated_at=max((step.at for step in steps if step.at is not None), default=None),
        is_quasi=is_quasi_jid(job_id),
    )


def jobs_known_by_logs(reader: Reader) -> list[Job]:
    """Every job that the logs name an op of, for when no source knows of jobs."""
    ids = {op.jid for op in reader.session.store.correlation.ops() if op.jid is not None}
    jobs = (_known_by_logs(reader, job_id) for job_id in sorted(ids))
    return [job for job in jobs if job is not None]
