"""The fields of JSON in docs/reference.md are those that are printed."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from jobtui.grammar import COMMANDS
from tests.commands.running import Runner
from tests.excerpts import PLACES

REFERENCE = (Path(__file__).parents[1] / "docs" / "reference.md").read_text()
EVERYWHERE = {"schema", "partial", "sources"}
JOB = "VUlhaMOD-tD9ZqDpL-heightWeightReport"
ASKED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "jobs": ("docker", ()),
    "show": ("docker", (JOB,)),
    "timeline": ("docker", (JOB,)),
    "explain": ("docker", (JOB,)),
    "compare": ("docker", (JOB,)),
    "status": ("docker", ()),
    "incidents": ("docker", ()),
    "logs": ("docker", (JOB,)),
    "report": ("docker", ("throughput",)),
    "agents": ("docker", ()),
    "find": ("docker", ("srj-s-VUlhaMOD",)),
    "trace": ("spans", ("212c8917",)),
    "script": ("scripts", ("10",)),
    "doctor": ("docker", ()),
    "config": ("docker", ()),
}
"""What is asked of each command, and where."""


def documented(command: str) -> set[str]:
    """The fields that the row of a command names, but for those within others."""
    rows = REFERENCE[REFERENCE.index("## JSON") :]
    found = re.search(rf"^\| `{command}` \| (.*) \|$", rows, re.MULTILINE)
    assert found, f"{command} has no row"
    return {*re.findall(r"`(\w+)`", re.sub(r"\(.*?\)|: .*", "", found[1]))}


@pytest.mark.parametrize("command", [command.name for command in COMMANDS if command.prints])
def test_the_fields_are_those_that_are_printed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, words = ASKED[command]
    for name, value in PLACES[place](tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    printed = {*Runner(capsys)(command, *words, "--json").json}
    assert printed > EVERYWHERE
    assert printed - EVERYWHERE == documented(command) - {"candidates"} | printed & {"candidates"}


def test_fields_of_every_document_are_named() -> None:
    text = REFERENCE[REFERENCE.index("## JSON") : REFERENCE.index("| command | fields |")]
    assert {*re.findall(r"`(\w+)`", text)} >= EVERYWHERE
