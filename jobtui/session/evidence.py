"""Gathers the evidence on jobs, from a store and a `JobReader`, for every view that judges a job."""

import asyncio
import os
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from jobtui.analysis.explain.case import NO_FLAPS, Case, Evidence, Flaps, lines_wanted
from jobtui.analysis.explain.flow import usual_length
from jobtui.analysis.explain.verdict import contradictions, explain, may_be_killed, source_doubts
from jobtui.analysis.flags import LIMITS_S, limit_s, needs_person
from jobtui.analysis.incidents import ENDED_BADLY, ENDED_WELL, Grouping, Incidents, Sample, sample_of
from jobtui.analysis.keys import CLUSTER_MODE, slurm_of
from jobtui.analysis.paths import output_dirs, reached, run_dirs_of, spec_of_host
from jobtui.analysis.waits import WaitSnapshot, wait_chain, waited_slot
from jobtui.backends.registry import of_kind
from jobtui.model.bounded import Bounded
from jobtui.model.clock import Nanos
from jobtui.model.commands import Command
from jobtui.model.health import contained
from jobtui.model.ids import JobId, split_jid
from jobtui.model.job_reader import LINES_BEHIND, ClusterStatus, SbatchStatus, Unreadable
from jobtui.model.jobs import SLURM, Job, JobDetail, JobStatus, is_within
from jobtui.model.journal import is_host
from jobtui.model.ops import Op
from jobtui.model.secrets import mask_text
from jobtui.model.settings import NOWHERE, ClusterAccess
from jobtui.model.state_runs import last_error
from jobtui.model.verdicts import Cause, Chain, Concern, Fact, Killer, UsualTime, Verdict
from jobtui.session.outputs import Outputs
from jobtui.store.store import Store

if TYPE_CHECKING:
    from jobtui.analysis.find import Candidate
    from jobtui.backends.job_reader import JobReader
    from jobtui.model.scripts import Wanted
    from jobtui.session import Session

ANALYSIS_LIMIT_S = 144.0
"""How long an analysis or a download may take by default in Sirepo's supervisor."""
TEXTS_KEPT = 2_000
"""How many records of logs are kept for jobs that are looked at again and again."""
TURN_S = 0.01
"""How long all jobs are looked at before other tasks have a turn."""
MOST_RECALLED = 30
"""For how many of the first groups and failures the memory is asked whether they were seen before."""
MOST_ASKED, ASKED_AT_ONCE = 30, 4
"""How many records a view of all jobs asks servers, schedulers or clusters for, and how many at a time."""
NOT_ASKED = f"its record was not read: at most {MOST_ASKED} at a time"

MOST_JOBS_READ = 200
MOST_LOOKED_AT = 100
"""How many of the newest jobs are searched for a number in Slurm or a line of their output."""
MOST_LAST, LONGEST_LAST = 3, 600
"""Lines of a stuck job that are shown, and characters of each."""
AFTER_LAST = 4_000
"""How many characters of an agent's log may be about a job after the last line that names it."""


def about_job(text: str, job_id: JobId) -> tuple[int, str]:
    """The lines of an agent's log from the first to the last that names a job; how many lines are before."""
    first, last = text.find(job_id), text.rfind(job_id)
    begin = text.rfind("\n", 0, first) + 1 if first >= 0 else len(text)
    return text.count("\n", 0, begin), text[begin : last + AFTER_LAST]


class JobRecord(NamedTuple):
    """What was read for one job: its record, its number in Slurm, and, in words, what could not be read."""

    detail: JobDetail | None = None
    slurm_id: str | None = None
    unread: tuple[str, ...] = ()


class ReadCache:
    """Keeps what was read, so that it is not read again.

    `texts` are whole records of logs by source, line and offset, "" if the log now has other lines there.
    `records` are those of jobs, and `causes` what the outputs of failed jobs say, each with the job as it
    was then, and the places that were searched; `left_out` says which outputs may be missing or another's.
    """

    def __init__(self) -> None:
        self.texts = Bounded[tuple[str, int, int], str](TEXTS_KEPT)
        self.records = Bounded[JobId, tuple[tuple[Job, tuple[str, ...]] | None, JobRecord]](TEXTS_KEPT)
        self.causes = Bounded[JobId, tuple[Job | None, Cause | None, frozenset[str]]](TEXTS_KEPT)
        self.left_out = Bounded[JobId, tuple[str, ...]](TEXTS_KEPT)

    def failing_line(self, job: Job) -> str | None:
        """The line that says why it failed, None if none is known for the job as it is now."""
        before, cause, _ = self.causes.get(job.id, (None, None, None))
        return cause.text if cause is not None and before == job else None


