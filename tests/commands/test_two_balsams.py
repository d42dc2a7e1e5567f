"""Two Balsam servers at once, each with a job 1 and a batch job 1: nothing of one is the other's."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from jobtui.model.ids import labels_of
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import Ran, Runner
from tests.loopback import served

AT = "2026-11-20T19:30:00Z"


class Pair(NamedTuple):
    """Two served Balsams, how each is called, and jobtui on both."""

    balsams: tuple[RecordedBalsam, RecordedBalsam]
    labels: tuple[str, str]
    flags: tuple[str, ...]
    run: Runner

    def __call__(self, *words: str) -> Ran:
        return self.run("--at", AT, "--since", "2026-11-20T12:00:00Z", *self.flags, *words)


@pytest.fixture
def pair(run: Runner, plain_environment: Path) -> Iterator[Pair]:
    one, other = RecordedBalsam(), RecordedBalsam()
    other.token = "of-the-other"
    other.sites[0]["name"] = "other-site"
    for row in other.jobs:
        row["workdir"] = f"other/{row['id']}"
    with served(one) as url, served(other) as other_url:
        folder = plain_environment / ".balsam"
        write_login(folder / "client.yml", url, TOKEN)
        write_login(folder / "client-other.yml", other_url, other.token)
        here, there = labels_of([url, other_url]).values()
        yield Pair((one, other), (here, there), ("--balsam", url, "--balsam", other_url), run)


def test_every_job_is_there_once_with_its_server(pair: Pair) -> None:
    jobs = pair("jobs", "--json").json["jobs"]
    numbers = [row["id"] for row in pair.balsams[0].jobs]
    assert {job["id"] for job in jobs} == {f"balsam@{la}/{n}" for la in pair.labels for n in numbers}
    assert {job["name"].startswith("other/") for job in jobs if pair.labels[1] in job["id"]} == {True}
    found = pair("jobs", f"batch:2@{pair.labels[0]}", "--json").json["jobs"]
    of_batch = [row["id"] for row in pair.balsams[0].jobs if row["batch_job_id"] == 2]
    assert {job["id"] for job in found} == {f"balsam@{pair.labels[0]}/{number}" for number in of_batch}


@pytest.mark.parametrize("form", ["7@{}", "balsam@{}/7"])
@pytest.mark.parametrize("command", ["show", "explain"])
def test_one_of_them_is_named_by_its_label(form: str, command: str, pair: Pair) -> None:
    for label in pair.labels:
        ran = pair(command, form.format(label), "--json")
        job = ran.json["job"]
        assert job["id"] == f"balsam@{label}/7"
        assert job["name"].startswith("other/") is (label == pair.labels[1])


@pytest.mark.parametrize("thing", ["7", "#7", "balsam/7"])
@pytest.mark.parametrize("command", ["show", "explain", "timeline", "find"])
def test_a_mere_number_is_ambiguous_and_both_are_named(thing: str, command: str, pair: Pair) -> None:
    ran = pair(command, thing)
    assert ran.code == 4
    assert "is ambiguous" in ran.err
    for label in pair.labels:
        assert f"balsam@{label}/7" in ran.out + ran.err


def test_a_number_that_one_of_them_has_is_not_ambiguous(pair: Pair) -> None:
    pair.balsams[1].jobs = [row for row in pair.balsams[1].jobs if row["id"] != 7]
    assert pair("show", "7", "--json").json["job"]["id"] == f"balsam@{pair.labels[0]}/7"
    ran = pair("show", f"7@{pair.labels[1]}")
    assert (ran.code, ran.out) == (4, "")


def test_explaining_looks_at_the_sites_and_allocations_of_its_own_server(pair: Pair) -> None:
    for balsam in pair.balsams:
        balsam.jobs[0]["state"] = "STAGED_IN"
    waiting = pair.balsams[0].jobs[0]["id"]
    pair.balsams[0].sites[0]["last_refresh"] = "2026-11-20T18:00:00"
    pair.balsams[1].sites[0]["last_refresh"] = "2026-11-20T19:29:30"
    verdicts = [pair("explain", f"{waiting}@{label}", "--json").json["verdict"] for label in pair.labels]
    assert verdicts[0] == "site_agent_down"
    assert verdicts[1] != verdicts[0]


def test_reports_have_a_series_for_each(pair: Pair) -> None:
    finished = sum(row["to_state"] == "JOB_FINISHED" for row in pair.balsams[0].events)
    pair.balsams[1].events = []
    series = {one["name"]: one["y"] for one in pair("report", "throughput", "--json").json["series"]}
    assert [name.partition(", ")[2] for name in series] == list(pair.labels)
    last = [y[-1] if y else 0 for y in series.values()]
    assert last[1] == 0
    assert 0 < last[0] <= finished


@pytest.mark.parametrize("flag", ["--batch-job=2", "--scheduler-id=99456", "--job={}", "--job=balsam/{}"])
def test_a_report_about_a_number_is_of_one_server(flag: str, pair: Pair) -> None:
    for balsam in pair.balsams:
        next(row for row in balsam.batch_jobs if row["id"] == 2)["scheduler_id"] = 99456
    done = next(row["id"] for row in pair.balsams[0].jobs if row["state"] == "JOB_FINISHED")
    ran = pair("report", "throughput", flag.format(done))
    assert ran.code == 4
    for label in pair.labels:
        assert f"@{label}" in ran.err
    for label in pair.labels:
        number = flag.replace("balsam/", "").format(done)
        (series,) = pair("report", "throughput", f"{number}@{label}", "--json").json["series"][:1]
        assert series["y"]


def test_the_second_server_is_never_sent_the_login_of_the_first(pair: Pair) -> None:
    assert pair("jobs", "--json").code == 0
    assert [set(balsam.tokens) for balsam in pair.balsams] == [{f"Bearer {TOKEN}"}, {"Bearer of-the-other"}]
