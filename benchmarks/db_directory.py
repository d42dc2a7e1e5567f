"""Writes a supervisor's db directory of any size: records as Sirepo leaves them after years."""

import json
import os
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NEWEST_S = 1_795_206_892
"""Epoch seconds about which the newest record was written."""
SPAN_S = 3 * 365 * 86_400
MODELS = {
    "heightWeightReport": False,
    "beamlineReport": False,
    "fluxReport": False,
    "activityAnimation": True,
    "multiElectronAnimation": True,
}
"""The models of each simulation, and which of them run in parallel."""
APPS = ("srw", "elegant", "opal", "shadow", "madx", "warppba")
STATUSES = ("completed",) * 11 + ("error",) * 3 + ("canceled",) * 3 + ("missing",) * 3
ERRORS = ("a big ugly error", "error exit(-9)", "no such breed", "exception during send")
_BASE62 = string.ascii_letters + string.digits

Record = dict[str, Any]


def write_db(root: Path, count: int, seed: int = 1) -> Path:
    """Write `count` records below `root`, with mtimes spread over three years; gives their directory."""
    directory = root / "supervisor-job"
    directory.mkdir(parents=True)
    records = generate(random.Random(seed))
    for _ in range(count):
        jid, record = next(records)
        path = f"{directory}/{jid}.json"
        with open(path, "w", encoding="ascii") as file:
            json.dump(record, file, separators=(",", ":"))
        written_ns = int(record["dbUpdateTime"] * 1e9)
        os.utime(path, ns=(written_ns, written_ns))
    return directory


def generate(chance: random.Random) -> Iterator[tuple[str, Record]]:
    """Records without end, each with its computeJid; nearly all final."""
    users = [_id(chance) for _ in range(2_000)]
    while True:
        simulation = {
            "simName": f"Beamline {chance.randrange(100_000)}",
            "simulationId": _id(chance),
            "simulationType": chance.choice(APPS),
            "uid": chance.choice(users),
        }
        for model in chance.sample(sorted(MODELS), chance.randint(1, 3)):
            jid = f"{simulation['uid']}-{simulation['simulationId']}-{model}"
            yield jid, _record(chance, jid, model, simulation)


def _id(chance: random.Random) -> str:
    return "".join(chance.choices(_BASE62, k=8))


def _record(chance: random.Random, jid: str, model: str, simulation: Record) -> Record:
    status = chance.choice(STATUSES)
    latest = NEWEST_S - chance.randrange(SPAN_S)
    run = _run(chance, status, model, 0 if status == "missing" else latest)
    starts = [0, *(latest - 1000 * n for n in range(chance.choice((0, 0, 0, 1, 1, 2, 4)), 0, -1))]
    history = [_run(chance, chance.choice(STATUSES) if at else "missing", model, at) for at in starts]
    record = {
        "activePlan": run["activePlan"],
        "alert": None,
        "queueState": "queued",
        "canceledAfterSecs": run["canceledAfterSecs"],
        "computeJid": jid,
        "computeJobHash": f"{chance.getrandbits(128):032x}",
        **{name: run[name] for name in ("computeJobQueued", "computeJobSerial", "computeJobStart")},
        "computeModel": model,
        "dbUpdateTime": latest + 5 + chance.random() * 300,
        "driverDetails": {},
        "error": run["error"],
        "history": history,
        **{name: run[name] for name in ("isParallel", "jobStatusMessage", "lastUpdateTime")},
        "simName": simulation["simName"] if run["computeJobSerial"] else None,
        "simulationId": simulation["simulationId"],
        "simulationType": simulation["simulationType"],
        "status": status,
        "uid": simulation["uid"],
        "jobRunMode": run["jobRunMode"],
        "nextRequestSeconds": 1,
    }
    if MODELS[model]:
        record["parallelStatus"] = _progress(chance, run)
    return record


def _run(chance: random.Random, status: str, model: str, at: int) -> Record:
    parallel = MODELS[model]
    start = at and at + (chance.randrange(30) if parallel else 0)
    return {
        "activePlan": chance.choice(("basic", "premium")),
        "alert": None,
        "canceledAfterSecs": 3600 if status == "canceled" and chance.random() < 0.3 else None,
        "computeJobQueued": at,
        "computeJobSerial": at,
        "computeJobStart": start,
        "computeModel": model,
        "driverDetails": {},
        "error": chance.choice(ERRORS) if status == "error" else None,
        "isParallel": parallel,
        "jobStatusMessage": None,
        "lastUpdateTime": start and start + 5,
        "status": status,
        "jobRunMode": "parallel" if parallel else "sequential",
    }


def _progress(chance: random.Random, run: Record) -> Record:
    done = run["status"] == "completed"
    return {
        "percentComplete": 100 if done else chance.random() * 100 if run["computeJobStart"] else 0,
        "computeJobStart": 0,
        "computeJobHash": 0,
        "lastUpdateTime": run["lastUpdateTime"],
        "frameCount": chance.randrange(50),
        "elapsedTime": 0,
        "queueState": 0,
        "reports": [{"modelName": run["computeModel"], "frameCount": 10}],
    }
