"""Verdicts on what really happened: captures of a real system, and simulated incidents."""

import os
import random

import pytest
from msgspec.structs import replace

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.verdict import explain
from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.site import DriverName
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import JobStatus
from jobtui.model.verdicts import Cause, Code
from jobtui.render.verdicts import history_line
from tests.analysis.captured import ROOT
from tests.analysis.explain.cases import Played, evidence_of, played, record_in, written_at
from tests.builders import a_job, ago
from tests.conftest import NOW

SOON = 30 * SECOND


@pytest.mark.parametrize(
    "damage",
    [b"timeout=8\n", b"timeout=8..\n", b"timeout=8" + b"9" * 5_000 + b"\n"],
    ids=["whole", "no number", "too long"],
)
def test_an_agent_that_never_starts_names_the_limit(damage: bytes) -> None:
    folder = ROOT / "docker-agents-never-start"
    data = {path.name: path.read_bytes().replace(b"timeout=8\n", damage) for path in folder.glob("*.log")}
    verdicts = []
    for path in sorted((folder / "supervisor-job").glob("*.json")):
        detail = record_in(folder, path.stem)
        if detail is not None and detail.job.status.is_live:
            verdicts.append(explain(evidence_of(path.stem, data, detail, Nanos(written_at(detail) + SOON))))
    assert [verdict.code for verdict in verdicts] == [Code.AGENT_NEVER_STARTED]
    assert verdicts[0].limit_s == 8, "the usual limit, where the line does not tell it"
    assert "8s" in verdicts[0].sentence
    assert verdicts[0].missing_step == "the agent's first message"
    assert any("timeout=8" in evidence.text for evidence in verdicts[0].evidence)


PLAYED_S = {"time-limit": (420,)}
"""How long incidents are played: those that stay as they are may be looked at soon or late."""
SOON_OR_LATE_S = (90, 130, 200, 420)
SEEDS = int(os.environ.get("JOBTUI_WORLDS", "30"))
AT_ODDS = {"stale-record"}
"""Incidents that leave a record which nobody sets right."""


@pytest.mark.parametrize("name", INCIDENTS)
def test_incidents_get_the_right_verdict(name: str) -> None:
    """Once for each seed, with the driver and the length that are drawn."""
    draw = random.Random(name)
    drivers = (DriverName.LOCAL,) if INCIDENTS[name].on_cluster else (DriverName.LOCAL, DriverName.DOCKER)
    for seed in range(SEEDS):
        played_s = draw.choice(PLAYED_S.get(name, SOON_OR_LATE_S))
        play = Played(name, seed, draw.choice(drivers), played_s)
        verdict = explain(play.evidence())
        assert verdict.code == play.expected, (play.jid, verdict)
        assert bool(verdict.contradictions) == (name in AT_ODDS), verdict


def test_earlier_runs_of_the_job_are_told_in_one_line() -> None:
    evidence = played("program-error", 1, DriverName.DOCKER, 130).evidence()
    detail = evidence.detail
    assert detail is not None
    good, bad = detail.runs
    three = replace(detail, runs=(good, bad, replace(bad, number=3)))
    verdict = explain(replace(evidence, detail=three))
    assert history_line(verdict).startswith("as run 2 did; run 1 was good (2026-11-20 ")
    assert explain(replace(evidence, detail=replace(detail, runs=(bad,)))).history is None


def test_a_reason_of_two_sentences_is_said_once() -> None:
    why = "Terminated Process. Possibly ran out of memory"
    job = a_job(status=JobStatus.FAILED, error=why, ended_at=ago(10), mode="sbatch")
    cause = Cause(f"RuntimeError: {why}", 58, "memory", 0.9, "", source="/run/run.log")
    sentence = explain(Evidence(job_id=job.id, now=NOW, job=job, cause=cause)).sentence
    assert sentence.count("ossibly ran out of memory") == 1
    assert sentence.endswith(f": RuntimeError: {why} (run.log:58).")
