"""Each incident leaves in logs and record what its failure leaves at a real site."""

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobtui.demo.incidents import INCIDENTS, Scenario, play
from jobtui.demo.messages import Record
from jobtui.demo.site import DriverName, Settings
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.verdicts import Code
from tests.demo.workload import WatchedWorld

FIXTURES = Path(__file__).parents[1] / "fixtures"
SITES = {
    "local": Settings(users=2, sbatch_users=1),
    "docker": Settings(users=2, sbatch_users=1, driver=DriverName.DOCKER, slots_parallel=1),
}
PLAYED_S = 420
"""Enough for the slowest: the time limit of sequential runs is 360 s."""


class Trace(NamedTuple):
    """What an incident leaves: patterns that follow each other in the supervisor's log, fields of the record.

    `{jid}` stands for the job's id, `{uid}` for the first four characters of its user's, `{op}` for its last
    op's prefix.
    """

    lines: tuple[str, ...]
    record: dict[str, Any]


TRACES = {
    name: Trace(tuple(told["lines"]), {**told["record"], **dict.fromkeys(told.get("null", ()))})
    for name, told in tomllib.loads((FIXTURES / "demo_incidents.toml").read_text()).items()
}


@pytest.fixture(scope="module")
def played() -> dict[tuple[str, str], tuple[WatchedWorld, Scenario]]:
    return {(site, name): _play(name, settings) for site, settings in SITES.items() for name in INCIDENTS}


def _play(name: str, settings: Settings) -> tuple[WatchedWorld, Scenario]:
    world = WatchedWorld(7, settings)
    world.start()
    scenario = play(world, name)
    world.advance(Nanos(world.kernel.now + PLAYED_S * SECOND))
    return world, scenario


def test_every_incident_has_a_trace_and_a_verdict() -> None:
    assert set(TRACES) == set(INCIDENTS)
    assert {incident.verdict for incident in INCIDENTS.values()} <= {*Code}


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("name", INCIDENTS)
def test_the_log_shows_it(
    played: dict[tuple[str, str], tuple[WatchedWorld, Scenario]], site: str, name: str
) -> None:
    world, scenario = played[site, name]
    ops = world.witness.of_job(scenario.jid)
    words = {"jid": scenario.jid, "uid": scenario.user.uid[:4], "op": ops[-1].op if ops else ""}
    lines = world.log("supervisor.log").decode().splitlines()

    place = 0
    for pattern in TRACES[name].lines:
        wanted = re.compile(pattern.format(**words))
        found = next((n for n in range(place, len(lines)) if wanted.search(lines[n])), None)
        assert found is not None, f"no {wanted.pattern} after line {place}"
        place = found + 1


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("name", INCIDENTS)
def test_the_record_says_it(
    played: dict[tuple[str, str], tuple[WatchedWorld, Scenario]], site: str, name: str
) -> None:
    world, scenario = played[site, name]
    assert scenario.jid is not None
    record: Record = world.records()[scenario.jid]

    assert {key: record[key] for key in TRACES[name].record} == TRACES[name].record
