"""Two roots, and two servers, at once: nothing of one is the other's, and where they differ that is said."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from jobtui.backends.sirepo.source import SirepoDb
from jobtui.commands.streams import Exit
from jobtui.model.ids import JobId, labels_of
from jobtui.model.jobs import Job
from jobtui.session import Session
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import Ran, Runner
from tests.loopback import served
from tests.rows import CAPTURES

RECORDS = CAPTURES / "local/supervisor-job"
DIRECTORY = "supervisor-job"


@pytest.fixture
def record() -> Path:
    return next(p for p in sorted(RECORDS.iterdir()) if json.loads(p.read_bytes())["status"] == "completed")


@pytest.fixture
def roots(tmp_path: Path, record: Path) -> tuple[Path, Path]:
    """Two roots with one record; in the second, which was written later, it failed."""
    roots = (tmp_path / "one", tmp_path / "two")
    for root in roots:
        (root / DIRECTORY).mkdir(parents=True)
        shutil.copy2(record, root / DIRECTORY)
    other = roots[1] / DIRECTORY / record.name
    told = json.loads(record.read_bytes())
    told |= {"status": "error", "error": "no space left", "dbUpdateTime": told["dbUpdateTime"] + 60}
    other.write_text(json.dumps(told))
    return roots


def flags(roots: Sequence[Path]) -> list[str]:
    return [word for root in roots for word in ("--srdb", str(root))]


@pytest.mark.parametrize("turn", [1, -1])
def test_jobs_show_and_explain_tell_both(
    run: Runner, roots: tuple[Path, Path], record: Path, turn: int
) -> None:
    given = flags(roots[::turn])
    places = {str(root) for root in roots}

    (job,) = run("jobs", *given, "--json").json["jobs"]
    assert (job["source"], job["status"]) == (str(roots[1]), "failed")
    assert [(one["source"], one["status"]) for one in job["others"]] == [(str(roots[0]), "completed")]
    assert "contradiction" in job["flags"]
    (found,) = run("jobs", "flag:contradiction", *given, "--json").json["jobs"]
    assert found == job

    shown = run("show", record.stem, *given, "--json")
    assert shown.code == Exit.ATTENTION
    assert {**shown.json["job"], "path": None, "native": None} == {**job, "path": None, "native": None}
    assert shown.json["job"]["path"] == str(roots[1] / DIRECTORY / record.name)
    counted = run("status", *given, "--json")
    assert (counted.code, counted.json["disputed"]) == (Exit.ATTENTION, 1)
    assert "disputed 1" in run("status", *given).out

    text = run("show", record.stem, *given).out
    assert all(place in text for place in places)

    verdict = run("explain", record.stem, *given, "--json")
    assert verdict.code == Exit.ATTENTION
    assert verdict.json["confidence"] < 0.5
    (contradiction,) = verdict.json["contradictions"]
    assert {fact["source"] for fact in contradiction["facts"]} == places


def test_two_roots_that_agree_count_once_without_a_word_of_doubt(
    run: Runner, roots: tuple[Path, Path], record: Path
) -> None:
    shutil.copy2(record, roots[1] / DIRECTORY)
    (job,) = run("jobs", *flags(roots), "--json").json["jobs"]
    assert "contradiction" not in job["flags"]
    assert {job["source"], *(one["source"] for one in job["others"])} == set(map(str, roots))
    assert run("show", record.stem, *flags(roots)).code == run("show", record.stem, *flags(roots[:1])).code
    assert run("explain", record.stem, *flags(roots), "--json").json["contradictions"] == []
    assert run("status", *flags(roots), "--json").json["disputed"] == 0


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("removed", [0, 1])
async def test_a_job_removed_from_one_root_stays_known_by_the_other(
    roots: tuple[Path, Path], record: Path, removed: int, turn: int
) -> None:
    job_id = JobId(record.stem)
    sources = [SirepoDb(root) for root in roots[::turn]]
    for source in sources:
        source._changes.sweep_s = 0
    async with Session(sources) as session:
        await session.catch_up()
        assert {one.source for one in all_of(session, job_id)} == set(map(str, roots))
        (roots[removed] / DIRECTORY / record.name).unlink()
        await session.catch_up()
        (left,) = all_of(session, job_id)
        assert left.source == str(roots[1 - removed])
        (roots[1 - removed] / DIRECTORY / record.name).unlink()
        await session.catch_up()
        assert session.store.job(job_id) is None


def all_of(session: Session, job_id: JobId) -> tuple[Job, ...]:
    job = session.store.job(job_id)
    return () if job is None else (job, *job.others)


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
def test_a_server_is_named_by_its_label(form: str, command: str, pair: Pair) -> None:
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
