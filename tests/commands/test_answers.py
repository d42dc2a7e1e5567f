"""What each command says in a line and by its exit code, as `tests/fixtures/answers.toml` has it."""

import shlex
import tomllib
from pathlib import Path

import pytest

from tests.commands.running import AT, Runner
from tests.commands.sites import Flags, flags
from tests.excerpts import FIXTURES
from tests.tracing import CAPTURES, EXPECTED

__all__ = ["flags"]

ANSWERS = tomllib.loads((FIXTURES / "answers.toml").read_text())
CASES = [(site, words, *answer) for site, told in ANSWERS.items() for words, answer in told.items()]
FAILED = "DJouDZ9T-4F4EUZjI-heightWeightReport"
TRACE = EXPECTED["job-fail"]["traceID"]
SPAN = EXPECTED["job-fail"]["deepest_errors"][0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[1]}")
def test_it_is_said_in_a_line_and_by_the_code(
    case: tuple[str, str, int, str], flags: Flags, tmp_path: Path, run: Runner
) -> None:
    site, words, code, *said = case
    (empty := tmp_path / "empty").mkdir()
    names = {"tmp": empty, "tracing": CAPTURES, "failed": FAILED, "trace": TRACE, "span": SPAN}
    at = [] if "--at" in words or words.startswith("record") else ["--at", AT]
    ran = run(*flags(site), *at, *shlex.split(words.format(**names)))
    assert ran.code == code, ran.err
    assert [one for one in said if one.format(**names) not in ran.out + ran.err] == []
    if code == 2:
        assert (ran.out, ran.err.count("\n"), ran.err[:8]) == ("", 1, "jobtui: ")
