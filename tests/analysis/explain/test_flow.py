"""The words of timelines as steps of the flow."""

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.flow import FINAL_WORDS, WORDS, Mark, mark_of
from jobtui.formats.parser import LogParser
from jobtui.model.ops import Certainty, Component, Step
from tests.analysis.captured import CAPTURES, NEWEST, logs

NOT_PART_OF_THE_FLOW = frozenset({
    "answers run_status", "note of the agent", "error with job_cmd", "late reply, ignored",
    "cancel ignored, not running", "late status, ignored", "run directory purged",
})  # fmt: skip
"""Steps that no run has to pass."""


def step(words: str) -> Step:
    return Step(words, None, Component.DRIVER, "", "log", 1, 0, Certainty.JID)


def test_what_varies_in_a_step_does_not_hide_it() -> None:
    assert mark_of(step("reply ok")) is Mark.REPLIED
    assert mark_of(step("job_cmd exited -9")) is Mark.EXITED
    assert mark_of(step("status running")) is Mark.UPDATED
    assert mark_of(step("status completed")) is Mark.FINAL
    assert mark_of(step("run_status result canceled")) is Mark.RUN_STATUS
    assert mark_of(step("something else")) is None


def test_every_step_of_the_captures_is_known_to_the_flow() -> None:
    unknown = set()
    for capture in CAPTURES:
        correlator = Correlator()
        for name, data in logs(capture).items():
            correlator.feed(LogParser(name).parse(data, 0, 1, NEWEST).records)
        for op in correlator.ops():
            unknown |= {
                one.step for one in op.steps if mark_of(one) is None and not one.step.startswith("api_")
            }
    assert unknown <= NOT_PART_OF_THE_FLOW


def test_no_words_mean_two_things() -> None:
    assert not set(WORDS) & set(FINAL_WORDS)
