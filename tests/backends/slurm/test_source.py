"""Slurm as a source: what becomes of its rows, what it costs, and what is said when it fails."""

import asyncio
import json

import pytest

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.journal.local_shell import LocalShell
from jobtui.backends.journal.process import Running
from jobtui.backends.slurm import commands as slurm_commands
from jobtui.backends.slurm import known as slurm_known
from jobtui.backends.slurm.commands import Commands
from jobtui.backends.slurm.source import QUEUE_EVERY_S
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from tests.backends.slurm.reading import Reading
from tests.builders import HOSTILE
from tests.formats.slurm_captures import CAPTURES, DIRECTORY, captured_jobs
from tests.slurm_stand_in import StandIn
from tests.waiting import LONG_S


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


async def test_what_waits_says_for_what(cluster: StandIn) -> None:
    stuck = {"%T": "PENDING", "%N": "", "%r": "DependencyNeverSatisfied"}
    cluster.queue({"%T": "PENDING", "%N": "", "%r": "Resources"}, {"%i": "2", "%A": "2", **stuck})
    jobs = await Reading().read()
    first, second = jobs["slurm/1"], jobs["slurm/2"]
    assert (first.message, first.alert, first.started_at) == ("free nodes", None, None)
    assert second.alert == "a job that it depends on, and that ended otherwise"


async def test_the_rest_of_an_array_is_one_row_until_its_tasks_begin(cluster: StandIn) -> None:
    rest = {"%i": "4_[2-3%1]", "%A": "4", "%F": "4", "%T": "PENDING", "%r": "JobArrayTaskLimit", "%N": ""}
    task = {"%i": "4_1", "%A": "5", "%F": "4", "%K": "1"}
    cluster.queue(rest, task)
    reading = Reading()
    assert (await reading.read()).keys() == {"slurm/4", "slurm/4_1"}
    assert reading.jobs["slurm/4"].model == "4_[2-3%1]"
    cluster.queue(task, {**task, "%i": "4_2", "%A": "6"}, {**task, "%i": "4_3", "%A": "4"})
    assert (await reading.read()).keys() == {"slurm/4_1", "slurm/4_2", "slurm/4_3"}


async def test_a_job_that_left_the_queue_ends_as_accounting_says(cluster: StandIn) -> None:
    cluster.queue({})
    reading = Reading()
    assert (await reading.read())["slurm/1"].status is JobStatus.RUNNING
    cluster.queue()
    cluster.accounts({"State": "OUT_OF_MEMORY", "ExitCode": "0:125"})
    ended = (await reading.read())["slurm/1"]
    assert (ended.status, ended.native_status, ended.error) == (
        JobStatus.FAILED, "OUT_OF_MEMORY", "out of memory",
    )  # fmt: skip


async def test_one_that_accounting_never_tells_of_is_not_said_to_run(cluster: StandIn) -> None:
    cluster.queue({})
    reading = Reading()
    await reading.read()
    cluster.queue()
    cluster.accounts({"State": "RUNNING", "End": "Unknown"})
    assert (await reading.read())["slurm/1"].status is JobStatus.RUNNING
    job = (await reading.read(slurm_known.UNSEEN_S + 1))["slurm/1"]
    assert (job.status, job.message) == (JobStatus.UNKNOWN, slurm_known.UNSEEN)


async def test_a_requeued_job_waits_again(cluster: StandIn) -> None:
    cluster.queue({})
    cluster.accounts({"State": "NODE_FAIL", "Submit": "2026-11-20T20:00:00"})
    reading = Reading()
    await reading.read()
    cluster.queue({"%T": "PENDING", "%r": "BeginTime", "%V": "2026-11-20T20:30:00", "%N": ""})
    assert (await reading.read())["slurm/1"].status is JobStatus.PENDING
    cluster.queue({"%T": "COMPLETED", "%V": "2026-11-20T20:30:00"})
    assert (await reading.read())["slurm/1"].status is JobStatus.COMPLETED


async def test_without_accounting_the_queue_is_read_all_the_same(cluster: StandIn) -> None:
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


async def test_accounting_that_is_down_is_a_note(cluster: StandIn) -> None:
    cluster.queue({})
    cluster.fault("sacct", "sacct: error: Problem talking to the database: Connection refused")
    reading = Reading()
    assert "slurm/1" in await reading.read()
    assert "accounting does not answer" in (reading.batches[-1].note or "")


