"""A source and a job system as small as they can be: one line each in their registries names them."""

from functools import partial

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.systems import JobSystem
from jobtui.backends.base import Batch, PolledSource, Source
from jobtui.backends.registry import Gives, SourceType
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import Job, JobDetail, JobStatus
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.model.verdicts import Code, Verdict


class Toy(PolledSource):
    kind = "toy_file"

    @property
    def job(self) -> Job:
        return Job(
            id=system_job_id("toy", 1), source=self.name, system="toy", status=JobStatus.RUNNING,
            native_status="going", owner="u", queued_at=self.clock.now(),
        )  # fmt: skip

    async def read(self, *, begins: bool) -> Batch:
        return Batch(jobs=(self.job,), count=1)

    async def detail(self, job_id: JobId) -> JobDetail | None:
        return JobDetail(job=self.job, runs=(), history=(), native={}) if job_id == self.job.id else None


def open_source(spec: SourceSpec, window: ReadWindow) -> Source:
    return Toy(spec.target)


TOY = SourceType(
    "toy_file", "toy", "FILE", "a toy", "toy", Gives.JOBS, partial(SourceSpec, "toy"), __name__,
    completes="file", label="toy",
)  # fmt: skip


def explain_toy(evidence: Evidence) -> Verdict:
    assert evidence.job is not None
    return Verdict(
        job_id=evidence.job.id, code=Code.RUNNING, sentence="It is going, as toys do", confidence=0.9
    )


TOY_SYSTEM = JobSystem("toy", explain_toy)
