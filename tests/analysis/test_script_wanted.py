"""Which script is meant by a job, by what Slurm and Sirepo tell of it."""

from typing import Any

import pytest

from jobtui.analysis.script_wanted import wanted_of_sirepo, wanted_of_slurm
from jobtui.model.cluster import SbatchStatus
from jobtui.model.jobs import Job, JobDetail, JobStatus, Run
from jobtui.model.scripts import Wanted
from tests.builders import a_job, ago


def slurm(native: str, **fields: object) -> Job:
    return a_job(
        id=native, system="slurm", **{"status": JobStatus.COMPLETED, "queued_at": ago(100), **fields}
    )


def detail_of(job: Job, runs: tuple[Run, ...] = (), **native: Any) -> JobDetail:
    return JobDetail(job=job, runs=runs, history=(), native=native)


@pytest.mark.parametrize(
    ("native", "number", "task"),
    [("slurm/22", "22", ""), ("slurm/22_1", "22", "1"), ("slurm@login1/22_1", "22", "1")],
)
def test_a_task_means_the_script_of_its_array(native: str, number: str, task: str) -> None:
    job = slurm(native)
    assert wanted_of_slurm(job) == Wanted(number, task, submitted_at=job.queued_at)


def test_the_cluster_is_the_one_that_slurm_names_and_not_where_it_is_asked() -> None:
    job = slurm("slurm@login1/22")
    found = wanted_of_slurm(job, detail_of(job, slurm={"cluster": "huppel"}))
    assert found is not None
    assert found.cluster == "huppel"


def test_a_job_that_was_requeued_was_submitted_the_first_time() -> None:
    job = slurm("slurm/22")
    runs = tuple(
        Run(number=n, status=JobStatus.FAILED, native_status="", queued_at=ago(at))
        for n, at in ((1, 900), (2, 100))
    )
    found = wanted_of_slurm(job, detail_of(job, runs))
    assert found is not None
    assert found.submitted_at == ago(900)


@pytest.mark.parametrize(
    ("native", "status", "is_batch"),
    [
        ({"scontrol": {"BatchFlag": "0"}}, JobStatus.RUNNING, False),
        ({"scontrol": {"BatchFlag": "1"}}, JobStatus.RUNNING, True),
        ({"slurm": {"steps": [{"id": "22.0"}, {"id": "22.extern"}]}}, JobStatus.COMPLETED, False),
        ({"slurm": {"steps": [{"id": "22.batch"}, {"id": "22.0"}]}}, JobStatus.COMPLETED, True),
        ({"slurm": {"steps": []}}, JobStatus.COMPLETED, True),
        ({"slurm": {"steps": [{"id": "22.0"}]}}, JobStatus.PENDING, True),
        ({"slurm": None, "scontrol": "odd"}, JobStatus.COMPLETED, True),
    ],
)
def test_srun_and_salloc_have_no_script(native: dict[str, Any], status: JobStatus, is_batch: bool) -> None:
    job = slurm("slurm/22", status=status)
    found = wanted_of_slurm(job, detail_of(job, **native))
    assert found is not None
    assert found.is_batch is is_batch


def test_other_jobs_have_none() -> None:
    assert wanted_of_slurm(a_job(1)) is None
    assert wanted_of_slurm(a_job(id="balsam/7", system="balsam")) is None


def test_a_run_of_sirepo_has_the_number_that_was_noted() -> None:
    noted = SbatchStatus("running", "4007", submitted_at=ago(50))
    assert wanted_of_sirepo(noted) == Wanted("4007", submitted_at=ago(50))
    assert wanted_of_sirepo(SbatchStatus("pending")) is None