FAULTS = [
    ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", SourceUnreachable,
     "slurmctld does not answer; check that it runs: scontrol ping"),
    ("slurm_load_jobs error: Socket timed out on send/recv operation", SourceUnreachable,
     "slurmctld took too long to answer"),
    ("squeue: error: If munged is up, restart with --num-threads=10\nMunge encode failed", SourceDenied,
     "munge -n | unmunge"),
    ("squeue: fatal: Could not establish a configuration source", SourceMissing, "set SLURM_CONF"),
    ("slurm_load_jobs error: Zero Bytes were transmitted or received", SourceDenied, "check munged"),
    ("slurm_load_jobs error: Incompatible versions of client and server code", SourceError, "release"),
    ("slurm_load_jobs error: Access/permission denied", SourceDenied, "may not ask Slurm"),
    ("slurm_load_jobs error: \x1b[31mwhat ever\x00", SourceError, "what ever"),
]  # fmt: skip


@pytest.mark.parametrize("target", ["local", "ssh://jdoe@cori"])
@pytest.mark.parametrize(("said", "kind", "line"), FAULTS)
async def test_each_fault_is_one_line(
    cluster: StandIn, target: str, said: str, kind: type[SourceError], line: str
) -> None:
    cluster.fault("squeue", said)
    with pytest.raises(kind) as raised:
        await Reading(target).source.poll(None)
    text = str(raised.value)
    assert text.startswith(f"{target}: ")
    assert line in text
    assert text.isprintable()


async def test_no_slurm_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(slurm_commands, "squeue_words", lambda separator: ["squeue-that-is-not-there"])
    with pytest.raises(SourceMissing, match=r"^local: there is no squeue; install Slurm's client commands"):
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
    reading.timer.at += QUEUE_EVERY_S
    await asyncio.wait_for(reading.source.changed(0.0), LONG_S)


async def test_what_costs_much_is_asked_seldom(cluster: StandIn) -> None:
    reading = Reading()
    asked = reading.source._commands.queue

    async def slow() -> slurm_commands.Answer:
        reading.timer.at += 3.0
        return await asked()

    reading.source._commands.queue = slow  # type: ignore[method-assign]
    await reading.read()
    await reading.read(50.0)
    assert len(cluster.calls("squeue")) == 1
    await reading.read(20.0)
    assert len(cluster.calls("squeue")) == 2


async def test_accounting_is_asked_for_what_is_new(cluster: StandIn) -> None:
    cluster.accounts({"End": "2026-11-20T20:30:00"})
    reading = Reading()
    await reading.read()
    await reading.read()
    first, second = (
        next(word for word in words if word.startswith("--starttime")) for words in cluster.calls("sacct")
    )
    assert first == "--starttime=2026-11-19T21:01:00"
    assert second == "--starttime=2026-11-20T20:25:00"


async def test_hostile_names_stay_names(cluster: StandIn) -> None:
    names = [text.encode("utf-8", "replace").decode()[:2000] for text in HOSTILE]
    names += ["a\n~b~\n1~2~RUNNING", 'x"; rm -rf /; $(id) `id`', "%i%j|\x1f|"]
    cluster.queue(
        *({"%i": str(number), "%A": str(number), "%j": name} for number, name in enumerate(names, 1))
    )
    reading = Reading()
    jobs = await reading.read()
    assert [jobs[f"slurm/{number}"].name for number in range(1, len(names) + 1)] == names
    assert not reading.batches[0].skip_count


async def test_a_detail_has_steps_paths_and_times(cluster: StandIn) -> None:
    cluster.captured()
    source = Reading().source
    detail = await source.detail(JobId("slurm/8"))
    assert detail is not None
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


SPOOF = "x UserId=root(0) GroupId=root(0) MCS_label=N/A JobState=RUNNING StdOut=/etc/passwd"


async def test_json_tells_exactly_what_a_user_chose(cluster: StandIn) -> None:
    cluster.captured()
    captured = json.loads((CAPTURES / "squeue.json").read_text())
    for job in captured["jobs"]:
        job["comment"] = SPOOF if job["job_id"] == 8 else ""
    cluster.show_json(json.dumps(captured))
    detail = await Reading().source.detail(JobId("slurm/8"))
    assert detail is not None
    facts = dict(detail.facts)
    assert facts["comment"] == SPOOF
    assert facts["output"] == f"{DIRECTORY}/lattice-8.out"


async def test_an_older_release_is_asked_for_json_once(cluster: StandIn) -> None:
    cluster.captured()
    source = Reading().source
    for number in (8, 9, 8):
        assert await source.detail(JobId(f"slurm/{number}")) is not None
    assert sum("--json" in words for words in cluster.calls("scontrol")) == 1


async def test_json_that_makes_no_sense_costs_nothing(cluster: StandIn) -> None:
    cluster.captured().show_json("{")
    assert await Reading().source.detail(JobId("slurm/8")) is not None


