"""What of a Balsam server's sites and launchers is to be said: those that were not heard of lately."""

from collections.abc import Iterator

import msgspec

from jobtui.backends.balsam.known import Known
from jobtui.model.changes import Allocation, Site
from jobtui.model.clock import SECOND, Nanos

CLOCK_S = 60.0
"""How far a server's clock may be off without a word."""
FOR_AGENT = frozenset({"READY", "STAGED_IN", "RUN_DONE", "RUN_ERROR", "RUN_TIMEOUT", "POSTPROCESSED"})
"""States out of which only a site's agent takes a job."""


class Frame(msgspec.Struct, frozen=True):
    """Sites and allocations as of the last look."""

    sites: tuple[Site, ...] = ()
    allocations: tuple[Allocation, ...] = ()


def alerts_of(frame: Frame, known: Known, now: Nanos) -> dict[int, str]:
    """What is to be said of live jobs, by number. `now` is the server's."""
    stale = {one.id: one for one in frame.allocations if one.is_stale(now)}
    down = {site.id: site for site in frame.sites if site.is_down(now)}
    if not stale and not down:
        return {}
    found: dict[int, str] = {}
    for row in known.rows.values():
        if row.state == "RUNNING" and row.batch_job_id in stale:
            found[row.id] = f"its launcher was last heard of at {clock(stale[row.batch_job_id].heartbeat_at)}"
        elif row.state in FOR_AGENT and (site := known.site_of(row)) in down:
            found[row.id] = f"the agent of its site was last heard of at {clock(down[site].seen_at)}"
    return found


def _launcher(allocation: Allocation) -> str:
    if not allocation.launchers:
        return "allocation runs and has no launcher"
    return f"launcher was last heard of at {clock(allocation.heartbeat_at)}"


def clock(at: Nanos | None) -> str:
    """A time of day that does not change while it is shown."""
    seconds = (at or 0) // SECOND % 86_400
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}Z"


def note_of(frame: Frame, login: str | None, now: Nanos, ahead_s: float) -> str:
    """Everything that is to be said of a server, in one line; "" when there is nothing."""
    server_now = Nanos(now + int(ahead_s * SECOND))
    return "; ".join(_words(frame, login, server_now, ahead_s))


def _words(frame: Frame, login: str | None, now: Nanos, ahead_s: float) -> Iterator[str]:
    if login:
        yield login
    if abs(ahead_s) >= CLOCK_S:
        yield f"the server's clock is {abs(ahead_s) / 60:.0f} min {'ahead' if ahead_s > 0 else 'behind'}"
    for site in frame.sites:
        if site.is_down(now):
            yield f"the agent of site {site.name} was last heard of at {clock(site.seen_at)}"
    for one in frame.allocations:
        if one.is_stale(now):
            yield f"batch job {one.id}: its {_launcher(one)}"
