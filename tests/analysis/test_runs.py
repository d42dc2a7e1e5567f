"""Where a run is, when it was, and how two of them differ step by step."""

from typing import Any

import pytest

from jobtui.analysis.compare import StepPair, Took, step_pairs
from jobtui.analysis.paths import Reach, reached, run_dirs_of
from jobtui.analysis.timeline import RunWindow, ops_in, unlinked_in, window_of
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId, RunDir
from jobtui.model.jobs import JobStatus, Run
from jobtui.model.ops import LANES, Component, Op, OpStatus, Unlinked
from tests.builders import a_job, a_step, ago, an_op, job_id
from tests.conftest import NOW

JID = JobId("EPRSqtUW-IVh7w74d-heightWeightReport")
RECORD = f"/srv/db/supervisor-job/{JID}.json"
BESIDE = "/srv/db/user/EPRSqtUW/myapp/IVh7w74d/heightWeightReport"


LOGGED = "/data/user/EPRSqtUW/myapp/IVh7w74d/heightWeightReport"


@pytest.mark.parametrize(
    ("fields", "record", "logged", "found"),
    [
        ({}, RECORD, (LOGGED, f"{LOGGED}/", None), (LOGGED, BESIDE)),  # what the logs say comes first
        (None, None, (LOGGED,), (LOGGED,)),
        # a path that is not of this job is not looked at
        *(({"app": ""}, None, (path,), ())
          for path in ("/etc", "/srv/user/XXXXXXXX/myapp/IVh7w74d/heightWeightReport", "")),
        # some have none beside their record
        *((fields, RECORD, (), ()) for fields in (
            {"mode": "sbatch"}, {"app": ""}, {"app": ".."}, {"app": "a/b"}, {"is_quasi": True},
            {"id": JobId("x")})),
    ],
)  # fmt: skip
def test_where_the_directory_of_a_run_is(
    fields: dict[str, Any] | None, record: str | None, logged: tuple[str | None, ...], found: tuple[str, ...]
) -> None:
    job = None if fields is None else a_job(**{"id": JID} | fields)
    assert run_dirs_of(job, record, [an_op(jid=JID, run_dir=path) for path in logged]) == found


PATH = "/scratch/jdoe/sirepo/user/3pMDuIiL/myapp/3pMDuIiL-e1oQ9PPU-animation"
REACH = Reach(
    {"/scratch": "/mnt/cori", "/scratch/jdoe": "/home/jdoe/cori", "/scratch/j": "/no"},
    {"cori": "ssh://op@cori:22", "v3": "http://v3:19531"},
)


TAIL = "sirepo/user/3pMDuIiL/myapp/3pMDuIiL-e1oQ9PPU-animation"


@pytest.mark.parametrize(
    ("path", "host", "reach", "found"),
    [
        # Mounts come first, and the longest of them
        (PATH, "cori.example.org", REACH,
         [f"/home/jdoe/cori/{TAIL}", f"/mnt/cori/jdoe/{TAIL}", PATH, f"ssh://op@cori:22{PATH}"]),
        # Without mounts and ssh there is the path itself
        (PATH, None, Reach(), [PATH]),
        (PATH, "v3", REACH, [f"/home/jdoe/cori/{TAIL}", f"/mnt/cori/jdoe/{TAIL}", PATH]),
        ("/scratch", None, REACH, ["/mnt/cori/.", "/scratch"]),
        # What is no path leads nowhere, and dots do not lead out of a mount
        *((path, "cori", REACH, []) for path in ("", "relative", "/a\0b")),
        ("/scratch/../etc", None, Reach({"/scratch": "/mnt"}), ["/etc"]),
        # Hostile ones are quoted in an address
        ("/a b#c?d@e", "cori", REACH, ["/a b#c?d@e", "ssh://op@cori:22/a%20b%23c%3Fd%40e"]),
    ],
)  # fmt: skip
def test_where_a_path_can_be_reached(path: str, host: str | None, reach: Reach, found: list[str]) -> None:
    assert list(reached(path, host, reach)) == found


def test_the_directory_on_the_cluster_comes_before_the_one_of_the_record() -> None:
    jid = JobId("3pMDuIiL-e1oQ9PPU-animation")
    local = RunDir("/srv/db/user/3pMDuIiL/myapp/e1oQ9PPU/animation")
    ops = [an_op(jid=jid, run_dir=local, sent_dir=RunDir(PATH))]
    assert run_dirs_of(a_job(id=jid, mode="sbatch"), None, ops)[:2] == (PATH, local)
    elsewhere = [an_op(jid=jid, run_dir=local, sent_dir=RunDir("/etc"))]
    assert "/etc" not in run_dirs_of(a_job(id=jid, mode="sbatch"), None, elsewhere)


