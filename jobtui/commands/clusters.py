"""Cluster agents' logs, which are looked for when there are jobs on a cluster, and for their users only."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.session import Session
from jobtui.store.store import Changes

if TYPE_CHECKING:
    from jobtui.backends.agent_copies import AgentCopies

MODE = "sbatch"
DRIVER = "SbatchDriver"
KIND = "agent_copies"


class ClusterUsers:
    """Who has jobs on a cluster; who came last is last."""

    def __init__(self) -> None:
        self._users: dict[str, None] = {}

    def __call__(self) -> Sequence[str]:
        """Their ids."""
        return tuple(self._users)

    def add(self, users: Iterable[str]) -> bool:
        """Take in more of them; whether there is anyone new."""
        before = len(self._users)
        self._users.update(dict.fromkeys(users))
        return len(self._users) > before


def copies_below(root: str, users: ClusterUsers) -> "AgentCopies":
    """The source of the copies below a database root."""
    from jobtui.backends.agent_copies import AgentCopies  # few sites have a cluster

    return AgentCopies(Path(root), users)


def watch_clusters(session: Session, roots: Sequence[str]) -> None:
    """Read the copies of agents' logs as soon as the session knows of a job on a cluster."""
    users = ClusterUsers()
    added = False

    def see(changes: Changes) -> None:
        nonlocal added
        if not users.add(_owners(session, changes.jobs)) or added:
            return
        added = True
        for root in roots:
            session.add(copies_below(root, users))

    if roots:
        session.store.subscribe(see)


def _owners(session: Session, changed: Iterable[JobId]) -> Iterable[str]:
    find = session.store.job
    return (job.owner for job_id in changed if (job := find(job_id)) is not None and job.mode == MODE)


def users_asked_for(session: Session, detail: JobDetail | None) -> ClusterUsers:
    """Whose copies a question needs: those of the job's user, without a job of all who are known by now."""
    users = ClusterUsers()
    if detail is not None:
        users.add([detail.job.owner] if MODE in (detail.job.mode, *(run.mode for run in detail.runs)) else [])
        return users
    users.add(job.owner for job in session.store.jobs.values() if job.mode == MODE)
    users.add(agent.uid for agent in session.store.correlation.agents() if agent.driver == DRIVER)
    return users
