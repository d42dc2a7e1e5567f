"""What each command says in a line and by its exit code, as `tests/fixtures/answers.toml` has it."""

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import AT, CAPTURES, TABLES, Runner, check_document
from tests.commands.sites import Flags, flags
from tests.rows import table
from tests.slurm_stand_in import StandIn
from tests.tracing import CAPTURES as TRACES
from tests.tracing import EXPECTED

__all__ = ["flags"]

ANSWERS = table("answers")
MADE, CLUSTERS = ANSWERS.pop("made"), ANSWERS.pop("cluster")
CASES = [
    (site, words, *answer)
    for sites, told in ANSWERS.items()
    for words, answer in told.items()
    for site in sites.split()
]
NAMES = {
    "tracing": TRACES, "captures": CAPTURES, "failed": "DJouDZ9T-4F4EUZjI-heightWeightReport",
    "trace": EXPECTED["job-fail"]["traceID"], "span": EXPECTED["job-fail"]["deepest_errors"][0],
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[1]}")
def test_every_answer_has_its_line_and_exit_code(
    case: tuple[str, str, int, str], flags: Flags, tmp_path: Path, run: Runner
) -> None:
    site, words, code, *said = case
    (empty := tmp_path / "empty").mkdir()
    check(run, flags(site), words, {"tmp": empty, **NAMES}, code, said)


@pytest.mark.parametrize("case", MADE, ids=lambda case: case["words"])
def test_answers_about_made_files_have_their_line_and_code(
    case: dict[str, Any], tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in case.get("environ", {}).items():
        monkeypatch.setenv(name, value)
    for source, name in case.get("copied", {}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (CAPTURES / source).is_dir() else shutil.copyfile
        copy(CAPTURES / source, tmp_path / name)
    for name, text in case["files"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(
            text.replace("{tmp}", str(tmp_path)).replace("{captures}", str(CAPTURES))
        )
    code, *said = case["answer"]
    check(run, (), case["words"], {"tmp": tmp_path, **NAMES}, code, said)


@pytest.mark.parametrize("case", CLUSTERS, ids=lambda case: case["words"])
def test_cluster_answers_have_line_and_code(
    case: dict[str, Any], cluster: StandIn, tmp_path: Path, run: Runner
) -> None:
    cluster.waiting() if case.get("waits") else cluster.captured()
    for given in case.keys() & {"queue", "accounts"}:
        getattr(cluster, given)(*case[given])
    for command, text in case.get("faults", {}).items():
        cluster.fault(command, text)
    code, *said = case["answer"]
    check(run, ("--slurm=local",), case["words"], {"tmp": tmp_path, **NAMES}, code, said)


def check(
    run: Runner, flags: Sequence[str], words: str, names: Mapping[str, object], code: int, said: Sequence[str]
) -> None:
    at = [] if "--at" in words or words.startswith("record") else ["--at", AT]
    ran = run(*flags, *at, *shlex.split(words.format(**names)))
    assert ran.code == code, ran.err
    if "--json" in words and ran.out.startswith("{") and code in (0, 1, 3):
        command, is_whole = ran.json["schema"].split("/")[1], ran.json.get("started_at", "") is not None
        if command in TABLES["commands"] and is_whole:
            check_document(ran.json, command)
    everything = ran.out + ran.err
    for one in said:
        if one.startswith("rows: "):
            assert ["rows:", *sorted(row["id"] for row in ran.json["jobs"])] == one.split()
            continue
        assert (one.lstrip("!").format(**names) in everything) is not one.startswith("!"), one
    if code == 2 or said[0].startswith("jobtui: "):
        assert (ran.out, ran.err.count("\n"), ran.err[:8]) == ("", 1, "jobtui: ")
