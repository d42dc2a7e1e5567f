"""What a report is asked for: which changes of state count."""

import msgspec

from jobtui.model.clock import Nanos


class ReportQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes a report is made of; what is None or empty does not narrow.

    `jobs` are ids as a person writes them: `balsam/12`, `12`, `12@host`, a computeJid; so are `batch_job` and
    `scheduler_id`: `2`, `2@host`.
    """

    since: Nanos | None = None
    until: Nanos | None = None
    jobs: tuple[str, ...] = ()
    batch_job: str | None = None
    scheduler_id: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    from_state: str | None = None
    to_state: str | None = None
    allocation_state: str | None = None
