"""How people and schedulers write the id of a batch job, and the names under which SArchive keeps it.

Slurm: `123`, `123_4` a task of an array, `123_[5-9]` its rest, `123+1` a part of a heterogeneous job, each
perhaps with the cluster before it: `huppel/123`, `slurm/123`, `slurm@huppel/123`. Torque: `123.server`,
`123[4].server`, `123-4.server`.
"""

import re
from collections.abc import Iterator

from jobtui.model.scripts import Wanted

_ID = re.compile(
    r"(?:(?:slurm|torque)(?:@(?P<label>[\w.-]+))?/|(?P<cluster>[\w.-]+)/)?"
    r"#?(?P<number>\d{1,18})(?:_(?P<task>\d+)|\[(?P<bracketed>\d*)\]|-(?P<dashed>\d+)|_\[[^\]]*\]|\+\d+)?"
    r"(?P<server>\.[A-Za-z][\w.-]*)?",
    re.ASCII,
)
_TASKS = re.compile(r"^#PBS\s+(?:.*\s)?-t\s+(?P<tasks>[\d,-]+)", re.MULTILINE | re.ASCII)
_STEP = re.compile(r"^(\d+(?:_\d+)?)\.(?:batch|extern|interactive|\d+)$", re.ASCII)
OTHER_SYSTEMS = frozenset({"balsam"})
MOST_TASKS = 256
"""Files of an array's tasks that are read at most."""


def parse_wanted(text: str) -> Wanted | None:
    """The job that an id means, None for what is no id of a batch job. A step means its job."""
    head, slash, last = text.strip().rpartition("/")
    found = _ID.fullmatch(head + slash + _STEP.sub(r"\1", last)) if head not in OTHER_SYSTEMS else None
    if found is None:
        return None
    task = found["task"] or found["bracketed"] or found["dashed"] or ""
    cluster = found["label"] or found["cluster"] or ""
    return Wanted(found["number"].lstrip("0") or "0", task, cluster, found["server"] or "")


def slurm_names(number: str) -> tuple[str, str]:
    """The files of a job of Slurm: its script and its environment."""
    return f"job.{number}_script", f"job.{number}_environment"


def spool_names(number: str) -> tuple[str, str]:
    """The same in Slurm's own StateSaveLocation, where each job has a directory in one of ten."""
    place = f"hash.{int(number) % 10}/job.{number}"
    return f"{place}/script", f"{place}/environment"


def torque_names(number: str, server: str, tasks: Iterator[int] | None = None) -> Iterator[str]:
    """The files of a job of Torque that are not its script; of an array's tasks, those of these."""
    yield f"{number}{server}.JB"
    yield f"{number}{server}.TA"
    for task in tasks or ():
        yield f"{number}-{task}{server}.JB"


def torque_tasks(script: str) -> Iterator[int]:
    """The numbers of an array's tasks as its script asks for them: `#PBS -t 1-4,7`."""
    found = _TASKS.search(script)
    left = MOST_TASKS
    for part in found["tasks"].split(",") if found else ():
        first, _, last = part.partition("-")
        if not first.isdecimal() or len(part) > 20:
            continue
        stop = min(int(last) if last.isdecimal() else int(first), int(first) + left - 1)
        yield from range(int(first), stop + 1)
        left -= max(0, stop - int(first) + 1)
