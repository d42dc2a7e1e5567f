"""jobtui on a real Sirepo, live: every state as it happens, in the end exactly what the supervisor did."""

import asyncio
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.pty_meter import percentile
from jobtui.analysis.explain.case import LIKELY
from jobtui.model.health import SourceState
from jobtui.model.jobs import JobStatus
from jobtui.render.styles import WORDS
from tests.demo.workload import TrueOp
from tests.real.sirepo_cluster import Cluster
from tests.real.sirepo_jobs import Asked
from tests.real.sirepo_system import Driver, Setup, SirepoSystem
from tests.real.slurm_system import a_cluster
from tests.real.watching import SEEN_WITHIN_S, Frame, Status, Watched, watch

pytestmark = pytest.mark.real


NOTED_LATE_S = 0.1
"""The supervisor notes a state after it has written the record, which may be seen before."""
SEEN_AT_ONCE_S = 0.6
"""The budget for following, 95 of 100 times."""

SETUPS: Mapping[str, Setup] = {
    "local": Setup(driver=Driver.LOCAL, prefixed=True),
    "docker": Setup(driver=Driver.DOCKER, prefixed=False),
    "sbatch": Setup(driver=Driver.SBATCH, prefixed=True),
}


class Right(NamedTuple):
    """What is right of a job of a kind when its user was last answered.

    `states` are those its record may be in: when it is in another, the system was not what these tests are
    about. `verdicts` are right then, in the same order, and their sentence has `words`.
    """

    states: list[str]
    verdicts: list[str]
    words: str = ""


RIGHT: Mapping[str, Right] = {
    kind: Right(*told)
    for kind, told in tomllib.loads(Path(__file__).with_name("sirepo_jobs.toml").read_text()).items()
}


@pytest.fixture(scope="module", params=SETUPS)
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    venv = os.environ.get("REAL_SIREPO_VENV")
    assert venv, "REAL_SIREPO_VENV must name a virtual environment with Sirepo; scripts/real makes one"
    root = tmp_path_factory.mktemp("sirepo")
    setup = SETUPS[request.param]
    with ExitStack() as stack:
        cluster = None
        if setup.driver is Driver.SBATCH:
            slurm = stack.enter_context(contextmanager(a_cluster)())
            cluster = stack.enter_context(Cluster(Path(venv), root / "cluster", slurm))
        system = stack.enter_context(SirepoSystem(Path(venv), root / "root", setup, cluster))
        yield asyncio.run(watch(system, int(os.environ.get("REAL_SEED", "1"))))


def test_the_system_did_what_was_asked(watched: Watched) -> None:
    for job in watched.asked:
        assert job.told["job"]["native_status"] in RIGHT[job.kind].states, job


def test_verdicts_are_what_was_planted(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [(job.jid, job.kind, why) for job in watched.asked if (why := is_wrong(job, RIGHT[job.kind]))]
    with capsys.disabled():
        print(f"\nSirepo: {len(watched.asked)} verdicts, {len(wrong)} wrong")  # noqa: T201
    assert not wrong, "\n".join(map(str, wrong))
    others = [
        (one, RIGHT[two.kind])
        for one in watched.asked
        for two in watched.asked
        if not {*RIGHT[one.kind].verdicts} & {*RIGHT[two.kind].verdicts}
    ]
    assert all(is_wrong(one, right) for one, right in others), "a wrong truth is not noticed"


def is_wrong(job: Asked, right: Right) -> str | None:
    """What is wrong with what was said of a job; None when nothing is."""
    told, state = job.told, job.told["job"]["native_status"]
    is_right = (state, told["verdict"]) in zip(right.states, right.verdicts, strict=True)
    if is_right and right.words in told["sentence"] and told["confidence"] >= LIKELY:
        return None
    return f"{state}: {told['verdict']} {told['confidence']}: {told['sentence']}"


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


def lasting(states: Sequence[Status]) -> list[Status]:
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
                if shows(frame, uid, model, WORDS[JobStatus(status.state.replace("error", "failed"))])
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
