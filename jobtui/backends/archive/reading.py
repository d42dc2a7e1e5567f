"""One job out of an archive's directory: its script and what was kept beside it, read when both are whole.

SArchive writes the script first and both in place: of a job of this moment half may be there. Such a pair is
read again for a second.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

from jobtui.backends.archive.kept_files import Kept, NotRead, read_kept
from jobtui.backends.archive.periods import Period
from jobtui.formats.job_environment import parse_environment
from jobtui.formats.scheduler_ids import slurm_names, spool_names, torque_names, torque_tasks
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.scripts import ArchivedScript, Environment, Outcome, Scheduler, Variable, Wanted, text_of

YOUNG_S = 10.0
"""A file written so lately may still be being written."""
AGAIN_S = 0.1
MOST_READINGS = 10
STATE_SAVE = "Slurm's own copy"
NO_ENVIRONMENT = "no environment is kept beside it"


class Spot(NamedTuple):
    """Where a job may be kept: the path of its script, of its environment, and in which period that is.

    Without `environment` the job is one of Torque; `is_spool` marks Slurm's own copy.
    """

    period: Period
    script: str
    environment: str = ""
    number: str = ""
    server: str = ""
    is_spool: bool = False


def spots(wanted: Wanted, period: Period, servers: tuple[str, ...]) -> Iterator[Spot]:
    """Where in a period a job may be. `servers` are the ends of Torque's ids there, as far as known."""
    base = f"{period.name}/" if period.name else ""
    if not wanted.server:
        script, environment = slurm_names(wanted.number)
        yield Spot(period, base + script, base + environment, wanted.number)
    for server in (wanted.server,) if wanted.server else servers:
        yield Spot(period, f"{base}{wanted.number}{server}.SC", "", wanted.number, server)
    if not base and not wanted.server:
        script, environment = spool_names(wanted.number)
        yield Spot(period, script, environment, wanted.number, is_spool=True)


def read_spot(
    root: int, place: str, spot: Spot, cluster: str, task: str = "", *, readings: int = MOST_READINGS
) -> ArchivedScript:
    """What is kept there, read up to so many times while it is still being written. Raises NotRead."""
    for left in reversed(range(readings)):
        kept = read_kept(root, spot.script)
        if spot.environment:
            environment, note = _environment(root, spot.environment)
        else:
            environment, note = _files_of_torque(root, spot, text_of(kept.data), task), ""
        is_half = environment is None or not environment.is_whole
        if not left or not is_half or not _is_young(kept.written_at):
            break
        time.sleep(AGAIN_S)
    return ArchivedScript(
        number=spot.number + spot.server,
        script=kept.data.removesuffix(b"\0") if spot.is_spool else kept.data,
        source=f"{place}/{spot.script}",
        cluster=cluster,
        scheduler=Scheduler.SLURM if spot.environment else Scheduler.TORQUE,
        environment=environment,
        archived_at=_archived_at(spot.period, kept),
        notes=tuple(filter(None, (note, STATE_SAVE if spot.is_spool else "", _kept_in(spot.period, kept)))),
    )


def _environment(root: int, path: str) -> tuple[Environment | None, str]:
    try:
        return parse_environment(read_kept(root, path).data), ""
    except NotRead as error:
        if error.outcome is Outcome.NOT_THERE:
            return None, NO_ENVIRONMENT
        return None, f"its environment: {error.outcome}{f': {error.note}' if error.note else ''}"


def _files_of_torque(root: int, spot: Spot, script: str, task: str) -> Environment:
    base = spot.script[: spot.script.rfind("/") + 1]
    tasks = iter([int(task)]) if task else torque_tasks(script)
    variables = []
    for name in torque_names(spot.number, spot.server, tasks):
        try:
            variables.append(Variable(name.encode(), read_kept(root, base + name).data))
        except NotRead as error:
            if error.outcome is not Outcome.NOT_THERE:
                variables.append(Variable(name.encode(), f"({error.outcome})".encode()))
    return Environment(tuple(variables), is_files=True)


def _is_young(at: Nanos) -> bool:
    return -YOUNG_S < (time.time_ns() - at) / SECOND < YOUNG_S


def _archived_at(period: Period, kept: Kept) -> Nanos | None:
    """When the file was written, None where its directory says another date: it is a copy then."""
    return kept.written_at if period.days_from(kept.written_at) <= 1 else None


def _kept_in(period: Period, kept: Kept) -> str:
    return f"kept in {period.name}" if _archived_at(period, kept) is None else ""
