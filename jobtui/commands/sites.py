"""The logs of Balsam's sites: read as soon as a site is known whose file system can be reached from here."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jobtui.model.servers import named
from jobtui.model.specs import SourceSpec
from jobtui.session import Session
from jobtui.store.store import Changes

if TYPE_CHECKING:
    from jobtui.backends.balsam.site_logs import Place, SiteLogs

BALSAM = "balsam"
LOOK_EVERY_S = 60.0
"""How often is looked whether a site can be reached by now."""
KIND = "site_logs"


def site_logs(session: Session, specs: Sequence[SourceSpec], mounts: Mapping[str, str]) -> "SiteLogs":
    """The source of the logs of all sites that the session knows of by then."""
    # Few have a Balsam, and the first paint needs none of it
    from jobtui.analysis.cluster_paths import Reach, reached
    from jobtui.backends.balsam.site_logs import Place, SiteLogs

    systems = {spec.target: named(BALSAM, spec.label) for spec in specs if spec.setting == BALSAM}

    def places() -> "tuple[Place, ...]":
        reach = Reach(mounts)
        return tuple(
            Place(systems[site.source], tuple(reached(site.path, None, reach)))
            for site in session.store.sites()
            if site.source in systems
        )

    return SiteLogs(places)


async def _add_when_reached(session: Session, specs: Sequence[SourceSpec]) -> None:
    source = site_logs(session, specs, session.mounts)
    while not await source.is_reachable():  # noqa: ASYNC110 - nothing tells when something is mounted
        await asyncio.sleep(LOOK_EVERY_S)
    session.add(source)


def watch_sites(session: Session, specs: Sequence[SourceSpec]) -> None:
    """Read them as soon as the session knows of a site."""

    looking: set[asyncio.Task[None]] = set()

    def see(changes: Changes) -> None:
        if session.store.sites():
            unsubscribe()
            looking.add(asyncio.get_running_loop().create_task(_add_when_reached(session, specs)))

    if any(spec.setting == BALSAM for spec in specs):
        unsubscribe = session.store.subscribe(see)
