"""`find THING`, and the job that a pasted text means: an exact id at once, else ranked candidates."""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from jobtui.analysis.find import (
    SURE,
    Candidate,
    Reference,
    Target,
    filter_of,
    find,
    is_ambiguous,
    jobs_meant,
    references,
)
from jobtui.backends.registry import CONDOR_LOG, Gives, gives, numbering, system_of
from jobtui.commands.printing import Report, first
from jobtui.commands.reader import Reader, file_named
from jobtui.commands.streams import Exit, complain
from jobtui.grammar import COMMAND_BY_NAME, nearest
from jobtui.model import ids as id_forms
from jobtui.model.clock import to_rfc3339
from jobtui.model.commands import Command
from jobtui.model.jobs import Job, JobDetail, JobStatus
from jobtui.model.specs import SourceSpec
from jobtui.model.traces import is_same_job
from jobtui.render.columns import KEPT, TableColumn, at_least, printed
from jobtui.render.json_output import fields_of
from jobtui.render.text import show


async def jobs_in_file(reader: Reader, text: str) -> tuple[Candidate, ...]:
    """The jobs and traces in a file; none when the text names no file, or one without any."""
    path = file_named(text)
    if path is None:
        return ()
    await reader.read_too(CONDOR_LOG, path)
    store, why = reader.session.store, f"{path.name} describes it"
    jobs = store.condor.jobs_of_source(str(path))
    found = [Candidate("job", job, 0.95 if len(jobs) == 1 else 0.6, why, id_forms.JobId(job)) for job in jobs]
    traces = store.condor.traces_named_in(str(path))
    found += [Candidate("trace", trace, 0.85 if len(traces) == 1 else 0.5, why) for trace in traces]
    return tuple(found)


LONGEST_ID = 200
SHOWN = 10
"""How many candidates are named on stderr."""


class FoundJob(NamedTuple):
    """The job that was meant and what is stored about it; without one, what may have been meant."""

    job: Job | None = None
    detail: JobDetail | None = None
    candidates: tuple[Candidate, ...] = ()
    code: Exit = Exit.NOT_FOUND
    traces: tuple[id_forms.TraceId, ...] = ()
    """The traces whose spans name the job that nothing else knows."""
    jobs: tuple[id_forms.JobId, ...] = ()
    """The jobs of what was meant, if there are several."""
    is_reported: bool = True
    """Whether stderr says why there is no job."""

    @property
    def filter(self) -> str:
        best = self.candidates[0] if self.candidates else None
        return f"user:{best.id}" if best is not None and best.kind == "user" else filter_of(self.jobs)


def candidate_record(candidate: Candidate) -> dict[str, object]:
    return fields_of(candidate, "kind id score why") | {"job": candidate.job}


def print_not_found(body: Mapping[str, object], found: FoundJob, reader: Reader, command: str = "") -> Exit:
    records = [candidate_record(candidate) for candidate in found.candidates]
    return Report(lambda: {**body, "candidates": records}, command=command).answer(reader, found.code)


async def resolve(reader: Reader, thing: str, kinds: Collection[str] = ()) -> FoundJob:
    """The one job that `thing` means. Reads only what that needs; says on stderr why there is none.

    A thing of one of `kinds` is accepted, too: it is the first candidate then, and the code is FINE.
    """
    found = await _resolved(reader, thing, kinds)
    if found.job is not None or found.code is not Exit.NOT_FOUND:
        return found
    named = await spans_naming(reader, thing)
    store, traces = reader.session.store, {one.id for one in named}
    written = {job for one in traces for job in store.traces.jobs_of(id_forms.TraceId(one))}
    of_trace = [
        job.id
        for job in store.jobs.values()
        if job.trace in traces or any(is_same_job(one, job.id) for one in written)
    ]
    if len(of_trace) == 1:
        _say_taken(thing, named[0], of_trace[0])
        return await _exact(reader, of_trace[0])
    is_other = any(one.kind != "trace" and one.is_sure for one in found.candidates[:1])
    if not found.is_reported and not reader.nothing_read and (is_other or not named):
        _say_why_not(reader, thing, found.candidates)
    for one in named:
        complain(f"trace {one.id} ({one.why}): {Command('jobtui', *reader.flags, 'trace', one.id)}")
    ids = tuple(id_forms.TraceId(one.id) for one in named)
    return found._replace(candidates=(*named, *found.candidates), traces=ids)


