"""Verdicts on jobs of Balsam: what a state means, given allocations, launchers and the agent of a site."""

import tomllib
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.systems.balsam import RULES
from jobtui.backends.balsam.records import STATUSES
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import Code, Verdict
from tests.analysis.explain.balsam_cases import RAN, SITE, a_job, allocation, changes, evidence_of
from tests.builders import ago
from tests.conftest import NOW
from tests.excerpts import FIXTURES


def explained(
    job: Job,
    went: Sequence[StateChange] = (),
    allocations: Sequence[Allocation] = (),
    site: Site | None = SITE,
    source: SourceHealth | None = None,
) -> Verdict:
    return explain(
        Evidence(
            job_id=job.id,
            now=NOW,
            job=job,
            changes=tuple(went),
            allocations=tuple(allocations),
            sites=(site,) if site is not None else (),
            sources=(source,) if source is not None else (),
        )
    )


CASES = tomllib.loads((FIXTURES / "balsam" / "verdicts.toml").read_text())["case"]


@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row['state']}-{row['answer']}")
def test_each_state_has_its_verdict(row: dict[str, Any]) -> None:
    verdict = explain(evidence_of(row))
    assert verdict.code == row["answer"], verdict.sentence
    assert row.get("says", "") in verdict.sentence
    assert row.get("not", "?!") not in verdict.sentence
    assert row.get("sure", verdict.confidence >= 0.8) == (verdict.confidence >= 0.8)
    assert verdict.next
    assert all(one.at is not None for one in verdict.evidence)


def test_what_is_not_known_makes_it_less_sure() -> None:
    known = explained(a_job("PREPROCESSED"), changes("STAGED_IN", "PREPROCESSED"))
    unknown = explained(a_job("PREPROCESSED"), (), (), None)
    assert unknown.confidence < 0.5 < known.confidence
    assert {"no events of the job were read", "its site is not known"} <= set(unknown.blind_spots)


def test_every_state_has_a_rule_and_an_odd_one_is_named() -> None:
    assert RULES.keys() == STATUSES.keys()
    odd = msgspec.structs.replace(a_job("READY"), native_status="MADE_UP", status=JobStatus.UNKNOWN)
    assert "MADE_UP" in explained(odd).sentence


@pytest.mark.parametrize("ahead_s", [-330.0, 0.0, 330.0])
@pytest.mark.parametrize("state", [SourceState.OK, SourceState.DOWN])
@pytest.mark.parametrize("is_alive", [True, False])
def test_silence_is_judged_by_the_servers_clock_when_it_was_read(
    ahead_s: float, state: SourceState, is_alive: bool
) -> None:
    """A server whose clock is off, or that is down for ten minutes, makes no launcher silent."""
    read_s = 600.0 if state is SourceState.DOWN else 1.0
    heard = ago(read_s - ahead_s + (20 if is_alive else 400))
    source = SourceHealth(name="api", kind="balsam", state=state, read_at=ago(read_s), ahead_s=ahead_s)
    own = allocation("running", heartbeat_at=heard, start_at=ago(4_000))
    site = msgspec.structs.replace(SITE, seen_at=heard)
    running = explained(a_job("RUNNING"), changes(*RAN), (own,), site, source)
    assert running.code is (Code.RUNNING if is_alive else Code.LAUNCHER_STALE)
    staged = explained(a_job("STAGED_IN"), changes("READY", "STAGED_IN"), (), site, source)
    assert staged.code is (Code.STAGING if is_alive else Code.SITE_AGENT_DOWN)
