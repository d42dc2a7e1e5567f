"""What squeue and sacct print as a table, as records. Pure; reads nothing.

A name may hold any character, also newlines and what looks like another row. So the separator is a word that
nobody can know when a job is named, and a row ends where it has all its fields, not where a line ends.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from jobtui.formats.slurm_words import (
    MINUTE_S,
    TEXT_CHARACTERS,
    duration_of,
    exit_of,
    settled,
    state_of,
    text_of,
    time_of,
)
from jobtui.model.health import Skip
from jobtui.model.slurm import SlurmJob, SlurmStep

Row = Mapping[str, str]
PART_BYTES = 1 << 18


class Table(NamedTuple):
    """The rows of a table, and what of it made no sense."""

    rows: list[dict[str, str]]
    skips: tuple[Skip, ...] = ()


class Pieces(NamedTuple):
    """The rows of a table as they come, and what of it made no sense."""

    rows: Iterator[tuple[str, ...]]
    skips: tuple[Skip, ...] = ()


def pieces_of(printed: bytes, separator: str, count: int, where: str) -> Pieces:
    """The rows of a table in which a separator follows each of `count` fields, also the last one of a row.

    What is left at the end is a row that was cut off.
    """
    mark = separator.encode()
    total, end = printed.count(mark), printed.rfind(mark)
    whole = total - total % count
    rest = printed[end + len(mark) :] if end >= 0 else printed
    fields = islice(_fields(printed, separator), whole)
    rows = ((row[0].removeprefix("\n"), *row[1:]) for row in zip(*[fields] * count, strict=False))
    return Pieces(rows, (Skip(where, "the last row is cut off"),) if total != whole or rest.strip() else ())


def _fields(printed: bytes, separator: str) -> Iterator[str]:
    """The fields one by one. A part is parted at a time: while millions are, no other thread runs."""
    mark, at = separator.encode(), 0
    while (end := printed.find(mark, min(at + PART_BYTES, len(printed)))) >= 0:
        yield from printed[at:end].decode("utf-8", "replace").split(separator)
        at = end + len(mark)
    yield from printed[at:].decode("utf-8", "replace").split(separator)


def rows_of(printed: bytes, separator: str, fields: Sequence[str], where: str) -> Table:
    """The same as values by their fields."""
    found = pieces_of(printed, separator, len(fields), where)
    return Table([dict(zip(fields, row, strict=True)) for row in found.rows], found.skips)


Convert = Callable[[str], object]


def _minutes(text: str) -> float | None:
    return float(text) * MINUTE_S if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _name(text: str) -> str:
    return text[:TEXT_CHARACTERS]


SQUEUE: Mapping[str, tuple[str, Convert]] = {
    "%i": ("id", text_of),
    "%A": ("raw", text_of),
    "%F": ("array", text_of),
    "%K": ("task", text_of),
    "%j": ("name", _name),
    "%u": ("user", text_of),
    "%a": ("account", text_of),
    "%P": ("partition", text_of),
    "%q": ("qos", text_of),
    "%T": ("state", _name),
    "%r": ("reason", text_of),
    "%V": ("submitted_at", time_of),
    "%S": ("started_at", time_of),
    "%e": ("ended_at", time_of),
    "%l": ("limit_s", duration_of),
    "%N": ("nodes", text_of),
    "%D": ("node_count", text_of),
    "%C": ("cpus", text_of),
    "%E": ("dependency", text_of),
    "%Z": ("directory", text_of),
}
"""What squeue is asked for, and what of a job that is."""

SACCT: Mapping[str, tuple[str, Convert]] = {
    "JobID": ("id", text_of),
    "JobIDRaw": ("raw", text_of),
    "JobName": ("name", _name),
    "User": ("user", text_of),
    "Account": ("account", text_of),
    "Partition": ("partition", text_of),
    "QOS": ("qos", text_of),
    "Cluster": ("cluster", text_of),
    "State": ("state", _name),
    "Reason": ("reason", text_of),
    "ExitCode": ("exit", exit_of),
    "Submit": ("submitted_at", time_of),
    "Eligible": ("eligible_at", time_of),
    "Start": ("started_at", time_of),
    "End": ("ended_at", time_of),
    "TimelimitRaw": ("limit_s", _minutes),
    "NodeList": ("nodes", text_of),
    "NNodes": ("node_count", text_of),
    "NCPUS": ("cpus", text_of),
    "ReqMem": ("memory", text_of),
    "WorkDir": ("directory", text_of),
}
"""The same of sacct, which has all of these since 20.11."""

STEP_FIELDS = ("MaxRSS",)
"""Asked for beside those when steps are wanted."""


def queued_job(row: Row) -> SlurmJob | None:
    """A row of squeue; None for what is no job."""
    return _job(row, SQUEUE)


def accounted_job(row: Row) -> SlurmJob | None:
    """A row of sacct that is a job and no step; None for what is neither."""
    return None if "." in row.get("JobID", "") else _job(row, SACCT)


def _job(row: Row, table: Mapping[str, tuple[str, Convert]]) -> SlurmJob | None:
    values = {name: convert(row[field]) for field, (name, convert) in table.items() if field in row}
    values["state"], values["canceled_by"] = state_of(str(values.get("state", "")))
    if not is_job_id(str(values.get("id", ""))) or not values["state"]:
        return None
    values["array"], values["task"] = array_of(str(values["id"]))
    return settled(msgspec.convert(values, SlurmJob))


def is_job_id(text: str) -> bool:
    """Whether a text is an id as Slurm writes it: `22`, `22_1`, `22_[1-4%2]`, `22+0`."""
    return text[:1].isdecimal() and text.isascii() and len(text) < 10_000 and not set(text) - _OF_IDS


_OF_IDS = frozenset("0123456789_[]-,:%+.")


def array_of(job_id: str) -> tuple[str, str]:
    """The array that a job is of, and which task or tasks of it; "" for none."""
    array, _, task = job_id.partition("_")
    return (array, task.strip("[]")) if task else ("", "")


def jobs_with_steps(rows: Iterable[Row]) -> list[SlurmJob]:
    """The jobs among the rows of sacct, each with the steps that follow it.

    A job that was requeued is there several times, oldest first.
    """
    found: list[tuple[SlurmJob, list[SlurmStep]]] = []
    for row in rows:
        if (job := accounted_job(row)) is not None:
            found.append((job, []))
            continue
        of, dot, step = row.get("JobID", "").partition(".")
        if dot and found and found[-1][0].id == of:
            found[-1][1].append(_step(step, row))
    return [msgspec.structs.replace(job, steps=tuple(steps)) for job, steps in found]


def _step(step: str, row: Row) -> SlurmStep:
    return SlurmStep(
        id=step[:64],
        name=_name(row.get("JobName", "")),
        state=state_of(row.get("State", ""))[0],
        exit=exit_of(row.get("ExitCode", "")),
        started_at=time_of(row.get("Start", "")),
        ended_at=time_of(row.get("End", "")),
        max_rss=text_of(row.get("MaxRSS", "")),
        nodes=text_of(row.get("NodeList", "")),
    )
