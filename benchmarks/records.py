"""Job records as the supervisor writes them, made up, as many as a measurement needs."""

import json
import random
import string
from collections.abc import Iterator
from pathlib import Path

ALPHABET = string.ascii_letters + string.digits
NEWEST_S = 1_795_208_400
"""The time of the newest record, in epoch seconds."""
SPREAD_S = 400 * 86_400
MODELS = ("heightWeightReport", "activityAnimation", "intensityReport", "fluxAnimation", "animation")
STATUSES = ("completed",) * 16 + ("error", "canceled", "missing", "job_run_purged")


def word(source: random.Random, length: int = 8) -> str:
    """An id."""
    return "".join(source.choices(ALPHABET, k=length))


def record(source: random.Random, status: str, at: int) -> dict[str, object]:
    """One record in today's form, with the history of one earlier run."""
    uid, simulation, model = word(source), word(source), source.choice(MODELS)
    is_parallel = model.endswith("nimation")
    state: dict[str, object] = {
        "alert": None,
        "canceledAfterSecs": None,
        "computeJobQueued": at - 30,
        "computeJobSerial": at - 30,
        "computeJobStart": at - 28,
        "computeModel": model,
        "driverDetails": {},
        "error": "exit=1" if status == "error" else None,
        "internalError": None,
        "isParallel": is_parallel,
        "activePlan": "basic",
        "jobRunMode": "parallel" if is_parallel else "sequential",
        "jobStatusMessage": None,
        "lastUpdateTime": at,
        "status": status,
    }
    earlier = {
        **state,
        "computeJobQueued": 0,
        "computeJobSerial": 0,
        "computeJobStart": 0,
        "status": "missing",
    }
    return {
        **state,
        "computeJid": f"{uid}-{simulation}-{model}",
        "uid": uid,
        "simulationId": simulation,
        "simulationType": "myapp",
        "simName": f"Simulation {source.randint(1, 999)}",
        "dbUpdateTime": at + 0.25,
        "computeJobHash": word(source, 32).lower(),
        "nextRequestSeconds": 2,
        "queueState": None,
        "history": [earlier],
        "parallelStatus": {"frameCount": 40, "percentComplete": 100.0, "reports": [], "lastUpdateTime": at},
    }


def records(count: int, seed: int = 1) -> Iterator[dict[str, object]]:
    """So many records, newest last; the last one is running."""
    source = random.Random(seed)
    for number in range(count):
        at = NEWEST_S - SPREAD_S * (count - 1 - number) // count
        yield record(source, "running" if number == count - 1 else source.choice(STATUSES), at)


def write_records(root: Path, count: int, seed: int = 1) -> dict[str, object]:
    """Write records below a new database root; gives the newest."""
    place = root / "supervisor-job"
    place.mkdir(parents=True)
    newest: dict[str, object] = {}
    for newest in records(count, seed):
        (place / f"{newest['computeJid']}.json").write_text(json.dumps(newest))
    return newest
