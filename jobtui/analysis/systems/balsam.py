"""Verdicts on jobs of Balsam, out of their states, their site's allocations and agents. Reads nothing.

States, and who changes them, are as in answers of Balsam's API. The server enforces no order of states, so
only the state that a job is in decides which rule is used; its changes say how it came to this state.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec.structs import replace

from jobtui.analysis.explain import case
from jobtui.analysis.explain.next_steps import steps_for
from jobtui.analysis.explain.pending import sentence_of
from jobtui.analysis.timeline import STATES
from jobtui.analysis.times import age, capital, duration, for_words
from jobtui.backends.registry import BALSAM
from jobtui.model.changes import OPEN, UNLISTED, Allocation, Serving, Site, StateChange, in_order, serving
from jobtui.model.clock import Nanos, from_seconds, seconds_between, since_s
from jobtui.model.health import unread
from jobtui.model.jobs import DELETED, NO_SESSION, NOT_DONE, Category, Job, Pending
from jobtui.model.numbers import and_more, counted
from jobtui.model.secrets import mask_document
from jobtui.model.state_runs import FAILED, RUN_ERROR, error_of
from jobtui.model.verdicts import BY_ITSELF, Code, Contradiction, Fact, Verdict, signal_of

RUN_TIMEOUT = "RUN_TIMEOUT"
OVER = frozenset({"finished", "pending_deletion", "submit_failed"})
WALL_SLACK_S, WALL_SLACK_PART = 120.0, 0.1
"""How much before the end of its time an allocation may end, at most, and still count as out of time."""
MOST_CHANGES, MOST_NAMED = 5, 3
HOPELESS: Mapping[str, str] = STATES["hopeless"]
"""States of a parent that will never let a job start."""
EXPIRED = "session expired"
"""What the server says about a job whose launcher it believed to be dead, in lower case."""


class BalsamCase(NamedTuple):
    """One job and what belongs to it. `here` are the allocations of its site.

    `now` is the time by the server's clock when it was last read, `sites_at` when its sites were, and
    `launchers_at` when all of that was which says what launchers do. That clock is `ahead_s` ahead of this
    machine's, and the last time that it wrote is `dated_at`. `never_read` are the parts of its server that
    were not read yet.
    """

    job: Job
    now: Nanos
    sites_at: Nanos
    launchers_at: Nanos
    changes: Sequence[StateChange]
    site: Site | None
    own: Allocation | None
    here: Sequence[Allocation]
    never_read: frozenset[str]
    ahead_s: float
    dated_at: Nanos | None

    @property
    def words(self) -> dict[str, str]:
        """Words about it for commands, "" where there are none. An allocation is its own, else the newest."""
        job, site, newest = self.job, self.site, max(self.here, key=lambda one: one.id, default=None)
        there = [(name, state) for name, state in job.needs if state != DELETED]
        needed = [name for name, state in there if state in HOPELESS] or [name for name, _ in there]
        words = {"id": job.id, "output": job.id, "needed": next(iter(needed), "")}
        if site is not None:
            words |= {"site": str(site.id), "site_path": site.path}
        if newest is not None:
            words |= {
                "nodes": f"{max(newest.nodes, job.nodes):g}",
                "minutes": f"{(newest.wall_time_s or 0) / 60:.0f}",
                "queue": newest.queue,
                "project": newest.project,
                "mode": newest.mode,
                "scheduler": (self.own or newest).scheduler_id or "",
            }
        return words

    @property
    def since(self) -> Nanos | None:
        last = self.changes[-1] if self.changes else None
        is_told = last is not None and (last.after == self.job.native_status or not self.job.updated_at)
        return last.at if last is not None and is_told else self.job.updated_at

    def since_s(self) -> float | None:
        return since_s(self.since, self.now)

    @property
    def waited(self) -> str:
        return for_words(self.since_s())

    def doubts_of(self, is_silent: Callable[[Nanos], bool], at: Nanos) -> tuple[str, ...]:
        """Doubts about a silence that is none by this machine's clock, if the server dated nothing since."""
        dated_s = since_s(self.dated_at, at) or 0.0
        if is_silent(Nanos(at - from_seconds(self.ahead_s))) or dated_s < self.ahead_s:
            return ()
        return (f"the clock of its server is {age(self.ahead_s)} ahead, perhaps only since then",)

    def last(self, *states: str) -> StateChange | None:
        return next((change for change in reversed(self.changes) if change.after in states), None)