_SSH = re.compile(r"ssh://(?P<name>(?:[^@/]*@)?(?P<host>[^:/]+))(?::(?P<port>\d+))?")


async def with_steps_here(
    verdict: Verdict, flags: Sequence[str], evidence: Evidence, reach: ClusterAccess, *, has_traces: bool
) -> Verdict:
    """The verdict with commands that work here: jobtui's with these flags, files that exist, and hosts that a
    source or [hosts] reaches over ssh. Files are checked in a thread, as a file system may hang.
    """
    from jobtui.analysis.explain.next_steps import on_sources

    job = evidence.job
    dirs = run_dirs_of(job, evidence.detail, evidence.ops, reach)

    def seen(path: str) -> str | None:
        """A file that is not empty, at its recorded path or in a run directory that is elsewhere now."""
        copies = (path, *(os.path.join(directory, os.path.basename(path)) for directory in dirs))
        with suppress(OSError):  # a file may be removed in between
            return next((one for one in copies if os.path.isfile(one) and os.path.getsize(one)), None)
        return None

    own = os.uname().nodename
    hosts = {own: "", own.partition(".")[0]: ""}
    for name, spec in (*((source.name, source.name) for source in evidence.sources), *reach.hosts.items()):
        if found := _SSH.search(spec):
            hosts |= {name: found[0], found["host"]: found[0]}
    typed = partial(typed_here, hosts, hosts.get(job.source, "") if job is not None else "")

    def with_steps() -> Verdict:
        named = output_dirs(evidence.detail, reach).items()
        paths = [posixpath.join(one, name) for name, those in named for one in those]
        paths += [verdict.cause.source] if verdict.cause is not None else []
        has_lines = bool(evidence.ops) or any(_SSH.match(path) or seen(path) for path in paths)
        return on_sources(verdict, flags, seen, typed, has_traces, has_lines)

    return await asyncio.to_thread(with_steps)


def typed_here(hosts: Mapping[str, str], cluster: str, command: Command) -> Command:
    """A command as it can be typed here; "" where no ssh to its host or no such program is known."""
    program, *words = shlex.split(command)
    is_ssh = program == "ssh"
    host, line = (spec_of_host(words[0], hosts), words[1]) if is_ssh else (cluster, str(command))
    if host and (found := _SSH.fullmatch(host)) is not None:
        port = ("-p", found["port"]) if found["port"] else ()
        return Command("ssh", *port, found["name"], line)
    import shutil  # what packs files comes with it

    program, *words = shlex.split(line)
    is_here = os.path.isdir(words[0]) if program == "cd" else shutil.which(program) is not None
    if host is None or not is_here:
        return Command()
    return Command(program, *words) if is_ssh else command


async def with_memory(evidence: Evidence, job_reader: "JobReader") -> Evidence:
    """The evidence on a job, with what the memory knows of runs like it. `seen` reports a damaged memory."""
    from jobtui.analysis.signature import failure_text  # a view of many jobs does not need it

    job = evidence.job
    if job is None or job.status is JobStatus.COMPLETED:
        return evidence
    with suppress(Unreadable):
        text = failure_text(job, explain(evidence))
        found = await job_reader.remembered(job, text, evidence.now)
        evidence = msgspec.structs.replace(evidence, remembered=found)
    return evidence


async def _with_seen(found: Incidents, store: Store, job_reader: "JobReader", now: Nanos) -> Incidents:
    """The same incidents, the first MOST_RECALLED with what the memory knows of their failure."""
    every = [*found.groups, *found.alone]
    for number, one in enumerate(every[:MOST_RECALLED]):
        job = store.job(one.first) if one.text else None
        if job is not None:
            with suppress(Unreadable):
                every[number] = one._replace(seen=(await job_reader.remembered(job, one.text, now)).seen)
    groups = len(found.groups)
    return found._replace(groups=tuple(every[:groups]), alone=tuple(every[groups:]))


