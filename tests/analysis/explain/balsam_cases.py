"""Jobs of Balsam, their states and allocations, as cases of verdicts have them."""

from itertools import pairwise
from typing import Any

from jobtui.backends.balsam.records import STATUSES
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from tests.builders import ago

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


LIVING, STALE = allocation("running"), allocation("running", heartbeat_at=ago(900))
