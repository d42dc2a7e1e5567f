"""Incidents that Sirepo's users reported in public, rebuilt in the formats of its logs and records."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.analysis.explain.study import Study, study
from jobtui.backends.sirepo_record import read_detail
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId

ROOT = Path(__file__).parents[2] / "fixtures" / "incidents"
NAMES = sorted(path.parent.name for path in ROOT.glob("*/case.json"))
RECORDS = SourceHealth(name="db", kind="sirepo_db", state=SourceState.OK)


class Told(NamedTuple):
    """What was made of an incident, and what was to be."""

    study: Study
    case: dict[str, Any]


def told(name: str) -> Told:
    """Explain the job of an incident."""
    folder = ROOT / name
    case = json.loads((folder / "case.json").read_text())
    job_id, now = JobId(case["job"]), Nanos(case["now"] * SECOND)
    correlator = Correlator()
    log = (folder / "supervisor.log").read_bytes()
    correlator.feed(LogParser("supervisor.log").parse(log, 0, 1, Nanos(now + SECOND)).records)
    detail = read_detail((folder / "record.json").read_bytes(), job_id, 0, "db", "record.json")
    jobs = {job_id: detail.job}
    return Told(study(correlator, jobs, [RECORDS], job_id, now, detail.runs), case)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_recognised(name: str) -> None:
    made, case = told(name)
    assert made.verdict.code == case["verdict"], made.verdict
    for words in case["says"]:
        assert words in made.verdict.sentence


@pytest.mark.parametrize("name", [name for name in NAMES if "held_by" in told(name).case])
def test_who_holds_the_slot_is_named(name: str) -> None:
    made, case = told(name)
    (holder,) = made.chain.waits[0].holders
    assert holder.op.op == case["held_by"]
    if case.get("cancel_unconfirmed"):
        assert holder.cancel_s is not None
        assert not holder.is_confirmed


def test_every_one_that_is_listed_is_there() -> None:
    issues = {told(name).case["issue"].rpartition("#")[2] for name in NAMES}
    assert issues == {"2672", "3043", "4068", "6373", "6809", "7355", "7889"}