def explain_balsam(evidence: case.Evidence) -> Verdict:
    job = evidence.job
    assert job is not None
    site = next((one for one in evidence.sites if (one.source, one.name) == (job.source, job.host)), None)
    at_source = [one for one in evidence.allocations if one.source == job.source]
    number = job.allocation.partition(" ")[0]
    own = next((one for one in at_source if str(one.id) == number), None)
    server = next((one for one in evidence.sources if one.name == job.source), None)
    parts = server.failing if server is not None else ()
    never_read = frozenset(part.name for part in parts if part.since is None)
    here = [one for one in at_source if site is not None and one.site_id == site.id]
    now, changes = evidence.now_at(job.source), in_order(evidence.changes)
    sites_at = evidence.now_at(job.source, "sites")
    launchers_at = evidence.now_at(job.source, "sessions", "batch-jobs")
    heard = (*(one.seen_at for one in evidence.sites), *(one.heartbeat_at for one in at_source))
    dated_at = max(filter(None, (job.updated_at, *heard)), default=None)
    ahead_s = server.ahead_s if server is not None else 0.0
    matter = BalsamCase(
        job, now, sites_at, launchers_at, changes, site, own, here, never_read, ahead_s, dated_at
    )
    said = _ruling(matter, job.native_status)
    blind = [*said.doubts, *unread(evidence.sources)]
    if not matter.changes:
        blind.append("no events of the job were read")
    if matter.site is None:
        blind.append("its site is not known")
    events = (
        Fact(
            what=f"{change.before} → {change.after}",
            text=json.dumps(mask_document(change.detail)) if change.detail else f"event {change.id}",
            source=change.source,
            at=change.at,
        )
        for change in changes[-MOST_CHANGES:]
    )
    return said.on(
        job,
        last_step=job.native_status,
        last_at=matter.since,
        waited_s=matter.since_s() if job.status.is_live else None,
        evidence=tuple(events),
        next=steps_for(BALSAM.kind, said.code, matter.words),
        blind_spots=tuple(blind),
    )


def _ruling(matter: BalsamCase, state: str) -> case.Ruling:
    """By its state, or by its last event; less sure where an event of its run is missing."""
    if (rule := RULES.get(state)) is not None:
        said, lost = rule(matter), _lost_event(state, matter.changes)
        if not lost or said.confidence <= case.PLAUSIBLE:
            return said
        return said._replace(confidence=case.PLAUSIBLE, doubts=(*said.doubts, lost))
    sentence = f'Its state is "{state}", which jobtui does not know.'
    if not matter.changes or (last := RULES.get(matter.changes[-1].after)) is None:
        return case.Ruling(Code.UNKNOWN, sentence, 0.3)
    known = last(matter._replace(job=replace(matter.job, native_status=matter.changes[-1].after)))
    words = f"{sentence} By its last event: {known.sentence}"
    return known._replace(sentence=words, confidence=min(known.confidence, case.PLAUSIBLE))


def _lost_event(state: str, changes: Sequence[StateChange]) -> str:
    """Which event of its last run was not read, where the verdict rests on it; "" for none."""
    if state not in NEEDED["events"]:
        return ""
    if not changes or changes[-1].after != state:
        return f"the event by which it became {state} was not read"
    for newer, older in pairwise(changes[::-1]):
        if older.after != newer.before:
            return f"an event between {older.after} and {newer.before} was not read"
        if newer.after == "RUNNING":
            break
    return ""


def _pending(matter: BalsamCase, category: Category, words: str, **more: Any) -> Pending:
    return Pending(
        category=category,
        reason=matter.job.native_status,
        words=words,
        since=matter.since,
        queue=matter.job.host or "",
        needs=matter.job.needs,
        history=tuple(_history(matter)),
        **more,
    )


def _history(matter: BalsamCase) -> Iterator[tuple[Nanos, str]]:
    """The batch jobs of its site since it could run, and the silence of its site."""
    since, site = matter.since or Nanos(0), matter.site
    for one in matter.here if RULES.get(matter.job.native_status) is _runnable else ():
        for at, state in ((one.submitted_at, "queued"), (one.start_at, "running"), (one.end_at, one.state)):
            if at is not None and at > since:
                yield at, f"batch job {one.scheduler_id or one.id} {state}"
    if site is not None and (site.seen_at or since) > since and site.is_down(matter.sites_at):
        yield site.seen_at or since, f"nothing was heard from the agent of site {site.name}"


def _waits(
    matter: BalsamCase, code: Code, pending: Pending, sure: float, begin: str = "", **more: Any
) -> case.Ruling:
    return case.Ruling(code, sentence_of(pending, matter.waited, begin), sure, pending=pending, **more)


