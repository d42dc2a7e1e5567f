"""Finds what killed a program in the messages of the kernel and others in the journal of its host.

A message is about a job if it names its process, its container or its Slurm job within a minute of its end.
Any other is only near in time: it is shown, and proves nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from jobtui.analysis.clock_offset import PAIRS_KEPT, OffsetBounds
from jobtui.analysis.explain.case import CERTAIN, LIKELY, SURE, Evidence
from jobtui.analysis.explain.flow import Mark, mark_of
from jobtui.formats.causes import KillShape, load_kills
from jobtui.formats.slurm import first_node
from jobtui.model.clock import HERE, SECOND, Nanos, clock_of, seconds_between, utc_of
from jobtui.model.jobs import SLURM
from jobtui.model.journal import JournalEntry, is_host
from jobtui.model.numbers import whole
from jobtui.model.ops import Agent, Op
from jobtui.model.verdicts import Fact, Killer

BEFORE_S, AFTER_S = 60.0, 15.0
"""How long before and after the end of a job a message may be about it."""
CLOSE_S = 10.0
"""A name that several jobs share, such as a container, ties a message only this close to a job's end."""
BOOTED_S = 300.0
"""A journal begins at most this long after the boot of its machine."""
MOST_NAMED = 3

_PID = re.compile(r"\bpid=(\d+)")
_HEX = re.compile(r"([0-9a-f]{12})[0-9a-f]{52}")
_SLOT = re.compile(r"\bslot\d[\w]*@[\w.-]+")


class JobEnd(NamedTuple):
    """The end of a job, and the names that tie a message to it.

    `pids` are its processes on `host`, `names` its container, slot or Slurm job as in control groups.
    `ahead_s` bounds how far the clock of `host` is ahead of the clock of `at`.
    """

    at: Nanos
    host: str = ""
    pids: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()
    ahead_s: tuple[float, float] = (0.0, 0.0)

    @property
    def window(self) -> tuple[Nanos, Nanos]:
        """The range of times of possible messages, by the clock of the host."""
        low, high = self.ahead_s
        begin, end = self.at + (low - BEFORE_S) * SECOND, self.at + (high + AFTER_S) * SECOND
        return Nanos(round(begin)), Nanos(round(end))

    def is_near(self, at: Nanos, seconds: float) -> bool:
        low, high = self.ahead_s
        return low - seconds <= seconds_between(self.at, at) <= high + seconds


def ending_of(evidence: Evidence, agent: Agent | None, ops: Iterable[Op]) -> JobEnd | None:
    """The end of a job; None if it is not known. `ops` give the differences between clocks of hosts."""
    job, slurm = evidence.job, evidence.slurm
    if job is None:
        return None
    run = next((op for op in reversed(evidence.ops) if op.name == "run"), None)
    ends = (Mark.EXITED, Mark.AGENT_GONE)
    steps = run.steps if run is not None else ()
    step = next((one for one in steps if mark_of(one) in ends and one.at is not None), None)
    own = job if job.system == SLURM else slurm
    at = step.at if step is not None else (own.ended_at if own is not None else None) or job.ended_at
    if at is None:
        return None
    clock = clock_of(step.source) if step is not None else HERE
    host = (agent.host if agent is not None else None) or job.host or ""
    names, pids = set(_SLOT.findall(" ".join(fact.text for fact in evidence.facts))), []
    if own is not None:
        host = first_node(own.host or "")
        names.update(f"job_{number}" for number in (own.id.rpartition("/")[2], *own.allocation.split()))
    elif agent is not None and agent.container is not None:
        names.update({agent.container_id} if agent.container_id else ())
    elif run is not None:
        host = host or clock
        pids = _PID.findall(" ".join(one.text for one in run.steps))
    known_pids = frozenset(whole(pid, 0) for pid in pids)
    return JobEnd(at, host, known_pids, frozenset(names), _ahead_s(clock, host, ops))


def _ahead_s(clock: str, host: str, ops: Iterable[Op]) -> tuple[float, float]:
    if is_host(clock, host):
        return 0.0, 0.0
    bounds = OffsetBounds()
    for op in tuple(ops)[-PAIRS_KEPT:]:
        bounds.take(op)
    for (one, other), offset in bounds.offsets().items():
        if one == clock and is_host(other, host):
            return offset.low or 0.0, offset.high or 0.0
    return 0.0, 0.0


