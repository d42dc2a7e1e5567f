"""The words of timelines as steps of the flow, and what is usual at a site."""

import msgspec
import pytest

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.flow import FINAL_WORDS, WORDS, Mark, mark_of, usual_length, usual_steps
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import limit_s
from jobtui.demo.site import DriverName
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ops import Op
from jobtui.model.verdicts import Code, Usual
from tests.analysis.captured import CAPTURES, correlate, logs
from tests.analysis.explain.cases import evidence_of, played, up_to
from tests.builders import a_step, an_op

NOT_PART_OF_THE_FLOW = frozenset({
    "answers run_status", "note of the agent", "error with job_cmd", "late reply, ignored",
    "cancel ignored, not running", "late status, ignored", "run directory purged",
})  # fmt: skip
"""Steps that no run has to pass."""


@pytest.mark.parametrize(
    ("words", "mark"),
    [
        ("reply ok", Mark.REPLIED), ("job_cmd exited -9", Mark.EXITED), ("status running", Mark.UPDATED),
        ("status completed", Mark.FINAL), ("run_status result canceled", Mark.RUN_STATUS),
        ("something else", None),
    ],
)  # fmt: skip
def test_what_varies_in_a_step_does_not_hide_it(words: str, mark: Mark | None) -> None:
    assert mark_of(a_step(words)) is mark


def test_every_step_of_the_captures_is_known_to_the_flow() -> None:
    steps = (one for capture in CAPTURES for op in correlate(logs(capture)).ops() for one in op.steps)
    unknown = {one.step for one in steps if mark_of(one) is None}
    assert {step for step in unknown if not step.startswith("api_")} <= NOT_PART_OF_THE_FLOW


def test_no_words_mean_two_things() -> None:
    assert not set(WORDS) & set(FINAL_WORDS)


def test_a_run_is_measured_from_its_sending_to_its_good_end() -> None:
    sent = Nanos(1_000 * SECOND)
    runs = [
        an_op(sent_at=sent, ended_at=Nanos(sent + length * SECOND), result=result)
        for length, result in ((1, "completed"), (2, "completed"), (9, "completed"), (500, "error"))
    ]
    assert usual_length(runs) == Usual(3, 2, 9)
    assert usual_length(runs[1:]) is None


def test_a_step_is_measured_from_the_one_before_it() -> None:
    runs = [
        an_op(steps=[a_step("waits for the agent"), a_step("agent alive", wait), a_step("sent", wait + 1)])
        for wait in (1, 2, 4)
    ]
    assert usual_steps(runs) == {Mark.AGENT_ALIVE: Usual(3, 2, 4)}


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
