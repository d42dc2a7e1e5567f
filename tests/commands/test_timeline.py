"""`timeline` against what was noted inside the real supervisor: every job, every op, exactly."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import AT, CAPTURES, TRUE_CAPTURES, Runner, sources_of

STATUSES = {"error": "failed", "job_run_purged": "purged"}
FULL_IDS = {"local-debug", "docker-debug"}
"""Captures whose logs show full op ids."""


def truth_of(capture: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((CAPTURES / capture / "expected.json").read_text())["jobs"]
    return truth


def all_jobs() -> Iterator[tuple[str, str]]:
    for capture in TRUE_CAPTURES:
        yield from ((capture, jid) for jid in truth_of(capture))


@pytest.mark.parametrize(("capture", "jid"), [*all_jobs()])
def test_a_timeline_is_what_happened(capture: str, jid: str, run: Runner) -> None:
    truth = truth_of(capture)[jid]
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
    document = json.loads((CAPTURES / capture / "expected.json").read_text())
    users = {jid.partition("-")[0]: jid for jid in document["jobs"]}
    for user, jid in users.items():
        truth = [op for op in document["opsWithoutJob"] if op["uid"] == user]
        found = run("timeline", jid, "--json", *sources_of(capture)).json["ops_without_job"]
        assert [(op["op"], op["name"], op["agent"], op["sends"], op["replies"]) for op in found] == [
            (op["op"], op["opName"], op["agent"], op["sent"], op["replies"]) for op in truth
        ]


JID = "hZk95g40-4u2Pj0fB-heightWeightReport"
FIRST, AFTER = 66, 80
"""The two lines of an update are followed by these lines until the next update comes."""
TIMES = 30


def test_updates_that_repeat_are_one_row_and_all_of_them_in_json(run: Runner, tmp_path: Path) -> None:
    lines = (CAPTURES / "local" / "supervisor.log").read_text().splitlines(keepends=True)
    again = [line.replace(" pending [", " running [") for line in lines[FIRST - 1 : FIRST + 1]]
    log = tmp_path / "supervisor.log"
    log.write_text("".join([*lines[:AFTER], *again * TIMES, *lines[AFTER:]]))
    sources = ["--srdb", str(CAPTURES / "local"), "--log", f"supervisor={log}", "--at", AT]
    rows = [line for line in run("timeline", JID, *sources).out.splitlines() if "status running" in line]
    assert len(rows) <= 2
    assert f"status running × {TIMES}" in rows[-1] or f"status running × {TIMES + 1}" in rows[-1]
    assert "each after update" in rows[-1]
    ops = run("timeline", JID, "--json", *sources).json["ops"]
    found = [step["step"] for op in ops for step in op["steps"]]
    assert found.count("status running") == TIMES + 1
    assert "status running" in run("timeline", JID, "--csv", *sources).out
