"""What is said of a job that runs on a cluster, beside its record."""

from jobtui.analysis.run_dirs import CLUSTER_MODE, run_dirs_of
from jobtui.model.ids import JobId
from jobtui.render.cluster import cluster_words, is_of_newest_run
from jobtui.screens.board import Board
from jobtui.widgets.job_facts import JobFacts


async def show_cluster(facts: JobFacts, board: Board, job_id: JobId) -> None:
    """Say it where the record is told."""
    facts.set_cluster(await words_of_cluster(board, job_id))


async def words_of_cluster(board: Board, job_id: JobId) -> str:
    """Which it is in Slurm and how it stands there, "" where its run directory cannot be reached."""
    store = board.store
    job, agent = store.job(job_id), store.correlation.agent_of(job_id)
    if job is None or job.mode != CLUSTER_MODE:
        return ""
    ops, host = store.correlation.ops_of(job_id), agent.host if agent else None
    noted = await board.desk.noted_on_cluster(run_dirs_of(job, None, ops, host, board.reach))
    return cluster_words(noted.status) if noted is not None and is_of_newest_run(noted.status, job) else ""
