"""Jobs of Balsam, their states and allocations, as cases of verdicts have them."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from jobtui.analysis.explain.case import Evidence
from jobtui.backends.balsam.records import STATUSES
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, ReasonSeen
from tests.builders import ago
from tests.conftest import NOW

ID = JobId("balsam/17")
RAN = ("PREPROCESSED", "RUNNING")
SITE = Site(id=1, source="api", name="theta", path="/home/me/site", seen_at=ago(10))


def a_job(state: str, **fields: Any) -> Job:
    values: dict[str, Any] = {
        "queued_at": ago(900),
        "updated_at": ago(60),
        "host": "theta",
        "allocation": "5 8812",
    } | fields
    return Job(id=ID, system="balsam", status=STATUSES[state], native_status=state, source="api", **values)


def changes(*states: str, **detail: object) -> list[StateChange]:
    """From state to state, a minute apart, the last one a minute ago; `detail` is what the last says."""
    ways = list(pairwise(states))
    return [
        StateChange(
            number, ID, ago(60 * (len(ways) - number + 1)), before, after, "api", None,
            detail if number == len(ways) else None,
        )
        for number, (before, after) in enumerate(ways, 1)
    ]  # fmt: skip


def allocation(state: str, **fields: Any) -> Allocation:
    values: dict[str, Any] = {"id": 5, "scheduler_id": "8812", "start_at": ago(600), "launchers": 1}
    values |= {"heartbeat_at": ago(20)}
    return Allocation(source="api", site_id=1, state=state, nodes=4, **(values | fields))


LIVING = allocation("running")


def on_balsam(
    job: Job, went: Iterable[StateChange] = (), allocations: Iterable[Allocation] = (),
    site: Site | None = SITE, *sources: SourceHealth, **more: Any,
) -> Evidence:  # fmt: skip
    """What is known of a job, and how its server is."""
    sites = (site,) if site is not None else ()
    told: dict[str, Any] = {"changes": tuple(went), "allocations": tuple(allocations), "sites": sites, **more}
    return Evidence(job_id=job.id, now=NOW, job=job, sources=sources, **told)


def evidence_on(row: Mapping[str, Any]) -> Evidence:
    """What a row of `tests/fixtures/balsam/verdicts.toml` stands for."""
    went = changes(*row.get("states", ()), **row.get("last", {}))
    errors = (number for number, change in enumerate(went) if change.after == "RUN_ERROR")
    for number, (code, text) in zip(errors, row.get("errors", ()), strict=False):
        went[number] = msgspec.structs.replace(went[number], detail={"returncode": code, "error": text})
    fields = row.get("job", {}) | _times(row) | {"needs": tuple(map(tuple, row.get("needs", ())))}
    here = (
        allocation(**(one["is"] | _times(one) | dict.fromkeys(one.get("no", ()))))
        for one in row.get("allocations", ())
    )
    site = msgspec.structs.replace(SITE, seen_at=ago(row.get("seen_s", 10)))
    reasons = tuple(ReasonSeen(ID, ago(at), why) for at, why in row.get("reasons", ()))
    went = [change for change in went if change.id not in row.get("lost", ())]
    return on_balsam(a_job(row["state"], **fields), went, here, site, reasons=reasons)


def _times(row: Mapping[str, Any]) -> dict[str, Nanos]:
    return {name: ago(seconds) for name, seconds in row.get("ago", {}).items()}