async def spans_naming(reader: Reader, thing: str) -> tuple[Candidate, ...]:
    """The traces whose spans name a job, from all sources of traces."""
    thing = thing.strip()
    if not any(gives(spec, Gives.SPANS) for spec in reader.specs) or not 0 < len(thing) <= LONGEST_ID:
        return ()
    from jobtui.session.traces import ways_by_attribute  # few need it

    await reader.read_traces()
    book = reader.session.store.traces
    ways = await ways_by_attribute(reader.session.traces, thing, book.job_attributes)
    whys = {
        **(book.called(thing) if len(thing) >= id_forms.SPAN_DIGITS else {}),
        **{one: f"its spans name the job as {job}" for one, job in book.naming(thing)},
        **{link.trace_id: link.why for link in ways.found},
    }
    return tuple(Candidate("trace", one, SURE, why) for one, why in whys.items())


async def _resolved(reader: Reader, thing: str, kinds: Collection[str]) -> FoundJob:
    referred = list(references(thing.strip()))
    named = sorted({ref.text for ref in referred if ref.target is Target.JOB})
    number = next((ref.text for ref in referred if ref.target is Target.NUMBER), None)
    is_condor = any(ref.target is Target.CONDOR for ref in referred)  # `7@host` may also be a job of Balsam
    if len(named) == 1 and not is_condor:
        exact = await _one_of(reader, _ids_of(reader, named[0]), thing)
        if exact.job is not None or all(ref.target is not Target.SUBMITTED for ref in referred):
            return exact
        return await of_its_jobs(reader, thing, await candidates_for(reader, thing, referred)) or exact
    read = [system for system in numbering() if number is not None and _servers(reader.specs, system)]
    by_number = [job_id for system in read for job_id in _ids_of(reader, f"{system}/{number}")]
    if len(by_number) > 1 and len(several := await _known_ids(reader, by_number)) > 1:
        return _ambiguous(reader, thing, several)
    candidates = await candidates_for(reader, thing, referred)
    sure = _sure(candidates)
    if sure is not None and sure.kind in kinds:
        return FoundJob(candidates=candidates, code=Exit.FINE)
    if (found := await of_its_jobs(reader, thing, candidates)) is not None:
        return found
    if not by_number and len(named) == 1 and _servers(reader.specs, "balsam"):
        by_number = _ids_of(reader, named[0])
    if by_number and not any(one.is_sure for one in candidates[:1]):
        # It may have ended before the period that is read of all jobs
        return await _one_of(reader, by_number, thing)
    return FoundJob(candidates=candidates, is_reported=False)


def _sure(candidates: tuple[Candidate, ...]) -> Candidate | None:
    is_sure = bool(candidates) and candidates[0].is_sure and not is_ambiguous(candidates)
    return candidates[0] if is_sure else None


async def of_its_jobs(reader: Reader, thing: str, candidates: tuple[Candidate, ...]) -> FoundJob | None:
    """The only job of the first candidate, or all its jobs; None without any, or if others may be meant."""
    if (best := _sure(candidates)) is None:
        return None
    knows = reader.session.store.correlation
    jobs = jobs_meant(best, reader.session.store.jobs, knows.ops(), knows.agents())
    if len(jobs) > 1 and best.kind == "array":
        complain(f"{_shown(thing)} is taken as job {best.id}: an array of {len(jobs)}")
        return await _exact(reader, id_forms.JobId(best.id))
    if len(jobs) == 1:
        _say_taken(thing, best, jobs[0])
        return await _exact(reader, jobs[0])
    if not jobs:
        return None
    why, known = f"of {best.kind} {best.id}", reader.session.store.jobs
    found = sorted((known[one] for one in jobs), key=lambda job: job.status is not JobStatus.FAILED)
    of_it = tuple(Candidate("job", one.id, best.score, f"{why}, {one.status}", one.id) for one in found)
    complain(f"{_shown(thing)} is {_a(best.kind)} with {len(jobs)} jobs; name one of them:")
    offer(reader, (best, *of_it), "")
    return FoundJob(candidates=(best, *of_it, *candidates[1:]), jobs=jobs)


SHOWN_LENGTH = 60


def _shown(thing: str) -> str:
    line = " ".join(thing.split())
    return repr(line if len(line) <= SHOWN_LENGTH else f"{line[:SHOWN_LENGTH]}...")


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeio' else 'a'} {kind}"


