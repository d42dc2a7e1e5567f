"""Sources taken away, late, stale, contradicting, with other clocks: no verdict is sure and wrong.

`JOBTUI_WORLDS` says how many worlds of each kind are tried; `scripts/fuzz disturbed` tries more.
"""

import os
import re

import msgspec
import pytest

from jobtui.analysis import systems
from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.verdict import explain, source_doubts
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import QUIET_S, SourceHealth, SourceState
from jobtui.model.jobs import JobStatus
from jobtui.model.ops import Heard, Writer
from jobtui.model.verdicts import Code
from tests import builders
from tests.analysis.explain.balsam_cases import LIVING, RAN, SITE, a_job, changes
from tests.analysis.explain.cases import check_incidents_say_the_same
from tests.analysis.explain.disturbed_worlds import DISTURBANCES, PAIRS, SURE, SYSTEMS, told
from tests.builders import ago
from tests.conftest import NOW
from tests.rows import ROWS

WORLDS = int(os.environ.get("JOBTUI_WORLDS", "5"))


@pytest.mark.parametrize("disturbance", [*DISTURBANCES, "two at once"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_no_verdict_is_sure_and_wrong(system: str, disturbance: str) -> None:
    numbers = (*range(WORLDS), 4082926390)  # one in which a run at its time limit was told to be running
    worlds = [(disturbance, number) for number in numbers]
    if disturbance == "two at once":
        worlds = [(pair, number) for number in range(32, 32 + WORLDS // 5) for pair in PAIRS]
    found = [one for kind, number in worlds for one in told(system, kind, number)]
    assert not [one for one in found if one.is_sure_and_wrong]
    assert disturbance != "none" or all(one.is_sure and one.is_right for one in found)
    for one in found:
        check_incidents_say_the_same(one.verdict, one.sample, one.blind_spots)


@pytest.mark.parametrize("number", [1539, 3968])  # with a record, and with logs alone
def test_a_run_of_which_nothing_is_heard_is_not_surely_running(number: int) -> None:
    (one,) = told("sirepo", "late+clock", number)
    assert (one.verdict.code, one.right, one.is_sure) == (Code.RUNNING, {"timed_out"}, False)


def test_every_system_that_has_an_explainer_has_worlds() -> None:
    kinds = {"jobsub": "condor"}
    assert {kinds.get(one.name, one.name) for one in systems.SYSTEMS} == SYSTEMS.keys()


def on_server(job_state: str, health: SourceHealth, **fields: object) -> Evidence:
    """A healthy job of Balsam, and how its server is."""
    return Evidence(
        job_id=a_job(job_state).id,
        now=NOW,
        job=a_job(job_state),
        sources=(health,),
        changes=tuple(changes(*RAN)),
        allocations=(LIVING,),
        sites=(SITE,),
    )


FINE = SourceHealth(name="api", kind="balsam", state=SourceState.OK, read_at=ago(1), was_at_end=True)


@pytest.mark.parametrize(("health", "words"), ROWS["what is wrong with a source"])
def test_what_is_wrong_with_the_source_is_said_first(health: dict[str, object], words: str) -> None:
    fine = explain(on_server("RUNNING", FINE))
    assert (fine.code, fine.doubts, fine.rests_on) == (Code.RUNNING, (), ("api",))
    verdict = explain(on_server("RUNNING", msgspec.convert(msgspec.to_builtins(FINE) | health, SourceHealth)))
    assert verdict.sentence.startswith(words)
    assert fine.confidence >= SURE > verdict.confidence
    assert verdict.doubts[0] in verdict.blind_spots


def test_a_source_that_never_answered_is_a_doubt_after_a_minute() -> None:
    asked = SourceHealth(name="api", kind="balsam", asked_at=ago(QUIET_S + 5))
    assert [*source_doubts([asked], Heard(), NOW)] == ["api does not answer"]


@pytest.mark.parametrize("system", ["balsam", "slurm", "sirepo"])
def test_what_ages_is_told_as_of_the_time_it_was_last_seen(system: str) -> None:
    kind = "sirepo_db" if system == "sirepo" else system
    gone = {"state": SourceState.DOWN, "error": "api: refused", "read_at": ago(0)}
    down = msgspec.structs.replace(FINE, kind=kind, **gone)
    later = msgspec.structs.replace(on_server("RUNNING", down), now=Nanos(NOW + 18_000 * SECOND))
    if system != "balsam":
        job = builders.a_job(1, system=system, status=JobStatus.RUNNING, source="api", started_at=ago(60))
        later = msgspec.structs.replace(later, job=job, job_id=job.id)
    verdict = explain(later)
    assert (verdict.code, verdict.confidence < SURE) == (Code.RUNNING, True)
    assert re.search(r"for 1m\b", verdict.sentence)
    assert verdict.sentence.startswith("Api cannot be read: refused, what it last told is 5h")


@pytest.mark.parametrize(("logs", "words"), ROWS["sources of which no news came"])
def test_sources_of_which_no_news_came_are_named_in_one_line(logs: list[str], words: str) -> None:
    read = (msgspec.structs.replace(FINE, name=name, kind="logfile") for name in logs)
    heard = Heard(writers=dict.fromkeys(logs, Writer(None, None, None)))
    job = builders.a_job()
    verdict = explain(Evidence(job_id=job.id, now=NOW, job=job, sources=tuple(read), heard=heard))
    (line,) = [one for one in verdict.blind_spots if "no news came yet" in one]
    assert line.startswith(words)


@pytest.mark.parametrize(("state", "event", "disagree"), ROWS["a record and its last event"])
def test_a_record_and_its_last_event_that_tell_different_ends(state: str, event: str, disagree: bool) -> None:
    told = tuple(changes(*RAN, event) if event != "RUNNING" else changes(*RAN))
    evidence = msgspec.structs.replace(on_server(state, FINE), changes=told)
    verdict = explain(evidence)
    assert bool(verdict.contradictions) is (verdict.confidence < SURE) is disagree
