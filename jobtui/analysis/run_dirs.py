"""Where the run directory of a job is: by what the logs say, and by where Sirepo keeps those of its users."""

import os
from collections.abc import Iterable, Iterator

from jobtui.model.ids import jid_of_run_dir, split_jid
from jobtui.model.jobs import Job
from jobtui.model.ops import Op

CLUSTER_MODE = "sbatch"


def run_dirs_of(job: Job | None, record_path: str | None, ops: Iterable[Op]) -> tuple[str, ...]:
    """The directories it may be, likeliest first; a path in a log that is no run directory is none of them.

    The record is `<root>/supervisor-job/<jid>.json`, its directory
    `<root>/user/<uid>/<app>/<simulation>/<model>`,
    except for jobs of a cluster, which are kept there.
    """
    found = [*_logged(ops), *(_beside(job, record_path) if job and record_path else ())]
    return tuple(dict.fromkeys(found))


def _logged(ops: Iterable[Op]) -> Iterator[str]:
    """The newest first."""
    for op in reversed(tuple(ops)):
        if op.run_dir and op.jid is not None and jid_of_run_dir(op.run_dir) == op.jid:
            yield op.run_dir.rstrip("/")


def _beside(job: Job, record_path: str) -> Iterator[str]:
    parts = split_jid(job.id)
    if parts is None or not _is_name(job.app) or job.mode == CLUSTER_MODE or job.is_quasi:
        return
    root = os.path.dirname(os.path.dirname(record_path))
    yield os.path.join(root, "user", parts.uid, job.app, parts.simulation_id, parts.model)


def _is_name(text: str) -> bool:
    return bool(text) and text not in (".", "..") and os.sep not in text and "\0" not in text
