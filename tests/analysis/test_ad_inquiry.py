"""What is asked about the expressions of a job ad, and what is read of the answers."""

import pytest

from jobtui.analysis.ad_inquiry import (
    CUT,
    MOST_CLAUSES,
    Asked,
    failure_of,
    inquiry_of,
    questions_in,
    with_values,
)
from jobtui.formats.class_ads import MOST_CHARACTERS
from jobtui.model.ad_values import AdAnswer, AdQuestion
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail, JobStatus
from tests.condor import JOB, event, facts_of, submitted

NOW = Nanos(1_795_172_400 * SECOND)
UNDEFINED = AdAnswer("undefined")
TRUE, FALSE = AdAnswer("true", True), AdAnswer("false", False)


def inquiry(*lines: str, state: int = 2) -> tuple[Asked, ...]:
    """What is asked about an ad of these attributes."""
    head = ("ClusterId = 7", "ProcId = 0", f"JobStatus = {state}")
    return inquiry_of(facts_of("\n".join((*head, *lines, "")).encode()), NOW)


def said_of(asked: tuple[Asked, ...], answers: dict[str, AdAnswer]) -> dict[str, str]:
    """What is shown of a job, answers given by the expressions that are asked about."""
    job = Job(id=JobId(JOB), system="condor", status=JobStatus.RUNNING, native_status="", source="a.log")
    facts = (("RequestMemory", "M"), ("told by", "a.log"))
    detail = JobDetail(job=job, runs=(), history=(), native={"ad": {}}, facts=facts)
    by_question = {question: answers[question.expression] for question in questions_in(asked)}
    valued = with_values(detail, asked, by_question)
    assert valued.facts[-1] == ("told by", "a.log")
    return dict(valued.facts[:-1])


def test_only_expressions_are_asked_about() -> None:
    assert (
        inquiry("RequestMemory = 2048", "RequestDisk = 1", "Requirements = true", "Owner = strcat(A)") == ()
    )
    (asked,) = inquiry("requestmemory = ImageSize / 1024", "ImageSize = 4096")
    assert (asked.name, asked.whole.written) == ("RequestMemory", "ImageSize / 1024")
    assert asked.whole.question == AdQuestion("ImageSize / 1024", (("imagesize", "4096"),))


def test_the_last_ad_counts_and_no_event() -> None:
    ads = ["ClusterId = 7\nProcId = 0\nRequestCpus = A\n", "ClusterId = 7\nProcId = 0\nRequestCpus = B + 1\n"]
    facts = [*facts_of(submitted().encode()), *(one for ad in ads for one in facts_of(ad.encode()))]
    facts += facts_of(event(28, "2026-11-20 10:00:00Z", "Job ad information", "RequestCpus = C").encode())
    assert [asked.whole.written for asked in inquiry_of(facts, NOW)] == ["B + 1"]
    assert inquiry_of(facts[:1], NOW) == ()


@pytest.mark.parametrize(
    ("server", "time"), [("", 1_795_172_400), ("ServerTime = 5", 5), ("ServerTime = A", 1_795_172_400)]
)
def test_the_time_is_when_the_ad_was_given_out_else_now(server: str, time: int) -> None:
    (asked,) = inquiry("PeriodicHold = time() > QDate", server)
    assert asked.whole.question == AdQuestion(f"{time} > QDate")


@pytest.mark.parametrize(("state", "names"), [(1, 3), (5, 3), (4, 1), (3, 1)])
def test_nobody_looks_at_the_conditions_of_a_job_that_is_over(state: int, names: int) -> None:
    asked = inquiry("RequestCpus = A", "PeriodicRemove = A", "Requirements = A", state=state)
    assert len(asked) == names


