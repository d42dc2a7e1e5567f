"""Where the run directory of a job is: by what the logs say, and by where Sirepo keeps those of its users."""

import os
from collections.abc import Iterable, Iterator

from jobtui.analysis.cluster_paths import Reach, reached
from jobtui.model.ids import jid_of_run_dir, split_jid
from jobtui.model.jobs import Job
from jobtui.model.ops import Op

CLUSTER_MODE = "sbatch"
NOWHERE = Reach()


def run_dirs_of(
    job: Job | None,
    record_path: str | None,
    ops: Iterable[Op],
    host: str | None = None,
    reach: Reach = NOWHERE,
    told: str | None = None,
) -> tuple[str, ...]:
    """The directories it may be, likeliest first; a path in a log that is no run directory is none of them.

    `host` is the cluster of a job that runs on one, which can be reached as `reach` says. `told` is the
    directory that its record itself names, on the machine where it runs.

    The record is `<root>/supervisor-job/<jid>.json`, its directory
    `<root>/user/<uid>/<app>/<simulation>/<model>`,
    except for jobs of a cluster, which are kept there.
    """
    known = tuple(ops)
    on_cluster = (path for there in _sent(known) for path in reached(there, host, reach))
    named = reached(told, host, reach) if told else ()
    beside = _beside(job, record_path) if job and record_path else ()
    found = [*named, *on_cluster, *_logged(known), *beside]
    return tuple(dict.fromkeys(found))


def _sent(ops: Iterable[Op]) -> Iterator[str]:
    """The directories on a cluster, the newest first."""
    for op in reversed(tuple(ops)):
        if op.sent_dir and op.jid is not None and jid_of_run_dir(op.sent_dir) == op.jid:
            yield op.sent_dir.rstrip("/")


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
