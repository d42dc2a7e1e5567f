"""The commands on a Balsam server: its jobs by all that its event log can be asked for, one job whole."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from jobtui.recording.database import Recording
from tests.balsam_server import FOLDER, TOKEN, write_login
from tests.commands.contract import check_document
from tests.commands.report_site import Site, site
from tests.commands.running import Runner

__all__ = ["site"]


@pytest.mark.parametrize(
    ("word", "narrows"),
    [
        ("id=balsam/7", lambda row, states: row["id"] == 7),
        ("native:RUNNING", lambda row, states: row["state"] == "RUNNING"),
        ("tag:experiment:post", lambda row, states: row["tags"].get("experiment") == "post"),
        ("tag:experiment", lambda row, states: "experiment" in row["tags"]),
        ("batch:2", lambda row, states: row["batch_job_id"] == 2),
        ("scheduler:99456", lambda row, states: row["batch_job_id"] == 2),
        ("to:RUN_ERROR", lambda row, states: "RUN_ERROR" in states),
        ("from:RUN_ERROR", lambda row, states: "RUN_ERROR" in states and row["state"] != "RUN_ERROR"),
        ("system:balsam", lambda row, states: True),
    ],
)
def test_what_the_event_log_can_be_asked_for_is_a_filter(word: str, narrows: Any, site: Site) -> None:
    batch = next(row for row in site.balsam.batch_jobs if row["id"] == 2)
    batch["scheduler_id"] = 99456
    found = {job["id"] for job in site("jobs", word, "--json").json["jobs"]}
    states: dict[int, set[str]] = {}
    for event in site.balsam.events:
        states.setdefault(event["job_id"], set()).add(event["to_state"])
    assert found == {
        f"balsam/{row['id']}" for row in site.balsam.jobs if narrows(row, states.get(row["id"], set()))
    }


def test_a_timeline_has_a_step_for_each_event(site: Site) -> None:
    number = next(row["job_id"] for row in site.balsam.events if row["to_state"] == "RESTART_READY")
    events = [row for row in site.balsam.events if row["job_id"] == number]
    ran = site("timeline", str(number), "--json")
    steps = [step for op in ran.json["ops"] for step in op["steps"]]
    assert [step["line"] for step in steps] == sorted(row["id"] for row in events)
    assert len(ran.json["ops"]) > 1
    assert {step["component"] for step in steps} <= {"balsam", "site", "launcher"}
    assert "restart" in site("timeline", str(number)).out.lower()


def test_documents_keep_the_contract(site: Site) -> None:
    for words in (["jobs"], ["show", "1"], ["timeline", "1"]):
        check_document(site(*words, "--json").json, words[0])


def test_doctor_says_how_it_is(site: Site, plain_environment: Path) -> None:
    ran = site("doctor")
    assert ran.code == 0, ran.out + ran.err
    assert f"{len(site.balsam.jobs)} jobs" in ran.out
    write_login(plain_environment / ".balsam" / "client.yml", site.url, TOKEN, "2026-11-20 19:00:00")
    assert "the login has expired" in site("doctor").out
    site.balsam.token = "another"
    ran = site("doctor")
    assert ran.code in (1, 5)
    assert "jobtui login balsam" in ran.out


def test_secrets_in_what_a_job_carries_are_masked(site: Site) -> None:
    row = next(row for row in site.balsam.jobs if row["state"] == "FAILED")
    secret = "s3cr3t-of-the-job"
    row["tags"] = {"password": f"{secret}-1"}
    row["parameters"] = {"api_key": f"{secret}-2", "line": f"--password={secret}-3"}
    row["data"] = {"token": f"{secret}-4"}
    row["last_update"] = "2026-11-20T19:29:00+00:00"
    for event in site.balsam.events:
        if event["job_id"] == row["id"]:
            event["data"] = {**event["data"], "message": f"PASSWORD={secret}-5", "token": f"{secret}-6"}
    for words in ("jobs", "show", "timeline", "explain", "report"):
        thing = [] if words == "jobs" else [str(row["id"])]
        for form in ([], ["--json"], ["--csv"]):
            ran = site(words, *thing, *(["--markdown"] if words == "report" else []), *form)
            assert secret not in ran.out + ran.err, (words, form)


@pytest.fixture
def mounted(site: Site, tmp_path: Path) -> Path:
    """The file system of the site is mounted here."""
    place = tmp_path / "site"
    shutil.copytree(FOLDER / "site_logs", place / "log")
    site.balsam.sites[0]["path"] = str(place)
    return place


def test_the_logs_of_its_site_are_lines_of_the_job(site: Site, mounted: Path) -> None:
    lines = site("logs", "7", "--json").json["lines"]
    assert {line["component"] for line in lines} == {"site", "launcher"}
    assert {Path(line["source"]).parent for line in lines} == {mounted / "log"}
    assert [line["level"] for line in lines if "nonzero return 3" in line["text"]] == ["error"]
    assert "Job 7 advanced to PREPROCESSED" in site("logs", "balsam/7").out


def test_doctor_counts_the_lines_of_its_site(site: Site, mounted: Path) -> None:
    ran = site("doctor")
    assert ran.code == 0, ran.out + ran.err
    lines = sum(len(path.read_text().splitlines()) for path in (mounted / "log").iterdir())
    assert f"3 files, {lines} lines" in ran.out
    assert "[mounts]" not in ran.out


@pytest.mark.parametrize("number", [72, 83, 8])
def test_bundle_and_report_have_the_verdict_that_explain_has(
    number: int, site: Site, tmp_path: Path, run: Runner
) -> None:
    job = f"balsam/{number}"
    live = site("explain", job, "--json")
    file = tmp_path / "one.jobtui"
    assert site("bundle", job, "--output", str(file)).code == 0
    assert run("replay", file, "explain", job, "--json").out == live.out
    kept = Recording(file)
    assert kept.about.verdict is not None
    assert kept.about.verdict["sentence"] == live.json["sentence"]
    kept.close()
    assert f"Verdict `{live.json['verdict']}`" in site("report", job, "--markdown").out
