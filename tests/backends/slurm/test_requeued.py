"""Jobs that ran more than once under one number."""

from tests.backends.slurm.reading import Reading
from tests.slurm_stand_in import StandIn


async def test_a_job_that_was_requeued_tells_how_often_it_ran(cluster: StandIn) -> None:
    again = {"%V": "2026-11-20T20:30:00", "%S": "2026-11-20T20:31:00"}
    cluster.queue({}, {"%i": "2", "%A": "2", **again}, {"%i": "3", "%A": "3", **again})
    earlier = {"State": "REQUEUED", "End": "2026-11-20T20:30:00"}
    ended = {"JobID": "3", "JobIDRaw": "3", "User": "mallory", "Submit": "2026-11-19T20:00:00"}
    cluster.accounts({"JobID": "2", "JobIDRaw": "2", **earlier}, ended)
    reading = Reading()
    jobs = await reading.read()
    assert [jobs[f"slurm/{number}"].runs for number in (1, 2, 3)] == [1, 2, 1]
    cluster.queue({**again, "%T": "PENDING", "%N": ""})
    assert (await reading.read())["slurm/1"].runs == 1
    cluster.queue(again)
    assert (await reading.read())["slurm/1"].runs == 2
    assert any("--duplicates" in words for words in cluster.calls("sacct"))


async def test_the_last_run_counts_in_whatever_order_accounting_tells(cluster: StandIn) -> None:
    first = {"State": "NODE_FAIL", "ExitCode": "1:0"}
    last = {"Submit": "2026-11-20T20:30:00", "Start": "2026-11-20T20:31:00", "End": "2026-11-20T20:40:00"}
    for rows in ((first, last), (last, first)):
        cluster.accounts(*rows)
        job = (await Reading().read())["slurm/1"]
        assert (job.native_status, job.runs) == ("COMPLETED", 2)
