"""One computeJid in two roots: every view shows both records and says that they differ."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobtui.backends.sirepo.source import SirepoDb
from jobtui.commands.streams import Exit
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.session import Session
from tests.commands.running import Runner

RECORDS = Path(__file__).parents[1] / "fixtures/sirepo/local/supervisor-job"
DIRECTORY = "supervisor-job"


def completed_of(records: Path) -> Path:
    return next(p for p in sorted(records.iterdir()) if json.loads(p.read_bytes())["status"] == "completed")


@pytest.fixture
def record() -> Path:
    return completed_of(RECORDS)


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
async def test_what_one_root_removes_stays_known_by_the_other(
    roots: tuple[Path, Path], record: Path, removed: int, turn: int
) -> None:
    job_id = JobId(record.stem)
    async with Session([SirepoDb(root, sweep_s=0) for root in roots[::turn]]) as session:
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
