"""Incidents that Sirepo's users reported in public, rebuilt in the formats of its logs and records."""

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobtui.analysis.compare import CLUTTER
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.verdict import explain
from jobtui.backends.sirepo.client import MAX_BYTES
from jobtui.backends.sirepo.records import read_detail
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import Op
from jobtui.model.verdicts import Verdict
from tests.analysis.explain.cases import gatherer_of

ROOT = Path(__file__).parents[2] / "fixtures" / "incidents"
NAMES = sorted(path.parent.name for path in ROOT.glob("*/case.json"))


class Told(NamedTuple):
    """What was made of an incident, its ops, and what was to be."""

    verdict: Verdict
    ops: tuple[Op, ...]
    case: dict[str, Any]


def record_of(folder: Path, case: dict[str, Any]) -> bytes:
    """The record; where the case tells of many runs before, with so many in its history."""
    text = (folder / "record.json").read_bytes()
    if "runs_before" not in case:
        return text
    record = json.loads(text)
    return json.dumps(record | {"history": record["history"] * case["runs_before"]}).encode()


def told(name: str) -> Told:
    """Explain the job of an incident."""
    folder = ROOT / name
    case = json.loads((folder / "case.json").read_text())
    job_id, now = JobId(case["job"]), Nanos(case["now"] * SECOND)
    correlator = Correlator()
    log = (folder / "supervisor.log").read_bytes()
    correlator.feed(LogParser("supervisor.log").parse(log, 0, 1, Nanos(now + SECOND)).records)
    detail = read_detail(record_of(folder, case), job_id, 0, "db", "record.json")
    gatherer = gatherer_of(correlator, [detail.job], now)
    made = explain(asyncio.run(gatherer.gather(job_id, detail)))
    return Told(made, correlator.ops_of(job_id), case)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_recognised(name: str) -> None:
    made, _, case = told(name)
    assert made.code == case["verdict"], made
    for words in case["says"]:
        assert words in made.sentence


@pytest.mark.parametrize("name", [name for name in NAMES if "held_by" in told(name).case])
def test_who_holds_the_slot_is_named(name: str) -> None:
    made, _, case = told(name)
    (holder,) = made.waits.waits[0].holders
    assert holder.op.op == case["held_by"]
    if case.get("cancel_unconfirmed"):
        assert holder.cancel_s is not None
        assert not holder.is_confirmed


def test_polls_do_not_hide_the_run() -> None:
    """What the issue asks for: run_status "clutters and doesn't help"; ids are shown by their beginning."""
    made, ops, case = told("run-status-clutter")
    polls = [op for op in ops if op.name in CLUTTER]
    (run,) = (op for op in ops if op.name not in CLUTTER)
    assert len(polls) == case["polls"]
    assert run.name == "run"
    assert not any("run_status" in evidence.what for evidence in made.evidence)


def test_a_record_that_is_pretty_big_is_read_within_its_bound() -> None:
    case = told("record-of-many-runs").case
    text = record_of(ROOT / "record-of-many-runs", case)
    assert 1 << 20 < len(text) < MAX_BYTES
    detail = read_detail(text, JobId(case["job"]), 0, "db", "record.json")
    assert detail.job.runs == len(detail.runs) == case["runs_before"] + 1


def test_every_one_that_is_listed_is_there() -> None:
    issues = {told(name).case["issue"].rpartition("#")[2] for name in NAMES}
    assert issues == {"2135", "2196", "2672", "3043", "4068", "6373", "6809", "7355", "7889"}
