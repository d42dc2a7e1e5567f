"""`incidents` on the captures of a real system."""

from collections import Counter
from pathlib import Path

from tests.analysis.captured import expected
from tests.analysis.explain.cases import ASKED
from tests.commands.contract import each, has, number, one_of, or_null, text, texts, time, whole
from tests.commands.running import AT, Runner, sources_of
from tests.condor import event, executing, submitted

GROUP = {
    "verdict": text, "verdicts": dict[str, whole], "count": whole, "sentence": text, "confidence": number,
    "doubtful": whole, "first_at": or_null(time),
    "last_at": or_null(time), "shape": texts, "first": text, "jobs": texts,
}  # fmt: skip
CONTRACT = {
    "schema": one_of("jobtui/incidents/1"),
    "incidents": each(GROUP),
    "alone": each(GROUP),
    "looked_at": whole,
    "since": time,
    "failed_before": whole,
    "doubtful": texts,
    "blind_spots": texts,
}


def test_what_went_wrong_is_grouped(run: Runner) -> None:
    ran = run("incidents", "--json", "--at", AT, *sources_of("local"))
    has(ran.json, CONTRACT)
    assert ran.code == 3
    (group,) = ran.json["incidents"]
    failed = [
        jid for jid, job in expected("local")["jobs"].items() if ASKED[job["asked"][-1]] == "program_failed"
    ]
    assert sorted(group["jobs"]) == sorted(failed)
    assert {one["verdict"] for one in ran.json["alone"]} == {
        "killed_by_signal", "timed_out", "prepare_failed", "agent_lost", "supervisor_restarted",
        "run_dir_gone",
    }  # fmt: skip
    assert (ran.json["doubtful"], ran.json["blind_spots"]) == ([], [])
    for one in (group, *ran.json["alone"]):
        told = [run("explain", jid, "--json", "--at", AT, *sources_of("local")).json for jid in one["jobs"]]
        assert Counter(each["verdict"] for each in told) == one["verdicts"]
        assert min(each["confidence"] for each in told) == one["confidence"]
    ran = run("incidents", "-n", "0", "--at", AT, *sources_of("local"))
    assert (ran.code, ran.out, "and 7 more" in ran.err) == (3, "", True)  # not that nothing went wrong


def test_a_window_in_which_nothing_went_wrong(run: Runner) -> None:
    ran = run("incidents", "--at", "2026-11-25T00:00:00Z", "--since", "1h", *sources_of("local"))
    assert ran.code == 0
    assert ran.out == "no failures in the last 1 h; 4 before (try --since 7d)\n"


def test_the_window_widens_by_itself_and_the_exit_code_is_of_what_was_asked(run: Runner) -> None:
    ran = run("incidents", "--json", "--at", "2026-11-25T00:00:00Z", *sources_of("local"))
    assert (ran.code, ran.json["well"], ran.json["failed_before"]) == (0, True, 4)
    assert sum(one["verdict"] == "program_failed" for one in ran.json["incidents"]) == 1


def test_with_a_source_that_cannot_be_read_nothing_is_said_to_be_well(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "supervisor-job").mkdir()
    ran = run("incidents", "--srdb", tmp_path, "--condor-log", tmp_path / "missing.log")
    assert ran.code == 3
    first, second = ran.out.splitlines()
    assert "missing.log cannot be read" in first
    assert second.startswith("nothing is known to have gone wrong with 0 jobs")


def test_jobs_of_htcondor_get_their_own_verdicts(run: Runner, tmp_path: Path) -> None:
    log = tmp_path / "event.log"
    held = "".join(
        submitted(job=job)
        + executing(job=job)
        + event(12, "2026-11-20 10:02:00Z", "Job was held.", "too much memory", "Code 34 Subcode 0", job=job)
        for job in ("007.000.000", "007.001.000")
    )
    log.write_text(held)
    ran = run("incidents", "--json", "--at", "2026-11-20T11:00:00Z", "--condor-log", str(log))
    (group,) = ran.json["incidents"]
    assert (group["verdict"], group["count"]) == ("held", 2)
    assert "too much memory" in group["sentence"]