def _say_taken(thing: str, taken: Candidate, job_id: id_forms.JobId) -> None:
    if taken.kind != "job":
        complain(f"{_shown(thing)} is {_a(taken.kind)}: its job is {job_id}")
    elif job_id not in thing:
        complain(f"{_shown(thing)} is taken as job {job_id}: {taken.why}")


def _servers(specs: Sequence[SourceSpec], system: str) -> dict[str, str]:
    return {spec.target: spec.label for spec in specs if system_of(spec) == system}


def _ids_of(reader: Reader, thing: str) -> list[id_forms.JobId]:
    """The ids that a job's id may mean, of the servers that can have it."""
    parts = id_forms.numbered(thing)
    system = parts.system if parts is not None else ""
    return id_forms.meant_by(thing, _servers(reader.specs, system), system)


async def _one_of(reader: Reader, ids: Sequence[id_forms.JobId], thing: str) -> FoundJob:
    """The one of several ids that has a job; None if several have one."""
    if len(ids) > 1:
        ids = await _known_ids(reader, ids) or ids[:1]
    if len(ids) > 1:
        return _ambiguous(reader, thing, ids)
    return await _exact(reader, ids[0])


async def _known_ids(reader: Reader, ids: Sequence[id_forms.JobId]) -> list[id_forms.JobId]:
    return [job_id for job_id in ids if await reader.look_up(job_id) is not None]


def _ambiguous(reader: Reader, thing: str, ids: Sequence[id_forms.JobId]) -> FoundJob:
    candidates = tuple(Candidate("job", one, SURE, "a job of this number on its server", one) for one in ids)
    _say_why_not(reader, thing, candidates)
    return FoundJob(candidates=candidates)


def _say_why_not(reader: Reader, thing: str, candidates: Sequence[Candidate]) -> None:
    best = candidates[0] if candidates else None
    if best is None or not best.is_sure:
        from jobtui.analysis.filter import STATUS_WORDS, STUCK  # most things are known

        is_bare = reader.context.invocation.command.name == "open"
        typed = (*COMMAND_BY_NAME, *(f"jobs {word}" for word in (*STATUS_WORDS, STUCK)))
        hint = nearest(thing, typed) if is_bare else ""
        complain(f"nothing is known about {_shown(thing)}{hint and f', and there is no such command{hint}'}")
        offer(reader, candidates, "nearest: ")
    else:
        is_open = best.job is not None or is_ambiguous(tuple(candidates))
        complain(f"{_shown(thing)} is {'ambiguous' if is_open else f'{_a(best.kind)}, not a job'}")
        offer(reader, candidates, "candidate: ")


async def candidates_for(
    reader: Reader, thing: str, referred: Sequence[Reference] | None = None
) -> tuple[Candidate, ...]:
    """What `thing` may mean among all jobs, and in the logs if only they can know."""
    known = list(references(thing.strip())) if referred is None else referred
    await reader.read_jobs()
    if in_file := await jobs_in_file(reader, thing.strip()):
        return in_file
    session = reader.session
    store, names = session.store, session.logs().names
    only_logs_know = {Target.OP, Target.AGENT, Target.CONTAINER}
    if not any(reference.target in only_logs_know for reference in known):
        found = find(thing, store.jobs)
        if any(candidate.is_sure for candidate in found):
            return found
    await reader.read_logs(None)
    found = find(thing, store.jobs, store.correlation.ops(), store.correlation.agents(), names())
    if not any(candidate.is_sure for candidate in found):
        from jobtui.session.evidence import Gatherer  # most things are known by then

        on_disk = await Gatherer.of(session).jobs_on_disk(thing)
        known_jobs = {one.job for one in on_disk}
        found = (*on_disk, *(one for one in found if one.job not in known_jobs))
    return found


def offer(reader: Reader, candidates: Iterable[Candidate], word: str) -> None:
    """Print what may be meant, and what to type: the same command for a job, else the one for its kind."""
    several, flags, asked = tuple(candidates), reader.flags, reader.context.invocation.command.name
    for candidate in several[:SHOWN]:
        job = f" of {candidate.job}" if candidate.job and candidate.job != candidate.id else ""
        command, about = "trace" if candidate.kind == "trace" else "logs", candidate.id
        if candidate.job is not None:
            command, about = "show" if asked in ("find", "open") else asked, candidate.job
        elif candidate.kind == "user":
            command, about = "jobs", f"user:{candidate.id}"
        typed = Command("jobtui", *flags, command, about=[about])
        why = f"{candidate.kind} {candidate.id}{job} ({candidate.why})"
        complain(f"{word}{why}{f': {typed}' if typed else ''}")
    if len(several) > SHOWN:
        complain(f"and {len(several) - SHOWN} more")


