"""`compare` on the captures of a real system."""

import json
import shutil
from pathlib import Path

from tests.commands.running import AT, CAPTURES, Runner, sources_of

BAD = "hZk95g40-tAdRyEYP-heightWeightReport"
GOOD = "hZk95g40-4u2Pj0fB-heightWeightReport"
AGAIN = "W75u0t3i-8tss89dE-heightWeightReport"


def test_a_failed_run_is_put_beside_a_good_one_of_the_same_user(run: Runner) -> None:
    document = run("compare", BAD, "--json", "--at", AT, *sources_of("local")).json
    assert (document["this"]["id"], document["other"]["id"]) == (BAD, GOOD)
    assert document["why"] == "the last good run of heightWeightReport by the same user"
    parts = [step for step in document["steps"] if step["parts"]]
    assert [(step["step"], step["other"]) for step in parts] == [("status error", None)]
    facts = {fact["name"]: fact for fact in document["facts"]}
    assert facts["state"]["differs"]
    assert not facts["user"]["differs"]
    assert facts["error"]["this"] == "a big ugly error"


def test_a_job_that_ran_before_is_compared_with_itself(run: Runner) -> None:
    document = run("compare", AGAIN, "--json", "--at", AT, *sources_of("local")).json
    assert (document["this"], document["other"]) == ({"id": AGAIN, "run": 3}, {"id": AGAIN, "run": 1})
    assert all("not kept" in file["note"] for file in document["files"])


def test_another_job_may_be_named(run: Runner) -> None:
    other = "W75u0t3i-ahPf2peS-heightWeightReport"
    ran = run("compare", BAD, other, "--at", AT, *sources_of("local"))
    assert ran.code == 0
    assert f"beside {other}" in ran.out


def test_inputs_are_compared_by_content_and_masked(run: Runner, tmp_path: Path) -> None:
    srdb = tmp_path / "db"
    shutil.copytree(CAPTURES / "local" / "supervisor-job", srdb / "supervisor-job")
    for job, breed in ((BAD, "Unknown"), (GOOD, "Poodle")):
        uid, simulation, model = job.split("-")
        run_dir = srdb / "user" / uid / "myapp" / simulation / model
        run_dir.mkdir(parents=True)
        models = {"dog": {"breed": breed}, "token": f"secret-of-{breed}"}
        (run_dir / "in.json").write_text(json.dumps({"models": models, "size": 3}))
        (run_dir / "parameters.py").write_text("dog = 1\n")
    ran = run("compare", BAD, "--json", "--srdb", srdb, "--at", AT)
    files = {file["name"]: file for file in ran.json["files"]}
    assert any('-   "breed": "Poodle"' in line for line in files["in.json"]["diff"])
    assert any('+   "breed": "Unknown"' in line for line in files["in.json"]["diff"])
    assert "secret-of" not in ran.out
    assert files["parameters.py"]["note"] == "the same"


def test_a_good_run_that_another_record_contradicts_is_doubted_first(run: Runner, tmp_path: Path) -> None:
    records = tmp_path / "supervisor-job"
    records.mkdir()
    told = json.loads((CAPTURES / "local" / "supervisor-job" / f"{GOOD}.json").read_bytes())
    told |= {"status": "error", "error": "no space left", "dbUpdateTime": told["dbUpdateTime"] - 60}
    (records / f"{GOOD}.json").write_text(json.dumps(told))
    words = ("compare", BAD, GOOD, "--at", AT, "--srdb", tmp_path, *sources_of("local"))
    ran, document = run(*words), run(*words, "--json")
    assert ran.code == document.code == 3
    (doubt,) = document.json["doubts"]
    assert doubt.startswith(f"{GOOD}: its sources disagree")
    assert ran.out.splitlines()[1] == f"not sure: {doubt}"
    assert "as far as is known, first difference: only" in ran.out


def test_what_cannot_be_read_is_said_before_the_difference(run: Runner, tmp_path: Path) -> None:
    lost = tmp_path / "server.log"
    words = ("compare", BAD, "--at", AT, *sources_of("local"), "--log", lost)
    ran = run(*words)
    assert ran.code == 3
    assert ran.out.splitlines()[1].startswith(f"not sure: {lost} cannot be read")
    assert run(*words, "--json").json["doubts"]
    intact = run(*words[:-2], "--json")
    assert (intact.code, intact.json["doubts"]) == (0, [])


def test_without_a_good_run_it_says_so(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "supervisor-job").mkdir()
    shutil.copy(CAPTURES / "local" / "supervisor-job" / f"{BAD}.json", tmp_path / "supervisor-job")
    ran = run("compare", BAD, "--srdb", tmp_path, "--at", AT)
    assert ran.code == 4
    assert "no good run of heightWeightReport is known" in ran.err


def test_a_step_that_both_have_in_another_order_is_no_difference(run: Runner) -> None:
    ran = run("compare", "3pMDuIiL-lv6FKX2U-activityAnimation", "--at", AT, *sources_of("sbatch"))
    assert "first difference: only this run has status error" in ran.out
