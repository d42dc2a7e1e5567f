"""One process of a cluster alone out of the trace that all share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.traces.failures import root_causes
from jobtui.analysis.traces.processes import alone, processes_in
from jobtui.analysis.traces.tree import build_tree
from jobtui.model.trace_desk import JOB_ATTRIBUTES
from jobtui.model.traces import Resource
from tests.tracing import FORMATS, a_span, a_trace, captured

SUBMISSION = 15
"""Spans of the submission of the captured cluster, which belong to all of its processes."""


@pytest.mark.parametrize("form", FORMATS)
def test_the_captured_cluster_has_four_processes(form: str) -> None:
    found = processes_in(captured("cluster-4", form), JOB_ATTRIBUTES)
    assert found == {f"81430102.{proc}@jobsub02.fnal.gov": 3 if proc == 2 else 7 for proc in range(4)}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("job_id", ["81430102.{}@jobsub02.fnal.gov", "81430102.{}"])
@pytest.mark.parametrize("proc", range(4))
def test_each_of_them_is_shown_alone(proc: int, job_id: str, form: str) -> None:
    trace = captured("cluster-4", form)
    mine = alone(trace, job_id.format(proc), JOB_ATTRIBUTES)
    assert len(mine.others) == 3
    assert len(mine.trace.spans) == SUBMISSION + (3 if proc == 2 else 7)
    assert len(mine.trace.spans) + sum(mine.others.values()) == len(trace.spans)
    causes = root_causes(build_tree(mine.trace))
    assert [cause.span.name for cause in causes] == (["read"] if proc == 2 else [])
    assert build_tree(mine.trace).missing == {}


@pytest.mark.parametrize(
    "job_id", ["81430102.9", "9.2@jobsub02.fnal.gov", "81430102.2@other.fnal.gov", "", "x"]
)
def test_what_is_none_of_them_takes_nothing_away(job_id: str) -> None:
    trace = captured("cluster-4")
    assert alone(trace, job_id, JOB_ATTRIBUTES).trace == trace


def test_an_attribute_nobody_looks_for_tells_no_process() -> None:
    assert processes_in(captured("cluster-4"), ("my.job",)) == {}


def test_a_span_without_a_name_of_its_own_is_of_the_process_above_it() -> None:
    trace = a_trace(
        a_span(1), a_span(2, 1, attributes={"job.id": "7.0"}), a_span(3, 2), a_span(4, 3),
        a_span(5, 1, attributes={"job.id": "7.1"}), a_span(6, 5), a_span(7, 1),
    )  # fmt: skip
    mine = alone(trace, "7.0@s.example.org", ("job.id",))
    assert [span.name for span in mine.trace.spans] == ["s1", "s2", "s3", "s4", "s7"]
    assert mine.others == {"7.1": 2}


def test_where_no_span_names_a_job_its_host_tells() -> None:
    hosts = [Resource("work", {"host.name": f"w{number}"}) for number in range(2)]
    trace = a_trace(a_span(1), a_span(2, 1, service=hosts[0]), a_span(3, 1, service=hosts[1]))
    mine = alone(trace, "7.0", JOB_ATTRIBUTES, host="w1")
    assert [span.name for span in mine.trace.spans] == ["s1", "s3"]
    assert mine.why == "its host w1"
    assert alone(trace, "7.0", JOB_ATTRIBUTES, host="w9").others == {}
    assert alone(trace, "7.0", JOB_ATTRIBUTES).others == {}


@given(
    st.lists(st.tuples(st.integers(0, 8), st.one_of(st.none(), st.sampled_from(["7.0", "7.1"]))), max_size=9)
)
def test_no_tree_loses_a_span_without_counting_it(parents: list[tuple[int, str | None]]) -> None:
    spans = [
        a_span(number, parent, attributes={} if job is None else {"job.id": job})
        for number, (parent, job) in enumerate(parents, 1)
    ]
    mine = alone(a_trace(*spans), "7.0", ("job.id",))
    assert len(mine.trace.spans) + sum(mine.others.values()) == len(spans)
