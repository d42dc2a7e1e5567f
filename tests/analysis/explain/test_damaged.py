"""Damaged logs: no verdict is wrong and sure; what is damaged is named, and lowers how sure one is."""

import random
import re

import msgspec
import pytest

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.verdict import explain
from jobtui.demo.site import SUPERVISOR_LOG, DriverName
from jobtui.formats.parser import SHAPE as DAMAGED
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord
from jobtui.model.verdicts import Code, Verdict
from tests.analysis.explain.cases import CONFIDENT, Played, played, without
from tests.analysis.explain.damaged_worlds import told

WORLDS = random.Random(20_261_122).sample(range(1 << 30), 40)


@pytest.mark.parametrize("number", WORLDS)
def test_no_verdict_on_a_damaged_world_is_wrong_and_sure(number: int) -> None:
    """One that is wrong names what is missing; one that is right is no surer than of the whole world."""
    whole, *damaged = told(number)
    assert not whole.is_wrong, whole
    for one in damaged:
        if one.is_wrong:
            assert not one.is_sure, one
            assert one.verdict.blind_spots, one
        elif "clock" not in str(one.damage):
            assert one.verdict.confidence <= whole.verdict.confidence, one


def spoilt(play: Played, pattern: bytes, by: bytes) -> Evidence:
    def spoil(log: bytes) -> bytes:
        log, count = re.subn(pattern, by, log)
        assert count
        return log

    return play.evidence(spoil)


def the_error() -> Played:
    return played("program-error", 5, DriverName.LOCAL, 130)


def is_named(verdict: Verdict, words: str) -> bool:
    return any(words in spot for spot in verdict.blind_spots)


@pytest.mark.parametrize("by", [b"\0" * 300, b"\xff\xfe garbage"], ids=["a hole", "no text"])
def test_a_damaged_place_near_a_run_is_named_and_lowers_confidence(by: bytes) -> None:
    """Of what is in its place anything may have been lost: a traceback, a restart."""
    play = the_error()
    whole, verdict = explain(play.evidence()), explain(spoilt(play, rb"(?m)^.*job_agent.py.*_on_exit.*$", by))
    assert whole.confidence >= CONFIDENT > verdict.confidence
    assert is_named(verdict, "is damaged near its lines")
    assert not is_named(whole, "is damaged near its lines")


def test_a_step_without_the_one_before_it_is_named_and_lowers_confidence() -> None:
    verdict = explain(the_error().evidence(without(r"_reply_q\.get")))
    assert verdict.code is Code.PROGRAM_FAILED
    assert verdict.confidence < CONFIDENT
    assert is_named(verdict, "the agent's reply without the wait for the reply")


def test_what_a_line_says_in_so_many_words_stays_sure_beside_damage() -> None:
    play = played("prepare-fails", 5, DriverName.LOCAL, 130)
    verdict = explain(spoilt(play, rb"(?m)^.*tornado/web.*$", b"\0\0\0"))
    assert verdict.code is Code.PREPARE_FAILED
    assert verdict.confidence >= CONFIDENT
    assert is_named(verdict, "is damaged near its lines")


LATE_IN_THE_LOG = 50_000_000


def a_record(shape: str, offset: int, at: Nanos | None = None) -> LogRecord:
    return LogRecord(SUPERVISOR_LOG, 1, offset, at, None, shape, {}, "")


@pytest.mark.parametrize(
    ("after_s", "is_near"), [(None, True), (-10, True), (-4 * 3600, False)], ids=["nothing", "soon", "later"]
)
def test_a_damaged_place_before_a_rotation_is_near_where_the_next_line_read_is_of_the_run(
    after_s: int | None, is_near: bool
) -> None:
    """The file of before is damaged at byte 50 million, the run begins at the beginning of the next one."""
    play = the_error()
    log, whole = play.logs[SUPERVISOR_LOG], play.evidence()
    began = min(step.at for op in whole.ops for step in op.steps if step.at is not None)
    correlator = Correlator()
    correlator.feed([a_record("before", LATE_IN_THE_LOG, Nanos(began - 5 * 3600 * SECOND))])
    correlator.feed([a_record(DAMAGED, LATE_IN_THE_LOG + 100)])
    if after_s is not None:
        correlator.feed([a_record("after", LATE_IN_THE_LOG + 900, Nanos(began + after_s * SECOND))])
    correlator.feed(LogParser(SUPERVISOR_LOG).parse(log, 0, 1, play.now).records)
    heard, ops = correlator.heard, correlator.ops_of(whole.job_id)
    verdict = explain(msgspec.structs.replace(whole, heard=heard, ops=ops))
    assert is_named(verdict, "is damaged near its lines") is is_near
    assert (verdict.confidence < CONFIDENT) is is_near