async def _exact(reader: Reader, job_id: id_forms.JobId) -> FoundJob:
    detail = await reader.look_up(job_id)
    if detail is not None:
        until = reader.context.until
        written_at = detail.job.written_at or detail.job.updated_at
        if until is not None and written_at is not None and written_at > until:
            complain(f"{detail.job.id}: its record was written at {to_rfc3339(written_at)}, later than --at")
        return FoundJob(detail.job, detail)
    await reader.read_logs(None)
    if (job := known_by_logs(reader, job_id)) is not None:
        complain(f"{job_id}: no record of it was read; this comes from the logs")
        return FoundJob(job)
    if reader.nothing_read:
        return FoundJob()
    if any(skip.where == job_id for source in reader.sources for skip in source.last_skips):
        return FoundJob(code=Exit.NO_SOURCE)  # it exists and cannot be read, which is reported at the end
    await reader.read_jobs()
    if (job := reader.session.store.job(job_id)) is not None:  # its source only lists it
        return FoundJob(job)
    complain(f"no job {job_id} is known")
    candidates = find(job_id, reader.session.store.jobs)
    offer(reader, candidates, "nearest: ")
    return FoundJob(candidates=candidates)


def known_by_logs(reader: Reader, job_id: id_forms.JobId) -> Job | None:
    """A job by its logs alone, with unknown status. None if they do not name it."""
    correlation = reader.session.store.correlation
    ops = correlation.ops_of(job_id)
    steps = [step for op in ops for step in op.steps]
    steps += [loose.step for loose in correlation.unlinked_of(job_id)]
    if not steps:
        return None
    parts = id_forms.split_jid(job_id)
    run_dir = next((op.run_dir for op in ops if op.run_dir), None)
    return Job(
        id=job_id,
        system="sirepo",
        status=JobStatus.UNKNOWN,
        native_status="",
        source=steps[0].source,
        owner=parts.uid if parts else "",
        model=parts.model if parts else "",
        app=(id_forms.app_of_run_dir(run_dir) if run_dir else None) or "",
        updated_at=max((step.at for step in steps if step.at is not None), default=None),
        is_quasi=id_forms.is_quasi_jid(job_id),
    )


LONGEST_INPUT = 1 << 20
CANDIDATE_COLUMNS: tuple[TableColumn[Candidate, None], ...] = (
    TableColumn("score", "SCORE", lambda one, look: f"{100 * one.score:.0f} %", at_least(5), KEPT, "right"),
    TableColumn("kind", "KIND", lambda one, look: one.kind, at_least(5), KEPT),
    TableColumn("id", "ID", lambda one, look: show(one.id), at_least(12), KEPT),
    TableColumn("job", "JOB", lambda one, look: show(one.job or ""), at_least(12), 70),
    TableColumn("why", "WHY", lambda one, look: show(one.why), at_least(12), KEPT),
)  # fmt: skip
CSV_COLUMNS = ("score", "kind", "id", "job", "why")


async def run(reader: Reader) -> Exit:
    thing = " ".join(reader.context.words)
    if thing == "-":
        thing = sys.stdin.buffer.read(LONGEST_INPUT).decode("utf-8", "replace")
    candidates = await candidates_for(reader, thing)
    if not candidates or candidates[0].score < SURE:
        candidates = (*await spans_naming(reader, thing), *candidates)
    given = first(candidates, reader.context)
    records = [candidate_record(candidate) for candidate in given]
    code = Exit.FINE
    if not candidates or candidates[0].score < SURE:
        code = complain(f"nothing is known about {_shown(thing)}", Exit.NOT_FOUND)
    elif is_ambiguous(candidates) and "\n" not in thing.strip():
        code = complain(f"{_shown(thing)} is ambiguous", Exit.NOT_FOUND)
    return Report(
        lambda: {"candidates": records},
        CSV_COLUMNS,
        lambda: records,
        lambda width: printed(CANDIDATE_COLUMNS, given, None, width) if given else (),
    ).answer(reader, code)
