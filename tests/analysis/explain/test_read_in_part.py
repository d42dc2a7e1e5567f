"""Logs of which the beginning or the end was not read yet: it is named, and a verdict is less sure."""

from pathlib import Path

import msgspec
import pytest

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.verdict import explain
from jobtui.backends.log_start import TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.demo.site import SUPERVISOR_LOG, DriverName
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_rfc3339
from jobtui.model.health import SourceHealth, SourceState
from jobtui.session import Session
from tests.analysis.explain.cases import CONFIDENT, Played, evidence_of, played, without

HIDDEN = without(r"_Op\(run", "job_agent")


def a_play() -> Played:
    return played("agent-death", 5, DriverName.LOCAL, 130)


def read_from(at: Nanos | None, *, is_behind: bool = False, is_hidden: bool = True) -> Evidence:
    """A job with a log that was read from a time on, with the lines of the run or without."""
    play = a_play()
    logs = {name: HIDDEN(log) for name, log in play.logs.items()} if is_hidden else play.logs
    evidence = evidence_of(play.jid, logs, play.detail, play.now)
    log = SourceHealth(
        name=f"/var/log/{SUPERVISOR_LOG}",
        kind="logfile",
        state=SourceState.OK,
        begins_at=at,
        is_behind=is_behind,
    )
    return msgspec.structs.replace(evidence, sources=(*evidence.sources, log))


def asked_at() -> Nanos:
    detail = a_play().detail
    assert detail is not None
    assert detail.job.queued_at is not None
    return detail.job.queued_at


def test_a_log_that_was_read_from_within_the_run_on_is_named() -> None:
    since = Nanos(asked_at() + 5 * SECOND)
    verdict = explain(read_from(since))
    assert (
        f"{SUPERVISOR_LOG} was read from {to_rfc3339(since)} on: the run began before" in verdict.blind_spots
    )
    assert verdict.confidence < CONFIDENT


@pytest.mark.parametrize(
    ("seconds", "is_hidden"),
    [(-5, True), (5, False)],
    ids=["it began before the run", "the run's first line"],
)
def test_it_is_not_named_where_it_does_not_matter(seconds: int, is_hidden: bool) -> None:
    verdict = explain(read_from(Nanos(asked_at() + seconds * SECOND), is_hidden=is_hidden))
    assert not any("was read from" in spot for spot in verdict.blind_spots)


def test_while_more_is_read_a_verdict_is_not_sure() -> None:
    whole, behind = (explain(read_from(None, is_behind=more, is_hidden=False)) for more in (False, True))
    assert whole.confidence >= CONFIDENT > behind.confidence
    assert f"{SUPERVISOR_LOG} is still being read" in behind.blind_spots


async def test_a_log_tells_from_when_on_it_was_read(tmp_path: Path) -> None:
    play = a_play()
    path = tmp_path / SUPERVISOR_LOG
    path.write_bytes(play.logs[SUPERVISOR_LOG])
    for size, is_whole in ((1_000, False), (1 << 30, True)):
        async with Session([LogFile(path, start=TailBytes(size))], FixedClock(play.now)) as session:
            await session.catch_up()
            (health,) = session.store.sources()
            assert (health.begins_at is None) is is_whole
            assert not health.is_behind
