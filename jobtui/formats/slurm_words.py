"""Single values as Slurm's commands write them: times, durations, states, exit codes. Raises nothing.

Basis: Slurm 22.05.8 as run, and the manuals up to 25.05. The commands are run with TZ=UTC0, so that their
times, which name no zone, are UTC.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import JobStatus
from jobtui.model.slurm import BY_PROGRAM, Exit, SlurmJob

NOTHING = frozenset({"", "(null)", "N/A", "n/a", "None", "none", "Unknown", "NONE", "None assigned", "null"})
"""How the commands write that there is none."""
LATEST_S = 32_503_680_000
"""The year 3000: a larger number is no time."""
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
TEXT_CHARACTERS = 2_000
"""Kept of a text that a user chose."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)
_DURATION = re.compile(r"(?:(\d{1,6})-)?(\d{1,6})(?::(\d\d))?(?::(\d\d))?(?:\.\d+)?", re.ASCII)
_EXIT = re.compile(r"(\d{1,10}):(\d{1,10})", re.ASCII)
_CANCELED = re.compile(r"CANCELLED by (\S{1,64})", re.ASCII)


def text_of(text: str) -> str:
    """A text, "" where the commands write that there is none."""
    return "" if text in NOTHING else text[:TEXT_CHARACTERS]


def time_of(text: str) -> Nanos | None:
    """A time as ISO text in UTC, or in seconds since the epoch; None for none and what is no time."""
    if text.isascii() and text.isdecimal():
        return time_of_seconds(int(text[:15]))
    if not _TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None
    return Nanos(int(moment.timestamp()) * SECOND)


def time_of_seconds(seconds: float) -> Nanos | None:
    """A time in seconds since the epoch; None for 0, by which Slurm says that there is none."""
    return Nanos(int(seconds) * SECOND) if 0 < seconds < LATEST_S else None


def duration_of(text: str) -> float | None:
    """Seconds of `[days-]hours:minutes:seconds`, `minutes:seconds` or minutes; None for no limit."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    days, *parts = found.groups()
    numbers = [int(part) for part in parts if part is not None]
    units: tuple[int, ...]
    if days is not None:
        units = (HOUR_S, MINUTE_S, 1)
    else:
        units = ((MINUTE_S,), (MINUTE_S, 1), (HOUR_S, MINUTE_S, 1))[len(numbers) - 1]
    total = sum(number * unit for number, unit in zip(numbers, units, strict=False))
    return float(total + int(days or 0) * DAY_S)


@lru_cache(maxsize=1_000)
def exit_of(text: str) -> Exit | None:
    """`code:signal`."""
    found = _EXIT.fullmatch(text)
    return Exit(int(found[1]), int(found[2])) if found else None


def exit_of_wait_status(status: int) -> Exit | None:
    """What `wait` gave, as squeue's JSON has it: 32512 is exit code 127, 15 is signal 15."""
    return Exit(status >> 8 & 0xFF, status & 0x7F) if 0 <= status < 1 << 32 else None


def state_of(text: str) -> tuple[str, str]:
    """A state and who canceled it: `CANCELLED by 1001`; a `+` at the end is a word that was cut off."""
    found = _CANCELED.fullmatch(text)
    return ("CANCELLED", found[1]) if found else (text.rstrip("+"), "")


def settled(job: SlurmJob) -> SlurmJob:
    """The same job without times and codes that are no facts: start and end that are only expected.

    An exit code counts where the program's end was the job's end. One that says success of a failed job is
    none: so sacct's JSON does in 22.05.
    """
    status = job.status
    began = job.started_at
    if status is JobStatus.PENDING or (status is JobStatus.CANCELED and not job.nodes):
        job = msgspec.structs.replace(job, started_at=None)
    if status is JobStatus.PENDING:
        job = msgspec.structs.replace(job, expected_at=began)
    tells = job.state in BY_PROGRAM and (job.state != "FAILED" or (job.exit is not None and any(job.exit)))
    return msgspec.structs.replace(
        job,
        exit=job.exit if tells else None,
        ended_at=None if status.is_live else job.ended_at,
    )
