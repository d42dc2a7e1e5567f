"""The lines of jobsub's wrapper and commands, out of captured outputs and made ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.job_output import OutputReader
from jobtui.model.clock import to_rfc3339
from jobtui.model.condor_facts import CondorFact
from tests.condor import facts_in, facts_of
from tests.tracing import CAPTURES, EXPECTED

OUTPUTS = sorted(CAPTURES.glob("814*.out"))
TRACE = "212c891717bfbac28a34dec05b616f14"


def said(facts: list[CondorFact]) -> list[str]:
    return [fact.what for fact in facts]


@pytest.mark.parametrize("path", OUTPUTS, ids=[path.name for path in OUTPUTS])
def test_a_captured_output_tells_of_its_job(path: Path) -> None:
    facts = facts_in(path)
    job = f"{path.stem}@jobsub02.fnal.gov"
    assert {fact.job for fact in facts} == {job}
    assert (facts[0].what, facts[-1].what) == ("begin_execution", "completed")
    assert facts[0].at is not None
    assert facts[-1].at is not None
    assert facts[0].at < facts[-1].at
    named = {fact.values["TraceParent"] for fact in facts if "TraceParent" in fact.values}
    assert named <= {trace["traceID"] for trace in EXPECTED.values()}
    assert bool(named) == (facts[-1].values["status"] != "0")


@pytest.mark.parametrize("name", ["job.out", "job.err"])
def test_output_and_errors_tell_the_same(name: str) -> None:
    facts = facts_in(CAPTURES / "job-fail" / name)
    begin, end = facts[0], facts[-1]
    assert begin.at is not None
    assert (begin.job, to_rfc3339(begin.at)) == ("81419552.0@jobsub02.fnal.gov", "2026-11-20T20:40:06Z")
    assert (begin.values["exe"], begin.values["args"]) == ("test_trace.sh", "-f")
    assert (end.job, end.values["status"]) == (begin.job, "2")
    assert [fact.values["TraceParent"] for fact in facts if fact.what == "names_trace"] == [TRACE]


def test_a_submission_hands_the_trace_it_set_to_its_jobs() -> None:
    lines = (
        "Setting traceparent: 00-212c891717bfbac28a34dec05b616f14-ff9c35a8f8c0b21f-01\n"
        "3 job(s) submitted to cluster 7.\nUse job id 7.0@s.example.org to retrieve output\n"
    )
    facts = facts_of(lines.encode())
    assert [(fact.job, fact.values.get("TraceParent")) for fact in facts[1:]] == [
        ("7.0", TRACE), ("7.1", TRACE), ("7.2", TRACE), ("7.0@s.example.org", TRACE),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "what", "values"),
    [
        ("Fri Jul 19 04:22:22 UTC 2024 7.0@s BEGIN EXECUTION false", "begin_execution", {"exe": "false"}),
        ("Fri Jul 19 04:22:22 UTC 2024 7.0@s BEGIN EXECUTION ", "begin_execution", {"job": "7.0@s"}),
        ("Fri Jul 19 04:22:22 UTC 2024 false COMPLETED with exit status 1", "completed", {"status": "1"}),
        ("Fri Jul 19 04:22:22 UTC 2024 COMPLETED with exit status 0", "completed", {"status": "0"}),
        ("Fr 19. Jul 04:22:22 CEST 2024 a.sh COMPLETED with exit status 124", "completed", {"status": "124"}),
        ("signal_exit received signal TERM", "signal", {"signal": "TERM"}),
        ("jobsub:---- truncated after 1000 bytes--", "truncated", {"bytes": "1000"}),
        (f"TraceID given: {TRACE.upper()}-ff9c35a8f8c0b21f-01", "names_trace", {"TraceParent": TRACE}),
        (
            f"see https://jaeger.example.org/trace/{TRACE} for the traceId",
            "names_trace",
            {"TraceParent": TRACE},
        ),
        (f"trace_id={TRACE}", "names_trace", {"TraceParent": TRACE}),
    ],
)
def test_a_line_says_what_it_says(line: str, what: str, values: dict[str, str]) -> None:
    (fact,) = facts_of(b"the output of a program\n" + line.encode() + b"\n")
    assert fact.what == what
    assert fact.line == 2
    assert values.items() <= fact.values.items()


@pytest.mark.parametrize(
    "line", ["BEGIN EXECUTIONER", "not COMPLETED with exit status", "TRACEPARENT 00-0-0-00", "JobID: none"]
)
def test_what_only_looks_so_says_nothing(line: str) -> None:
    assert said(facts_of(f"an output\n{line}\n".encode())) == []


_PARTS = (
    b" BEGIN EXECUTION ", b"\n", b"7.0@s", b"\xff\0", b" COMPLETED with exit status ", b"TRACEPARENT 00-",
    b"1", b"a" * 40, b"JobID: ", b"Fri Jul 19 04:22:22 UTC 2024 ",
)  # fmt: skip


@given(st.lists(st.sampled_from(_PARTS), max_size=14))
def test_no_bytes_make_it_raise(parts: list[bytes]) -> None:
    OutputReader("a").read(b"".join(parts), 0, 1)