@pytest.mark.parametrize(("asked", "meant"), [("4_3", "4_3"), ("17", "4_3"), ("13", "4_1"), ("9", "9")])
async def test_tasks_are_found_by_either_number(cluster: StandIn, asked: str, meant: str) -> None:
    cluster.captured()
    detail = await Reading().source.detail(JobId(f"slurm/{asked}"))
    assert detail is not None
    assert detail.job.id == f"slurm/{meant}"


async def test_an_array_as_a_whole_is_told_by_its_tasks(cluster: StandIn) -> None:
    cluster.captured()
    detail = await Reading().source.detail(JobId("slurm/4"))
    assert detail is not None
    assert (detail.job.id, detail.job.status) == ("slurm/4", JobStatus.FAILED)
    assert detail.job.native_status == "3 COMPLETED, 1 FAILED"
    assert detail.job.error == "tasks 3 failed"


async def test_a_job_that_was_requeued_has_several_runs(cluster: StandIn) -> None:
    first = {"State": "NODE_FAIL", "ExitCode": "1:0"}
    again = {"Submit": "2026-11-20T20:21:00", "Start": "2026-11-20T20:22:00", "End": "2026-11-20T20:23:00"}
    cluster.accounts(first, again)
    detail = await Reading().source.detail(JobId("slurm/1"))
    assert detail is not None
    assert [run.native_status for run in detail.runs] == ["NODE_FAIL", "COMPLETED"]
    assert detail.job.runs == 2
    assert [change.after for change in detail.changes] == [
        "PENDING", "RUNNING", "NODE_FAIL", "PENDING", "RUNNING", "COMPLETED",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "job_id", ["slurm/99", "slurm/x", "slurm/", "slurm/1;id", "slurm/4_[1-2]", "slurm@other/1", "balsam/1"]
)
async def test_what_is_no_job_here(cluster: StandIn, job_id: str) -> None:
    cluster.captured()
    assert await Reading().source.detail(JobId(job_id)) is None


async def test_another_host_is_asked_over_ssh(cluster: StandIn) -> None:
    cluster.captured()
    reading = Reading("ssh://cori", label="cori")
    jobs = await reading.read()
    assert "slurm@cori/4_3" in jobs
    assert jobs["slurm@cori/4_3"].source == "ssh://cori"
    detail = await reading.source.detail(JobId("slurm@cori/4_3"))
    assert detail is not None


async def test_what_a_login_prints_and_settings_of_the_user_change_nothing(
    cluster: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.captured()
    ssh = cluster.path / "ssh"
    ssh.write_text(ssh.read_text().replace("exec sh", "echo 'Welcome to cori'; exec sh"))
    monkeypatch.setenv("SQUEUE_STATES", "RUNNING")
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    program = cluster.path / "squeue"
    kept = "for name in ('SQUEUE_STATES', 'SLURM_CLUSTERS'): assert name not in os.environ\n"
    program.write_text(program.read_text().replace("here = ", f"import os\n{kept}here = ", 1))
    assert len(await Reading("ssh://cori").read()) == 18


async def test_a_queue_that_is_too_long_loses_no_job_that_was_known(
    cluster: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"%i": str(number), "%A": str(number)} for number in range(1, 2000)]
    cluster.queue(*rows)
    reading = Reading()
    await reading.read()
    monkeypatch.setattr(slurm_commands, "MOST_BYTES", 1000)
    jobs = await reading.read()
    assert len(jobs) == len(rows)
    assert {job.status for job in jobs.values()} == {JobStatus.RUNNING}
    assert "its queue is longer" in (reading.batches[-1].note or "")


async def test_the_line_for_a_login_shell_is_one_line(cluster: StandIn) -> None:
    lines: list[str] = []
    shell = LocalShell("local")
    run = shell.run

    async def noted(line: str) -> Running:
        lines.append(line)
        return await run(line)

    shell.run = noted  # type: ignore[method-assign]
    await Commands("local", shell).queue()
    assert [line.count("\n") for line in lines] == [0]


async def test_a_directory_of_sirepo_names_the_job_there(cluster: StandIn) -> None:
    jid = "3pMDuIiL-lv6FKX2U-activityAnimation"
    cluster.queue({"%Z": f"/scratch/jdoe/sirepo-dev/user/3pMDuIiL/myapp/{jid}"})
    assert (await Reading().read())["slurm/1"].tags == f"sirepo:{jid}"


async def test_many_jobs_come_a_part_at_a_time(cluster: StandIn) -> None:
    cluster.queue(*({"%i": str(number), "%A": str(number)} for number in range(1, 5002)))
    reading = Reading()
    assert len(await reading.read()) == 5001
    assert max(len(batch.jobs) for batch in reading.batches) <= 2000