def _failed(matter: BalsamCase) -> case.Ruling:
    """What ended it, by the state before FAILED; earlier runs do not count."""
    last = matter.changes[-1] if matter.changes else None
    if last is None or last.after != FAILED:
        reason = matter.job.error or "no reason is given"
        return case.Ruling(Code.PROGRAM_FAILED, f"It failed: {reason}.", case.SURE)
    if last.before in (RUN_ERROR, "RUNNING"):
        return _program_failed(matter, last)
    if last.before == "RUN_TIMEOUT":
        said = _cut_off(matter)
        return said._replace(sentence=f"{said.sentence} It was then set to FAILED: {_reason(last)}.")
    if (known := FAILED_FROM.get(last.before)) is None:
        sentence = f"It was set to FAILED from {last.before}: {_reason(last)}."
        return case.Ruling(Code.UNKNOWN, sentence, case.GUESS)
    code, what = known
    again = " again" if what == NOT_LAUNCHED and matter.last("RUNNING") is not None else ""
    return case.Ruling(Code[code], f"{what}{again}: {_reason(last)}.", case.SURE)


NOT_LAUNCHED = "A launcher could not start it"
FAILED_FROM: Mapping[str, tuple[str, str]] = STATES["failed_from"]
"""What failed, by the state that a job came from."""


def _program_failed(matter: BalsamCase, last: StateChange) -> case.Ruling:
    error = last if last.before == "RUNNING" else matter.last(RUN_ERROR)
    code = (error.detail or {}).get("returncode") if error is not None else None
    reason = (error_of(error) if error is not None else None) or "no reason is given"
    sentence = f"Its program {f'ended with {reason}' if code is not None else f'failed: {reason}'}."
    if last.before == RUN_ERROR and (said := error_of(last)) is not None:
        sentence += f" Handling that error failed, too: {said}."
    if signal := signal_of(code):
        sentence = sentence.replace("ended with", f"was killed by signal {signal}:", 1)
        doubts = () if str(code).startswith("-") else (BY_ITSELF,)
        return case.Ruling(Code.KILLED_BY_SIGNAL, sentence, case.LIKELY if doubts else case.CERTAIN, doubts)
    return case.Ruling(Code.PROGRAM_FAILED, sentence, case.CERTAIN if code is not None else case.SURE)


def _reason(change: StateChange) -> str:
    return error_of(change) or "no reason is given"


def _parents(matter: BalsamCase) -> case.Ruling:
    job, needs = matter.job, matter.job.needs
    bad = [(name, state) for name, state in needs if state in HOPELESS]
    if bad:
        parents = ", ".join(HOPELESS[state].format(name=name) for name, state in bad[:MOST_NAMED])
        parents += and_more(len(bad), MOST_NAMED)
        pending = _pending(matter, Category.DEPENDENCY, parents, is_stuck=True)
        words = f"It will not start as it is: {pending.words}."
        return case.Ruling(Code.NEVER_STARTS, words, case.SURE, pending=pending)
    if needs and all(state == "JOB_FINISHED" for _, state in needs):
        if job.alert is None:
            return case.Ruling(Code.WAITING_PARENTS, "Its parents have just finished.", case.LIKELY)
        words = "It will not start by itself: its parents have finished, and the server did not release it."
        return case.Ruling(Code.NEVER_STARTS, words, case.LIKELY)
    unknown = [name for name, state in needs if not state]
    names = ", ".join(unknown[:MOST_NAMED]) + and_more(len(unknown), MOST_NAMED)
    doubts = (f"the state of {names or 'its parents'} is not known",) if unknown or not needs else ()
    going = [f"{name} ({state})" for name, state in needs if state and state != "JOB_FINISHED"]
    what = " and ".join(going[:MOST_NAMED]) or job.message or "its parent jobs"
    pending = _pending(matter, Category.DEPENDENCY, what + and_more(len(going), MOST_NAMED))
    sure = case.PLAUSIBLE if doubts else case.CERTAIN
    return _waits(matter, Code.WAITING_PARENTS, pending, sure, doubts=doubts)


