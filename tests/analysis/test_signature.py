"""Failures of one cause have one signature, whatever ids, paths and numbers are in their output."""

import json
import re
from collections import Counter
from math import comb
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jobtui.analysis.cause import find_cause
from jobtui.analysis.signature import LONGEST, failure_text, signature
from jobtui.model.verdicts import Cause, Code, Verdict
from tests.builders import a_job, job_id

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "program-output"
VARIANTS = 8
SAYS_WHAT = re.compile(r"(?i)(exit(?:ed)?[ a-z]*|signal|errno|status|http[/\d. ]*|error)[\s:=]*$")


def varied(text: str, rng: Random) -> str:
    """The output of another run: other directories, addresses and numbers, but for exit codes and such."""

    def path(found: re.Match[str]) -> str:
        parts = (
            "".join(rng.choices("abcdefxyz0123456789", k=rng.randint(3, 9))) for _ in range(rng.randint(1, 4))
        )
        return "/" + "/".join(parts)

    def number(found: re.Match[str]) -> str:
        before = text_now[max(0, found.start() - 30) : found.start()]
        return found[0] if SAYS_WHAT.search(before) else str(rng.randint(1, 10 ** rng.randint(1, 6)))

    text = re.sub(r"/scratch/run|/home/\w+|/tmp/\w+", path, text)
    text_now = re.sub(r"0x[0-9a-f]+", lambda found: f"0x{rng.getrandbits(48):012x}", text)
    return re.sub(r"(?<!\w)\d+(?!\w)", number, text_now)


def adjusted_rand(one: list[str], other: list[str]) -> float:
    """How alike two groupings are: 1 when equal, 0 as by chance."""
    together = sum(comb(n, 2) for n in Counter(zip(one, other, strict=True)).values())
    first, second = (sum(comb(n, 2) for n in Counter(names).values()) for names in (one, other))
    by_chance = first * second / comb(len(one), 2)
    return (together - by_chance) / ((first + second) / 2 - by_chance)


def outputs(name: str) -> dict[str, str]:
    if name == "captured":
        truth = json.loads((PROGRAMS / "truth.json").read_text())
        return {
            name: (PROGRAMS / f"{name}.log").read_text("utf-8", "replace")
            for name, one in truth.items()
            if not one["abstain"]
        }
    parts = re.split(r"(?m)^==== (\w+) \| (\S+)\n", (PROGRAMS / f"{name}.txt").read_text())
    return {
        part: text.replace("»", "").replace("␛", "\x1b").replace("␍", "\r")
        for part, family, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
        if family != "-"
    }


@pytest.mark.parametrize("name", ["captured", "cases", "programs"])
def test_runs_of_one_cause_fall_together_and_of_others_apart(name: str) -> None:
    rng, causes, signatures = Random(1), [], []
    for cause, text in outputs(name).items():
        for number in range(VARIANTS):
            found = find_cause(varied(text, rng) if number else text, failed=True)
            causes.append(cause)
            signatures.append(signature(found.text) if found is not None else f"none {cause} {number}")
    assert adjusted_rand(causes, signatures) >= 0.9


@given(st.text(max_size=400))
def test_any_text_has_a_signature_and_that_has_itself(text: str) -> None:
    found = signature(text)
    assert len(found) <= LONGEST
    assert signature(found) == found or len(found) > LONGEST - 3


def test_a_line_that_ends_as_the_record_does_is_one_failure_with_runs_without_output() -> None:
    failed = Verdict(job_id=job_id(), code=Code.PROGRAM_FAILED, sentence="", confidence=0.9)
    for record, line, text in (
        ("a big ugly error", "AssertionError: a big ugly error", "a big ugly error"),
        ("non-zero exit code", "ValueError: no lattice", "ValueError: no lattice"),
        (None, "ValueError: no lattice", "ValueError: no lattice"),
        ("error exit(-9)", None, "error exit(-9)"),
    ):
        cause = None if line is None else Cause(line, 1, "python", 0.9, "")
        assert failure_text(a_job(error=record), replace(failed, cause=cause)) == text
