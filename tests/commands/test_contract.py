"""Every command's JSON keeps the contract, one job is told as it was, and which jobs and agents there are."""

import csv
import io
import json
from pathlib import Path

import pytest

from jobtui.backends.sirepo.source import SirepoDb
from jobtui.commands.printing import print_csv
from tests.analysis.captured import expected
from tests.commands.running import (
    ALL_CAPTURES,
    AT,
    CAPTURES,
    FAILED,
    TRUE_CAPTURES,
    Runner,
    a_db,
    check_document,
    sources_of,
)


def jids_of(capture: str) -> list[str]:
    return sorted(path.stem for path in (CAPTURES / capture / "supervisor-job").glob("*.json"))


@pytest.mark.parametrize("capture", ALL_CAPTURES)
def test_jobs_show_and_find(capture: str, run: Runner) -> None:
    ran = run("jobs", "--json", "--at", AT, *sources_of(capture))
    assert ran.code == 0
    check_document(ran.json, "jobs")
    shown = {job["id"] for job in ran.json["jobs"]}
    assert shown == {jid for jid in jids_of(capture) if "_1_st" not in jid}
    for jid in jids_of(capture)[:3]:
        ran = run("show", jid, "--json", "--at", AT, *sources_of(capture))
        check_document(ran.json, "show")
        assert ran.json["job"]["id"] == jid
        assert ran.json["job"]["native"]["computeJid"] == jid
    ran = run("find", jids_of(capture)[0], "--json", "--at", AT, *sources_of(capture))
    check_document(ran.json, "find")
    assert ran.json["candidates"][0]["id"] == jids_of(capture)[0]


@pytest.mark.parametrize("capture", ALL_CAPTURES)
def test_timeline_and_logs(capture: str, run: Runner) -> None:
    for jid in jids_of(capture)[:3]:
        timeline = run("timeline", jid, "--json", "--at", AT, *sources_of(capture))
        check_document(timeline.json, "timeline")
        logs = run("logs", jid, "--json", "--at", AT, *sources_of(capture))
        check_document(logs.json, "logs")
        assert logs.code == 0
        steps = {(s["source"], s["line"]) for op in timeline.json["ops"] for s in op["steps"]}
        assert steps <= {(line["source"], line["line"]) for line in logs.json["lines"]}


