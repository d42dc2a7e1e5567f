"""The reader of HTCondor's event logs beside HTCondor's own library, on the same files."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from jobtui.formats.date_output import read_date
from jobtui.model.condor import EVENTS
from jobtui.model.condor_ids import condor_id
from tests.condor import CONDOR, executing, facts_in, submitted

pytestmark = pytest.mark.real

PYTHON = os.environ.get("REAL_HTCONDOR_PYTHON", "")
READER = Path(__file__).with_name("condor_reading.py")
COMPARED = (
    "SubmitHost", "ExecuteHost", "SlotName", "HoldReason", "HoldReasonCode", "HoldReasonSubCode", "Reason",
    "ReturnValue", "TerminatedBySignal", "JobsubJobId", "StartdName", "DisconnectReason",
)  # fmt: skip
"""Attributes that mean the same in both, where both have them."""

needs_library = pytest.mark.skipif(not PYTHON, reason="HTCondor's library is not there")


def read_by_library(*paths: Path) -> list[dict[str, object]]:
    """The events of files, with the attributes of each."""
    command = [PYTHON, str(READER), *map(str, paths)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"TZ": "UTC"})
    return [json.loads(line) for line in ran.stdout.splitlines()]


@needs_library
def test_every_event_is_read_as_by_htcondor_itself() -> None:
    for path in sorted(CONDOR.glob("*.log")):
        told, facts = read_by_library(path), facts_in(path)
        assert len(told) == len(facts) > 0
        for theirs, ours in zip(told, facts, strict=True):
            number = condor_id(ours.job)
            assert number is not None
            assert (theirs["Cluster"], theirs["Proc"]) == (number.cluster, number.proc)
            kind = EVENTS.get(int(str(theirs["EventTypeNumber"])))
            assert kind is not None
            assert kind.name == ours.what
            moment = read_date(str(theirs["EventTime"]))
            assert moment is not None
            assert moment[0] == ours.at
            both = [name for name in COMPARED if name in theirs and name in ours.values]
            assert {name: str(theirs[name]) for name in both} == {name: ours.values[name] for name in both}


@needs_library
def test_a_damaged_event_costs_that_event_and_not_all_that_follow(tmp_path: Path) -> None:
    path = tmp_path / "damaged.log"
    path.write_text(submitted() + "000 (8.0.0) 2026-11-20 10:0\0\n...\n" + executing())
    with pytest.raises(subprocess.CalledProcessError):
        read_by_library(path)  # why it is not what reads logs here
    assert [fact.what for fact in facts_in(path)] == ["submit", "execute"]
