"""What is kept of the two runs of a comparison: inputs in their run directories, scripts, environments.

What reads them is handed in. Everything is masked.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jobtui.analysis.compare import DIFF_LINES, FileDiff, Side, diff_files
from jobtui.analysis.script_diff import Kind, ScriptDiff, diff_scripts
from jobtui.analysis.script_wanted import wanted_of_sirepo, wanted_of_slurm
from jobtui.analysis.slurm_join import CLUSTER_MODE
from jobtui.model.job_desk import JobDesk, Unreadable
from jobtui.model.jobs import JobDetail
from jobtui.model.scripts import Answer, Wanted
from jobtui.model.slurm import SYSTEM as SLURM

FILES = ("in.json", "parameters.py")
"""Files of a run directory that make a run what it is."""
NOT_KEPT = "an earlier run of the same job has the same directory: its files are not kept"
SCRIPT, ENVIRONMENT = "script", "environment"
ALIKE = (Kind.SAME, Kind.NOISE)


class Kept(NamedTuple):
    """A side, the directories in which its files may be, and its record."""

    side: Side
    dirs: tuple[str, ...]
    detail: JobDetail | None


async def texts_compared(desk: JobDesk, left: Kept, right: Kept) -> tuple[FileDiff, ...]:
    """How inputs differ, and scripts and environments where they are archived."""
    if left.side.job.id == right.side.job.id:
        return tuple(FileDiff(name, note=NOT_KEPT) for name in _names(left))
    files = [await _file(desk, name, left.dirs, right.dirs) for name in _names(left)]
    return (*files, *await _scripts(desk, left, right))


def _names(kept: Kept) -> Sequence[str]:
    """The files of its inputs; a job that only Slurm knows of has none by any such name."""
    return () if kept.side.job.system == SLURM and not kept.dirs else FILES


async def _file(desk: JobDesk, name: str, one: Sequence[str], two: Sequence[str]) -> FileDiff:
    try:
        return diff_files(name, await _text(desk, name, one), await _text(desk, name, two))
    except Unreadable as error:
        return FileDiff(name, note=str(error))


async def _text(desk: JobDesk, name: str, paths: Sequence[str]) -> str:
    """A file out of the first of these directories that has it. Raises Unreadable."""
    problem: Unreadable | None = None
    for path in paths:
        try:
            return (await desk.read_file(path, name, tail=False)).text
        except Unreadable as error:
            problem = problem or error
    raise problem or Unreadable("the run directory is not known")


async def _scripts(desk: JobDesk, left: Kept, right: Kept) -> tuple[FileDiff, ...]:
    """Nothing where no archive is read, or a job was submitted to no scheduler."""
    wanted = [await _wanted(desk, kept) for kept in (left, right)]
    if wanted[0] is None or wanted[1] is None:
        return ()
    try:
        this, other = await desk.script(wanted[0]), await desk.script(wanted[1])
    except Unreadable as error:
        return (FileDiff(SCRIPT, note=str(error)),)
    if this.script is not None and other.script is not None:
        # scripts may be large, and keys are not to wait for it
        return script_files(await asyncio.to_thread(diff_scripts, this.script, other.script))
    missing = (this, left) if this.script is None else (other, right)
    return _missing(*missing)


def _missing(answer: Answer, kept: Kept) -> tuple[FileDiff, ...]:
    if not answer.tried:
        return ()
    tried = "; ".join(f"{one.where}: {one.result}" for one in answer.tried)
    return (FileDiff(SCRIPT, note=f"none of {kept.side.job.id} was found ({tried})"),)


async def _wanted(desk: JobDesk, kept: Kept) -> Wanted | None:
    """By which number its script is kept."""
    job = kept.side.job
    if job.system == SLURM:
        return wanted_of_slurm(job, kept.detail)
    if job.mode != CLUSTER_MODE:
        return None
    try:
        noted = await desk.noted_on_cluster(kept.dirs)
    except Unreadable:
        return None
    return wanted_of_sirepo(noted.status) if noted is not None else None


def script_files(diff: ScriptDiff) -> tuple[FileDiff, ...]:
    """The same as differences of two files; what differs between any two jobs is counted only."""
    note = diff.note
    if diff.folded:
        noise = f"{diff.folded} more differ in dates, ids and ports only"
        note = f"{note}; {noise}" if note else noise
    pairs = ((row.other, row.this) for row in diff.rows if row.kind not in ALIKE)
    variables = (
        tuple(None if value is None else f"{one.name}={value}" for value in (one.other, one.this))
        for one in diff.variables
        if one.kind not in ALIKE
    )
    return (
        _as_file(SCRIPT, (line for other, this in pairs for line in _changed(other, this)), note),
        _as_file(ENVIRONMENT, (line for other, this in variables for line in _changed(other, this)), ""),
    )


def _changed(other: str | None, this: str | None) -> Iterator[str]:
    if other is not None:
        yield f"-{other}"
    if this is not None:
        yield f"+{this}"


def _as_file(name: str, lines: Iterable[str], note: str) -> FileDiff:
    found = tuple(lines)
    if not found:
        note = f"the same; {note}" if note else "the same"
    return FileDiff(name, found[:DIFF_LINES], max(0, len(found) - DIFF_LINES), note)
