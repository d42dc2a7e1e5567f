"""Lines that a Balsam site wrote about its jobs: kept by job, within a bound, the oldest go first."""

from collections import deque
from functools import cache

from jobtui.formats.schema import load
from jobtui.model.ids import JobId
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, Step, Unlinked

LINES_KEPT = 100_000
FORMAT = "balsam_site"
WHY = "its state is known by events, this is what its site wrote"


class SiteLines:
    """What was written about each job, in the order of its files."""

    def __init__(self, most: int = LINES_KEPT) -> None:
        self._most = most
        self._order: deque[JobId] = deque()
        self._by_job: dict[JobId, deque[LogRecord]] = {}

    def read(self, record: LogRecord) -> JobId | None:
        """Take in a record; the job it is about."""
        job_id = JobId(record.fields.get("jid") or "")
        if not job_id:
            return None
        self._by_job.setdefault(job_id, deque()).append(record)
        self._order.append(job_id)
        if len(self._order) > self._most:
            self._let_go(self._order.popleft())
        return job_id

    def unlinked_of(self, job_id: JobId) -> tuple[Unlinked, ...]:
        """The lines about a job."""
        return tuple(Unlinked(job_id, _step(one), WHY) for one in self._by_job.get(job_id, ()))

    def _let_go(self, job_id: JobId) -> None:
        own = self._by_job[job_id]
        own.popleft()
        if not own:
            del self._by_job[job_id]


@cache
def site_shapes() -> dict[str, tuple[str, Component]]:
    """The words and the writer of each kind of line."""
    return {shape.name: (shape.step or shape.name, shape.component) for shape in load(FORMAT).shapes}


def _step(record: LogRecord) -> Step:
    words, component = site_shapes()[record.shape]
    place = record.source, record.line, record.offset
    return Step(words, record.at, component, record.text, *place, Certainty.JID)
