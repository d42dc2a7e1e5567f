"""Slurm as a source: its rows, what it costs, what failures say, scripts that it keeps, and why jobs wait."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.explain.case import LIKELY, Evidence
from jobtui.analysis.explain.pending import refined
from jobtui.analysis.explain.verdict import explain
from jobtui.backends.base import Batch
from jobtui.backends.slurm import client as slurm_commands
from jobtui.backends.slurm import records as slurm_known
from jobtui.backends.slurm.client import CommandAnswer, Commands
from jobtui.backends.slurm.detail import Queue, _explain, chain_of
from jobtui.backends.slurm.detail import pending_of as slurm_pending
from jobtui.backends.slurm.records import ClusterJobs
from jobtui.backends.slurm.source import (
    ACCOUNTS_EVERY_S,
    QUEUE_EVERY_S,
    Slurm,
    below_rule,
    find_kept,
    variables_of,
)
from jobtui.formats.slurm import SACCT, SQUEUE, time_of
from jobtui.formats.slurm_nodes import NodeRequest, gres_of, limit_of_reason, nodes_of, tally_of
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import SourceError, SourceMissing, SourceUnreachable
from jobtui.model.ids import JobId
from jobtui.model.jobs import Category, Job, JobDetail, JobStatus, NodeTally, Pending
from jobtui.model.scripts import Outcome, Variable, Wanted
from jobtui.model.slurm import LEFT
from jobtui.model.verdicts import RELIABLE, Verdict
from jobtui.transport.ssh import LocalShell, Running
from tests import polling
from tests.builders import some
from tests.conftest import NOW
from tests.loopback import Timer
from tests.offenders import each
from tests.rows import ROWS, table
from tests.slurm_stand_in import ACCOUNTED, CAPTURES, DIRECTORY, QUEUED, StandIn, answer, captured_jobs
from tests.waiting import LONG_S


class Reading(polling.Reading[Slurm]):
    """Reads Slurm as the poller does, with a clock that a test moves."""

    def __init__(self, target: str = "local", label: str = "") -> None:
        self.timer, self.clock = Timer(), FixedClock(NOW)
        source = Slurm(Commands(target), label=label)
        source.clock, source.timer = self.clock, self.timer
        super().__init__(source)

    async def read(self, later_s: float = ACCOUNTS_EVERY_S) -> Mapping[str, Job]:
        self.timer.now += later_s
        self.clock.advance(later_s)
        await self.drain()
        return cast(Mapping[str, Job], self.jobs)

    async def detail(self, number: str) -> JobDetail:
        return some(await self.source.detail(JobId(f"slurm/{number}")))


async def test_the_captured_cluster_becomes_jobs(cluster: StandIn) -> None:
    cluster.captured()
    jobs = await Reading().read()
    assert {job_id.removeprefix("slurm/") for job_id in jobs} == captured_jobs()["sacct.psv"].keys()
    assert {job.status for job in jobs.values()} == {
        JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED, JobStatus.RUNNING,
    }  # fmt: skip
    failed, canceled, task = jobs["slurm/2"], jobs["slurm/3"], jobs["slurm/4_3"]
    assert (failed.error, failed.exit, failed.reason) == ("exit code 3", "3:0", "NonZeroExitCode")
    assert (canceled.message, canceled.error, canceled.exit) == ("canceled by root", None, "")
    assert (task.allocation, task.model, task.mode) == ("17 4", "4_3", "array")
    assert jobs["slurm/5"].error == "killed by signal 11 (SIGSEGV)"
    assert jobs["slurm/9"].ended_at is None


async def test_the_queue_is_read_without_accounting(cluster: StandIn) -> None:
    cluster.queue({}, {"%i": "2", "%A": "2", "%T": "FAILED", "%r": "NonZeroExitCode"})
    cluster.fault("sacct", "Slurm accounting storage is disabled")
    reading = Reading()
    jobs = await reading.read()
    assert jobs["slurm/2"].error == "its program ended with an exit code"
    assert "keeps no account" in (reading.batches[-1].note or "")
    cluster.queue()
    assert (await reading.read())["slurm/1"].status is JobStatus.UNKNOWN
    cluster.fault("sacct", None)
    cluster.accounts({})
    assert (await reading.read(1000))["slurm/1"].status is JobStatus.COMPLETED
    assert reading.batches[-1].note == ""
    cluster.queue({})
    cluster.fault("sacct", "sacct: error: Problem talking to the database: Connection refused")
    reading = Reading()
    assert "slurm/1" in await reading.read()
    assert "accounting does not answer" in str(reading.batches[-1].failing)
    cluster.fault("sacct", "Slurm accounting storage is disabled")
    await reading.read(1000)
    assert reading.batches[-1].failing == ()


STORIES = table("slurm/stories")
SAYS = table("slurm/says")


@pytest.mark.parametrize("story", STORIES)
async def test_each_recorded_story_gives_its_jobs(cluster: StandIn, story: str) -> None:
    reading = Reading()
    for step in STORIES[story]:
        if "queue" in step:
            cluster.queue(*step["queue"])
        if "accounts" in step:
            cluster.accounts(*step["accounts"])
        jobs = await reading.read(step.get("later_s", ACCOUNTS_EVERY_S))
        assert jobs.keys() == {f"slurm/{number}" for number in step["jobs"]}
        for number, fields in step["jobs"].items():
            job = jobs[f"slurm/{number}"]
            assert {name: getattr(job, name) for name in fields} == fields


@pytest.mark.parametrize("target", ["local", "ssh://jdoe@cori"])
@pytest.mark.parametrize("fault", SAYS)
async def test_each_fault_is_one_line(cluster: StandIn, target: str, fault: str) -> None:
    cluster.fault("squeue", SAYS[fault]["said"])
    with pytest.raises(SourceError) as raised:
        await Reading(target).source.poll(None)
    text = str(raised.value)
    assert SAYS[fault]["error"] in [kind.__name__ for kind in type(raised.value).__mro__]
    assert text.startswith(f"{target}: ")
    assert SAYS[fault]["part"] in text
    assert text.isprintable()


async def test_no_slurm_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(slurm_commands, "squeue_words", lambda separator: ["squeue-that-is-not-there"])
    with pytest.raises(SourceMissing, match=r"^local: no squeue; install Slurm's client commands"):
        await Reading().source.poll(None)


async def test_a_hanging_daemon_is_given_up(cluster: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_commands, "QUEUE_S", 0.5)
    cluster.hang("squeue")
    with pytest.raises(SourceUnreachable, match=r"squeue gave no answer within 0.5 s; slurmctld may hang"):
        await Reading().source.poll(None)


async def test_one_squeue_for_a_poll_and_not_too_often(cluster: StandIn) -> None:
    cluster.queue(*({"%i": str(number), "%A": str(number)} for number in range(1, 60)))
    reading = Reading()
    await reading.read()
    assert (len(cluster.calls("squeue")), len(cluster.calls("sacct"))) == (1, 1)
    for _ in range(5):
        await reading.read(QUEUE_EVERY_S / 6)
    assert (len(cluster.calls("squeue")), len(cluster.calls("sacct"))) == (1, 1)
    await reading.read(QUEUE_EVERY_S)
    assert (len(cluster.calls("squeue")), len(cluster.calls("sacct"))) == (2, 1)
    reading.timer.now += QUEUE_EVERY_S
    await asyncio.wait_for(reading.source.changed(0.0), LONG_S)


COSTS: dict[str, list[tuple[float, float, int]]] = {
    "what costs much is asked seldom": [
        (3.0, ACCOUNTS_EVERY_S, 1), (3.0, QUEUE_EVERY_S, 2), (3.0, 50.0, 2), (3.0, 20.0, 2),
    ],
    "one slow answer costs no pause": [
        (0.1, QUEUE_EVERY_S, 1), (9.0, QUEUE_EVERY_S, 2), (0.1, QUEUE_EVERY_S, 3), (0.1, QUEUE_EVERY_S, 4),
    ],
}  # fmt: skip
"""For each reading: what squeue takes, how much later it is, and how often squeue was asked by then."""


@pytest.mark.parametrize("case", COSTS)
async def test_slow_answers_make_questions_less_frequent(cluster: StandIn, case: str) -> None:
    reading = Reading()
    asked = reading.source._commands.queue

    async def slow() -> slurm_commands.CommandAnswer:
        reading.timer.now += cost_s
        return await asked()

    reading.source._commands.queue = slow  # type: ignore[method-assign]
    for cost_s, later_s, count in COSTS[case]:  # noqa: B007 - read above
        await reading.read(later_s)
        assert len(cluster.calls("squeue")) == count


async def test_accounting_is_asked_for_what_is_new(cluster: StandIn) -> None:
    cluster.accounts({"End": "2026-11-20T20:30:00"})
    reading = Reading()
    await reading.read()
    await reading.read()
    first, second = (next(one for one in words if "--starttime" in one) for words in cluster.calls("sacct"))
    assert (first, second) == ("--starttime=2026-11-19T21:01:00", "--starttime=2026-11-20T20:25:00")
    assert all({"--duplicates", "--local"} <= {*words} for words in cluster.calls("sacct"))


async def test_a_detail_has_steps_paths_and_times(cluster: StandIn) -> None:
    cluster.captured()
    detail = await Reading().detail("8")
    facts = dict(detail.facts)
    assert facts["errors"] == f"{DIRECTORY}/lattice-8.err"
    assert facts["output"] == f"{DIRECTORY}/lattice-8.out"
    assert facts["step batch"].startswith("FAILED, exit 3:0")
    assert detail.directory == DIRECTORY
    assert [change.after for change in detail.changes] == ["PENDING", "RUNNING", "FAILED"]
    assert detail.runs[0].error == "exit code 3"
    slurm = detail.native["slurm"]
    assert isinstance(slurm, dict)
    assert slurm["stdout"] == f"{DIRECTORY}/lattice-8.out"


@pytest.mark.parametrize(
    ("state", "is_sure"), [("PENDING", False), ("RUNNING", False), ("COMPLETED", True), ("FAILED", True)]
)
async def test_accounting_alone_is_not_sure_of_live_jobs(cluster: StandIn, state: str, is_sure: bool) -> None:
    cluster.fault("scontrol", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    cluster.accounts({"State": state} if is_sure else {"State": state, "End": "Unknown"})
    verdict = await verdict_on(Reading(), "1")
    assert (bool(verdict.doubts), verdict.confidence >= LIKELY) == (not is_sure, is_sure)
    assert ("slurmctld does not answer" in verdict.sentence) == (not is_sure)


@pytest.mark.parametrize(("asked", "meant"), [("4_3", "4_3"), ("17", "4_3"), ("13", "4_1"), ("9", "9")])
async def test_tasks_are_found_by_either_number(cluster: StandIn, asked: str, meant: str) -> None:
    cluster.captured()
    detail = await Reading().detail(asked)
    assert detail.job.id == f"slurm/{meant}"


async def test_the_state_of_an_array_comes_from_its_tasks(cluster: StandIn) -> None:
    cluster.captured()
    detail = await Reading().detail("4")
    assert (detail.job.id, detail.job.status) == ("slurm/4", JobStatus.FAILED)
    assert (detail.job.native_status, detail.job.error) == ("3 COMPLETED, 1 FAILED", "task 3 failed")
    said = (await verdict_on(Reading(), "4")).sentence
    assert said == "It has ended. Its task 3 failed. Of its 4 tasks: 3 COMPLETED, 1 FAILED."


async def test_a_run_that_was_requeued_is_over_and_has_its_times(cluster: StandIn) -> None:
    first = {"State": "REQUEUED", "ExitCode": "0:0"}
    again = {"State": "PENDING", "Submit": "2026-11-20T20:21:00", "Start": "Unknown", "End": "Unknown"}
    cluster.accounts(first, again)
    detail = await Reading().detail("1")
    assert [run.status for run in detail.runs] == [JobStatus.CANCELED, JobStatus.PENDING]
    run = detail.runs[0]
    assert (run.started_at, run.ended_at) == (time_of("2026-11-20T20:10:00"), time_of("2026-11-20T20:20:00"))
    assert run.message == "requeued"
    assert [change.after for change in detail.changes] == ["PENDING", "RUNNING", "REQUEUED", "PENDING"]


SHOWN = (CAPTURES / "shown.txt").read_text()
FAILED_ROW = {"State": "FAILED", "ExitCode": "9:0"}


async def test_an_exit_code_is_whole_where_slurmctld_or_json_tells_it(cluster: StandIn) -> None:
    cluster.accounts(FAILED_ROW)
    assert dict((await Reading().detail("1")).facts)["exit"] == "9:0, or 137: sacct leaves 128 out"
    at = {"submission": 1795204800, "start": 1795205400, "end": 1795206000}
    code = {"status": ["ERROR"], "return_code": {"set": True, "infinite": False, "number": 137}}
    job = {"job_id": 1, "state": {"current": ["FAILED"]}, "time": at, "exit_code": code}
    cluster.account_json(json.dumps({"jobs": [job | {"stdout": "/x/%j.out"}]}))
    detail = await Reading().detail("1")
    assert (detail.job.exit, dict(detail.facts)["exit"]) == ("137:0", "137:0")
    assert (detail.outputs, detail.path) == (("/x/1.out",), "local: sacct -j 1")
    cluster.show("1", SHOWN.format(exit="138:0", out="/a", error="/a"))
    assert (await Reading().detail("1")).job.exit == "138:0"
    cluster.accounts(
        {"JobID": "2", "State": "FAILED", "ExitCode": "1:0"}, {"JobID": "2.batch", "ExitCode": "0:1"}
    )
    assert (await Reading().detail("2")).job.exit == "0:1"


@pytest.mark.parametrize(("asked", "nodes", "used", "is_over"), ROWS["memory of a Slurm job"])
async def test_a_job_that_used_too_much_memory_says_so(
    cluster: StandIn, asked: str, nodes: str, used: str, is_over: bool
) -> None:
    row = {"State": "FAILED", "ExitCode": "0:9", "ReqMem": asked, "NNodes": nodes}
    cluster.accounts(row, {"JobID": "1.batch", "MaxRSS": used, **row})
    assert ("over its memory" in dict((await Reading().detail("1")).facts)) == is_over


async def test_a_job_that_slurmd_did_not_start_is_reported_unless_a_step_ran(cluster: StandIn) -> None:
    row = {"State": "FAILED", "ExitCode": "0:53", "End": "2026-11-20T20:10:02"}
    for step, is_told in (({"JobID": "1.batch"}, True), ({"JobID": "1.batch", "MaxRSS": "3M"}, False),
                          ({"JobID": "1.0"}, False)):  # fmt: skip
        cluster.accounts(row, {**row, **step})
        detail = await Reading().detail("1")
        assert ("not started" in dict(detail.facts)) == is_told
        assert ("not started" in (detail.job.error or "")) == is_told


@pytest.mark.parametrize(("out", "error", "outputs"), ROWS["output of a Slurm job"])
async def test_detail_names_the_outputs(cluster: StandIn, out: str, error: str, outputs: list[str]) -> None:
    cluster.show("1", SHOWN.format(exit="1:0", out=out, error=error))
    assert [*(await Reading().detail("1")).outputs] == outputs


async def test_a_job_that_accounting_never_reports_is_not_asked_for_again(cluster: StandIn) -> None:
    ended = {"%T": "CANCELLED", "%N": "", "%e": "2026-11-20T20:20:00", "%S": "2026-11-20T20:20:00"}
    cluster.queue(ended)
    cluster.accounts()
    reading = Reading()
    await reading.read()
    asked = len(cluster.calls("sacct"))
    await reading.read(QUEUE_EVERY_S)
    assert len(cluster.calls("sacct")) == asked


NO_JOBS = ["99", "x", "", "1;id", "4_[1-2]", "44_3"]


@pytest.mark.parametrize("job_id", [*(f"slurm/{one}" for one in NO_JOBS), "slurm@other/1", "balsam/1"])
async def test_an_id_of_another_system_or_cluster_has_no_job(cluster: StandIn, job_id: str) -> None:
    cluster.captured()
    assert await Reading().source.detail(JobId(job_id)) is None


async def test_text_of_a_login_changes_nothing(cluster: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.captured()
    ssh = cluster.path / "ssh"
    ssh.write_text(ssh.read_text().replace("exec sh", "echo 'Welcome to cori'; exec sh"))
    monkeypatch.setenv("SQUEUE_STATES", "RUNNING")
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    program = cluster.path / "squeue"
    kept = "for name in ('SQUEUE_STATES', 'SLURM_CLUSTERS'): assert name not in os.environ\n"
    program.write_text(program.read_text().replace("here = ", f"import os\n{kept}here = ", 1))
    reading = Reading("ssh://cori", label="cori")
    jobs = await reading.read()
    assert (len(jobs), jobs["slurm@cori/4_3"].source) == (18, "ssh://cori")
    assert await reading.source.detail(JobId("slurm@cori/4_3")) is not None


async def test_too_long_a_queue_loses_no_job(cluster: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"%i": str(number), "%A": str(number)} for number in range(1, 500)]
    cluster.queue(*rows)
    reading = Reading()
    await reading.read()
    monkeypatch.setattr(slurm_commands, "MOST_BYTES", 1000)
    jobs = await reading.read()
    assert len(jobs) == len(rows)
    assert {job.status for job in jobs.values()} == {JobStatus.RUNNING}
    assert "its queue is longer" in (reading.batches[-1].note or "")


class ToldShell(LocalShell):
    async def run(self, line: str) -> Running:
        raise SourceError(line)


async def test_the_line_for_a_login_shell_is_one_line() -> None:
    with pytest.raises(SourceError, match=r"\A[^\n]+squeue[^\n]+\Z"):
        await Commands("local", ToldShell("local")).queue()


IDS = st.sampled_from(["1", "2", "4_1", "4_[2-3%1]", "4_2", "7+1", "no id", ""])
STATES = st.sampled_from(
    ["PENDING", "RUNNING", "COMPLETING", "COMPLETED", "FAILED", "CANCELLED by 7", "REQUEUED", "ODD", ""]
)
TIMES = st.sampled_from(["2026-11-20T20:00:00", "2026-11-20T20:30:00", "N/A", "Unknown", "?"])


def queued(job_id: str, state: str, at: str) -> dict[str, str]:
    return {**QUEUED, "%i": job_id, "%T": state, "%V": at}


def accounted(job_id: str, state: str, at: str) -> dict[str, str]:
    return {**ACCOUNTED, "JobID": job_id, "State": state, "Submit": at}


ANSWERS = st.lists(
    st.tuples(st.booleans(), st.lists(st.tuples(IDS, STATES, TIMES), max_size=5), st.integers(0, 400)),
    max_size=8,
)


@given(answers=ANSWERS, has_accounting=st.booleans())
def test_changes_told_one_by_one_add_up_to_the_jobs_known(
    answers: list[tuple[bool, list[tuple[str, str, str]], int]], has_accounting: bool
) -> None:
    known, told, now, bad = ClusterJobs("local", "slurm"), dict[str, Job](), NOW, 0
    known.has_accounting = has_accounting
    for of_queue, rows, later_s in answers:
        now = Nanos(now + later_s * SECOND)
        if of_queue:
            news = known.take_queue(answer(SQUEUE, [queued(*row) for row in rows]), now)
        else:
            news = known.take_accounts(answer(SACCT, [accounted(*row) for row in rows]), now)
        bad += news.skip_count - news.recovered
        assert bad >= 0
        told.update((job.id, job) for job in news.jobs)
        for job_id in news.gone:
            del told[job_id]
    assert {job.id: job for job in known.forget().jobs} == told


def take(known: ClusterJobs, *rows: dict[str, str]) -> Batch:
    return known.take_accounts(answer(SACCT, list(rows)), NOW)


def test_the_same_answer_gives_no_job_again_but_a_reused_number_does() -> None:
    known = ClusterJobs("local", "slurm")
    rows = answer(SQUEUE, [queued(str(number), "RUNNING", "N/A") for number in range(50)])
    assert len(known.take_queue(rows, NOW).jobs) == 50
    again = known.take_queue(rows, NOW)
    assert (again.jobs, again.gone, again.count) == ((), (), 50)
    known = ClusterJobs("local", "slurm")
    take(known, accounted("1", "COMPLETED", "2026-11-20T20:00:00"))
    rows = answer(SQUEUE, [queued("1", "FAILED", "2026-11-20T20:30:00")])
    (job,) = known.take_queue(rows, NOW).jobs
    assert job.native_status == "FAILED"


def test_ended_jobs_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_known, "MOST_ENDED", 20)
    ends = [f"2026-11-{day:02d}T20:00:00" for day in range(1, 29)]
    rows = [accounted(str(number), "COMPLETED", "N/A") | {"End": end} for number, end in enumerate(ends, 1)]
    known = ClusterJobs("local", "slurm")
    assert {job.id for job in take(known, *rows).jobs} == {f"slurm/{number}" for number in range(9, 29)}
    assert known.has_let_go


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETED"])
def test_jobs_that_left_the_queue_have_a_bound(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    monkeypatch.setattr(slurm_known, "MOST_ENDED", 20)
    known, told = ClusterJobs("local", "slurm"), set[str]()
    known.has_accounting = False
    assert not known.has_let_go
    for number in range(1, 61):
        row = queued(str(number), state, "2026-11-20T20:00:00")
        news = known.take_queue(answer(SQUEUE, [row]), Nanos(NOW + number * SECOND))
        told |= {job.id for job in news.jobs}
        told -= set(news.gone)
    assert told == {f"slurm/{number}" for number in range(40, 61)}
    assert known.has_let_go


SUBMITTED, ENDED_AT = "2026-11-20T20:00:00", "2026-11-20T20:30:00"


@each(*ROWS["what Slurm's commands say otherwise"])
def test_accounting_and_the_queue_disagree(queue: str, accounts: str, later_s: int, other: str) -> None:
    """Asked some seconds after the end that accounting knows, the queue cannot say that the job goes on."""
    known, at = ClusterJobs("cori", "slurm"), Nanos(some(time_of(ENDED_AT)) + later_s * SECOND)
    known.take_queue(answer(SQUEUE, [queued("1", queue, SUBMITTED)]), at)
    end = "Unknown" if accounts == "RUNNING" else ENDED_AT
    row = accounted("1", accounts, SUBMITTED) | {"End": end}
    known.take_accounts(answer(SACCT, [row]), at)
    (job,) = known.forget().jobs
    assert [one.native_status for one in job.others] == other.split()


@pytest.mark.parametrize(("end", "state", "accounts", "code", "is_sure"), ROWS["accounts of a Slurm job"])
async def test_what_is_known_last_of_a_run_counts_and_two_ends_are_doubted(
    cluster: StandIn, end: str, state: str, accounts: list[dict[str, str]], code: str, is_sure: bool
) -> None:
    known = ClusterJobs("local", "slurm")
    (job,) = known.take_queue(answer(SQUEUE, [queued("1", state, SUBMITTED)]), NOW).jobs
    cluster.show("1", SHOWN.format(exit=end, out="/a", error="/a"))
    cluster.accounts(*accounts)
    verdict = explain(Evidence(job_id=job.id, now=NOW, job=job, detail=await Reading().detail("1")))
    assert (verdict.code.value, verdict.confidence >= LIKELY) == (code, is_sure)


@each(*ROWS["answers of squeue"])
def test_an_answer_that_takes_back_what_the_queue_said_is_doubted(rows: list[list[str]], other: str) -> None:
    known = ClusterJobs("cori", "slurm")
    for state, *times in rows:
        submitted, started = (f"2026-11-20T{time}:00" for time in times)
        known.take_queue(answer(SQUEUE, [queued("1", state, submitted) | {"%S": started}]), NOW)
    (job,) = known.forget().jobs
    verdict = explain(Evidence(job_id=job.id, now=NOW, job=job))
    assert [one.native_status for one in job.others] == other.split()
    assert bool(verdict.doubts) is (verdict.confidence < 0.5) is bool(other)


def test_a_job_that_left_the_queue_while_it_was_live_is_not_said_to_run() -> None:
    known = ClusterJobs("cori", "slurm")
    known.take_queue(answer(SQUEUE, [queued("1", "RUNNING", SUBMITTED)]), NOW)
    (job,) = known.take_queue(answer(SQUEUE, []), NOW).jobs
    assert (job.status, job.message) == (JobStatus.RUNNING, LEFT)
    verdict = explain(Evidence(job_id=job.id, now=NOW, job=job))
    assert (verdict.confidence < RELIABLE, LEFT in verdict.blind_spots) == (True, True)


class Printed(Commands):
    def __init__(self, live: CommandAnswer, script: bytes = b"", environment: bytes = b"") -> None:
        super().__init__("local")
        self._live, self._script, self._environment = live, script, environment

    async def scontrol(self, *words: str) -> CommandAnswer:
        return self._live

    async def sacct(self, option: str, native: str) -> CommandAnswer:
        if option == "--env-vars":
            return CommandAnswer(self._environment)
        if self._script == b"down":
            raise SourceUnreachable("local: accounting does not answer")
        return CommandAnswer(self._script)


def kept(text: bytes) -> bytes:
    return b"Batch Script for 1\n" + b"-" * 80 + b"\n" + text + b"\n"


@given(st.binary())
def test_below_rule_gives_the_text_below_the_rule(text: bytes) -> None:
    assert below_rule(kept(text)) == (None if text in (b"NONE", b"NONE\n") else text)
    below_rule(text)


async def test_the_script_of_slurmctld_is_exact_and_goes_first() -> None:
    script = b"#!/bin/sh\nprintf 'caf\xe9'"
    answer = await find_kept(Printed(CommandAnswer(script), kept(b"#!/bin/sh\nprintf 'caf?'")), Wanted("1"))
    found = some(answer.script)
    assert (found.script, found.source) == (script, "local: scontrol write batch_script 1 -")


async def test_accounting_has_scripts_that_slurmctld_has_dropped() -> None:
    gone = CommandAnswer(b"", stderr="job script retrieval failed: Invalid job id specified")
    printed = Printed(gone, kept(b"#!/bin/sh\nrun\n"), kept(b"A=1\nB=x\ny\nC=z"))
    answer = await find_kept(printed, Wanted("1"))
    found = some(answer.script)
    assert (found.script, len(found.notes)) == (b"#!/bin/sh\nrun\n", 2)
    assert some(found.environment).variables[1] == Variable(b"B", b"x\ny")
    assert [one.outcome for one in answer.tried] == [Outcome.NOT_THERE, Outcome.FOUND]


@pytest.mark.parametrize(("said", "script", "outcomes"), ROWS["why Slurm keeps no script"])
async def test_a_missing_script_says_why(said: str, script: str, outcomes: list[str]) -> None:
    answer = await find_kept(Printed(CommandAnswer(b"", stderr=said), script.encode()), Wanted("1"))
    assert answer.script is None
    assert [one.outcome for one in answer.tried] == outcomes


@each(*ROWS["variables that sacct prints"])
def test_variables_are_parted_by_lines_that_begin_with_a_name(text: str, variables: list[list[str]]) -> None:
    assert variables_of(text.encode()) == [Variable(name.encode(), of.encode()) for name, of in variables]


CAPTURED: Mapping[str, Any] = json.loads((CAPTURES / "waiting.json").read_text())
WAITING_IDS = CAPTURED["ids"]


async def verdict_on(reading: Reading, number: str) -> Verdict:
    detail = await reading.detail(number)
    return explain(Evidence(job_id=detail.job.id, now=reading.clock.now(), job=detail.job, detail=detail))


async def pending_of(reading: Reading, number: str) -> Pending:
    return some((await verdict_on(reading, number)).pending)


WORDS = table("slurm/waiting_said")


async def test_each_is_said_to_wait_for_what_slurms_tools_said(cluster: StandIn) -> None:
    reading, truths = Reading(), cluster.waiting()
    await reading.read()
    wrong, asked = [], 0
    verdicts = await asyncio.gather(*(verdict_on(reading, truth["id"]) for truth in truths.values()))
    for (name, truth), verdict in zip(truths.items(), verdicts, strict=True):
        pending = some(verdict.pending)
        assert len(pending.asked) <= 1
        asked += 1 + len(pending.asked)  # its record
        told = {
            "category": pending.category.value,
            "ahead": pending.ahead,
            "nodes": {key: getattr(pending.nodes, key, None) for key in truth.get("nodes", {})},
            "most": pending.limit and pending.limit.most,
            "used": pending.limit and pending.limit.used,
        }
        wrong += [(name, key, told[key]) for key in told.keys() & truth.keys() if told[key] != truth[key]]
        wrong += [(name, one, verdict.sentence) for one in WORDS.get(name, ()) if one not in verdict.sentence]
        facts = [fact for fact in verdict.evidence if fact.what == "asked for this"]
        assert bool(facts) == bool(pending.asked), name
    assert not wrong
    assert len(truths) > 30
    assert WORDS.keys() <= truths.keys()
    assert [len(cluster.calls(name)) for name in ("squeue", "scontrol", "sdiag")] == [1, asked, 0]
    assert all("--local" in words for words in cluster.calls("scontrol") if "job" in words), "no federation's"


async def test_a_limit_is_held_until_the_time_that_is_judged(cluster: StandIn) -> None:
    cluster.waiting()
    detail = await Reading().detail(WAITING_IDS["qos-jobs"])
    (since,) = (one.since for one in some(detail.pending).holders)
    for held_s in (90.0, 7_200.0):
        now = Nanos(some(since) + int(held_s) * SECOND)
        found = some(explain(Evidence(job_id=detail.job.id, now=now, job=detail.job, detail=detail)).pending)
        assert [one.held_s for one in found.holders] == [held_s]


async def test_detail_reads_the_queue_of_a_job_once(cluster: StandIn) -> None:
    cluster.waiting()
    reading = Reading()
    assert (await pending_of(reading, WAITING_IDS["second"])).ahead == 1
    await pending_of(reading, WAITING_IDS["third"])
    assert len(cluster.calls("squeue")) == 1
    verdict = await verdict_on(Reading(), WAITING_IDS["victim"])
    assert "Node n6 is DOWN NOT_RESPONDING: kernel: Oops, since 2026-" in verdict.sentence
    assert f"Lost with it: {WAITING_IDS['other-victim']} of nobody" in verdict.sentence


async def test_a_pending_job_says_when_it_might_have_begun(cluster: StandIn) -> None:
    cluster.accounts({"Eligible": "2026-11-20T20:07:00"})
    told = "2026-11-20T20:07:00Z, 7 min after it was submitted, 3 min before it started"
    assert ("eligible", told) in (await Reading().detail("1")).facts


async def test_detail_falls_back_on_the_queue_without_an_answer(cluster: StandIn) -> None:
    cluster.waiting()
    (cluster.folder / "scontrol.node").unlink()
    pending = await pending_of(Reading(), WAITING_IDS["second"])
    assert (pending.ahead, pending.nodes) == (1, None)
    assert "Invalid job id" in pending.unread


async def test_nodes_are_asked_for_only_while_somebody_wants_them(cluster: StandIn) -> None:
    cluster.waiting()
    reading = Reading()
    await reading.read()
    assert not cluster.calls("sdiag")
    reading.source.ask_for_nodes(30.0)
    await reading.read()
    await reading.read(10.0)
    (told,) = (one for batch in reading.batches for one in batch.clusters)
    assert [node.name for node in told.nodes if node.needs_person] == ["n5", "n6", "n7"]
    assert {one.name for one in told.partitions if one.state != "UP"} == {"closed", "asleep"}
    controller = some(told.controller)
    assert (controller.dbd_backlog, controller.queued, controller.cycle_ms is None) == (0, 20, False)
    await reading.read(40.0)
    assert len(cluster.calls("sdiag")) == 2
    cluster.fault("sdiag", "slurm_load_ctl_conf error")
    await reading.read(40.0)
    (failing,) = reading.batches[-1].failing or ()
    reading.source.ask_for_nodes(None)
    await reading.read(400.0)
    assert (failing.name, len(cluster.calls("sdiag")), reading.batches[-1].failing) == ("nodes", 3, ())
    reading.source.ask_for_nodes(30.0)
    await reading.read(40.0)
    assert reading.batches[-1].failing == (failing,), "it was not read meanwhile"


@each(("NodeName=a State=IDLE Gres=", "("), ("NodeName=a State=IDLE Reason=", " [a@"),
     ("QOS=q(1) GrpTRES=", "a"), ("QOS=q(1) ", "a={"))  # fmt: skip
def test_text_without_its_end_takes_no_longer_than_other_text(head: str, piece: str) -> None:
    began = time.thread_time()
    for node in nodes_of((printed := head + piece * 60_000).encode()):
        gres_of(node.gres)
    for word in ("QOSGrpCpuLimit", "QOSMaxCpuPerUserLimit"):
        limit_of_reason(printed.encode(), word, user="u", account="a", qos="q")
    assert time.thread_time() - began < 1.0


COUNTED = ("down", "drained", "reserved", "no_feature", "no_gres", "too_small", "full", "free")
NODE_STATES = ["IDLE", "MIXED", "DOWN*", "IDLE+DRAIN", "IDLE+RESERVED", "ODD"]
WANTED = st.builds(
    NodeRequest, nodes=st.just(1), cpus=st.integers(0, 40), memory_mb=st.integers(0, 9_000),
    features=st.sampled_from(["", "x"]), gres=st.sampled_from(["", "gpu:1"]), only=st.just(frozenset()),
    partitions=st.just(frozenset({"p"})), reservation=st.just(""), is_exclusive=st.booleans(),
)  # fmt: skip


@given(st.lists(st.sampled_from(NODE_STATES), max_size=8), WANTED)
def test_each_node_counts_once(states: list[str], wants: NodeRequest) -> None:
    of = "CPUTot=32 RealMemory=8000 Partitions=p"
    lines = (f"NodeName=n{n} {of} CPUAlloc={n} Gres=gpu:{n % 3} State={one}" for n, one in enumerate(states))
    nodes = nodes_of("\n".join(lines).encode())
    tally = tally_of(nodes, wants)
    assert sum(getattr(tally, name) for name in COUNTED) == tally.total == len(nodes)
    assert refined(Pending(category=Category.PRIORITY, nodes=tally)).nodes == tally


@each(*ROWS["what nodes tell beside the reason"])
def test_nodes_tell_what_the_reason_hides(said: Category, tally: dict[str, Any], category: str) -> None:
    found = refined(Pending(category=Category(said), nodes=NodeTally(**tally)))
    assert (found.category, found.is_stuck) == (category, category == "request")


async def test_a_waiting_job_names_the_jobs_it_waits_for(cluster: StandIn) -> None:
    cluster.waiting()
    reading = Reading()
    await reading.read()
    queue = await reading.source._queue()
    one = queue.jobs[WAITING_IDS["resources"]]
    alone = msgspec.structs.replace(one, dependency="singleton(unfulfilled)", name="x", raw="900", id="900")
    earlier = msgspec.structs.replace(alone, dependency="", raw="899", id="899")
    later = msgspec.structs.replace(earlier, raw="901", id="901")
    other = msgspec.structs.replace(earlier, raw="898", id="898", user="ana")
    known = {job.id: job for job in (alone, earlier, later, other)}
    assert chain_of(alone, known) == (("899", "PENDING (Resources)"),)
    elsewhere = {key: msgspec.structs.replace(job, partition="limited") for key, job in queue.jobs.items()}
    fields = {"Partition": "debug", "NumNodes": "2", "NumCPUs": "64"}
    printed = CAPTURED["scontrol"]["node"].encode()
    found = [
        _explain(slurm_pending(one.id, one, queue), one, fields, Queue(jobs, {}), printed).holder_count
        for jobs in (queue.jobs, elsewhere)
    ]
    assert found == [1, 1]