def _by_agent(what: str) -> Callable[[BalsamCase], case.Ruling]:
    """What an agent or the server does next; `needs` are the files that are to be staged."""

    def rule(matter: BalsamCase) -> case.Ruling:
        needs = [f"{name} {how}" for name, how in matter.job.needs if how.startswith(NOT_DONE)]
        if needs and "staged" in what:
            failed = "; ".join(needs[:MOST_NAMED]) + and_more(len(needs), MOST_NAMED, "; ")
            pending = _pending(matter, Category.TRANSFER, failed, is_stuck=True)
            sentence = f"It stays {matter.job.native_status}, as {pending.words}."
            return case.Ruling(Code.STAGING_FAILED, sentence, case.SURE, pending=pending)
        pending = _pending(matter, Category.TRANSFER if "staged" in what else Category.AGENT, what)
        sure = case.SURE if matter.site is not None else case.PLAUSIBLE
        return _site_down(matter) or _waits(matter, Code.STAGING, pending, sure)

    return rule


def _site_down(matter: BalsamCase) -> case.Ruling | None:
    site = matter.site
    if site is None or not site.is_down(matter.sites_at) or site.seen_at is None:
        return None
    silent = age(since_s(site.seen_at, matter.sites_at))
    words = f"the agent of its site {site.name}, not heard from for {silent}"
    sentence = (
        f"The agent of its site {site.name} has not been heard from for {silent}; without it the job stays "
        f"{matter.job.native_status}."
    )
    if listed := [f"{one.scheduler_id or one.id} {one.state}" for one in matter.here if one.state in OPEN]:
        names = ", ".join(listed[:MOST_NAMED]) + and_more(len(listed), MOST_NAMED)
        sentence += f" The state of its allocations ({names}) is as old; ask the scheduler."
    pending = _pending(matter, Category.SITE, words, is_stuck=True)
    doubts = matter.doubts_of(site.is_down, matter.sites_at)
    if matter.job.native_status in SET_BY_AGENT and site.is_down(matter.job.updated_at or Nanos(0)):
        doubts = ("its agent changed this job after that",)
    sure = case.GUESS if doubts else case.SURE
    return case.Ruling(Code.SITE_AGENT_DOWN, sentence, sure, doubts, pending=pending)


def _runnable(matter: BalsamCase) -> case.Ruling:
    job = matter.job
    found = serving(job.tags, job.nodes, matter.here, matter.launchers_at)
    before, error = "", matter.last(RUN_ERROR, RUN_TIMEOUT)
    if job.native_status == "RESTART_READY" and error is not None:
        is_error = error.after == RUN_ERROR
        before = "Its last run ended with an error. " if is_error else f"{_cut_off(matter).sentence} "
    if found.live:
        count, nodes = counted(len(found.live), "allocation"), sum(one.nodes for one in found.live)
        note = f"{count} of its site {'runs' if len(found.live) == 1 else 'run'}, of {counted(nodes, 'node')}"
        pending = _pending(matter, Category.ALLOCATION, found.words, note=note)
        return _waits(matter, Code.WAITING_ALLOCATION, pending, case.SURE, before)
    if found.silent:
        return _stale(matter, found.silent[0])
    said = _without_launcher(matter, found, before)
    unlisted = tuple(
        f"a launcher says that it is in allocation {one.id}, which its server does not list"
        for one in matter.here
        if one.state == UNLISTED
    )
    sure = min(said.confidence, case.GUESS) if unlisted else said.confidence
    return said._replace(confidence=sure, doubts=(*said.doubts, *unlisted))


def _without_launcher(matter: BalsamCase, found: Serving, before: str) -> case.Ruling:
    """Why no launcher takes a job that could run."""
    if down := _site_down(matter):
        return down
    if found.coming:
        pending = _pending(matter, Category.ALLOCATION, found.words)
        return _waits(matter, Code.WAITING_ALLOCATION, pending, case.SURE, before)
    if matter.site is None or "batch-jobs" in matter.never_read:
        doubts = ("the allocations of its site are not known",)
        pending = _pending(matter, Category.ALLOCATION, STATES["waits"][matter.job.native_status])
        return _waits(matter, Code.NO_ALLOCATION, pending, case.GUESS, before, doubts=doubts)
    lacks = f"its site has {found.words}, neither running nor in the queue"
    sentence = f"It could run{matter.waited}, and {lacks}."
    if (lost := _lost(matter)) is not None:
        return lost._replace(sentence=f"{lost.sentence} {sentence}")
    newest = max(matter.here, key=lambda one: one.id, default=None)
    note = ""
    if newest is not None and newest.state == "submit_failed":
        note = f"the last one could not be submitted: {newest.note or 'no reason is given'}"
        sentence += f" {capital(note)}."
    pending = _pending(matter, Category.ALLOCATION, found.words, note=note, is_stuck=True)
    return case.Ruling(Code.NO_ALLOCATION, sentence, case.SURE, pending=pending)


