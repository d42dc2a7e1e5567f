"""What Sirepo's agent on a cluster notes of a run in Slurm: `sbatch_status.json` in its run directory."""

import msgspec

from jobtui.model.clock import Nanos, from_seconds

STATUS_FILE = "sbatch_status.json"
_LATEST_S = 32_503_680_000
"""The year 3000: a larger number is no time."""


class SbatchStatus(msgspec.Struct, frozen=True):
    """The state of a run as the agent saw it last, and its id in Slurm. `state` is the agent's own word."""

    state: str
    slurm_id: str | None = None
    submitted_at: Nanos | None = None
    started_at: Nanos | None = None
    percent: float | None = None


def sbatch_status(document: object) -> SbatchStatus | None:
    """What a decoded status file says, None when it is none."""
    if not isinstance(document, dict) or not isinstance(document.get("job_cmd_state"), str):
        return None
    slurm_id = document.get("sbatch_id")
    return SbatchStatus(
        state=document["job_cmd_state"],
        slurm_id=str(slurm_id) if isinstance(slurm_id, str | int) and str(slurm_id).isalnum() else None,
        submitted_at=_time(document.get("computeJobSerial")),
        started_at=_time(document.get("computeJobStart")),
        percent=_percent(document.get("parallelStatus")),
    )


def _time(value: object) -> Nanos | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < _LATEST_S:
        return None
    return from_seconds(value)


def _percent(status: object) -> float | None:
    """How far it is; the agent may have put the whole message there, as text and taken apart."""
    if isinstance(status, dict) and isinstance(status.get("py"), dict):
        status = status["py"]
    value = status.get("percentComplete") if isinstance(status, dict) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
