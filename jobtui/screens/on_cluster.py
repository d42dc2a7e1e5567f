"""What is said of a job that runs on a cluster, beside its record: how it stands in Slurm, or in Sirepo."""

from collections.abc import Callable, Collection

from jobtui.analysis.run_dirs import CLUSTER_MODE, run_dirs_of
from jobtui.model.ids import JobId
from jobtui.model.job_desk import Noted
from jobtui.model.slurm import SYSTEM as SLURM
from jobtui.render.cluster import cluster_words, is_of_newest_run, joined_words
from jobtui.screens.board import Board
from jobtui.widgets.job_facts import JobFacts


async def show_cluster(
    facts: JobFacts, board: Board, job_id: JobId, note: Callable[[str | None], None] = lambda slurm_id: None
) -> None:
    """Say it where the record is told; `note` is told the number in Slurm, where the agent has noted it."""
    noted = await noted_of(board, job_id)
    note(noted.status.slurm_id if noted is not None else None)
    facts.set_cluster(words_of(board, job_id, noted))


def words_of(board: Board, job_id: JobId, noted: Noted | None) -> str:
    """Which it is in Slurm and how it stands there, by Slurm's own word where there is one, else as noted.

    "" where neither tells.
    """
    # Imported here, as the first paint does not need it
    from jobtui.analysis.slurm_join import sirepo_of, slurm_of

    job = board.store.job(job_id)
    if job is None:
        return ""
    if (submitter := sirepo_of(job)) is not None:
        return joined_words(submitter, board.store.job(submitter))
    slurm = slurm_of(job, board.store.jobs.values(), noted.status.slurm_id if noted is not None else None)
    return cluster_words(noted.status if noted is not None else None, slurm)


def concerns(board: Board, job_id: JobId, changed: Collection[JobId]) -> bool:
    """Whether some jobs that changed may change what is said of a job beside its record."""
    from jobtui.analysis.slurm_join import sirepo_of

    job = board.store.job(job_id)
    if job is None:
        return False
    if job.mode == CLUSTER_MODE:
        return any(one.startswith(SLURM) for one in changed)
    return sirepo_of(job) in changed


async def noted_of(board: Board, job_id: JobId) -> Noted | None:
    """What its agent has noted of the newest run, None where its run directory cannot be reached."""
    store = board.store
    job, agent = store.job(job_id), store.correlation.agent_of(job_id)
    if job is None or job.mode != CLUSTER_MODE:
        return None
    ops, host = store.correlation.ops_of(job_id), agent.host if agent else None
    noted = await board.desk.noted_on_cluster(run_dirs_of(job, None, ops, host, board.reach))
    return noted if noted is not None and is_of_newest_run(noted.status, job) else None