def _lost(matter: BalsamCase) -> case.Ruling | None:
    """A run that ended with its allocation, in time or early, and has not continued yet."""
    timeout, run = matter.last(RUN_TIMEOUT), matter.last("RUNNING")
    is_later = timeout is not None and (run is None or run.id <= timeout.id)
    return _cut_off(matter) if is_later else None


def _cut_off(matter: BalsamCase) -> case.Ruling:
    timeout, own = matter.last(RUN_TIMEOUT), matter.own
    message = str(((timeout.detail if timeout is not None else None) or {}).get("message") or "")
    why = f": {message}" if message else ""
    if EXPIRED in message.lower():
        sentence = f"Its launcher ended while the job ran, and gave no reason{why}."
        confidence = case.SURE if own is None or not _used_its_time(own, timeout) else case.LIKELY
        return case.Ruling(Code.ALLOCATION_KILLED, sentence, confidence)
    if own is not None and own.state == "pending_deletion":
        sentence = f"Its allocation {own.scheduler_id or own.id} was deleted while the job ran{why}."
        return case.Ruling(Code.ALLOCATION_KILLED, sentence, case.SURE)
    used = _used_its_time(own, timeout) if own is not None else None
    if used is None:
        sentence = f"Its run was cut off{why}; it is not known whether its allocation had ended."
        return case.Ruling(Code.TIMED_OUT, sentence, case.PLAUSIBLE)
    assert own is not None
    is_exact = own.start_at is not None and not own.start_estimated
    if used:
        sentence = "Its allocation ended before its run was done."
        return case.Ruling(Code.TIMED_OUT, sentence, case.SURE if is_exact else case.LIKELY)
    sentence = f"Its allocation or its launcher ended early, while the job ran{why}."
    is_over = is_exact and own.state in OVER
    return case.Ruling(Code.ALLOCATION_KILLED, sentence, case.SURE if is_over else case.LIKELY)


def _used_its_time(one: Allocation, timeout: StateChange | None) -> bool | None:
    """Whether an allocation ended because its time was over, as far as that is known.

    `timeout` is the time at which a run in it was ended: it counts as its end if no other is known.
    """
    end = one.end_at if one.end_at is not None else timeout.at if timeout is not None else None
    if one.wall_time_s is None or one.start_at is None or end is None:
        return None
    slack = min(WALL_SLACK_S, one.wall_time_s * WALL_SLACK_PART)
    return seconds_between(one.start_at, end) >= one.wall_time_s - slack


def _running(matter: BalsamCase) -> case.Ruling:
    own = matter.own
    if own is not None and own.is_stale(matter.launchers_at):
        return _stale(matter, own)
    if own is not None and own.state in OVER:
        code = Code.TIMED_OUT if own.end_at and _used_its_time(own, None) else Code.ALLOCATION_KILLED
        sentence = f"Its record says it runs, and its allocation {own.scheduler_id or own.id} is {own.state}."
        return case.Ruling(code, sentence, case.SURE if code is Code.ALLOCATION_KILLED else case.LIKELY)
    doubts = () if own is not None else ("its allocation is not known",)
    is_left = own is not None and not own.launchers and "sessions" not in matter.never_read
    if is_left or matter.job.alert == NO_SESSION:
        doubts = (f"{NO_SESSION}: what ran it may be gone",)
    sure = case.PLAUSIBLE if doubts else case.SURE
    return case.Ruling(Code.RUNNING, f"It runs{matter.waited}.", sure, doubts)


def _stale(matter: BalsamCase, one: Allocation) -> case.Ruling:
    name = one.scheduler_id or one.id
    if not one.launchers:
        ran = for_words(since_s(one.start_at, matter.launchers_at))
        sentence = f"Allocation {name} has run{ran} and lists no launcher: its jobs do not continue."
        doubt, sure = "no launcher of it is listed", case.LIKELY
        if one is matter.own and matter.job.alert != NO_SESSION:
            doubt, sure = "the launcher that the job names is not listed", case.GUESS
        return case.Ruling(Code.LAUNCHER_STALE, sentence, sure, (doubt,))
    silent = for_words(since_s(one.heartbeat_at, matter.launchers_at))
    sentence = f"The launcher of allocation {name} has not been heard from{silent}: its jobs do not continue."
    run = matter.last("RUNNING") if one is matter.own else None
    doubts = matter.doubts_of(one.is_stale, matter.launchers_at)
    if run is not None and one.is_stale(run.at):
        doubts = ("its heartbeat is before its run",)
    return case.Ruling(Code.LAUNCHER_STALE, sentence, case.GUESS if doubts else case.SURE, doubts)


