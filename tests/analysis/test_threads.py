"""What operators asked in public threads, rebuilt from the lines they quote, and what jobtui answers."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobtui.analysis.compare import CLUTTER
from jobtui.analysis.explain.verdict import explain
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from tests.analysis.explain.cases import evidence_on
from tests.commands.running import Runner
from tests.rows import FIXTURES, table
from tests.slurm_stand_in import StandIn

DATA = table("threads/threads")
ROWS = {row["thread"]: row for row in DATA["thread"]}
PAGE = FIXTURES.parents[1] / "docs" / "threads.md"


def site(row: dict[str, Any], place: Path) -> list[str]:
    """The records, logs and files of a row as a site has them; the flags that name them, and the time."""
    if "incident" in row:
        folder = FIXTURES / "incidents" / row["incident"]
        case = json.loads((folder / "case.json").read_text())
        record = json.loads((folder / "record.json").read_text())
        record["history"] *= case.get("runs_before", 1)
        shutil.copy(folder / "supervisor.log", place / "supervisor.log")
        jid, now = case["job"], case["now"]
    else:
        record = DATA["record"] | row.get("record", {})
        jid, now = record["computeJid"], row.get("now", DATA["now"])
        log = DATA["beginnings"][row["after"]] + row.get("log", "")
        (place / "supervisor.log").write_text(log.replace("/scratch", f"{place}/scratch"))
    app, simulation, model = record["simulationType"], record["simulationId"], record["computeModel"]
    run_dir = place / "user" / record["uid"] / app / simulation / model
    if record["jobRunMode"] == "sbatch":
        run_dir = place / "scratch" / "jdoe" / "sirepo-prod" / "user" / record["uid"] / "srw" / jid
    for name, text in row.get("files", {}).items():
        run_dir.mkdir(parents=True, exist_ok=True)
        (run_dir / name).write_text(text)
    (place / "supervisor-job").mkdir()
    (place / "supervisor-job" / f"{jid}.json").write_text(json.dumps(record))
    at = to_rfc3339(Nanos(now * SECOND))
    flags = [jid, "--json", "--at", at, "--srdb", str(place), "--log", f"supervisor={place}/supervisor.log"]
    return [*flags, "--slurm", "local"] if "queue" in row or "accounts" in row else flags


def of_balsam(row: dict[str, Any]) -> dict[str, Any]:
    found = explain(evidence_on(row))
    return {"verdict": found.code, "sentence": found.sentence}


@pytest.mark.parametrize("thread", ROWS)
def test_each_question_is_answered(thread: str, tmp_path: Path, run: Runner, cluster: StandIn) -> None:
    row = ROWS[thread]
    cluster.queue(*row.get("queue", ()))
    cluster.accounts(*row.get("accounts", ()))
    answer = of_balsam(row) if "state" in row else run("explain", *site(row, tmp_path)).json
    assert answer["verdict"] == row["answer"], answer["sentence"]
    assert row["says"] in answer["sentence"]
    assert row.get("offers", "").format(place=tmp_path) in str(answer.get("next"))
    if "held_by" in row:
        (holder,) = answer["waits"]["links"][0]["holders"]
        assert (holder["op"], holder["cancel_confirmed"]) == (row["held_by"], row.get("confirmed"))


def test_polls_do_not_hide_the_run(tmp_path: Path, run: Runner) -> None:
    flags = site(ROWS["radiasoft/sirepo#2135"], tmp_path)
    assert not any("run_status" in one["what"] for one in run("explain", *flags).json["evidence"])
    ops = run("timeline", *flags).json["ops"]
    assert [op["name"] for op in ops if op["name"] not in CLUTTER] == ["run"] != [op["name"] for op in ops]


def test_the_page_has_every_row() -> None:
    for thread, row in ROWS.items():
        words = f"{row['says']} ({row['why']})" if "why" in row else row["says"]
        assert f"| {thread} | {row['question']} | `{row['answer']}`: {words} |" in PAGE.read_text()