@pytest.mark.parametrize(
    ("line", "answers", "said"),
    [
        ("RequestMemory = M / 2", {"M / 2": AdAnswer("512", True)}, "512 MiB = M / 2"),
        ("RequestDisk = D", {"D": AdAnswer("17", True)}, "17 KiB = D"),
        ("RequestCpus = C", {"C": AdAnswer("4", True)}, "4 = C"),
        ("RequestMemory = M", {"M": UNDEFINED}, "undefined = M"),
        ("RequestMemory = M", {"M": AdAnswer(failed="took too long")}, "M (not evaluated: took too long)"),
        ("RequestMemory = eval(M)", {}, "eval(M) (not evaluated: calls eval, which is not evaluated here)"),
        ("RequestMemory = [", {}, "[ (not evaluated: is not understood at its character 1)"),
        ("PeriodicHold = A > 1", {"A > 1": FALSE}, "false = A > 1"),
        ("PeriodicHold = A || (B)", {"A || ( B )": FALSE, "A": FALSE, "B": FALSE}, "false = A || (B)"),
        ("PeriodicHold = A || (B)", {"A || ( B )": TRUE, "A": FALSE, "B": TRUE}, "true = B"),
        ("PeriodicHold = A || B", {"A || B": TRUE, "A": UNDEFINED, "B": UNDEFINED}, "true = A || B"),
        ("PeriodicHold = A && B", {"A && B": TRUE}, "true = A && B"),
        ("PeriodicRemove = A || f(B)", {"A": TRUE},
         "A || f(B) (not evaluated: calls f, which is not evaluated here)"),
        ("Requirements = A", {"A": TRUE}, "true = A"),
        ("Requirements = (A && B)", {"( A && B )": UNDEFINED, "A": TRUE, "B": TRUE}, "true = (A && B)"),
        ("Requirements = A && B",
         {"A && B": UNDEFINED, "A": AdAnswer("undefined", None, "target.A >= 5"), "B": TRUE},
         "of a machine: target.A >= 5"),
        ("Requirements = (A || B) && C =?= D && (A ? B : C)",
         {"( A || B ) && C =?= D && ( A ? B : C )": UNDEFINED, "A || B": UNDEFINED, "C =?= D": UNDEFINED,
          "A ? B : C": UNDEFINED}, "of a machine: (A || B) && C =?= D && (A ? B : C)"),
        ("Requirements = (A || B)", {"( A || B )": UNDEFINED}, "of a machine: (A || B)"),
        ("Requirements = A && B && f(C)", {"A": FALSE, "B": AdAnswer("undefined", None, "rest")},
         "false on any machine = A"),
        ("Requirements = A && f(C)", {"A": AdAnswer("error")}, "of a machine: A && f(C)"),
        ("Requirements = f(C)", {}, "of a machine: f(C)"),
    ],
)  # fmt: skip
def test_what_a_person_reads_of_the_answers(line: str, answers: dict[str, AdAnswer], said: str) -> None:
    shown = said_of(inquiry(line), answers)
    assert shown[line.partition(" ")[0]] == said


def test_a_document_has_the_values_that_are_known() -> None:
    asked = inquiry("RequestMemory = M", "RequestDisk = eval(D)")
    job = Job(id=JobId(JOB), system="condor", status=JobStatus.RUNNING, native_status="", source="a.log")
    detail = JobDetail(job=job, runs=(), history=(), native={"ad": {}})
    valued = with_values(detail, asked, dict.fromkeys(questions_in(asked), AdAnswer("5", True)))
    assert valued.native == {"ad": {}, "values": {"RequestMemory": "5"}}


def test_a_condition_of_very_many_clauses_is_asked_about_as_a_whole() -> None:
    clauses = [f"A{at}" for at in range(MOST_CLAUSES + 1)]
    most, more = (inquiry(f"PeriodicHold = {' || '.join(names)}")[0] for names in (clauses[1:], clauses))
    assert (len(most.clauses), len(more.clauses)) == (MOST_CLAUSES, 0)


def test_requirements_are_evaluated_where_one_of_their_clauses_is() -> None:
    (some,) = inquiry("Requirements = A && f(B)")
    (none,) = inquiry("Requirements = f(B) && f(A)")
    (hold,) = inquiry("PeriodicHold = A || f(B)")
    answers = {AdQuestion("A"): TRUE}
    assert not failure_of(some, answers)
    assert failure_of(none, answers).startswith("calls f")
    assert failure_of(hold, answers).startswith("calls f")


def test_an_expression_that_is_asked_about_twice_is_one_question() -> None:
    assert len(questions_in(inquiry("PeriodicHold = A", "PeriodicRelease = A"))) == 1


def test_of_an_ad_that_was_cut_nothing_is_asked_and_that_is_said() -> None:
    (asked,) = inquiry("RequestMemory = ImageSize / 1024", f'Arguments = "{"x" * MOST_CHARACTERS}"')
    assert said_of((asked,), {}) == {"RequestMemory": f"ImageSize / 1024 (not evaluated: {CUT})"}
    assert inquiry("RequestMemory = 2048", f'Arguments = "{"x" * MOST_CHARACTERS}"') == ()
