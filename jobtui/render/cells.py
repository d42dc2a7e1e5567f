"""What stands in a cell of the job table, and in which style. Texts are masked and safe for a terminal."""

import re
from collections.abc import Callable

import msgspec

from jobtui.analysis.flags import needs_person, waits_for
from jobtui.analysis.job_times import age_s, status_since
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.jobs import Job, JobStatus
from jobtui.render.status import (
    NEEDS_PERSON_GLYPH,
    NEEDS_PERSON_STYLE,
    PLAIN_STYLE,
    SETTLED_STYLE,
    STYLES,
    WORDS,
    glyph,
)
from jobtui.render.text import NONE, age, date_time, duration, short_time, show

_DOMAIN_NAME = re.compile(r"(?=[^.]*[a-z])[\w-]+(\.[\w-]+)*\.[a-z][\w-]*\.?", re.IGNORECASE | re.ASCII)
"""With a letter in its first and last label, so that no address is taken for one."""
_MODES = {"sequential": "seq", "parallel": "par"}
_MINUTE_S = 60.0
_STATUS_ORDER = {status: place for place, status in enumerate(JobStatus)}
_RUNNING_ORDER = 1 << 64
"""More than any finished job took, in nanoseconds."""

Look = Callable[[Job], str | None]
SortKey = str | int | float | None


def _own_host(job: Job) -> str | None:
    return job.host


def _own_driver(job: Job) -> str | None:
    return job.driver


def _never(job: Job) -> bool:
    return False


def _nothing(job: Job) -> None:
    return None


class RowContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell depends on beside its job.

    `relative` shows ages instead of times, `local` times in the zone of this machine. `host_of` and
    `driver_of` tell what the logs know of a job; without them the record's own values are shown.
    `is_disputed` tells whether sources disagree about it, `late_of` how much longer than usual it takes.
    """

    now: Nanos
    ascii_only: bool = False
    local: bool = False
    relative: bool = True
    host_of: Look = _own_host
    driver_of: Look = _own_driver
    is_disputed: Callable[[Job], bool] = _never
    late_of: Look = _nothing


def plain_style(job: Job, context: RowContext) -> str:
    """The style of most cells: what is settled steps back."""
    settled = not job.status.is_live and job.status is not JobStatus.FAILED
    return SETTLED_STYLE if settled else PLAIN_STYLE


def text_cell(get: Look) -> Callable[[Job, RowContext], str]:
    """A cell of outside text."""
    return lambda job, context: or_none(show(get(job) or ""), context)


def host_cell(job: Job, context: RowContext) -> str:
    """Where it runs, as far as known; of a name with a domain the first label."""
    return or_none(show(short_host(context.host_of(job) or "")), context)


def whole_host_cell(job: Job, context: RowContext) -> str:
    """Where it runs, with its domain."""
    return or_none(show(context.host_of(job) or ""), context)


def short_host(host: str) -> str:
    """The first label of a DNS name; an address, and whatever else is no name, as it is."""
    return host.partition(".")[0] if _DOMAIN_NAME.fullmatch(host) else host


def driver_cell(job: Job, context: RowContext) -> str:
    """What starts its agent, as far as known."""
    return or_none(show(context.driver_of(job) or ""), context)


def mode_cell(job: Job, context: RowContext) -> str:
    """Its mode in few letters; an unknown one as it is."""
    return or_none(show(_MODES.get(job.mode, job.mode)), context)


def or_none(text: str, context: RowContext) -> str:
    """`text`, or the sign for no value."""
    return text or ("-" if context.ascii_only else NONE)


def state_cell(job: Job, context: RowContext) -> str:
    """The status as sign and word, marked when a person should look."""
    return f"{_glyphs(job, context, ' ')} {WORDS[job.status]}"


def state_glyphs(job: Job, context: RowContext) -> str:
    """The mark and the sign of the status."""
    return _glyphs(job, context, "")


def _glyphs(job: Job, context: RowContext, between: str) -> str:
    mark = NEEDS_PERSON_GLYPH if needs_person(job, context.now) or context.is_disputed(job) else " "
    return f"{mark}{between}{glyph(job.status, ascii_only=context.ascii_only)}"


def state_style(job: Job, context: RowContext) -> str:
    """The style of the status; another where a person should look."""
    return NEEDS_PERSON_STYLE if needs_person(job, context.now) else STYLES[job.status]


DISPUTED = "sources disagree"


def waits_cell(job: Job, context: RowContext) -> str:
    """What a live job waits for; what went wrong with one that ended."""
    text = waits_for(job, context.now) if job.status.is_live else None
    if text is None and job.status is not JobStatus.PENDING:
        text = job.error or job.alert
    if late := context.late_of(job):
        text = f"{late}; {text}" if text else late
    if context.is_disputed(job):
        text = f"{DISPUTED}, {text}" if text else DISPUTED
    return show(text) if text else ""


def waits_style(job: Job, context: RowContext) -> str:
    """Weight only where a person should look; a reason is never pale."""
    return NEEDS_PERSON_STYLE if needs_person(job, context.now) else PLAIN_STYLE


def since_cell(job: Job, context: RowContext) -> str:
    """Since when it is in its present state; of jobs that have ended to the minute, which is all one asks."""
    if context.relative:
        seconds = age_s(job, context.now)
        words = age(seconds) if job.status.is_live else age(seconds, coarse_from_s=_MINUTE_S)
        return or_none(_known(words), context)
    at = status_since(job)
    return or_none("" if at is None else short_time(at, context.now, local=context.local), context)


def time_cell(get: Callable[[Job], Nanos | None]) -> Callable[[Job, RowContext], str]:
    """A cell with a time, or how long ago it was."""

    def cell(job: Job, context: RowContext) -> str:
        at = get(job)
        if at is None:
            return or_none("", context)
        if context.relative:
            return age(seconds_between(at, context.now))
        return date_time(at, local=context.local)

    return cell


def _known(text: str) -> str:
    return "" if text == NONE else text


def duration_cell(job: Job, context: RowContext) -> str:
    """How long it ran; coarser while it runs, so that it changes less often."""
    words = age if job.status.is_live else duration
    return or_none(_known(words(job.elapsed_s(context.now))), context)


def since_order(job: Job) -> SortKey:
    """The youngest state first."""
    since = status_since(job)
    return None if since is None else -since


def elapsed_order(job: Job) -> SortKey:
    """How long a job took; those still running come last, the earliest started at the end."""
    if job.started_at is None:
        return None
    return job.ended_at - job.started_at if job.ended_at is not None else _RUNNING_ORDER - job.started_at


def percent_cell(job: Job, context: RowContext) -> str:
    """How much is done, without the unit."""
    return or_none("" if job.percent is None else f"{job.percent:.0f}", context)


def status_order(job: Job) -> SortKey:
    """Statuses in the order a job passes them."""
    return _STATUS_ORDER[job.status]


def text_order(get: Look) -> Callable[[Job], SortKey]:
    """Texts in the order of a dictionary, no text being no value."""
    return lambda job: (get(job) or "").casefold() or None
