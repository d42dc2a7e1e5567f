"""Two jobs side by side, with what they were given: the files in their run directories, archived scripts."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobtui.analysis.compare import (
    SCRIPT,
    Comparison,
    FileDiff,
    Partner,
    RunSide,
    compare,
    diff_files,
    script_files,
)
from jobtui.analysis.paths import run_dirs_of
from jobtui.analysis.scripts import diff_scripts
from jobtui.analysis.timeline import ops_in, window_of
from jobtui.model.job_reader import NoSuchFile, Unreadable
from jobtui.model.jobs import SLURM, JobDetail
from jobtui.model.verdicts import Verdict
from jobtui.session.evidence import Gatherer

if TYPE_CHECKING:
    from jobtui.backends.job_reader import JobReader

FILES = ("in.json", "parameters.py")
NOT_KEPT = "runs of one job share a directory: the files of earlier runs are not kept"


async def compared(
    gatherer: Gatherer, this: JobDetail, other: JobDetail, choice: Partner, verdicts: Sequence[Verdict]
) -> Comparison:
    """The last run of a job beside the chosen one of another, or of itself; `verdicts` are on both."""
    left, right = _side(gatherer, this, None, verdicts), _side(gatherer, other, choice.number, verdicts)
    files = await texts_compared(gatherer, left, right)
    return compare(left, right, choice.why, gatherer.now, files, verdicts, gatherer.blind_spots())


def _side(gatherer: Gatherer, detail: JobDetail, number: int | None, verdicts: Sequence[Verdict]) -> RunSide:
    """A run of a job, the last one where there is none of this number, and where its files may be."""
    runs, store = detail.runs, gatherer.store
    run = next((one for one in runs if one.number == number), runs[-1] if runs else None)
    ops = store.correlation.ops_of(detail.job.id)
    ops = ops if run is None else ops_in(window_of(runs, run.number), ops)
    job, agent = store.with_agent(detail.job), store.correlation.agent_of(detail.job.id)
    causes = (one.cause for one in verdicts if one.job_id == job.id and (run is None or run is runs[-1]))
    dirs = run_dirs_of(job, detail, ops, gatherer.reach)
    return RunSide(job, run, ops, agent, dirs, detail, next(causes, None))


async def texts_compared(gatherer: Gatherer, left: RunSide, right: RunSide) -> tuple[FileDiff, ...]:
    names = () if left.job.system == SLURM and not left.dirs else FILES
    if left.job.id == right.job.id:
        return tuple(FileDiff(name, note=NOT_KEPT) for name in names)
    files = [await _file(gatherer.job_reader, name, left.dirs, right.dirs) for name in names]
    return (*files, *await _scripts(gatherer, left, right))


async def _file(job_reader: "JobReader", name: str, one: Sequence[str], two: Sequence[str]) -> FileDiff:
    try:
        return diff_files(name, await _text(job_reader, name, one), await _text(job_reader, name, two))
    except Unreadable as error:
        return FileDiff(name, note=str(error))


async def _text(job_reader: "JobReader", name: str, paths: Sequence[str]) -> str:
    """A file from the first of these directories that has it. Raises Unreadable."""
    problem: Unreadable | None = None
    for path in paths:
        try:
            return (await job_reader.read_file(path, name, tail=False)).text
        except Unreadable as error:
            problem = error if problem is None or isinstance(error, NoSuchFile) else problem
    raise problem or Unreadable("the run directory is not known")


async def _scripts(gatherer: Gatherer, left: RunSide, right: RunSide) -> tuple[FileDiff, ...]:
    """The archived scripts of both; none without an archive, or if a job has no scheduler."""
    try:
        ours, theirs = [(await gatherer.script_of(one.job, one.detail))[0] for one in (left, right)]
    except Unreadable:
        return ()
    if ours is None or theirs is None:
        return ()
    try:
        this, other = [await gatherer.job_reader.script(wanted) for wanted in (ours, theirs)]
    except Unreadable as error:
        return (FileDiff(SCRIPT, note=str(error)),)
    if this.script is not None and other.script is not None:
        # scripts may be large, and keys must not wait for this
        return script_files(await asyncio.to_thread(diff_scripts, this.script, other.script))
    missing, side = (this, left) if this.script is None else (other, right)
    if not missing.tried:
        return ()
    tried = "; ".join(f"{one.where}: {one.result}" for one in missing.tried)
    return (FileDiff(SCRIPT, note=f"none of {side.job.id} was found ({tried})"),)
