"""`report` against a Balsam server over HTTP: Balsam's own figures, the right ones, and what may go wrong."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.analysis.balsam_data import nanos
from tests.balsam_server import FOLDER
from tests.commands.report_site import Site, site
from tests.commands.running import Ran

TOLERANCE = 1e-9
TRUTH: list[dict[str, Any]] = json.loads((FOLDER / "analytics_groundtruth.json").read_text())
CASES: list[dict[str, Any]] = json.loads((FOLDER / "analytics_edge_cases.json").read_text())["cases"]


def words_of(truth: dict[str, Any]) -> list[str]:
    """The command line that asks what Balsam's own function was asked."""
    query, options = truth["filter"], truth["kwargs"]
    report = {"throughput_report": "throughput", "utilization_report": "utilization"}
    words = [report.get(truth["function"], "nodes"), "--exact"]
    if "to_state" in options:
        words.append(f"--to-state={options['to_state']}")
    if options.get("node_weighting") is False:
        words.append("--unweighted")
    words += [f"--scheduler-id={query['scheduler_id']}"] if "scheduler_id" in query else []
    words += [f"--batch-job={query['batch_job_id']}"] if "batch_job_id" in query else []
    words += [f"--to-state={state}" for state in query.get("state", [])]
    tags = query.get("tags") or query.get("filter_tags") or {}
    return words + ([f"--tag={','.join(f'{name}:{value}' for name, value in tags.items())}"] if tags else [])


def check(ran: Ran, truth: dict[str, Any]) -> None:
    (series,) = ran.json["series"]
    assert [nanos(text.removesuffix("Z")) for text in series["x"]] == [nanos(text) for text in truth["x"]]
    assert series["y"] == pytest.approx(truth["y"], abs=TOLERANCE)


@pytest.mark.parametrize("truth", TRUTH, ids=[" ".join(words_of(one)) for one in TRUTH])
def test_every_recorded_report(truth: dict[str, Any], site: Site) -> None:
    ran = site.report(*words_of(truth))
    if "error" in truth:
        assert ran.code == 1
        assert "nothing ran" in ran.err
        return
    assert ran.code == 0, ran.err
    check(ran, truth)


def crafted(site: Site, case: dict[str, Any]) -> None:
    """Let the server hold the events of a crafted case only."""
    site.balsam.events = case["events"]
    ids = {event["job_id"] for event in case["events"]}
    site.balsam.jobs = [
        {**site.balsam.jobs[0], "id": number, "tags": {"case": case["case"]}} for number in sorted(ids)
    ]
    site.balsam.batch_jobs = []


@pytest.mark.parametrize(
    "kind", ["utilization_weighted", "utilization_unweighted", "throughput_JOB_FINISHED"]
)
@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_crafted_events(case: dict[str, Any], kind: str, site: Site) -> None:
    crafted(site, case)
    what, _, rest = kind.partition("_")
    ran = site.report(what, "--exact", *(["--unweighted"] if rest == "unweighted" else []))
    truth = case[kind]
    if "error" in truth:
        assert ran.code == 1
        assert "does not say how many nodes; give --unweighted, or leave out --exact" in ran.err
        return
    check(ran, truth)


def test_a_window_is_asked_for_as_balsam_asks(site: Site) -> None:
    case = next(case for case in CASES if "windowed_filter" in case)
    crafted(site, case)
    query = case["windowed_filter"]
    window = [f"--since={query['timestamp_after']}Z", f"--until={query['timestamp_before']}Z"]
    check(site.report("utilization", "--exact", *window), case["utilization_weighted_windowed"])
    (right,) = site.report("utilization", *window).json["series"]
    assert min(right["y"]) >= 0  # what began before the window counts


def test_the_scheduler_id_narrows_by_default(site: Site) -> None:
    by_id = site.report("throughput", "--scheduler-id=456").json["series"]
    batch_job = next(row["id"] for row in site.balsam.batch_jobs if row["scheduler_id"] == 456)
    assert by_id == site.report("throughput", f"--batch-job={batch_job}").json["series"]
    assert by_id != site.report("throughput").json["series"]


def test_running_allocations_are_shown_and_said_to_be_estimated(site: Site) -> None:
    (series,) = site.report("nodes").json["series"]
    (exact,) = site.report("nodes", "--exact").json["series"]
    assert series["notes"] == ["1 allocation has an estimated start"]
    assert (series["estimated"], series["left_out"]) == (1, 0)
    assert max(series["y"]) >= max(exact["y"])
    assert series["y"][-1] > 0
    assert exact["y"][-1] == 0


@pytest.mark.parametrize(
    ("flag", "narrows"),
    [
        ("--job=3", lambda row, job: job["id"] == 3),
        ("--job=balsam/3,5", lambda row, job: job["id"] in (3, 5)),
        ("--batch-job=2", lambda row, job: job["batch_job_id"] == 2),
        ("--tag=experiment:post", lambda row, job: job["tags"].get("experiment") == "post"),
        ("--from-state=RUN_DONE", lambda row, job: row["from_state"] == "RUN_DONE"),
        ("--since=2026-11-20T18:30:00Z", lambda row, job: row["timestamp"] >= "2026-11-20T18:30:00"),
        ("--until=2026-11-20T18:30:00Z", lambda row, job: row["timestamp"] <= "2026-11-20T18:30:00"),
    ],
)
def test_every_query_of_the_event_log_narrows(flag: str, narrows: Any, site: Site) -> None:
    jobs = {job["id"]: job for job in site.balsam.jobs}
    finished = [row for row in site.balsam.events if row["to_state"] == "JOB_FINISHED"]
    wanted = {row["job_id"] for row in finished if narrows(row, jobs[row["job_id"]])}
    (series,) = site.report("throughput", flag).json["series"]
    assert (series["y"][-1] if series["y"] else 0) == len(wanted)


def test_a_login_that_is_missing_is_told(site: Site, plain_environment: Path) -> None:
    (plain_environment / ".balsam" / "client.yml").unlink()
    ran = site.report("throughput")
    assert ran.code == 5
    assert "jobtui login balsam" in ran.err


__all__ = ["site"]


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal, and of the usual width."""
    monkeypatch.setenv("COLUMNS", "80")


def test_utilization_is_drawn_over_what_is_available(site: Site) -> None:
    ran = site.report("utilization", "--plot", form="--plain")
    assert ran.code == 0, ran.err
    assert "utilization" in ran.out.splitlines()[0]
    assert "┄ nodes available" in ran.out
    assert "█" in ran.out
    assert "\x1b" not in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines() if not line.startswith("note:"))


@pytest.mark.parametrize("what", ["utilization", "throughput", "nodes", "states"])
def test_every_report_is_drawn_without_signs_that_ascii_has_not(
    what: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    ran = site.report(what, "--plot", form="--plain")
    assert ran.code == 0, ran.err
    assert ran.out.isascii()
    assert ran.out.count("\n") > 20


@pytest.mark.parametrize("what", ["utilization", "throughput", "nodes", "states"])
def test_every_report_is_a_picture_of_its_own(what: str, site: Site) -> None:
    ran = site.report(what, "--svg", form="--plain")
    assert ran.code == 0, ran.err
    picture = ElementTree.fromstring(ran.out)
    inside = {one.tag.partition("}")[2] for one in picture.iter()}
    assert {"svg", "path", "text", "line"} <= inside
    assert "href" not in ran.out
    assert "nan" not in ran.out