class EndMessage(NamedTuple):
    """A message about an end, with the names in it and in the parts before it."""

    entry: JournalEntry
    shape: KillShape
    values: Mapping[str, str]

    @property
    def at(self) -> Nanos:
        return self.entry.sent_at or self.entry.at

    @property
    def words(self) -> str:
        known = {name: _short(value) for name, value in self.values.items()}
        if "limit_kb" in known:
            known["limit"] = _size(whole(known["limit_kb"], 0))
        for text in self.shape.says:
            with suppress(KeyError):
                return text.format_map(known)
        return ""

    def tie(self, ending: JobEnd) -> float:
        """How sure it is about this end; 0 if it is only near in time."""
        values, host = self.values, self.entry.host
        if whole(values.get("pid"), 0) in ending.pids and is_host(host, ending.host):
            return CERTAIN
        cgroup, container = values.get("cgroup", ""), values.get("container", "")
        where = (*cgroup.split("/"), container, f"job_{values.get('slurm')}")
        for name in ending.names:
            is_whole = "job_" in name
            if any(one == name or (name in one and not is_whole) for one in where):
                # In a container other programs run as well: it may have been another that was killed
                is_other = "pid" in values and not is_whole and _SLOT.fullmatch(name) is None
                return LIKELY if not ending.is_near(self.at, CLOSE_S) else SURE if is_other else CERTAIN
        # A journal that begins later takes in all that the kernel has said since, as if it said it now
        is_boot = self.shape.role == "boot" and (self.entry.monotonic_us or 0) < BOOTED_S * 1_000_000
        return LIKELY if (is_boot or self.shape.role == "host") and is_host(host, ending.host) else 0.0


def find_killer(entries: Iterable[JournalEntry], ending: JobEnd) -> Killer:
    begin, end = ending.window
    own = (entry for entry in entries if not ending.host or is_host(entry.host, ending.host))
    within = (one for one in _kills(own) if begin <= one.at <= end)
    closest = sorted(within, key=lambda one: abs(one.at - ending.at))
    tied = [one for one in closest if one.tie(ending) and one.words]
    if not tied:
        where = f"the messages of {ending.host or 'its host'} around its end"
        near = tuple(_fact(one, "near in time") for one in closest[:MOST_NAMED])
        return Killer(near=near, doubt=f"who ended it: {where} name nothing that is its own")
    best = max(tied, key=lambda one: one.shape.weight)
    words = f"{best.words} (host {ending.host or best.entry.host}, {utc_of(best.at):%H:%M:%S} UTC)"
    others = (one for one in tied if one is not best)
    facts = tuple(_fact(one, "who ended it") for one in (best, *islice(others, MOST_NAMED - 1)))
    return Killer(words, best.tie(ending), facts)


def _kills(entries: Iterable[JournalEntry]) -> Iterator[EndMessage]:
    """The kills in messages, each with the parts of the kernel's report before it."""
    parts: dict[str, str] = {}
    parts_at = Nanos(0)
    for entry in sorted(entries, key=lambda entry: entry.at):
        # Anybody may call himself the kernel, but then has a process; containers write what they like
        is_kernel = entry.identifier == "kernel" and entry.pid is None
        if entry.container or is_kernel != (entry.identifier == "kernel"):
            continue
        found = load_kills().first(entry.identifier, entry.message)
        if found is None:
            continue
        shape, values = found
        if shape.role == "begin" or seconds_between(parts_at, entry.at) > CLOSE_S:
            parts = {}
        if shape.role == "part":
            parts, parts_at = parts | values, entry.at
        elif shape.role != "begin":
            is_same = parts.get("victim", pid := values.get("pid")) == pid or "group" in parts
            told = {**parts, **values} if is_same and shape.role == "kill" else values
            yield EndMessage(entry, shape, told)


def _fact(message: EndMessage, what: str) -> Fact:
    entry = message.entry
    source = f"{entry.identifier}@{entry.host}" if entry.host else entry.identifier
    return Fact(text=entry.message, source=source, what=what, at=message.at, cursor=entry.cursor)


def _size(kilobytes: float) -> str:
    for unit in ("kB", "MB"):
        if kilobytes < 1000:
            return f"{kilobytes:.3g} {unit}"
        kilobytes /= 1024
    return f"{kilobytes:.3g} GB"


def _short(path: str) -> str:
    """The last parts of a control group that identify it, with ids of containers cut to twelve digits."""
    parts = [part for part in path.removesuffix(".scope").split("/") if part]
    jobs = [at for at, part in enumerate(parts) if part.startswith("job_")]
    names = parts[jobs[0] :] if jobs else parts[-2:] if parts and _HEX.fullmatch(parts[-1]) else parts[-1:]
    return _HEX.sub(r"\1", "/".join(names))