def _ended(matter: BalsamCase) -> case.Ruling:
    state, error = matter.job.native_status, matter.last(RUN_ERROR)
    if state == "JOB_FINISHED":
        length = matter.job.elapsed_s(matter.now)
        took = f" in {duration(length)}" if length is not None else ""
        return case.Ruling(Code.COMPLETED, f"It completed{took}.", case.CERTAIN)
    if state == RUN_TIMEOUT:
        return _lost(matter) or case.Ruling(Code.TIMED_OUT, "Its run did not end in time.", case.LIKELY)
    if error is None:
        return case.Ruling(Code.PROGRAM_FAILED, "Its program failed.", case.PLAUSIBLE)
    said = _program_failed(matter, error)
    return said._replace(sentence=f"{said.sentence} Its site's agent decides whether it runs again.")


RULES: Mapping[str, Callable[[BalsamCase], case.Ruling]] = {
    "CREATED": _by_agent("the server to accept it"), "AWAITING_PARENTS": _parents,
    "READY": _by_agent("its files to be staged in"),
    "STAGED_IN": _by_agent("the site's agent to prepare it"), "PREPROCESSED": _runnable,
    "RESTART_READY": _runnable, "RUNNING": _running,
    "RUN_DONE": _by_agent("the site's agent to finish it; its program has ended"), RUN_ERROR: _ended,
    RUN_TIMEOUT: _ended, "POSTPROCESSED": _by_agent("its results to be staged out"),
    "STAGED_OUT": _by_agent("the server to finish it"), "JOB_FINISHED": _ended, FAILED: _failed,
}  # fmt: skip


SET_BY_AGENT = frozenset({"PREPROCESSED", "RESTART_READY"})
LAUNCHED = SET_BY_AGENT | {"RUNNING"}
OF_SITE = RULES.keys() - {"AWAITING_PARENTS", "RUNNING", RUN_ERROR, RUN_TIMEOUT, "JOB_FINISHED", FAILED}
NEEDED: Mapping[str, Set[str]] = {
    "apps": OF_SITE,
    "sites": OF_SITE,
    "jobs": RULES.keys(),
    "sessions": LAUNCHED,
    "batch-jobs": LAUNCHED | {RUN_TIMEOUT},
    "transfers": {"READY", "POSTPROCESSED"},
    "jobs by their ids": {"AWAITING_PARENTS"},
    "events": {FAILED, RUN_ERROR, RUN_TIMEOUT, "RESTART_READY"},
}
"""The states of jobs on which a verdict rests on these parts of what the server gives."""


def needs_part(evidence: case.Evidence, part: str) -> bool:
    """Whether what a part of its server would say may change the verdict on a job."""
    job, changes = evidence.job, in_order(evidence.changes)
    assert job is not None
    state, last = job.native_status, changes[-1] if changes else None
    is_known = part == "apps" and bool(job.host)  # they tell its site
    if last is not None and last.after == state:  # its events came
        is_known = is_known or part.startswith("events")
        state = RUN_TIMEOUT if (state, last.before) == (FAILED, RUN_TIMEOUT) else state  # by its allocation
    return not is_known and state in NEEDED.get(part.removesuffix(" by their jobs"), ())


TELL_AN_END = frozenset({"JOB_FINISHED", "FAILED", "RUN_ERROR", "RUN_TIMEOUT"})


def event_contradictions(evidence: case.Evidence) -> tuple[Contradiction, ...]:
    """A contradiction between a job's record and its last event, if that event is an end, or the job was in
    the record's state before. Else the record counts: events may be missing.
    """
    job, changes = evidence.job, evidence.changes
    assert job is not None
    if not changes or changes[-1].after == job.native_status:
        return ()
    last = in_order(changes)[-1]
    was_so = any(job.native_status in (one.before, one.after) for one in changes)
    if last.after == job.native_status or not (was_so or last.after in TELL_AN_END):
        return ()
    newest = max(last.at, job.updated_at or last.at)
    if seconds_between(newest, evidence.now_at(job.source)) <= case.SETTLED_S:
        return ()
    about = f"the record says {job.native_status}, its last event {last.after}"
    event = Fact(text=f"{last.before} → {last.after}", source=last.source, at=last.at)
    return (Contradiction(about, case.record_fact(job), event),)
