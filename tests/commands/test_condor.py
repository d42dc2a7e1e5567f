"""Jobs of HTCondor and jobsub on the command line, from files to a verdict and to their trace."""

from pathlib import Path

from tests.commands.contract import check_document
from tests.commands.running import Runner
from tests.condor import CONDOR
from tests.tracing import CAPTURES, EXPECTED, capture_file

LOGS = (
    "--condor-log",
    CONDOR / "cluster.log",
    "--condor-log",
    CONDOR / "81419552.log",
    "--condor-log",
    CONDOR / "job.ad",
)
FAILED = EXPECTED["job-fail"]["traceID"]
CLUSTER = EXPECTED["cluster-4"]["traceID"]
SPANS = ("--trace-file", CAPTURES / "job-fail.otlp.pb", "--trace-file", CAPTURES / "job-fail.logs.json")


def test_captured_jobs_are_rows_of_the_table(run: Runner) -> None:
    ran = run(*LOGS, "jobs", "--json")
    check_document(ran.json, "jobs")
    assert {job["id"]: (job["status"], job["native_status"], job["runs"]) for job in ran.json["jobs"]} == {
        "81422934.0@jobsub02.fnal.gov": ("failed", "COMPLETED", 1),
        "81422934.1@jobsub02.fnal.gov": ("canceled", "REMOVED", 2),
        "81419552.0@jobsub02.fnal.gov": ("failed", "COMPLETED", 1),
    }
    assert [source["skipped"] for source in ran.json["sources"]] == [0, 0, 0]


def test_the_timeline_has_a_run_for_each_time_that_it_began(run: Runner) -> None:
    ran = run(*LOGS, "timeline", "81422934.1", "--json")
    assert [[step["step"] for step in op["steps"]] for op in ran.json["ops"]] == [
        ["IDLE", "RUNNING", "HELD", "IDLE"],
        ["RUNNING", "IDLE", "REMOVED"],
    ]
    assert {step["component"] for op in ran.json["ops"] for step in op["steps"]} == {"schedd", "execute"}
    assert ran.json["ops"][0]["steps"][2]["line"] == 27


def test_a_job_that_names_no_trace_has_candidates_and_no_trace(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "q.ad"
    queued = EXPECTED["jobsub-ok"]["start_unix_nano"] // 10**9 + 2
    ids = 'ClusterId = 5\nProcId = 0\nGlobalJobId = "jobsub02.fnal.gov#5.0#1"\n'
    path.write_text(f"{ids}QDate = {queued}\nJobStatus = 1\n")
    spans = ("--trace-file", capture_file("jobsub-ok", "otlp.pb"))
    ran = run(*spans, "--condor-log", path, "trace", "5.0", "--json")
    assert (ran.code, ran.json["trace_id"]) == (4, None)
    (found,) = ran.json["candidates"]
    assert found["trace_id"] == EXPECTED["jobsub-ok"]["traceID"]
    assert 0 < found["score"] < 1
    assert found["why"]
    assert f"perhaps {found['trace_id']} ({100 * found['score']:.0f} % sure: " in ran.err
