"""Damaged logs: no verdict is wrong and sure; what is damaged is named, and lowers how sure one is."""

import random
import re

import pytest

from jobtui.analysis.explain import explain
from jobtui.analysis.explain.case import Case
from jobtui.demo.settings import DriverName
from jobtui.demo.world import SUPERVISOR_LOG
from jobtui.model.verdicts import Code, Verdict
from tests.analysis.explain.cases import Played, case_of, played
from tests.analysis.explain.damaged_worlds import CONFIDENT, told

WORLDS = random.Random(20_261_122).sample(range(1 << 30), 40)


@pytest.mark.parametrize("number", WORLDS)
def test_no_verdict_on_a_damaged_world_is_wrong_and_sure(number: int) -> None:
    whole, *damaged = told(number)
    assert not whole.is_wrong, whole
    assert not any(one.is_wrong and one.is_sure for one in damaged), damaged


def spoilt(play: Played, pattern: bytes, by: bytes) -> Case:
    log, count = re.subn(pattern, by, play.logs[SUPERVISOR_LOG])
    assert count
    return case_of(play.jid, {**play.logs, SUPERVISOR_LOG: log}, play.detail, play.now)


def without_lines(play: Played, *words: bytes) -> Case:
    return spoilt(play, rb"(?m)^.*(?:" + b"|".join(words) + rb").*\n", b"")


def the_error() -> Played:
    return played("program-error", 5, DriverName.LOCAL, 130)


def is_named(verdict: Verdict, words: str) -> bool:
    return any(words in spot for spot in verdict.blind_spots)


@pytest.mark.parametrize("by", [b"\0" * 300, b"\xff\xfe garbage"], ids=["a hole", "no text"])
def test_a_damaged_place_near_a_run_is_named_and_lowers_confidence(by: bytes) -> None:
    """Of what stands in its place anything may have been lost: a traceback, a restart."""
    play = the_error()
    whole, verdict = explain(play.case()), explain(spoilt(play, rb"(?m)^.*job_agent.py.*_on_exit.*$", by))
    assert whole.confidence >= CONFIDENT > verdict.confidence
    assert is_named(verdict, "is damaged near its lines")
    assert not is_named(whole, "is damaged near its lines")


def test_a_step_without_the_one_before_it_is_named_and_lowers_confidence() -> None:
    verdict = explain(without_lines(the_error(), rb"_reply_q\.get"))
    assert verdict.code is Code.PROGRAM_FAILED
    assert verdict.confidence < CONFIDENT
    assert is_named(verdict, "the agent's reply without the wait for the reply")


def test_what_a_line_says_in_so_many_words_stays_sure_beside_damage() -> None:
    play = played("prepare-fails", 5, DriverName.LOCAL, 130)
    verdict = explain(spoilt(play, rb"(?m)^.*tornado/web.*$", b"\0\0\0"))
    assert verdict.code is Code.PREPARE_FAILED
    assert verdict.confidence >= CONFIDENT
    assert is_named(verdict, "is damaged near its lines")
