"""What an agent on a cluster notes of a run."""

import json

import pytest

from jobtui.model.clock import from_seconds
from jobtui.model.job_reader import SbatchStatus, sbatch_status
from tests.analysis.captured import ROOT

FILES = sorted((ROOT / "sbatch" / "scratch").rglob("sbatch_status.json"))


def test_real_ones() -> None:
    found = {
        status.slurm_id: status.state
        for path in FILES
        if (status := sbatch_status(json.loads(path.read_text())))
    }
    assert found == {"12": "completed", "13": "error", "14": "completed", "15": "canceled", "16": "canceled"}


def test_times_and_progress() -> None:
    document = {
        "job_cmd_state": "sbatch_run_status_stop", "sbatch_id": 7, "computeJobSerial": 1795207669,
        "computeJobStart": None, "parallelStatus": {"percentComplete": 41.5},
    }  # fmt: skip
    assert sbatch_status(document) == SbatchStatus(
        "sbatch_run_status_stop", "7", from_seconds(1795207669), None, 41.5
    )
    message = {"py": {"percentComplete": 3}, "json": "{}"}
    status = sbatch_status({"job_cmd_state": "running", "parallelStatus": message})
    assert status is not None
    assert status.percent == 3.0


@pytest.mark.parametrize("slurm_id", ["", "12; rm", None, [], {}])
def test_an_odd_id_is_none(slurm_id: object) -> None:
    status = sbatch_status({"job_cmd_state": "running", "sbatch_id": slurm_id})
    assert status is not None
    assert status.slurm_id is None


@pytest.mark.parametrize("document", [None, [], 3, {}, {"job_cmd_state": 3}, {"sbatch_id": 7}])
def test_what_tells_no_state_is_none(document: object) -> None:
    assert sbatch_status(document) is None
