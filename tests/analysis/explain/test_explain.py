"""Verdicts on simulated incidents, what is usual at a site, and what to type next."""

import os
import random
import shlex
from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.flow import FINAL_WORDS, WORDS, mark_of, usual_length
from jobtui.analysis.explain.next_steps import on_sources
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import limit_s
from jobtui.demo.incidents import INCIDENTS
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import ContainerName
from jobtui.model.ops import Op
from jobtui.model.verdicts import Code, NextStep, Usual
from jobtui.render.verdicts import history_line
from tests.analysis.captured import CAPTURES, ROOT, correlate, logs
from tests.analysis.explain.cases import Played, evidence_of, played, record_in, up_to, written_at
from tests.builders import an_op, some
from tests.demo.sites import DriverName

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
    detail = some(evidence.detail)
    good, bad = detail.runs
    three = replace(detail, runs=(good, bad, replace(bad, number=3)))
    verdict = explain(replace(evidence, detail=three))
    assert history_line(verdict).startswith("as run 2 did; run 1 was good (2026-11-20 ")
    assert explain(replace(evidence, detail=replace(detail, runs=(bad,)))).history is None


NOT_PART_OF_THE_FLOW = frozenset({
    "answers run_status", "note of the agent", "error with job_cmd", "late reply, ignored",
    "cancel ignored, not running", "late status, ignored", "run directory purged",
})  # fmt: skip
"""Steps that no run has to pass."""


def test_every_captured_step_is_known_to_the_flow_and_no_words_mean_two() -> None:
    steps = (one for capture in CAPTURES for op in correlate(logs(capture)).ops() for one in op.steps)
    unknown = {one.step for one in steps if mark_of(one) is None}
    assert {step for step in unknown if not step.startswith("api_")} <= NOT_PART_OF_THE_FLOW
    assert not set(WORDS) & set(FINAL_WORDS)


def test_a_run_is_measured_from_its_sending_to_its_good_end() -> None:
    sent = Nanos(1_000 * SECOND)
    runs = [
        an_op(sent_at=sent, ended_at=Nanos(sent + length * SECOND), result=result)
        for length, result in ((1, "completed"), (2, "completed"), (9, "completed"), (500, "error"))
    ]
    assert usual_length(runs) == Usual(3, 2, 9)
    assert usual_length(runs[1:]) is None


def runs_of(length: Usual | None) -> tuple[Op, ...]:
    """Earlier runs, of which so many took so long."""
    if length is None:
        return ()
    sent = Nanos(1_000 * SECOND)
    took = [*[length.p50_s] * (length.n - 1), length.p99_s]
    return tuple(an_op(sent_at=sent, ended_at=Nanos(sent + round(s) * SECOND)) for s in took)


def still_running() -> Evidence:
    play = played("stale-record", 5, DriverName.LOCAL, 90)
    logs = {
        name: up_to("same status=running")(log) for name, log in play.logs.items() if name != "server.log"
    }
    return evidence_of(play.jid, logs, play.detail, play.now)


def running(length: Usual | None) -> str:
    verdict = explain(msgspec.structs.replace(still_running(), alike=runs_of(length)))
    assert verdict.code is Code.RUNNING
    return verdict.sentence


@pytest.mark.parametrize("over_s", [-100, 10, 50])
def test_a_run_is_sure_to_run_on_only_by_news_from_after_its_limit(over_s: int) -> None:
    evidence = still_running()
    assert evidence.job is not None
    limit, news = limit_s(evidence.job), Nanos(evidence.now - 30 * SECOND)
    assert limit is not None
    begin = Nanos(evidence.now - round(limit + over_s) * SECOND)
    job = msgspec.structs.replace(evidence.job, started_at=begin, updated_at=news, written_at=news)
    verdict = explain(msgspec.structs.replace(evidence, job=job))
    assert (verdict.code, verdict.confidence < 0.5) == (Code.RUNNING, over_s == 10)


def test_a_verdict_says_what_is_usual_or_what_the_limit_is() -> None:
    assert "of at most" in running(None)
    assert "for 1m30s, usually 2m (p99 5m, n=34)" in running(Usual(34, 120, 300))
    assert "for 1m30s, longer than usually 20s (p99 30s, n=34)" in running(Usual(34, 20, 30))
    assert "too few" in running(Usual(4, 20, 30))


BAD = "-oProxyCommand=$(touch x); `id` 'q"


def steps(incident: str, host: str | None = None) -> Iterator[NextStep]:
    evidence = played(incident, 5, DriverName.DOCKER, 130).evidence()
    if host is not None:
        agents = {
            prefix: msgspec.structs.replace(agent, host=host, container=ContainerName(host))
            for prefix, agent in evidence.agents.items()
        }
        evidence = msgspec.structs.replace(evidence, agents=agents)
    yield from on_sources(explain(evidence), ["--srdb", "/a b/c"]).next


@pytest.mark.parametrize("incident", ["agent-death", "agent-never-starts", "killed-signal-9"])
def test_outside_names_stay_one_word_and_no_option(incident: str) -> None:
    assert any(step.command.startswith("ssh ") for step in steps(incident, "v1"))
    found = [step.command for step in steps(incident, BAD)]
    assert found
    assert not any("touch" in command for command in found), "it is no name of a host"


def test_our_commands_read_the_same_and_the_kernel_is_asked_about_the_end() -> None:
    own = [shlex.split(step.command) for step in steps("agent-death") if step.command.startswith("jobtui")]
    assert own
    assert all(words[1:3] == ["--srdb", "/a b/c"] for words in own)
    (command,) = (step.command for step in steps("agent-death") if "oom-kill" in step.command)
    words = shlex.split(shlex.split(command)[-1])
    begin, end = words[words.index("--since") + 1], words[words.index("--until") + 1]
    assert begin < end
    assert begin.endswith(" UTC")
