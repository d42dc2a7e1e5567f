"""The words of timelines as steps of the flow."""

import pytest

from jobtui.analysis.explain.flow import FINAL_WORDS, WORDS, Mark, mark_of
from tests.analysis.captured import CAPTURES, correlate, logs
from tests.builders import a_step

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