async def written_by(gatherer: "Gatherer", job: Job, detail: JobDetail, path: str) -> tuple[str, ...]:
    """The files that its record names, and those in the directory of `path` to which its script writes."""
    if detail.directory != posixpath.dirname(path):
        return detail.outputs
    found = await gatherer.outputs(job, detail, ())
    return (*detail.outputs, *(posixpath.join(place, part.name) for place, part in found.parts))


class Gatherer:
    def __init__(
        self,
        store: Store,
        job_reader: "JobReader",
        now: Nanos,
        reach: ClusterAccess = NOWHERE,
        reads: ReadCache | None = None,
    ) -> None:
        self.store, self.job_reader, self.now, self.reach = store, job_reader, now, reach
        self.reads = reads or ReadCache()
        self._asked = self._outputs_read = 0
        self._sources = store.sources()

    @classmethod
    def of(cls, session: "Session", reads: ReadCache | None = None) -> "Gatherer":
        return cls(session.store, session.job_reader(), session.clock.now(), session.reach, reads)

    async def noted(self, job: Job | None) -> ClusterStatus | None:
        """The note about the newest run on its cluster, if that can be reached from here."""
        if job is None or job.mode != CLUSTER_MODE:
            return None
        job, ops = self.store.with_agent(job), self.store.correlation.ops_of(job.id)
        noted = await self.job_reader.noted_on_cluster(run_dirs_of(job, None, ops, self.reach))
        at = noted.status.submitted_at if noted is not None else None
        return noted if at is None or job.queued_at is None or at == job.queued_at else None

    async def script_of(
        self, job: Job, detail: JobDetail | None
    ) -> "tuple[Wanted | None, Job, JobDetail | None]":
        """What to ask archives for, and the job of Slurm that it ran as, or itself. Raises Unreadable."""
        from jobtui.analysis.find import submitted_as  # few look so far
        from jobtui.analysis.scripts import wanted_of_sirepo, wanted_of_slurm

        if job.system == SLURM:
            return wanted_of_slurm(job, detail), job, detail
        noted, ops = await self.noted(job), self.store.correlation.ops_of(job.id)
        status = noted.status if noted is not None else SbatchStatus("", submitted_as(ops))
        if (slurm := slurm_of(job, self._slurm_jobs, status.slurm_id)) is None:
            return wanted_of_sirepo(status), job, detail
        detail = None
        with suppress(Unreadable):
            detail = await self.job_reader.detail(slurm.id)
        return wanted_of_slurm(slurm, detail), slurm, detail

    async def whole(self, job_id: JobId) -> Evidence:
        """All evidence, with its record and the note on its cluster, which are read for this."""
        found = await self._with_record(job_id, await self._read_record(job_id))
        return await self.with_killer(self.with_good(await with_memory(found, self.job_reader)))

    async def jobs_on_disk(self, text: str) -> tuple["Candidate", ...]:
        """The newest jobs whose files or records have what a text names: number, script, failing line."""
        from jobtui.analysis.find import LEAST_ERROR, Candidate, is_path, named_in_files  # few ask

        (numbers, said), found = named_in_files(text), []
        newest = sorted(self.store.jobs.values(), key=lambda job: job.queued_at or 0, reverse=True)
        on_cluster = [job for job in newest if job.mode == CLUSTER_MODE] if numbers else []
        for job in on_cluster[:MOST_LOOKED_AT]:
            noted = await self.noted(job)
            if noted is not None and noted.status.slurm_id in numbers:
                why = "its run directory notes this number in Slurm"
                found.append(Candidate("job", job.id, 0.97, why, job.id))
        if is_path(text):
            found += await self._given_file(posixpath.abspath(posixpath.expanduser(text)), newest)
        failed = [job for job in newest if job.status in ENDED_BADLY] if said else []
        for job in failed[:MOST_LOOKED_AT]:
            cause = await self._cause(self.stated(job.id, (await self._kept_record(job)).detail))
            line = cause.text.casefold() if cause is not None else ""
            if len(line) >= LEAST_ERROR and (line in said or said in line):
                found.append(Candidate("job", job.id, 0.7, "its output says this", job.id))
        return tuple(found)

    async def _given_file(self, path: str, newest: Sequence[Job]) -> list["Candidate"]:
        """The jobs whose script or output this file is, else those of its name whose script is not known."""
        from jobtui.analysis.find import Candidate  # few ask

        exact, records = list[Candidate](), list[JobRecord]()
        is_named = {job.id: job.name == posixpath.basename(path) for job in newest}
        asked = sorted((job for job in newest if job.system == SLURM), key=lambda job: not is_named[job.id])
        for begin in range(0, MOST_ASKED, ASKED_AT_ONCE):
            records += await asyncio.gather(*map(self._kept_record, asked[begin : begin + ASKED_AT_ONCE]))
        for job, record in zip(asked, records, strict=False):
            detail = record.detail
            command = dict(detail.facts).get("command", "") if detail is not None else ""
            if command == path or command.startswith(f"{path} "):
                exact.append(Candidate("job", job.id, 0.97, "Slurm was given this script", job.id))
            elif detail is not None and path in await written_by(self, job, detail, path):
                exact.append(Candidate("job", job.id, 0.97, "it writes to this file", job.id))
            is_named[job.id] = is_named[job.id] and not command.startswith("/")
        why = "its name is that of the file; which script it was given is not known"
        return exact or [Candidate("job", job.id, 0.5, why, job.id) for job in newest if is_named[job.id]]

    async def at_hand(self, job_id: JobId) -> Evidence:
        """The same without memory and killer; no server, scheduler or cluster is asked for the record."""
        job = self.store.job(job_id)
        return await (self.gather(job_id) if job is None or self._is_asked_for(job) else self.kept(job))

    async def kept(self, job: Job) -> Evidence:
        """The same with its record, for which at most MOST_ASKED servers and schedulers are asked."""
        return await self._with_record(job.id, await self._kept_record(job))

    async def _with_record(self, job_id: JobId, record: JobRecord) -> Evidence:
        found = await self.gather(job_id, record.detail, record.slurm_id)
        return msgspec.structs.replace(found, unread=record.unread)

    async def _read_record(self, job_id: JobId) -> JobRecord:
        detail, problems = None, []
        try:
            detail = await self.job_reader.detail(job_id)
        except Unreadable as error:
            problems.append(f"its record cannot be read: {error}")
        noted = await self.noted(self.store.job(job_id))
        return JobRecord(detail, noted.status.slurm_id if noted is not None else None, tuple(problems))

    async def _kept_record(self, job: Job) -> JobRecord:
        """Its record. Read again only when the job has changed, or when more is known about the place on a
        cluster where it ran, so that servers are not asked too often.
        """
        dirs = tuple[str, ...]()
        if job.mode == CLUSTER_MODE:
            ops = self.store.correlation.ops_of(job.id)
            dirs = run_dirs_of(self.store.with_agent(job), None, ops, self.reach)
        before, record = self.reads.records.get(job.id, (None, JobRecord()))
        if before == (job, dirs):
            return record
        if self._is_asked_for(job):
            if self._asked == MOST_ASKED:
                return JobRecord(unread=(NOT_ASKED,))
            self._asked += 1
        record = await self._read_record(job.id)
        if not record.unread:
            self.reads.records[job.id] = (job, dirs), record
        return record

    def without_cause(self, jobs: Iterable[Job]) -> list[Job]:
        """The failed jobs, none of a cluster, whose failing line was not looked for since they changed."""
        failed = (job for job in jobs if job.status is JobStatus.FAILED and job.mode != CLUSTER_MODE)
        return [job for job in failed if self.reads.causes.get(job.id, (None,))[0] != job]

    def _is_asked_for(self, job: Job) -> bool:
        kind = next((source.kind for source in self._sources if source.name == job.source), "")
        return job.mode == CLUSTER_MODE or of_kind(kind).addressed

    async def gather(
        self,
        job_id: JobId,
        detail: JobDetail | None = None,
        slurm_id: str | None = None,
        *,
        wants_chain: bool = True,
    ) -> Evidence:
        """The evidence on a job. `detail` is its record and `slurm_id` its number in Slurm, if read."""
        stated, knows = self.stated(job_id, detail, slurm_id), self.store.correlation
        run = next((op for op in reversed(stated.ops) if op.name == "run"), None)
        parts = split_jid(job_id) if run is not None else None
        is_over = stated.job is not None and not stated.job.status.is_live
        waits = wants_chain and not is_over and run is not None and waited_slot(run) is not None
        cause = await self._cause(stated)
        return msgspec.structs.replace(
            stated,
            left_out=self.reads.left_out.get(job_id, ()),
            alike=knows.runs_like(parts.model, run.driver) if parts is not None and run is not None else (),
            texts=await self._lines(stated.ops),
            agents=self._scene.agents,
            flaps=self._flaps if stated.ops else NO_FLAPS,
            chain=wait_chain(run, self._scene) if waits and run is not None else Chain(),
            allocations=self.store.allocations(),
            sites=self.store.sites(),
            cause=cause,
        )

    async def _cause(self, stated: Evidence) -> Cause | None:
        """The line in the output of a failed job that says why: the surest one in all its files.

        It is searched for again when the job has changed, or when more is known about where its output is.
        """
        job = stated.job
        if job is None or job.status not in ENDED_BADLY:
            return None
        before, known, looked = self.reads.causes.get(job.id, (None, None, frozenset()))
        if (before == job and known is not None) or self._outputs_read == MOST_JOBS_READ:
            return known if before == job else None
        agent = self.store.correlation.agent_of(job.id)
        dirs = run_dirs_of(self.store.with_agent(job), stated.detail, stated.ops, self.reach)
        files = *output_dirs(stated.detail, self.reach), (agent and agent.cluster_log) or ""
        if before != job or not looked.issuperset((*dirs, *files)):
            self._outputs_read += 1
            known = None
            with contained("reading what its program wrote"):
                known = await self._read_cause(job, stated)
            self.reads.causes[job.id] = job, known, looked.union(dirs, files)
        return known

    async def _read_cause(self, job: Job, stated: Evidence) -> Cause | None:
        from jobtui.analysis.cause import find_cause, numbered  # most jobs have not failed

        best: Cause | None = None
        outputs = await self.outputs(job, stated.detail, stated.ops)
        for directory, part in outputs.parts:
            if (path := posixpath.join(directory, part.name)) not in outputs.shared:
                found = await asyncio.to_thread(find_cause, part.text)
                if found is not None and (best is None or found.rank > best.rank):
                    best = numbered(found, part, path)
        if best is None and (end := last_error(stated.changes)) is not None:
            found = find_cause(f"{(end.detail or {}).get('error') or ''}\n")  # it is whole
            return found and found._replace(line=None, source=f"{end.source} event {end.id}")
        agent = self.store.correlation.agent_of(job.id)
        if best is not None or agent is None or not agent.cluster_log:
            return best
        for path in reached(agent.cluster_log, agent.host, self.reach):
            with suppress(Unreadable):
                part = await self.job_reader.read_file(*posixpath.split(path), tail=True)
                before, about = about_job(part.text, job.id)
                found = await asyncio.to_thread(find_cause, about, first_line=before + 1)
                return found and numbered(found, part, path)
        return None

    async def with_killer(self, evidence: Evidence) -> Evidence:
        """The evidence with what the journal of the job's host says about its end; for a stuck job with its
        last lines. Unchanged if nobody can have ended the program, or if the time of the end is not known.
        """
        knows, verdict, job = self.store.correlation, explain(evidence), evidence.job
        if verdict.concern is Concern.STUCK and job is not None and job.started_at is not None:
            return msgspec.structs.replace(evidence, last_lines=await self._last_lines(job, evidence))
        if not may_be_killed(verdict, evidence.cause):
            return evidence
        from jobtui.analysis.killer import ending_of, find_killer  # few are

        ending = ending_of(evidence, knows.agent_of(evidence.job_id), knows.ops())
        if ending is None:
            return evidence
        journal = spec_of_host(ending.host, self.reach.hosts) or ""
        try:
            entries = await self.job_reader.host_messages(ending.host, journal, *ending.window)
        except Unreadable as error:
            killer = Killer(doubt=f"who ended it: {error}", is_read=False)
        else:
            if journal and entries and not any(is_host(entry.host, ending.host) for entry in entries):
                ending = ending._replace(host=entries[0].host)  # the host has another name for itself
            killer = find_killer(entries, ending)
        return msgspec.structs.replace(evidence, killer=killer)

    def with_good(self, evidence: Evidence) -> Evidence:
        """The evidence on a job that ended badly with the good runs that it can be compared with."""
        job, runs = evidence.job, evidence.detail.runs if evidence.detail is not None else ()
        if job is None or job.status not in ENDED_BADLY:
            return evidence
        from jobtui.analysis.compare import choose, is_alike  # most jobs have not failed

        jobs, good, mine = self.store.jobs, None, None
        if evidence.detail is not None and job.owner:
            own = [one for one in jobs.values() if one.owner == job.owner]
            mine = choose(job, runs, (one for one in own if 0 < (one.ended_at or 0) <= (job.queued_at or 0)))
            if mine is not None and mine.number is None:
                good = jobs[mine.job_id], self.store.correlation.ops_of(mine.job_id)
        is_read = any(one.name == job.source and one.was_at_end for one in self._sources)
        alike = (one for one in jobs.values() if one.status is JobStatus.COMPLETED and is_alike(job, one))
        lacks_good = mine is None and choose(job, runs, islice(alike, 1)) is None and (is_read or None)
        return msgspec.structs.replace(evidence, good=good, lacks_good=lacks_good)

    async def _last_lines(self, job: Job, stated: Evidence) -> tuple[Fact, ...]:
        """The last lines of a program that still seems to run: they say what it does, and are not a cause."""
        for directory, part in (await self.outputs(job, stated.detail, stated.ops)).parts[:1]:
            said = [(number, text) for number, text in enumerate(part.text.split("\n"), 1) if text.strip()]
            return tuple(
                Fact(text=mask_text(text)[-LONGEST_LAST:], source=f"{directory}/{part.name}",
                     line=0 if part.lines_before is None else part.lines_before + number, what="last lines")
                for number, text in said[-MOST_LAST:]
            )  # fmt: skip
        return ()

    async def outputs(self, job: Job, detail: JobDetail | None, ops: Sequence[Op]) -> Outputs:
        """What its program wrote: the files its record names, else those in its run directory."""
        found = Outputs(self.job_reader, self.store.with_agent(job), self.reach)
        await found.read_all(detail, ops)
        has_failed = job.status is JobStatus.FAILED and job.started_at is not None
        missing = [f"its output {one}" for one in found.problems if has_failed]
        self.reads.left_out[job.id] = (*missing, *found.notes, *found.shared.values())
        return found

    def stated(
        self,
        job_id: JobId,
        detail: JobDetail | None = None,
        slurm_id: str | None = None,
        slurm_jobs: Iterable[Job] | None = None,
    ) -> Evidence:
        """What its own sources say about a job. `slurm_jobs` are those that it may run as, None for all."""
        store, knows = self.store, self.store.correlation
        job = store.job(job_id) or (detail.job if detail is not None else None)
        slurm = None
        if job is not None and job.mode == CLUSTER_MODE:
            slurm = slurm_of(job, self._slurm_jobs if slurm_jobs is None else slurm_jobs, slurm_id)
        return Evidence(
            job_id=job_id, now=self.now, is_now_set=store.is_now_set, job=job, detail=detail, slurm=slurm,
            sources=self._sources, origins=store.origins, writers_read=knows.writers_read,
            ops=knows.ops_of(job_id), restarted_ops=knows.restarted_ops(job_id),
            changes=store.changes_of(job_id),
            reasons=store.reasons_of(job_id) + (store.reasons_of(slurm.id) if slurm is not None else ()),
            facts=store.facts_of(job_id),
        )  # fmt: skip

    def is_disputed(self, job_id: JobId, slurm_jobs: Iterable[Job] | None = None) -> bool:
        return bool(contradictions(self.stated(job_id, slurm_jobs=slurm_jobs)))

    def blind_spots(self) -> tuple[str, ...]:
        """The faults of all sources, whichever job they may concern."""
        doubts = source_doubts(self._sources, self.store.correlation.writers_read, self.now)
        skipped = (f"{one.name}: {one.skipped_words}" for one in self._sources if one.skipped_words)
        return (*doubts, *skipped)

    async def sample(self, job: Job) -> Sample:
        """A job as incidents use it, judged on all evidence; cheap where record and logs are good."""
        if job.status not in ENDED_BADLY and not needs_person(job, self.store.now_at(job.source, self.now)):
            stated = self.stated(job.id) if job.status in ENDED_WELL else None
            # Nothing contradicts its record, and no log has a later run
            if stated and not contradictions(stated) and not (stated.ops and Case(stated).is_record_old):
                run = next((op for op in reversed(stated.ops) if op.name == "run"), None)
                agent = self.store.correlation.agent_of(job.id)
                return Sample(job, run=run, host=agent.host if agent else None)
            # A live record does not prove that a job lives, and a missing job may have run: ask the logs
            evidence = await self.gather(job.id, wants_chain=False)
            verdict = explain(evidence)
            if not verdict.is_reliably_bad:
                return sample_of(job, evidence, verdict)._replace(is_grouped=False)
        evidence = await self.kept(job)
        return sample_of(job, evidence, explain(evidence))

    async def survey(self, since: Nanos, until: Nanos, grouping: Grouping | None = None) -> Incidents:
        """The incidents between two times. After a cancel `grouping` has the jobs checked so far."""
        grouping, began = Grouping() if grouping is None else grouping, monotonic()
        jobs = tuple(self.store.jobs.values())
        for grouping.passed, job in enumerate(jobs, 1):
            if monotonic() - began >= TURN_S:
                await asyncio.sleep(TURN_S / 10)
                began = monotonic()
            with contained("explaining"):
                if is_within(job, since, until):
                    grouping.add(await self.sample(job))
        found = grouping.found(self.blind_spots(), min(until, self.now))
        return await _with_seen(found, self.store, self.job_reader, self.now)

    async def _lines(self, ops: tuple[Op, ...]) -> dict[tuple[str, int], str]:
        """The whole records of the few steps whose first line does not say enough; read once each."""
        found, texts = {}, self.reads.texts
        async with self.job_reader.holding_logs():
            for step in lines_wanted(ops):
                key = (step.source, step.line, step.offset)
                if key not in texts:
                    with contained("reading the lines of a step"), suppress(Unreadable):
                        lines = await self.job_reader.lines_behind(step, LINES_BEHIND)
                        texts[key] = "\n".join(line.text for line in lines)
                if text := texts.get(key):
                    found[step.source, step.line] = text
        return found

    @cached_property
    def _flaps(self) -> Flaps:
        return Flaps(self.store.correlation.agents())

    @cached_property
    def _slurm_jobs(self) -> tuple[Job, ...]:
        return tuple(job for job in self.store.jobs.values() if job.system == SLURM)

    @cached_property
    def _scene(self) -> WaitSnapshot:
        return scene_of(self.store, self.now)


def scene_of(store: Store, now: Nanos) -> WaitSnapshot:
    knows, jobs = store.correlation, store.jobs
    open_ops = knows.open_ops()
    runs = {op.jid: op for op in open_ops if op.name == "run"}
    cancels = {
        runs[op.jid].key: op
        for op in open_ops
        if op.name == "cancel" and op.jid in runs and op.key > runs[op.jid].key
    }

    def usual_of(op: Op) -> UsualTime | None:
        parts = split_jid(op.jid) if op.jid is not None else None
        if parts is None or op.name != "run":
            return None
        return usual_length(knows.runs_like(parts.model, op.driver))

    def limit_of(op: Op) -> float | None:
        if op.name != "run":
            return ANALYSIS_LIMIT_S
        job = jobs.get(op.jid) if op.jid is not None else None
        return limit_s(job) if job is not None else LIMITS_S.get(op.kind or "")

    agents = {agent.agent: agent for agent in knows.agents()}
    return WaitSnapshot(open_ops, agents, now, usual_of, limit_of, cancels)