def a_run(number: int, queued_s: float | None, started_s: float | None = None) -> Run:
    return Run(
        number=number,
        status=JobStatus.COMPLETED,
        native_status="completed",
        queued_at=None if queued_s is None else ago(queued_s),
        started_at=None if started_s is None else ago(started_s),
    )


RUNS = (a_run(1, 900), a_run(2, 600), a_run(3, None, 300))


def test_a_run_lasts_until_the_next_is_queued_and_what_was_before_is_with_the_first() -> None:
    assert window_of(RUNS, 1) == RunWindow(None, ago(602))
    assert window_of(RUNS, 2) == RunWindow(ago(602), ago(302))
    assert window_of(RUNS, 3) == RunWindow(ago(302), None)
    assert window_of((), 1) == RunWindow()


def test_ops_and_lines_are_parted_by_time_and_what_has_none_is_everywhere() -> None:
    old = an_op(created_at=ago(700))
    new = an_op(created_at=None, steps=[a_step(at=None), a_step(at=ago(601))])
    timeless = an_op(created_at=None)
    assert ops_in(window_of(RUNS, 1), (old, new, timeless)) == (old, timeless)
    assert ops_in(window_of(RUNS, 2), (old, new, timeless)) == (new, timeless)
    line = Unlinked(job_id(), a_step(at=ago(601)), "why")
    assert unlinked_in(window_of(RUNS, 2), [line]) == (line,)
    assert unlinked_in(window_of(RUNS, 3), [line]) == ()


_, SUPERVISOR, DRIVER, AGENT, _ = LANES[0]


def op_with(*steps: tuple[str, float, Component], name: str = "run", takes_s: float = 10) -> Op:
    return an_op(
        name,
        steps=[a_step(text, at, component=component) for text, at, component in steps],
        status=OpStatus.ENDED,
        ended_at=Nanos(ago(60) + round(takes_s * 1e9)),
    )


def texts(pairs: tuple[StepPair, ...]) -> list[str]:
    """Each pair in a word: what it is, and a sign for in which of the runs it is."""
    signs = {(True, True): "=", (True, False): "<", (False, True): ">"}
    return [f"{signs[pair.left is not None, pair.right is not None]} {pair.text}" for pair in pairs]


def test_the_first_step_that_only_one_has_is_where_they_part() -> None:
    bad = op_with(
        ("created", 0, SUPERVISOR), ("sent", 1, DRIVER), ("no reply", 9, DRIVER), ("lost", 9, AGENT)
    )
    good = op_with(("created", 0, SUPERVISOR), ("sent", 1, DRIVER), ("reply ok", 2, DRIVER), takes_s=2)
    pairs = step_pairs([bad], [good], NOW)
    assert texts(pairs) == ["= run", "= created", "= sent", "< no reply", "< lost", "> reply ok"]
    assert [pair.text for pair in pairs if pair.parts] == ["no reply"]
    assert (pairs[0].left, pairs[0].right) == (Took(10.0), Took(2.0))
    assert (pairs[2].left, pairs[2].right) == (Took(1.0), Took(1.0))
    assert pairs[3].left == Took(8.0)


def test_of_runs_that_went_alike_the_first_slow_step_is_marked() -> None:
    slow = op_with(("created", 0, SUPERVISOR), ("agent start", 0.5, DRIVER), ("alive", 38, DRIVER))
    good = op_with(("created", 0, SUPERVISOR), ("agent start", 0.2, DRIVER), ("alive", 1, DRIVER))
    pairs = step_pairs([slow], [good], NOW)
    assert [pair.text for pair in pairs if pair.parts] == ["alive"]
    assert not any(pair.parts for pair in step_pairs([good], [slow], NOW)), "quicker is no fault"


def test_steps_that_come_again_are_counted() -> None:
    many = op_with(*(("update", float(at), DRIVER) for at in range(400)))
    few = op_with(("update", 0, DRIVER), ("update", 1, DRIVER))
    (_, update) = step_pairs([many], [few], NOW)
    assert update.left is not None
    assert update.right is not None
    assert (update.left.times, update.right.times, update.parts) == (400, 2, False)


def test_ops_are_paired_by_name_and_those_that_only_ask_are_left_out() -> None:
    left = [op_with(name="run"), op_with(name="run_status"), op_with(name="cancel")]
    right = [
        op_with(name="run"),
        op_with(name="analysis"),
        op_with(name="begin_session"),
    ]
    assert texts(step_pairs(left, right, NOW)) == ["= run", "< cancel", "> analysis"]
    assert step_pairs([], [], NOW) == ()