def test_a_text_in_csv_is_not_a_formula_and_numbers_stay(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
    wide = [f"{sign}1" for sign in "\uff1d\uff0b\uff0d\uff20"]
    texts = ["=1+1", "+cmd", "-cmd", "@SUM(A1)", " =1", ["=x", "y"], *wide]
    print_csv(names, [dict(zip(names, texts, strict=True)), {"a": -1.5, "b": "-1.5", "c": "a=b", "d": -3}])

    _, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    plain = ["'=1+1", "'+cmd", "'-cmd", "'@SUM(A1)", "' =1", "'=x y"]
    assert rows[0] == plain + [f"'{text}" for text in wide]
    assert rows[1][:6] == ["-1.5", "-1.5", "a=b", "-3", "", ""]


RERUN = "W75u0t3i-8tss89dE-heightWeightReport"


def test_the_history_is_whole_and_runs_are_counted(run: Runner) -> None:
    truth = expected("local")["jobs"][RERUN]
    ran = run("show", RERUN, "--json", *sources_of("local"))
    assert len(ran.json["history"]) == truth["historyLength"]
    assert [entry["native_status"] for entry in ran.json["history"]] == truth["historyStatuses"]
    assert ran.json["job"]["runs"] == len(ran.json["runs"]) == 3
    assert [entry["status"] for entry in ran.json["runs"]] == ["completed", "failed", "completed"]
    plain = run("show", RERUN, "--plain", *sources_of("local")).out
    assert plain.count("✗ failed") == 1
    assert "RUN" in plain


def test_one_job_is_shown_without_reading_the_others(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: SirepoDb, cursor: str | None) -> None:
        raise AssertionError("read everything")

    monkeypatch.setattr(SirepoDb, "poll", refuse)
    assert run("show", FAILED, "--srdb", CAPTURES / "local").code == 1


@pytest.mark.parametrize("capture", ["local", "docker-agents-never-start", "sbatch"])
def test_show_and_timeline_end_as_explain_does(run: Runner, capture: str) -> None:
    flags = ("--at", AT, *sources_of(capture))
    listed = run("jobs", "--json", *flags).json["jobs"]
    for job in listed[:6]:
        codes = {command: run(command, job["id"], *flags).code for command in ("explain", "show", "timeline")}
        assert len(set(codes.values())) == 1, (job["id"], codes)


STATUSES = {"error": "failed", "job_run_purged": "purged"}
FULL_IDS = {"local-debug", "docker-debug"}
"""Captures whose logs show full op ids."""

ALL_JOBS = [(capture, jid) for capture in TRUE_CAPTURES for jid in expected(capture)["jobs"]]


@pytest.mark.parametrize(("capture", "jid"), ALL_JOBS)
def test_a_timeline_is_what_happened(capture: str, jid: str, run: Runner) -> None:
    truth = expected(capture)["jobs"][jid]
    ran = run("timeline", jid, "--json", "--at", AT, *sources_of(capture))
    job, ops = ran.json["job"], ran.json["ops"]
    status = STATUSES.get(truth["finalStatus"], truth["finalStatus"])
    assert (job["status"], job["native_status"]) == (status, truth["finalStatus"])
    assert job["error"] == truth["error"]
    assert [(op["op"], op["name"], op["agent"], op["sends"], op["replies"], op["updates"]) for op in ops] == [
        (op["op"], op["opName"], op["agent"], op["sent"], op["replies"], op["updates"]) for op in truth["ops"]
    ]
    for op, true in zip(ops, truth["ops"], strict=True):
        assert op["op_id"] in ({true["opId"]} if capture in FULL_IDS else {true["opId"], None})
    assert ran.code == 1 or status != "failed"


@pytest.mark.parametrize("capture", TRUE_CAPTURES)
def test_ops_without_a_job_are_given_to_their_user(capture: str, run: Runner) -> None:
    document = expected(capture)
    users = {jid.partition("-")[0]: jid for jid in document["jobs"]}
    for user, jid in users.items():
        truth = [op for op in document["opsWithoutJob"] if op["uid"] == user]
        found = run("timeline", jid, "--json", *sources_of(capture)).json["ops_without_job"]
        assert [(op["op"], op["name"], op["agent"], op["sends"], op["replies"]) for op in found] == [
            (op["op"], op["opName"], op["agent"], op["sent"], op["replies"]) for op in truth
        ]


BAD = "hZk95g40-tAdRyEYP-heightWeightReport"
GOOD = "hZk95g40-4u2Pj0fB-heightWeightReport"


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


def ids(out: str) -> list[str]:
    return [job["id"] for job in json.loads(out)["jobs"]]


def test_jobs_that_need_attention_come_first_and_then_the_newest(tmp_path: Path, run: Runner) -> None:
    db = a_db(
        tmp_path,
        aaaaaaaa__aaaaaaaa__old={"status": "completed", "lastUpdateTime": 1795206000},
        aaaaaaaa__bbbbbbbb__new={"status": "completed", "lastUpdateTime": 1795207000},
        aaaaaaaa__cccccccc__live={
            "status": "running", "computeJobStart": 1795208300, "lastUpdateTime": 1795208300,
            "jobRunMode": "parallel",
        },
        aaaaaaaa__dddddddd__hangs={
            "status": "pending", "computeJobQueued": 1795200000, "jobRunMode": "sequential",
        },
    )  # fmt: skip
    ran = run("jobs", "--srdb", db, "--at", AT, "--json")
    assert [jid.rpartition("-")[2] for jid in ids(ran.out)] == ["hangs", "live", "new", "old"]
    assert ran.json["jobs"][0]["flags"] == ["no_progress"]


@pytest.mark.parametrize("capture", TRUE_CAPTURES)
@pytest.mark.parametrize("form", ["--json", "--csv", "--plain"])
def test_full_ids_of_agents_are_never_printed(capture: str, form: str, run: Runner) -> None:
    ran = run("agents", form, "--at", AT, *sources_of(capture))
    text = (CAPTURES / capture / "supervisor.log").read_text(errors="replace")
    full = {part[:32] for part in text.split("'agent_id': '")[1:]}
    assert full
    assert not [one for one in full if one[:8] in ran.out + ran.err]
