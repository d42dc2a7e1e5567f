"""jobtui on a real Sirepo, live: every state as it happens, in the end exactly what the supervisor did."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks.pty_meter import percentile
from jobtui.model.health import SourceState
from jobtui.model.jobs import JobStatus
from jobtui.render.status import WORDS
from tests.real.sirepo_jobs import KINDS
from tests.real.sirepo_system import Driver, Setup, SirepoSystem
from tests.real.truth import Status, TrueOp
from tests.real.watching import SEEN_WITHIN_S, Frame, Watched, watch

pytestmark = pytest.mark.real


NOTED_LATE_S = 0.1
"""The supervisor notes a state after it has written the record, which may be seen before."""
SEEN_AT_ONCE_S = 0.6
"""The budget for following, 95 of 100 times."""

SETUPS: Mapping[str, Setup] = {
    "local": Setup(driver=Driver.LOCAL, prefixed=True),
    "docker": Setup(driver=Driver.DOCKER, prefixed=False),
}

ENDS: Mapping[str, tuple[str, ...]] = {
    "ok": ("completed",),
    "animation": ("completed",),
    "error": ("error",),
    "cancel": ("canceled",),
    "rerun": ("completed",),
    "queue": ("completed",),
    "queue_head": ("canceled",),
    "missing": ("missing",),
    "oom": ("error",),
    "timeout": ("canceled",),
    "directory_gone": ("missing",),
    "no_model": ("error",),
    "agent_death": ("canceled", "running"),
    "restart": ("canceled",),
}
"""How jobs of a kind may end: when they do not, the system was not what these tests are about."""

WORD_OF_STATE: Mapping[str, str] = {
    "pending": WORDS[JobStatus.PENDING],
    "running": WORDS[JobStatus.RUNNING],
    "completed": WORDS[JobStatus.COMPLETED],
    "canceled": WORDS[JobStatus.CANCELED],
    "error": WORDS[JobStatus.FAILED],
    "missing": WORDS[JobStatus.MISSING],
}


@pytest.fixture(scope="module", params=SETUPS)
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    venv = os.environ.get("REAL_SIREPO_VENV")
    assert venv, "REAL_SIREPO_VENV must name a virtual environment with Sirepo; scripts/real makes one"
    root = tmp_path_factory.mktemp("sirepo") / "root"
    seed = int(os.environ.get("REAL_SEED", "1"))
    with SirepoSystem(Path(venv), root, SETUPS[request.param]) as system:
        yield asyncio.run(watch(system, list(KINDS), seed))


def test_the_system_did_what_was_asked(watched: Watched) -> None:
    final = {jid: states[-1].state for jid, states in watched.truth.statuses.items()}
    assert {job.kind for job in watched.asked} >= set(ENDS)
    for job in watched.asked:
        assert final[job.jid] in ENDS.get(job.kind, (final[job.jid],)), job


def test_every_op_is_told_exactly(watched: Watched) -> None:
    wanted = sorted(map(true_key, watched.truth.ops))
    told = sorted(
        (op.op, op.name, str(op.jid), str(op.agent), op.sends, op.replies, op.updates) for op in watched.ops
    )
    assert told == wanted
    full_ids = {op.op_id for op in watched.truth.ops}
    assert {op.op_id for op in watched.ops if op.op_id} <= full_ids


def true_key(op: TrueOp) -> tuple[str, str, str, str, int, int, int]:
    return (op.op_id[:4], op.name, str(op.jid), str(op.agent), op.sends, op.replies, op.updates)


def test_the_timeline_command_tells_the_same(watched: Watched) -> None:
    for jid, printed in watched.timelines.items():
        told = sorted(
            (op["op"], op["name"], str(op["agent"]), op["sends"], op["replies"], op["updates"])
            for op in printed["ops"]
        )
        wanted = sorted(
            (key[0], key[1], *key[3:]) for key in map(true_key, watched.truth.ops) if key[2] == jid
        )
        assert told == wanted, jid
        assert printed["job"]["native_status"] == watched.truth.statuses[jid][-1].state


def test_the_session_saw_every_state_as_it_happened(watched: Watched) -> None:
    for jid, states in watched.truth.statuses.items():
        seen = watched.seen[jid]
        assert seen[-1].state == states[-1].state, jid
        assert is_part_of([found.state for found in seen], [status.state for status in states]), jid
        for status in lasting(states):
            assert any(
                found.state == status.state and -NOTED_LATE_S <= found.at - status.at <= SEEN_WITHIN_S
                for found in seen
            ), f"{jid} was {status.state} at {status.at}, seen: {seen}"


def test_most_states_were_seen_at_once(watched: Watched) -> None:
    lags = [
        min(
            found.at - status.at
            for status in states
            if status.state == found.state and status.at <= found.at + NOTED_LATE_S
        )
        for jid, states in watched.truth.statuses.items()
        for found in watched.seen[jid]
    ]
    assert percentile(lags, 0.95) <= SEEN_AT_ONCE_S


def lasting(states: tuple[Status, ...]) -> list[Status]:
    """The states that were there long enough to be seen, the last one always."""
    ends = [*(status.at for status in states[1:]), float("inf")]
    return [status for status, end in zip(states, ends, strict=True) if end - status.at > SEEN_WITHIN_S]


def is_part_of(part: list[str], whole: list[str]) -> bool:
    """Whether one list is the other with some left out."""
    rest = iter(whole)
    return all(any(item == found for found in rest) for item in part)


def test_the_dashboard_showed_every_state_as_it_happened(watched: Watched) -> None:
    jobs = {jid: states for jid, states in watched.truth.statuses.items() if "-_1_st" not in jid}
    first = watched.frames[0].at
    for jid, states in jobs.items():
        uid, _, model = jid.split("-")
        for status in lasting(states):
            shown = [
                frame
                for frame in frames_between(watched.frames, status.at, status.at + SEEN_WITHIN_S)
                if shows(frame, uid, model, WORD_OF_STATE[status.state])
            ]
            assert status.at < first or shown, (
                f"{jid} was {status.state} at {status.at} and not on the screen:\n"
                + frames_between(watched.frames, status.at, status.at + SEEN_WITHIN_S)[-1].text
            )


def frames_between(frames: Sequence[Frame], start: float, end: float) -> list[Frame]:
    """What was on the screen at some moment of this time, at least one frame."""
    until = [frame for frame in frames if frame.at <= end] or list(frames[:1])
    return [frame for frame in until if frame.at >= start] or until[-1:]


def shows(frame: Frame, uid: str, model: str, word: str) -> bool:
    """Whether some line is about this user and model, and says this word."""
    return any(uid in line and model[:6] in line and word in line for line in frame.text.splitlines())


def test_one_shot_commands_agree_with_the_records(watched: Watched) -> None:
    quiet = [listing for listing in watched.listings if listing.before == listing.after]
    assert len(quiet) >= len(watched.listings) // 2
    for listing in quiet:
        assert listing.printed == listing.before


def test_every_source_stayed_readable(watched: Watched) -> None:
    assert {health.name: health.state for health in watched.health} == {
        health.name: SourceState.OK for health in watched.health
    }
