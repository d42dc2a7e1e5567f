"""Balsam's own figures, compared with those its own code gave for the same data."""

import json
from typing import Any

import pytest

from jobtui.analysis.rates_exact import ReportError, available_nodes, throughput, utilization
from jobtui.analysis.series import Series
from jobtui.model.changes import Allocation, StateChange
from tests.analysis.balsam_data import FOLDER, allocation_of, change_of, load, nanos

TOLERANCE = 1e-9

EVENTS = load("dump_events")
JOBS = {job["id"]: job for job in load("dump_jobs")}
TRUTH: list[dict[str, Any]] = json.loads((FOLDER / "analytics_groundtruth.json").read_text())
CASES: list[dict[str, Any]] = json.loads((FOLDER / "analytics_edge_cases.json").read_text())["cases"]


def events_of(query: dict[str, Any]) -> list[StateChange]:
    """The events that the server gives for a query, which a scheduler's id does not narrow."""

    def is_wanted(event: dict[str, object]) -> bool:
        job: Any = JOBS[event["job_id"]]
        if "batch_job_id" in query and job["batch_job_id"] != query["batch_job_id"]:
            return False
        tags: dict[str, str] = query.get("tags", {})
        return all(job["tags"].get(name) == value for name, value in tags.items())

    return [change_of(event) for event in EVENTS if is_wanted(event)]


def allocations_of(query: dict[str, Any]) -> list[Allocation]:
    def is_wanted(one: Allocation) -> bool:
        return (
            one.state in query.get("state", [one.state])
            and str(query.get("scheduler_id", one.scheduler_id)) == str(one.scheduler_id)
            and set(query.get("filter_tags", {}).items()) <= set(one.tags)
        )

    return [one for one in map(allocation_of, load("dump_batch_jobs")) if is_wanted(one)]


def report(truth: dict[str, Any]) -> Series:
    query, options = truth["filter"], truth["kwargs"]
    match truth["function"]:
        case "throughput_report":
            return throughput(events_of(query), options["to_state"])
        case "utilization_report":
            return utilization(events_of(query), is_weighted=options["node_weighting"])
        case "available_nodes":
            return available_nodes(allocations_of(query))
    raise AssertionError(truth["function"])


def check(truth: dict[str, Any], series: Series) -> None:
    assert list(series.x) == [nanos(text) for text in truth["x"]]
    assert list(series.y) == pytest.approx(truth["y"], abs=TOLERANCE)


@pytest.mark.parametrize(
    "truth", TRUTH, ids=[f"{one['function']} {one['filter']} {one['kwargs']}" for one in TRUTH]
)
def test_every_recorded_report(truth: dict[str, Any]) -> None:
    if "error" in truth:
        with pytest.raises(ReportError, match="nothing ran"):
            report(truth)
        return
    check(truth, report(truth))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
@pytest.mark.parametrize("is_weighted", [True, False], ids=["weighted", "unweighted"])
def test_crafted_utilization(case: dict[str, Any], is_weighted: bool) -> None:
    truth = case["utilization_weighted" if is_weighted else "utilization_unweighted"]
    changes = [change_of(event) for event in case["events"]]
    if "error" in truth:
        with pytest.raises(ReportError):
            utilization(changes, is_weighted=is_weighted)
        return
    check(truth, utilization(changes, is_weighted=is_weighted))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_crafted_throughput(case: dict[str, Any]) -> None:
    check(case["throughput_JOB_FINISHED"], throughput([change_of(event) for event in case["events"]]))
