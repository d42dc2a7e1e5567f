"""The top of a job's screen: its state, what is wrong with it, and what the record says."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobtui.analysis.flags import flags_of, needs_person, waits_for
from jobtui.analysis.keys import slurm_words
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.jobs import Job, JobStatus, status_since
from jobtui.model.tables import tables_of
from jobtui.render.json_output import fields_of
from jobtui.render.spans import Line, Piece
from jobtui.render.styles import GLYPHS, NEEDS_PERSON_GLYPH, NEEDS_PERSON_STYLE, STATUS_STYLES, WORDS
from jobtui.render.text import NONE, SEPARATOR, Zone, age, clock_time, date_time, duration, fit_facts, show

if TYPE_CHECKING:
    from jobtui.model.job_reader import SbatchStatus

FLAG_WORDS: Mapping[str, str] = tables_of("jobtui.render", "signs")["flags"]


def status_words(job: Job, now: Nanos, *, absolute: bool | None) -> Line:
    """Glyph, status and since when: as an age, as a time of day, or with None not at all."""
    words = WORDS[job.status] if job.status is not JobStatus.UNKNOWN else show(job.native_status)
    person = (Piece(f"{NEEDS_PERSON_GLYPH} ", NEEDS_PERSON_STYLE),) if needs_person(job, now) else ()
    at, since = status_since(job), ""
    if at is not None and absolute:
        since = f" {'since' if job.status.is_live else 'at'} {clock_time(at, now)}{Zone.mark()}"
    elif at is not None and absolute is not None:
        lasts = age(max(0.0, seconds_between(at, now)))
        since = f" for {lasts}" if job.status.is_live else f" {lasts} ago"
    return (*person, Piece(f"{GLYPHS[job.status]} {words}{since}", STATUS_STYLES[job.status]))


def matter(job: Job, now: Nanos) -> Piece:
    """The one thing to know about it: why it failed, what it waits for, or that all is well."""
    if job.error:
        return Piece(show(job.error), STATUS_STYLES[JobStatus.FAILED])
    if job.alert:
        return Piece(show(job.alert), "warning")
    if job.status is JobStatus.CANCELED and job.limit_s is not None:
        return Piece(f"canceled by its time limit of {duration(job.limit_s)}", "warning")
    if reason := waits_for(job, now):
        style = NEEDS_PERSON_STYLE if needs_person(job, now) else ""
        is_thing = job.status is JobStatus.PENDING and not job.message
        return Piece(f"{'waits for ' if is_thing else ''}{show(reason)}", style)
    if job.message:
        return Piece(show(job.message))
    return Piece(_FINE.get(job.status, ""), "settled")


_FINE = {
    JobStatus.RUNNING: "running",
    JobStatus.COMPLETED: "completed, without an error",
    JobStatus.CANCELED: "canceled",
    JobStatus.FAILED: "failed, the record does not say why",
    JobStatus.MISSING: "never run, or its files are gone",
    JobStatus.PURGED: "its files were removed",
}


def record_line(job: Job, now: Nanos, cells: int, cluster: str = "") -> Line:
    """Facts of the record, the most useful first; `cluster` is what is noted there."""
    return (Piece(" " + fit_facts(SEPARATOR.join(_facts(job, now, cluster)), max(0, cells - 2)), "dim"),)


def _facts(job: Job, now: Nanos, cluster: str) -> Iterator[str]:
    if job.name:
        yield show(job.name)
    for text in (job.app, job.model, job.mode, f"user {job.owner}" if job.owner else "", job.host or ""):
        if text:
            yield show(text)
    if cluster:
        yield cluster
    if job.percent is not None and job.status.is_live:
        yield f"{job.percent:.0f}%"
    if job.started_at is not None:
        yield f"waited {duration(job.waited_s(now))}"
        elapsed_s = job.elapsed_s(now)
        whole_s = None if elapsed_s is None else float(int(max(0.0, elapsed_s)))
        yield f"runs {duration(whole_s)}" if job.status.is_live else f"ran {duration(elapsed_s)}"
    if job.queued_at is not None:
        yield f"queued {date_time(job.queued_at)}{Zone.mark()}"
    yield from (FLAG_WORDS[flag] for flag in flags_of(job, now))


def job_facts(job: Job, now: Nanos) -> Iterator[tuple[str, str]]:
    """All that the record says, name by name: not safe for a terminal."""
    lengths = {"waited": job.waited_s(now), "ran": job.elapsed_s(now), "limit": job.limit_s}
    times = ("queued", "started", "updated", "ended")
    texts = {
        **fields_of(job, "error alert"),
        "waits for": waits_for(job, now),
        "message": job.message,
        "flags": " ".join(flags_of(job, now)),
        **fields_of(job, "user=owner name app model mode driver host plan"),
        "progress": None if job.percent is None else f"{job.percent:.0f} %",
        **{name: _time_text(getattr(job, f"{name}_at")) for name in times},
        **{name: None if seconds is None else duration(seconds) for name, seconds in lengths.items()},
    }
    yield from ((name, str(text)) for name, text in texts.items() if text)
    for one in (job, *job.others) if job.others else ():
        words = f"{one.source}: {one.status.value}, queued {_time_text(one.queued_at) or NONE}"
        yield "record in", f"{words}, written {_time_text(one.written_at) or NONE}"


def _time_text(at: Nanos | None) -> str | None:
    return None if at is None else f"{date_time(at)}{Zone.mark()}"


def cluster_words(status: "SbatchStatus | None", slurm: Job | None = None) -> str:
    """Its id in Slurm and its state there: Slurm's own word, else what the agent noted last."""
    if slurm is not None:
        said = None if status is None else JobStatus.FAILED if status.state == "error" else status.state
        noted = f" (its agent noted {show(status.state)})" if status and slurm.status != said else ""
        return f"{show(slurm_words(slurm))}{noted}"
    if status is None:
        return ""
    number = f"Slurm {show(status.slurm_id)}" if status.slurm_id else "Slurm"
    return f"{number} {show(status.state)}"


def joined_words(job_id: str, job: Job | None) -> str:
    return f"Sirepo's {show(job_id)}{f' {job.status.value}' if job is not None else ''}"
