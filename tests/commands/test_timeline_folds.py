"""A running job says again and again that it runs: `timeline` folds that, its JSON stays whole."""

from pathlib import Path

from tests.commands.running import AT, CAPTURES, Runner

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
