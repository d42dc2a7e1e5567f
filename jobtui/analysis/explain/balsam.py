"""Verdicts on jobs of Balsam, out of their states, their site's allocations and agents. Reads nothing.

States and who changes them: Balsam's API as it answers. The server enforces no order of states, so only the
state that a job is in decides which rule is asked; its changes tell how it came there.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from jobtui.analysis.explain.finding import CERTAIN, GUESS, LIKELY, PLAUSIBLE, SURE, Said
from jobtui.analysis.time_words import age, duration
from jobtui.model.changes import Allocation, Site, StateChange, in_order
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.health import SourceHealth, unread
from jobtui.model.jobs import Job
from jobtui.model.verdicts import Code, Evidence, NextStep, Verdict
from jobtui.model.words import counted

SYSTEM = "balsam"
TO_COME = frozenset({"pending_submission", "queued"})
OVER = frozenset({"finished", "pending_deletion", "submit_failed"})
WALL_SLACK_S = 120.0
"""How much before the end of its time an allocation may end and still have run into it."""
MOST_CHANGES = 5
EXPIRED = "session expired"
"""What the server says of a job whose launcher it took for dead, in lower case."""


class BalsamFacts(NamedTuple):
    """What is known beside the job: its changes, oldest first, and all allocations and sites."""

    changes: Sequence[StateChange] = ()
    allocations: Sequence[Allocation] = ()
    sites: Sequence[Site] = ()


class Matter(NamedTuple):
    """One job and what belongs to it. `here` are the allocations of its site."""

    job: Job
    now: Nanos
    changes: Sequence[StateChange]
    site: Site | None
    own: Allocation | None
    here: Sequence[Allocation]

    def since_s(self) -> float | None:
        """Seconds since it came into its state."""
        at = self.changes[-1].at if self.changes else self.job.updated_at
        return None if at is None else max(0.0, seconds_between(at, self.now))

    def last(self, *states: str) -> StateChange | None:
        """The last change into one of these states."""
        return next((change for change in reversed(self.changes) if change.after in states), None)


def explain_balsam(job: Job, facts: BalsamFacts, sources: Iterable[SourceHealth], now: Nanos) -> Verdict:
    """What is the matter with a job of Balsam."""
    matter = _matter(job, facts, now)
    rule = RULES.get(job.native_status)
    said = rule(matter) if rule is not None else _unknown(matter)
    blind = [
        *said.doubts,
        *unread(sources),
    ]
    if not matter.changes:
        blind.append("no events of the job were read")
    if matter.site is None:
        blind.append("its site is not known")
    last = matter.changes[-1] if matter.changes else None
    timeline = NextStep("see every state with its time", f"jobtui timeline {shlex.quote(job.id)}")
    return Verdict(
        job_id=job.id,
        code=said.code,
        sentence=said.sentence,
        confidence=said.confidence,
        last_step=job.native_status,
        last_at=last.at if last is not None else job.updated_at,
        waited_s=matter.since_s() if job.status.is_live else None,
        evidence=_evidence(matter),
        next=(*said.next, timeline),
        blind_spots=tuple(blind),
    )


def _matter(job: Job, facts: BalsamFacts, now: Nanos) -> Matter:
    site = next((one for one in facts.sites if (one.source, one.name) == (job.source, job.host)), None)
    at_source = [one for one in facts.allocations if one.source == job.source]
    number = job.allocation.partition(" ")[0]
    own = next((one for one in at_source if str(one.id) == number), None)
    here = [one for one in at_source if site is not None and one.site_id == site.id]
    changes = in_order(facts.changes)
    return Matter(job, now, changes, site, own, here)


def _failed(matter: Matter) -> Said:
    """Its program ended with an error, or it could not be made ready."""
    job, error = matter.job, matter.last("RUN_ERROR")
    reason = job.error or "no reason is given"
    changed = matter.changes[-1] if matter.changes else None
    if error is None and changed is not None and changed.before != "RUNNING":
        sentence = f"It failed before it ran, as it came from {changed.before}: {reason}."
        return Said(Code.PREPARE_FAILED, sentence, SURE, _look(matter))
    code = (error.detail or {}).get("returncode") if error is not None else None
    how = f"ended with return code {code}" if code is not None else "failed"
    confidence = CERTAIN if code is not None else SURE if matter.changes else PLAUSIBLE
    return Said(Code.PROGRAM_FAILED, f"Its program {how}: {reason}.", confidence, _look(matter))


def _finished(matter: Matter) -> Said:
    length = matter.job.elapsed_s(matter.now)
    took = f" in {duration(length)}" if length is not None else ""
    return Said(Code.COMPLETED, f"It completed{took}.", CERTAIN)


def _parents(matter: Matter) -> Said:
    what = matter.job.message or "its parent jobs"
    return Said(Code.WAITING_PARENTS, f"It waits{_for(matter)} for {what}.", CERTAIN)


def _by_agent(what: str) -> Callable[[Matter], Said]:
    """For a state out of which the agent of the site brings a job."""

    def rule(matter: Matter) -> Said:
        return _site_down(matter) or Said(
            Code.STAGING, f"It waits{_for(matter)} for {what}.", SURE if matter.site is not None else LIKELY
        )

    return rule


def _site_down(matter: Matter) -> Said | None:
    site = matter.site
    if site is None or not site.is_down(matter.now) or site.seen_at is None:
        return None
    silent = age(max(0.0, seconds_between(site.seen_at, matter.now)))
    return Said(
        Code.SITE_AGENT_DOWN,
        f"The agent of its site {site.name} was not heard of for {silent}; without it the job stays "
        f"{matter.job.native_status}.",
        SURE,
        (
            NextStep("see which sites are active", "balsam site ls"),
            NextStep(
                "start the agent, in the site's directory",
                f"cd {shlex.quote(site.path)} && balsam site start",
            ),
        ),
    )


def _runnable(matter: Matter) -> Said:
    """It may run, and waits for nodes."""
    running = [one for one in matter.here if one.state == "running"]
    stale = next((one for one in running if one.is_stale(matter.now)), None)
    coming = [one for one in matter.here if one.state in TO_COME]
    before = _why_again(matter)
    if len(running) > (stale is not None):
        return Said(
            Code.WAITING_ALLOCATION, f"{before}It waits{_for(matter)} for a launcher with room.", SURE
        )
    if stale is not None:
        return _stale(matter, stale)
    if down := _site_down(matter):
        return down
    if coming:
        count = counted(len(coming), "allocation")
        sentence = (
            f"{before}It waits{_for(matter)} for nodes: {count} of its site in the queue, none running."
        )
        return Said(Code.WAITING_ALLOCATION, sentence, SURE, (_queue(),))
    if matter.site is None:
        doubt = ("the allocations of its site are not known",)
        return Said(
            Code.NO_ALLOCATION, f"{before}It waits{_for(matter)} for a launcher.", GUESS, (_queue(),), doubt
        )
    if (lost := _lost(matter)) is not None:
        return lost
    sentence = (
        f"It could run{_for(matter)}, and its site has no allocation, neither running nor in the queue."
    )
    return Said(Code.NO_ALLOCATION, sentence, SURE, (_queue(), _submit()))


def _lost(matter: Matter) -> Said | None:
    """A run that ended with its allocation, in time or before it, and not yet gone on."""
    timeout = matter.last("RUN_TIMEOUT")
    run = matter.last("RUNNING")
    if timeout is None or (run is not None and run.id > timeout.id):
        return None
    message = str((timeout.detail or {}).get("message") or "")
    own = matter.own
    if EXPIRED not in message.lower() and (own is None or _used_its_time(own)):
        sentence = "Its run was not done when the time of its allocation was over; it waits to run again."
        return Said(Code.TIMED_OUT, sentence, SURE if own is not None else LIKELY, (_queue(), _submit()))
    why = f": {message}" if message else ""
    return Said(
        Code.ALLOCATION_KILLED,
        f"Its allocation or its launcher ended before its time, while the job ran{why}.",
        SURE if own is not None and own.state in OVER else LIKELY,
        (_queue(), _submit()),
    )


def _used_its_time(one: Allocation) -> bool:
    if one.wall_time_s is None or one.start_at is None or one.end_at is None:
        return True
    return seconds_between(one.start_at, one.end_at) >= one.wall_time_s - WALL_SLACK_S


def _running(matter: Matter) -> Said:
    own = matter.own
    if own is not None and own.is_stale(matter.now):
        return _stale(matter, own)
    if own is not None and own.state in OVER:
        return Said(
            Code.ALLOCATION_KILLED,
            f"It is said to run, and its allocation {own.scheduler_id or own.id} is {own.state}.",
            SURE,
            (_queue(),),
        )
    doubts = () if own is not None else ("its allocation is not known",)
    return Said(Code.RUNNING, f"It runs{_for(matter)}.", SURE if own is not None else LIKELY, (), doubts)


def _stale(matter: Matter, one: Allocation) -> Said:
    heard = one.heartbeat_at if one.launchers else one.start_at
    silent = "" if heard is None else f" for {age(max(0.0, seconds_between(heard, matter.now)))}"
    return Said(
        Code.LAUNCHER_STALE,
        f"The launcher of allocation {one.scheduler_id or one.id} was not heard of{silent}: "
        "what it should do does not get done.",
        SURE,
        (_queue(),),
    )


def _timeout(matter: Matter) -> Said:
    return _lost(matter) or Said(Code.TIMED_OUT, "Its run was not done in time.", LIKELY)


def _run_error(matter: Matter) -> Said:
    said = _failed(matter)
    return said._replace(sentence=f"{said.sentence} Its site's agent decides whether it runs again.")


def _unknown(matter: Matter) -> Said:
    return Said(Code.UNKNOWN, f'Its state is "{matter.job.native_status}", which jobtui does not know.', 0.3)


RULES: Mapping[str, Callable[[Matter], Said]] = {
    "CREATED": _by_agent("the server to take it up"),
    "AWAITING_PARENTS": _parents,
    "READY": _by_agent("its files to be staged in"),
    "STAGED_IN": _by_agent("the site's agent to prepare it"),
    "PREPROCESSED": _runnable,
    "RESTART_READY": _runnable,
    "RUNNING": _running,
    "RUN_DONE": _by_agent("the site's agent to finish it; its program is done"),
    "RUN_ERROR": _run_error,
    "RUN_TIMEOUT": _timeout,
    "POSTPROCESSED": _by_agent("its results to be staged out"),
    "STAGED_OUT": _by_agent("the server to finish it"),
    "JOB_FINISHED": _finished,
    "FAILED": _failed,
}
"""What is asked of a job in each state."""


def _why_again(matter: Matter) -> str:
    """Why a job that has run is to run again."""
    error = matter.last("RUN_ERROR", "RUN_TIMEOUT")
    if matter.job.native_status != "RESTART_READY" or error is None:
        return ""
    return (
        "Its last run ended with an error. " if error.after == "RUN_ERROR" else "Its last run was cut off. "
    )


def _for(matter: Matter) -> str:
    seconds = matter.since_s()
    return "" if seconds is None else f" for {age(seconds)}"


def _look(matter: Matter) -> tuple[NextStep, ...]:
    return (
        NextStep("see its record, its directory and its output", f"jobtui show {shlex.quote(matter.job.id)}"),
    )


def _queue() -> NextStep:
    return NextStep("see the allocations of the site", "balsam queue ls")


def _submit() -> NextStep:
    return NextStep("see how an allocation is asked for", "balsam queue submit --help")


def _evidence(matter: Matter) -> tuple[Evidence, ...]:
    """The changes that led here, the last ones."""
    return tuple(
        Evidence(
            what=f"{change.before} → {change.after}",
            text=json.dumps(change.detail) if change.detail else f"event {change.id}",
            source=change.source,
            at=change.at,
        )
        for change in matter.changes[-MOST_CHANGES:]
    )
