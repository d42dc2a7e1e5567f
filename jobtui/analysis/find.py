"""References in a pasted text, and ranked candidates for what it means. Nothing is chosen for the user.

`references` reads only the text; `find` says what exists.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum, auto
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from jobtui.analysis.keys import Key, Space, keys_of
from jobtui.model.health import FAULTS, contained
from jobtui.model.ids import (
    JID,
    JOBSUB_ID,
    LABEL,
    NUMBER,
    PREFIX_LENGTH,
    SIMULATION_ID,
    UID,
    JobId,
    Numbered,
    TraceRef,
    answers_to,
    condor_id,
    find_trace,
    is_full_id,
    is_prefix,
    numbered,
    op_prefix,
    split_container,
)
from jobtui.model.jobs import SLURM, Job, first_seen
from jobtui.model.numbers import counted
from jobtui.model.ops import Agent, Op
from jobtui.model.patterns import regex
from jobtui.model.spelling import near
from jobtui.model.tables import tables_of

MAX_LENGTH = 20_000


class Target(Enum):
    JOB = auto()
    USER = auto()
    SIMULATION = auto()
    OP = auto()
    AGENT = auto()
    CONTAINER = auto()
    TRACE = auto()
    NUMBER = auto()
    SUBMITTED = auto()
    CONDOR = auto()
    HOST = auto()
    UNIT = auto()
    PART = auto()


class Reference(NamedTuple):
    """A piece of text that refers to something. `weight` (0..1) is how surely, `why` is the reason."""

    target: Target
    text: str
    weight: float
    why: str


_FORMS = {
    "JID": JID,
    "UID": UID,
    "SIMULATION": SIMULATION_ID,
    "JOBSUB": JOBSUB_ID,
    "LABEL": LABEL,
    "NUMBER": NUMBER,
}


def _shape(pattern: str, target: str, weight: float, why: str, form: str = r"\1") -> tuple[str, Reference]:
    """The pattern of a shape, and its reference, whose text is made of what the pattern matches."""
    written = re.sub(r"%([A-Z]+)%", lambda named: _FORMS[named[1]], pattern)
    return written, Reference(Target[target], form, weight, why)


_SHAPES = tuple(_shape(**one) for one in tables_of("jobtui.analysis", "find")["shape"])
_LISTED = tuple(re.compile(form, re.ASCII).fullmatch for form in (f"#?{NUMBER}", rf"\w{{4}}|{UID}|\w{{32}}"))
"""Whether words are a list of ids: all numbers, or all of ops, agents, simulations and users."""
_SHORTEST_TRACE = 20
"""The shortest text that may name a trace: fewer digits are ids of other things."""


def references(thing: str) -> Iterator[Reference]:
    """The references in `thing`, in no order; one may come several times."""
    text = thing.strip()[:MAX_LENGTH]
    if len(text) >= _SHORTEST_TRACE and (ref := find_trace(text)) is not None:
        yield _trace(ref, text)
    lines = (line.strip() for line in text.splitlines())
    for line in islice(lines, MAX_CANDIDATES):
        # A word in a text or a list has signs around it, an address its port, and a place in a log its line
        words = [re.sub(r"^([A-Za-z][\w.-]*):\d+$", r"\1", word.strip("\"'`,;:<>")) for word in line.split()]
        if len(words) == 1 or any(all(map(is_one, words)) for is_one in _LISTED):
            yield from (reference for word in filter(None, words) for reference in _bare(word))
    for pattern, reference in _SHAPES:
        for found in re.finditer(pattern, text, re.ASCII):
            yield reference._replace(text=found.expand(reference.text))


def is_path(thing: str) -> bool:
    """Whether it is written as the path of a file, with a place in front."""
    return bool(re.match(r"(?:~|\.\.?)?/", thing)) and "\n" not in thing


def named_in_files(thing: str) -> tuple[set[str], str]:
    """Which parts of a text files of jobs may hold: numbers in Slurm, and a failing line, in lower case."""
    text = thing.strip()
    wanted = (Target.NUMBER, Target.SUBMITTED)
    numbers = {one.text for one in references(text) if one.target in wanted}
    return numbers, text.casefold() if " " in text and len(text) >= LEAST_ERROR else ""


def _trace(ref: TraceRef, text: str) -> Reference:
    """The trace that a text names; a bare id may also belong to something else."""
    if ref.span_id is not None:
        return Reference(Target.TRACE, ref.trace_id, 1.0, "a trace context")
    if text.isalnum():
        return Reference(Target.TRACE, ref.trace_id, 0.5, "this has the form of a trace id")
    return Reference(Target.TRACE, ref.trace_id, 0.9, "a trace is named in the text")


def _bare(text: str) -> Iterator[Reference]:
    if number := re.fullmatch(rf"#?({NUMBER})", text, re.ASCII):
        yield Reference(Target.NUMBER, number[1], 0.97, "this is its number")
    if tasks := re.fullmatch(rf"(?:slurm[^/]*/)?({NUMBER})_\[[\d,:%-]+\]", text, re.ASCII):
        yield Reference(Target.NUMBER, tasks[1], 0.97, "squeue lists pending tasks of this array like this")
    if labelled := re.fullmatch(rf"#?(\d{{1,18}})@({LABEL})", text, re.ASCII):
        job_id = f"balsam@{labelled[2]}/{labelled[1]}"
        yield Reference(Target.JOB, job_id, 1.0, "this is its number, and its server")
    if (condor := condor_id(text)) is not None:
        yield Reference(Target.CONDOR, condor.job_id, 0.97, "this is its number in HTCondor")
    if is_prefix(text):
        yield Reference(Target.OP, text, 0.9, "its op id begins with this")
        yield Reference(Target.AGENT, text, 0.9, "its id begins with this")
    if is_full_id(text):
        yield Reference(Target.OP, text, 1.0, "this is its op id")
        yield Reference(Target.AGENT, text[:4], 0.6, "its id begins with this")
    if re.fullmatch(UID, text, re.ASCII):
        yield Reference(Target.SIMULATION, text, 0.95, "this is its simulation")
    yield Reference(Target.HOST, text, 0.9, "this is a host")
    if len(text) >= LEAST_WHOLE:
        yield Reference(Target.USER, text, 0.95, "this is the user's id")
        yield Reference(Target.UNIT, text, 0.85, "this is a log")
    if len(text) >= LEAST_PART:
        yield Reference(Target.PART, text, 0.6, "its id contains this")


MAX_CANDIDATES = 50
AMBIGUOUS_WITHIN = 0.05
"""If the scores of two candidates differ by less, either may be meant."""

_SHARED_WEIGHT = 0.6
_NEAR_WEIGHT = 0.85
"""Factor on the score of a similar spelling, which is less than any exact match."""
_OFFERED_WEIGHT = 0.34
"""The same for an id of HTCondor: another number or schedd is another job, so it is only offered."""
_SURE = 0.8
"""With a candidate of this score similar spellings are not searched."""
_LONGEST_NEAR = 100
LEAST_PART = 4
"""The shortest part of an id or name that is searched, in characters."""
LEAST_ERROR = 8
"""Characters of the shortest text that is compared with the errors of jobs."""
LEAST_LINE = 20
"""The same for the lines of logs."""
LEAST_WHOLE = 3
"""The same for the whole name of a user or a log; that of a host may be shorter."""
_LONGEST_NAME = 200
SURE = 0.35
"""A candidate with a lower score has only a similar spelling."""
NEAR = "spelled almost like this"
"""The end of the reason for a similar spelling."""


class Candidate(NamedTuple):
    """Something a pasted text may mean.

    `kind` is one of `job array op agent container user host unit trace`. `id` is the id as jobtui shows it:
    for ops and agents the prefix. `job` is its job, if it has one. `score` is between 0 and 1.
    """

    kind: str
    id: str
    score: float
    why: str
    job: JobId | None = None

    @property
    def is_sure(self) -> bool:
        """Whether the name matches exactly, and not only by a similar spelling."""
        return self.score >= SURE and not self.why.endswith(NEAR)


def find(
    thing: str,
    jobs: Mapping[JobId, Job],
    ops: Iterable[Op] = (),
    agents: Iterable[Agent] = (),
    logs: Iterable[str] = (),
) -> tuple[Candidate, ...]:
    """The meanings of `thing`, likeliest first: an id or a part of one, a path, address, name or log line.

    `logs` are the names of logs. Never raises.
    """
    text = thing.strip()
    if not text:
        return ()
    search = _Search(jobs, tuple(ops), tuple(agents), tuple(logs))
    found: list[Reference] = []
    with contained("finding"):
        found += sorted(references(text), key=lambda reference: reference.target is not Target.JOB)
    list(FAULTS.each("finding", found, search.resolve))
    with contained("finding"):
        search.add_named(text)
    if not text.isdigit() and search.surest < _SURE:
        with contained("finding"):
            if search.add_failed(text) or search.add_log_matches(text):
                return search.ranked()
            search.add_near(next((ref.text for ref in found if ref.target is Target.JOB), text))
    return search.ranked()


def is_array(job: Job) -> bool:
    """Whether it is an array of Slurm as a whole, or those of its tasks that have not begun."""
    return job.mode == "array" and "_" not in job.id


def is_ambiguous(candidates: tuple[Candidate, ...]) -> bool:
    return len(candidates) > 1 and candidates[0].score - candidates[1].score <= AMBIGUOUS_WITHIN


def jobs_meant(
    candidate: Candidate, jobs: Mapping[JobId, Job], ops: Iterable[Op], agents: Collection[Agent]
) -> tuple[JobId, ...]:
    """The jobs of a candidate, such as those of a user or of the agents on a host, newest first."""
    if candidate.job is not None:
        return (candidate.job,)
    found = {op.jid for op in ops_meant(candidate, ops, agents) if op.jid is not None}
    if (is_of := _OWNS.get(candidate.kind)) is not None:
        found.update(job.id for job in jobs.values() if is_of(job, candidate.id))
    return tuple(sorted(found, key=lambda job_id: _newest_first(jobs, job_id)))


def _newest_first(jobs: Mapping[JobId, Job], job_id: JobId) -> tuple[int, str]:
    job = jobs.get(job_id)
    return (-(first_seen(job) or 0) if job else 0, job_id)


MOST_FILTERED = 40


def filter_of(jobs: Collection[JobId]) -> str:
    """A filter that shows these jobs; only the first ones if there are very many."""
    return f"id:{','.join(islice(jobs, MOST_FILTERED))}"


def ops_meant(candidate: Candidate, ops: Iterable[Op], agents: Iterable[Agent]) -> Iterator[Op]:
    if candidate.kind == "user":
        yield from (op for op in ops if (op.jid or op.uid or "").partition("-")[0] == candidate.id)
    elif candidate.kind in ("agent", "container", "host"):
        called = agents_called(candidate.id, agents)
        yield from (op for op in ops if op.any_agent in called)


def agents_called(name: str, agents: Iterable[Agent]) -> frozenset[str]:
    """The prefixes of the agents with this prefix or full id, in this container or on this host."""
    there = (agent.agent for agent in agents if agent.container == name or is_host(agent.host, name))
    return frozenset((*there, *([name[:PREFIX_LENGTH]] if is_prefix(name) or is_full_id(name) else ())))


def is_host(host: str | None, name: str) -> bool:
    """Whether a host has this name, with or without its domain."""
    return host is not None and name in (host, host.partition(".")[0])


_OWNS: Mapping[str, Callable[[Job, str], bool]] = {
    "user": lambda job, name: job.owner == name,
    "host": lambda job, name: is_host(job.host, name),
    "trace": lambda job, name: job.trace == name,
    "array": lambda job, name: job.id == name or job.id.startswith(f"{name}_"),
}


def is_of_unit(source: str, unit: str) -> bool:
    """Whether a source has this name: a unit, with or without its host, a container, or a log file.

    The name may have wildcards, as in a shell.
    """
    short = unit.removesuffix(".service").replace("sirepo@", "sirepo-")
    stream = source.rpartition("@")[0] or source
    with_host = re.sub(r"(@[^@.]*)\.[^@]*$", r"\1", source)
    instance = stream.partition(".")[0]
    file = source.rsplit("/", 1)[-1]
    names = (source, with_host, stream, instance, file, file.removesuffix(".log"))
    return any(fnmatchcase(name, wanted) for name in names for wanted in (unit, short))


class _Search:
    """Collects candidates with the best score for each. Resolve references to jobs first."""

    def __init__(
        self, jobs: Mapping[JobId, Job], ops: tuple[Op, ...], agents: tuple[Agent, ...], logs: tuple[str, ...]
    ) -> None:
        self._jobs = jobs
        self._logs = logs
        self._ops = ops
        self._agents = agents
        self._ids = {*jobs, *(op.jid for op in ops if op.jid is not None)}
        self._named: set[JobId] = set()
        self.surest = 0.0
        """The best score of an exact match."""
        self.found: dict[tuple[str, str, JobId | None], Candidate] = {}

    def resolve(self, reference: Reference) -> None:
        """Add what a reference may mean, by the method that is named after its target."""
        add: Callable[[Reference], None] = getattr(self, f"_add_{reference.target.name.lower()}")
        add(reference)

    def add_named(self, text: str) -> None:
        """Add the jobs whose name is `text`, or else those whose name contains it."""
        low = text.casefold()
        if not LEAST_WHOLE <= len(low) <= _LONGEST_NAME:
            return
        names = [(job.id, job.name.casefold()) for job in self._jobs.values() if job.name]
        exact = [job_id for job_id, name in names if name == low]
        named = exact or [job_id for job_id, name in names if low in name and len(low) >= LEAST_PART]
        self.surest = 1.0 if named else self.surest
        if exact:
            self._add_jobs(exact, 0.9, "this is its name")
        elif not text.isdigit():
            self._add_jobs(named, 0.6, "its name contains this")

    def add_failed(self, text: str) -> bool:
        """Add the jobs whose error is in a pasted text, or contains it. True if there are any."""
        low = text.casefold()
        if len(low) < LEAST_ERROR:
            return False
        errors = ((job.id, job.error.casefold()) for job in self._jobs.values() if job.error)
        fits = [one for one, error in errors if low in error or (len(error) >= LEAST_ERROR and error in low)]
        self._add_jobs(fits, 0.7, "its error says this")
        return bool(fits)

    def add_log_matches(self, text: str) -> bool:
        """Add the jobs of which a log says this: a line that a pager or a terminal cut off names none."""
        if len(text) < LEAST_LINE:
            return False
        named = ((op.jid, step) for op in self._ops if op.jid is not None for step in op.steps)
        ids = {job_id for job_id, step in named if _is_cut_from(step.text, text)}
        self._add_jobs(ids, 0.7, "a line of its log says this")
        return bool(ids)

    def add_near(self, text: str) -> None:
        """Add jobs whose id or name is spelled like `text`, unless it is as long as a line."""
        if not LEAST_PART <= len(text) <= _LONGEST_NEAR:
            return
        weight = _NEAR_WEIGHT if condor_id(text) is None else _OFFERED_WEIGHT
        for job_id, alike in near(text, self._ids):
            what = "a part of its id" if 3 * len(text) < 2 * len(job_id) else "its id"
            self._add("job", job_id, weight * alike**2, f"{what} is {NEAR}", JobId(job_id))
        names = {job.name: job.id for job in self._jobs.values() if job.name}
        for name, alike in near(text, names):
            why = f"its name is {NEAR}"
            self._add("job", names[name], _NEAR_WEIGHT * alike**2, why, names[name])

    def ranked(self) -> tuple[Candidate, ...]:
        best = sorted(self.found.values(), key=lambda one: (-one.score, one.kind, one.id, one.job or ""))
        return tuple(best[:MAX_CANDIDATES])

    def _add(self, kind: str, id_: str, score: float, why: str, job: JobId | None = None) -> None:
        score = round(score, 3)
        self.surest = max(self.surest, score)
        key = (kind, id_, job)
        if key not in self.found or self.found[key].score < score:
            self.found[key] = Candidate(kind, id_, score, why, job)

    def _shared(self, score: float, why: str, count: int, what: str) -> tuple[float, str]:
        if count < 2:
            return score, why
        self.surest = max(self.surest, score)
        return score * _SHARED_WEIGHT, f"{why}, as {count} {what} do"

    def _add_jobs(self, job_ids: Iterable[JobId], score: float, why: str) -> None:
        several = sorted(job_ids, key=lambda job_id: _newest_first(self._jobs, job_id))
        score, why = self._shared(score, why, len(several), "jobs")
        for job_id in several[:MAX_CANDIDATES]:
            self._add("job", job_id, score, why, job_id)

    def _add_job(self, reference: Reference) -> None:
        job_id = JobId(reference.text)
        if job_id in self._ids:
            self._named.add(job_id)
            self._add("job", job_id, reference.weight, reference.why, job_id)
        elif (parts := numbered(job_id)) is not None:
            self._add_jobs(self._alike(parts), reference.weight, reference.why)
            if job_id in self._arrays(parts.number):
                self._add("array", job_id, reference.weight, reference.why)

    def _arrays(self, number: str) -> dict[str, set[JobId]]:
        """The tasks that are known of the arrays of Slurm with this number, by the array's id."""
        found: dict[str, set[JobId]] = {}
        for one in self._ids:
            system, is_task, _ = one.partition(f"/{number}_")
            if is_task:
                found.setdefault(f"{system}/{number}", set()).add(one)
        return found

    def _alike(self, wanted: Numbered) -> Iterator[JobId]:
        for job in self._jobs.values():
            parts = numbered(job.id) if job.id.endswith(f"/{wanted.number}") else None
            if parts is None or (parts.system, parts.number) != (wanted.system, wanted.number):
                continue
            if not wanted.label or answers_to(job.source, wanted.label):
                yield job.id

    def _add_condor(self, reference: Reference) -> None:
        """A job of HTCondor, or all of its cluster if only that is named."""
        wanted = condor_id(reference.text)
        if wanted is not None:
            ids = ((job_id, condor_id(job_id)) for job_id in self._ids)
            fits = (job_id for job_id, known in ids if known is not None and wanted.holds(known))
            self._add_jobs(fits, reference.weight, reference.why)

    def _add_number(self, reference: Reference) -> None:
        """Jobs of systems that number them: `balsam/12`; arrays of Slurm, and tasks by their own number."""
        by_number = {one for one in self._ids if one.endswith(f"/{reference.text}")}
        arrays = self._arrays(reference.text)
        for array, tasks in arrays.items():
            count = counted(len(tasks) + (array in by_number), "job")  # those that wait have its own number
            self._add("array", array, reference.weight, f"{reference.why}; has {count}")
        self._add_jobs(by_number - arrays.keys(), reference.weight, reference.why)
        known = set().union(arrays, *arrays.values())
        others = (job for job in self._jobs.values() if job.system == SLURM and job.id not in known)
        key = Key(Space.SCHEDULER, reference.text)
        of_number = (job.id for job in others if job.mode and key in keys_of(job))
        self._add_jobs(of_number, reference.weight, "a task with this number of its own")
        self._add_submitted(reference._replace(why="its agent's log has this number in Slurm"))

    def _add_submitted(self, reference: Reference) -> None:
        noted = {op.jid for op in self._ops if op.jid is not None and submitted_as((op,)) == reference.text}
        self._add_jobs(noted, reference.weight, reference.why)

    def _add_user(self, reference: Reference) -> None:
        job_ids = self._by_user.get(reference.text, [])
        if job_ids:
            why = f"{reference.why}; has {counted(len(job_ids), 'job')}"
            self._add("user", reference.text, reference.weight, why)
        if len(job_ids) == 1:
            self._add("job", job_ids[0], reference.weight * 0.9, "the only job of this user", job_ids[0])

    def _add_simulation(self, reference: Reference) -> None:
        self._add_jobs(self._by_simulation.get(reference.text, ()), reference.weight, reference.why)

    def _add_op(self, reference: Reference) -> None:
        # an op with this prefix or full id; of one without a known full id the prefix is compared
        text, is_full = reference.text, len(reference.text) > PREFIX_LENGTH
        ops = [
            op
            for op in self._ops
            if (op.op_id == text if is_full and op.op_id is not None else op.op == op_prefix(text))
        ]
        of_named = [op for op in ops if op.jid in self._named]
        ops = of_named or ops
        score, why = self._shared(reference.weight, reference.why, len(ops), "ops")
        for op in ops[-MAX_CANDIDATES:]:
            job = op.jid or "an unknown job"
            self._add("op", op.op, score, f"{why}: {op.name} of {job}", op.jid)

    def _add_agent(self, reference: Reference, why: str = "") -> None:
        named, agents = reference.text, list[Agent]()
        for one in self._agents:
            log = one.cluster_log or ""
            if named in (one.agent, one.container, one.container_id, log, log.rpartition("/")[2]):
                agents.append(one)
        score, why = self._shared(reference.weight, why or reference.why, len(agents), "agents")
        for agent in agents[-MAX_CANDIDATES:]:
            self._add("agent", agent.agent, score, f"{why}: {agent.driver} {agent.kind} of {agent.uid}")

    def _add_container(self, reference: Reference) -> None:
        container = split_container(reference.text)
        self._add_agent(reference, "runs in this container")
        is_of_agent = any(agent.container == reference.text for agent in self._agents)
        if container is not None and (is_of_agent or container.uid in self._by_user):
            self._add("container", reference.text, reference.weight + 0.1, reference.why)
            self._add_user(Reference(Target.USER, container.uid, 0.4, "the container is of this user"))

    def _add_host(self, reference: Reference) -> None:
        hosts = {agent.host for agent in self._agents} | {job.host for job in self._jobs.values()}
        hosts |= {log.rpartition("@")[2] for log in self._logs if "@" in log and "/" not in log}
        for host in sorted(host for host in hosts if host is not None and is_host(host, reference.text)):
            self._add("host", host, reference.weight, reference.why)

    def _add_unit(self, reference: Reference) -> None:
        unit = reference.text
        if split_container(unit) is None and any(is_of_unit(log, unit) for log in self._logs):
            self._add("unit", unit, reference.weight, reference.why)

    def _add_trace(self, reference: Reference) -> None:
        self._add("trace", reference.text, reference.weight, reference.why)
        handed = [job.id for job in self._jobs.values() if job.trace == reference.text]
        self._add_jobs(handed, reference.weight * 0.9, "it was given this trace")

    def _add_part(self, reference: Reference) -> None:
        part = reference.text
        if part.isdigit():
            return
        job_ids = [job_id for job_id in self._ids if part in job_id]
        if not job_ids:
            part = part.lower()
            job_ids = [job_id for job_id in self._ids if part in job_id.lower()]
        if job_ids:
            self.surest = 1.0
        self._add_jobs(job_ids, reference.weight, reference.why)
        begun = {name for one in self._agents if (name := one.container or "").startswith(reference.text)}
        score, why = self._shared(0.6, "its container's name begins with this", len(begun), "containers")
        for container in sorted(begun - {reference.text})[:MAX_CANDIDATES]:
            self._add_container(Reference(Target.CONTAINER, container, score, why))
        several = (user for user, ids in self._by_user.items() if ids[1:])  # an only one is found already
        users = [user for user in several if user.startswith(reference.text) and user != reference.text]
        score, why = self._shared(0.6, "the user's id begins with this", len(users), "users")
        for user in sorted(users)[:MAX_CANDIDATES]:
            self._add("user", user, score, why)

    @cached_property
    def _by_user(self) -> dict[str, list[JobId]]:
        found: dict[str, list[JobId]] = {}
        for job_id in self._ids:
            job = self._jobs.get(job_id)
            user = job.owner if job is not None else job_id.partition("-")[0]
            found.setdefault(user, []).append(job_id)
        return found

    @cached_property
    def _by_simulation(self) -> dict[str, list[JobId]]:
        found: dict[str, list[JobId]] = {}
        for job_id in self._ids:
            # split_jid would check the form too, which takes most of the time for very many ids
            found.setdefault(job_id.partition("-")[2].partition("-")[0], []).append(job_id)
        return found


def _is_cut_from(line: str, text: str) -> bool:
    """Whether a text is a piece of what a line tells, or the head of the line and the beginning of that."""
    begins = text.find(line[:LEAST_LINE]) if len(line) >= LEAST_LINE else -1
    return line.startswith(text[begins:]) if begins >= 0 else text in line


_SBATCH_ID = regex(r"sbatch_id\W{1,6}(\d{1,18})(?!\d)", re.ASCII)


def submitted_as(ops: Iterable[Op]) -> str | None:
    """The number in Slurm of the job of these ops, from the last line with one."""
    texts = (step.text for op in ops for step in op.steps if "sbatch_id" in step.text)
    return next(reversed([number for text in texts for number in _SBATCH_ID.findall(text)]), None)
