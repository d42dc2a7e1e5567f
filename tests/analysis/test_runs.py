"""Jobs in time: where a run is, when it was, how two differ, steps that repeat, lines of its logs."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis import timeline
from jobtui.analysis.compare import StepPair, StepTime, step_pairs
from jobtui.analysis.paths import run_dirs_of
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos, Window
from jobtui.model.ids import JobId, RunDir
from jobtui.model.jobs import JobStatus, Run
from jobtui.model.ops import LANES, Certainty, Component, Op, OpStatus, Step, Unlinked
from jobtui.model.settings import ClusterAccess
from tests.builders import a_job, a_step, ago, an_op, job_id, some
from tests.conftest import NOW
from tests.offenders import each
from tests.rows import ROWS

JID = JobId("EPRSqtUW-IVh7w74d-heightWeightReport")
BESIDE = "/srv/db/user/EPRSqtUW/myapp/IVh7w74d/heightWeightReport"
OLD = "/mnt/old/user/EPRSqtUW/myapp/IVh7w74d/heightWeightReport"

LOGGED = "/data/user/EPRSqtUW/myapp/IVh7w74d/heightWeightReport"


@each(
        ({}, (LOGGED, f"{LOGGED}/", None), (LOGGED, BESIDE, OLD)),  # what the logs say comes first
        (None, (LOGGED,), (LOGGED,)),
        # a path that is not of this job is not looked at
        *(({"app": ""}, (path,), ())
          for path in ("/etc", "/srv/user/XXXXXXXX/myapp/IVh7w74d/heightWeightReport", "")),
        # some have none beside their record
        *((fields, (), ()) for fields in (
            {"mode": "sbatch"}, {"app": ""}, {"app": ".."}, {"app": "a/b"}, {"is_quasi": True},
            {"id": JobId("x")})),
    )  # fmt: skip
def test_run_dirs_of_finds_the_directory_of_a_run(
    fields: dict[str, Any] | None, logged: tuple[str | None, ...], found: tuple[str, ...]
) -> None:
    job = None if fields is None else a_job(**{"id": JID, "source": "/srv/db"} | fields)
    reach = ClusterAccess(roots=("/mnt/old", "/srv/db"))
    assert run_dirs_of(job, None, [an_op(jid=JID, run_dir=path) for path in logged], reach) == found


PATH = "/scratch/jdoe/sirepo/user/3pMDuIiL/myapp/3pMDuIiL-e1oQ9PPU-animation"


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


def test_a_run_has_what_is_of_its_time_until_the_next_is_queued() -> None:
    assert timeline.window_of(RUNS, 1) == Window(None, Nanos(ago(602) - 1))
    assert timeline.window_of(RUNS, 2) == Window(ago(602), Nanos(ago(302) - 1))
    assert timeline.window_of(RUNS, 3) == Window(ago(302), None)
    assert timeline.window_of((), 1) == Window()
    old = an_op(created_at=ago(700))
    new = an_op(created_at=None, steps=[a_step(at=None), a_step(at=ago(601))])
    timeless = an_op(created_at=None)
    assert timeline.ops_in(timeline.window_of(RUNS, 1), (old, new, timeless)) == (old, timeless)
    assert timeline.ops_in(timeline.window_of(RUNS, 2), (old, new, timeless)) == (new, timeless)
    line = Unlinked(job_id(), a_step(at=ago(601)), "why")
    assert timeline.unlinked_in(timeline.window_of(RUNS, 2), [line]) == (line,)
    assert timeline.unlinked_in(timeline.window_of(RUNS, 3), [line]) == ()


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


def test_two_runs_differ_from_the_first_step_that_is_missing_or_slow_in_one() -> None:
    ends = ("no reply", 9, DRIVER), ("lost", 9, AGENT)
    bad = op_with(("created", 0, SUPERVISOR), ("sent", 1, DRIVER), *ends)
    good = op_with(("created", 0, SUPERVISOR), ("sent", 1, DRIVER), ("reply ok", 2, DRIVER), takes_s=2)
    pairs = step_pairs([bad], [good], NOW)
    assert texts(pairs) == ["= run", "= created", "= sent", "< no reply", "< lost", "> reply ok"]
    assert [pair.text for pair in pairs if pair.parts] == ["no reply"]
    assert (pairs[0].left, pairs[0].right) == (StepTime(10.0), StepTime(2.0))
    assert (pairs[2].left, pairs[2].right) == (StepTime(1.0), StepTime(1.0))
    assert pairs[3].left == StepTime(8.0)
    slow = op_with(("created", 0, SUPERVISOR), ("agent start", 0.5, DRIVER), ("alive", 38, DRIVER))
    good = op_with(("created", 0, SUPERVISOR), ("agent start", 0.2, DRIVER), ("alive", 1, DRIVER))
    pairs = step_pairs([slow], [good], NOW)
    assert [pair.text for pair in pairs if pair.parts] == ["alive"]
    assert not any(pair.parts for pair in step_pairs([good], [slow], NOW)), "quicker is no fault"


def test_ops_are_paired_by_name_and_steps_that_come_again_counted() -> None:
    left = [op_with(name="run"), op_with(name="run_status"), op_with(name="cancel")]
    right = [op_with(name="run"), op_with(name="analysis"), op_with(name="begin_session")]
    assert texts(step_pairs(left, right, NOW)) == ["= run", "< cancel", "> analysis"]
    assert step_pairs([], [], NOW) == ()
    many = op_with(*(("update", float(at), DRIVER) for at in range(400)))
    few = op_with(("update", 0, DRIVER), ("update", 1, DRIVER))
    (_, update) = step_pairs([many], [few], NOW)
    assert (some(update.left).times, some(update.right).times, update.parts) == (400, 2, False)


def folds(*steps: str, every_s: float = 1.0) -> list[timeline.Fold]:
    op = an_op(steps=[a_step(step, nth * every_s) for nth, step in enumerate(steps)])
    return list(timeline.folds_in(timeline.timeline_rows(op)))


@each(*ROWS["what repeats in a timeline"])
def test_folds_finds_repetition(steps: list[tuple[int, *tuple[str, ...]]], found: list[list[float]]) -> None:
    assert [[*fold] for fold in folds(*(step for times, *group in steps for step in group * times))] == found


def test_the_longest_wait_is_known_and_none_where_no_line_has_a_time() -> None:
    assert [fold.longest_s for fold in folds(*["a"] * 5, every_s=7)] == [7.0]
    op = an_op(steps=[a_step("a", at=None) for _ in range(5)])
    assert [fold.longest_s for fold in timeline.folds_in(timeline.timeline_rows(op))] == [None]


OF_JOB = job_id()


def line_at(text: str, at_s: float, offset: int, **fields: Any) -> Step:
    return a_step("s", at_s, text=text, offset=offset, **fields)


@each(
    # Sources are merged by time and the server comes first
    ([line_at("late", 2.0, 30), line_at("made", 1.0, 20),
      line_at("called", 1.0, 5, source="server.log", component=Component.SERVER)], "called made late"),
    # A line without a time is where it was written
    ([line_at("a", 0.0, 1), line_at("b", 0.0, 2, at=None), line_at("c", 5.0, 3),
      line_at("other", 2.0, 1, source="b.log")], "a b other c"),
    # Lines of a log that was rotated come after those before
    ([line_at("old", 0.0, 9_000), line_at("new", 1.0, 10)], "old new"),
)  # fmt: skip
def test_lines_come_in_order(steps: list[Step], shown: str) -> None:
    for ops in ([an_op(steps=steps)], [an_op(steps=[step]) for step in steps]):
        assert [line.text for line in timeline.job_lines(OF_JOB, ops, ())] == shown.split()


def test_a_line_of_two_ops_is_given_once_with_its_surest_link_and_an_unlinked_one_is_of_none() -> None:
    weak = an_op(steps=[a_step("s", offset=1, text="x", certainty=Certainty.ADJACENT)], op="aaaa")
    sure = an_op(steps=[a_step("s", offset=1, text="x", certainty=Certainty.JID)], op="bbbb")
    (line,) = timeline.job_lines(OF_JOB, [weak, sure], ())
    assert (line.certainty, line.op) == (Certainty.JID, sure)
    (line,) = timeline.job_lines(OF_JOB, (), [Unlinked(OF_JOB, a_step("s", text="loose", line=-5), "no op")])
    assert (line.text, line.op, line.line) == ("loose", None, 0)


@each(("ERROR:tornado.application:boom", "error"), ("INFO:tornado.access:200 POST /x", "info"),
     ("_Op(run, abcd) error=ERROR: x", None))  # fmt: skip
def test_a_level_is_only_read_where_python_logging_wrote_it(text: str, level: str | None) -> None:
    assert [
        line.level for line in timeline.job_lines(OF_JOB, [an_op(steps=[a_step("s", text=text)])], ())
    ] == [level]


_STEPS = st.lists(
    st.builds(
        lambda at, source, offset: a_step(
            "s", at=None if at is None else Nanos(at), source=source, offset=offset, text=f"{source}{offset}"
        ),
        st.none() | st.integers(0, 10),
        st.sampled_from("abc"),
        st.integers(0, 20),
    ),
    max_size=20,
)


@given(_STEPS)
def test_every_source_keeps_its_order(steps: list[Step]) -> None:
    lines = timeline.job_lines(JobId("x"), [an_op(steps=steps)], ())
    assert {line.key for line in lines} == {(s.source, s.offset, s.text) for s in steps}
    for source in "abc":
        dated = [(line.at, line.offset) for line in lines if line.source == source and line.at is not None]
        assert dated == sorted(dated)
    assert timeline.in_time_order(reversed(lines)) == lines


JOB = JobId("balsam/7")


def change(number: int, at_s: int, before: str, after: str, **detail: object) -> StateChange:
    nodes = detail.get("num_nodes")
    return StateChange(
        number, JOB, Nanos(at_s * SECOND), before, after, "b", float(str(nodes)) if nodes else None, detail
    )


FIRST = (
    change(1, 0, "CREATED", "STAGED_IN"),
    change(2, 10, "STAGED_IN", "PREPROCESSED"),
    change(3, 70, "PREPROCESSED", "RUNNING", num_nodes=4.0),
    change(4, 100, "RUNNING", "RUN_ERROR", returncode=3, error="no such element"),
)
AGAIN = (
    change(5, 101, "RUN_ERROR", "RESTART_READY"),
    change(6, 130, "RESTART_READY", "RUNNING", num_nodes=1.0),
)


def test_each_run_is_an_op_with_its_changes_in_the_order_learnt() -> None:
    first, second = timeline.ops_of_changes(None, (*AGAIN, *FIRST))
    assert [step.step for step in first.steps] == [
        "STAGED_IN", "PREPROCESSED", "RUNNING on 4 nodes", "RUN_ERROR, return code 3"
    ]  # fmt: skip
    assert [step.component for step in first.steps] == [
        Component.BALSAM, Component.SITE, Component.LAUNCHER, Component.LAUNCHER
    ]  # fmt: skip
    end = first.result, first.error, first.status
    assert end == ("error", "return code 3: no such element", OpStatus.ENDED)
    assert [step.step for step in second.steps] == ["RESTART_READY", "RUNNING on 1 node"]
    assert second.status is OpStatus.REPLIED
    assert "after 1m" in first.steps[2].text
    assert "no such element" in first.steps[3].text
    (op,) = timeline.ops_of_changes(None, (change(4, 60, "RUNNING", "RUN_DONE"), *FIRST[:3]))
    assert [step.line for step in op.steps] == [1, 2, 3, 4]
    (op,) = timeline.ops_of_changes(None, FIRST[:2])
    assert (op.status, op.result, op.sent_at) == (OpStatus.WAITING, None, None)
    assert timeline.ops_of_changes(a_job(1), ()) == ()
