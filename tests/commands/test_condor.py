"""Jobs of HTCondor and jobsub on the command line, from files to a verdict and to their trace."""

from pathlib import Path

import pytest

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
OF_CLUSTER = ("--trace-file", capture_file("cluster-4", "otlp.pb"))


def test_captured_jobs_are_rows_of_the_table(run: Runner) -> None:
    ran = run(*LOGS, "jobs", "--json")
    check_document(ran.json, "jobs")
    assert {job["id"]: (job["status"], job["native_status"], job["runs"]) for job in ran.json["jobs"]} == {
        "81422934.0@jobsub02.fnal.gov": ("failed", "COMPLETED", 1),
        "81422934.1@jobsub02.fnal.gov": ("canceled", "REMOVED", 2),
        "81419552.0@jobsub02.fnal.gov": ("failed", "COMPLETED", 1),
    }
    assert [source["skipped"] for source in ran.json["sources"]] == [0, 0, 0]


def test_a_cluster_of_several_is_ambiguous(run: Runner) -> None:
    ran = run(*LOGS, "show", "81422934", "--json")
    assert ran.code == 4
    assert "ambiguous" in ran.err


@pytest.mark.parametrize(
    ("job", "verdict", "code"),
    [
        ("81422934.0", "killed_by_signal", 3),
        ("81422934.1", "canceled", 0),
        ("81419552.0", "program_failed", 1),
    ],
)
def test_captured_jobs_are_explained(job: str, verdict: str, code: int, run: Runner) -> None:
    ran = run(*LOGS, "explain", job, "--json")
    assert (ran.code, ran.json["verdict"]) == (code, verdict)
    assert ran.json["evidence"]
    facts = [[fact["text"] for fact in one["facts"]] for one in ran.json["contradictions"]]
    assert facts == ([["killed by signal 9", "exit status 2"]] if job == "81422934.0" else [])


def test_the_timeline_has_a_run_for_each_time_that_it_began(run: Runner) -> None:
    ran = run(*LOGS, "timeline", "81422934.1", "--json")
    assert [[step["step"] for step in op["steps"]] for op in ran.json["ops"]] == [
        ["IDLE", "RUNNING", "HELD", "IDLE"],
        ["RUNNING", "IDLE", "REMOVED"],
    ]
    assert {step["component"] for op in ran.json["ops"] for step in op["steps"]} == {"schedd", "execute"}
    assert ran.json["ops"][0]["steps"][2]["line"] == 27


@pytest.mark.parametrize("proc", range(4))
def test_one_process_of_a_cluster_is_shown_alone(proc: int, run: Runner) -> None:
    ran = run(*OF_CLUSTER, "trace", f"81430102.{proc}@jobsub02.fnal.gov", "--json")
    check_document(ran.json, "trace")
    assert (ran.code, ran.json["trace_id"]) == (int(proc == 2), CLUSTER)
    assert ran.json["spans"] == (18 if proc == 2 else 22)
    assert len(ran.json["root_causes"]) == int(proc == 2)
    assert "3 others" in " ".join(ran.json["notes"])


def test_the_whole_trace_is_there_for_its_id(run: Runner) -> None:
    assert run(*OF_CLUSTER, "trace", CLUSTER, "--json").json["spans"] == EXPECTED["cluster-4"]["spans"]


@pytest.mark.parametrize(
    "thing",
    [
        CAPTURES / "job-fail" / "job.out",
        CAPTURES / "job-fail" / "job.err",
        CAPTURES / "job-fail" / "simple.cmd",
        CAPTURES / "job-fail" / "submit.stdout",
        CAPTURES / "job-fail.jaeger.json",
        "81419552.0",
        "https://tempo.example.org/explore?traceID=212c891717bfbac28a34dec05b616f14",
        "http://127.0.0.1:16686/jaeger/trace/212c891717bfbac28a34dec05b616f14?uiFind=x",
    ],
    ids=str,
)
def test_files_ids_and_addresses_lead_to_the_trace(thing: object, run: Runner) -> None:
    ran = run(*SPANS, "trace", thing, "--json")
    assert (ran.code, ran.json["trace_id"]) == (1, FAILED)
    assert [cause["name"] for cause in ran.json["root_causes"]] == ["hardWork.step"]


def test_a_job_leads_to_the_trace_that_its_submit_file_or_output_names(run: Runner) -> None:
    files = ("--condor-log", CAPTURES / "job-fail" / "job.out")
    ran = run(*SPANS, *files, "trace", "81419552.0", "--json")
    assert (ran.code, ran.json["trace_id"]) == (1, FAILED)
    assert ran.json["notes"][0] == "it was handed this trace, its files say"


def test_a_file_leads_to_its_job_and_its_trace(run: Runner) -> None:
    ran = run(*LOGS, "find", CAPTURES / "81430102.2.out", "--json")
    assert [(one["kind"], one["id"]) for one in ran.json["candidates"]] == [
        ("job", "81430102.2@jobsub02.fnal.gov"),
        ("trace", CLUSTER),
    ]
    assert ran.code == 0


def test_the_job_that_was_handed_a_trace_is_found_by_it(run: Runner) -> None:
    line = "see https://jaeger.example.org/trace/2797255385ce5212c9cf3bdcfac11067"
    ran = run(*LOGS, "find", line, "--json")
    assert [(one["kind"], one["job"]) for one in ran.json["candidates"]] == [
        ("trace", None),
        ("job", "81422934.0@jobsub02.fnal.gov"),
    ]


def test_a_trace_that_nothing_was_received_of_is_named(run: Runner) -> None:
    ran = run(*SPANS, *LOGS, "trace", "81422934.0", "--json")
    assert (ran.code, ran.json["trace_id"]) == (4, None)
    assert "leads to trace 2797255385ce5212c9cf3bdcfac11067" in ran.err


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


def test_doctor_says_what_a_log_is_worth(run: Runner) -> None:
    ran = run(*LOGS, "doctor", "--json")
    assert [(check["kind"], check["fine"], check["records"]) for check in ran.json["checks"]] == [
        ("condor_log", True, 12), ("condor_log", True, 10), ("condor_log", True, 1),
    ]  # fmt: skip
