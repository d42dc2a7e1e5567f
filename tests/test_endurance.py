"""The endurance run's own parts, and in small what it does: sources fault, and nothing is lost or doubled."""

import asyncio
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks import faults, rush
from benchmarks.balsam_stand_in import BalsamStandIn
from benchmarks.endurance import ops_wrong, sources_wrong, without_toasts
from benchmarks.faults import FAULTS, Place
from benchmarks.moody_server import Mood
from benchmarks.rush import ForgetfulWitness, RushSite
from benchmarks.rush_apart import RushApart
from benchmarks.soak_sites import Records
from jobtui.backends import registry
from jobtui.demo.truth import OpNote
from jobtui.model.clock import Nanos
from jobtui.session import Session

RATE = 8.0
OF_FILES = (
    "records torn",
    "records replaced",
    "records unreadable",
    "logs rotated",
    "logs truncated",
    "a run of NULs in the logs",
    "directory gone",
)


def told(session: Session) -> dict[str, Any]:
    """What a session knows, as the dashboard of the endurance run tells it."""
    correlation = session.store.correlation
    ops = [[op.op, op.name, op.jid, op.agent, op.sends, op.replies, op.updates] for op in correlation.ops()]
    sources = [
        [source.name, source.state, source.skipped, source.error] for source in session.store.sources()
    ]
    return {"ops": ops, "dropped": correlation.dropped_ops, "sources": sources}


@pytest.mark.parametrize("name", OF_FILES)
def test_what_befalls_files_costs_no_event_and_doubles_none(name: str, tmp_path: Path) -> None:
    site, records = RushSite(tmp_path, RATE), Records(tmp_path / "db")
    with asyncio.Runner() as runner:
        session = Session([registry.build(spec) for spec in site.specs])
        place: Any = Place(site, None, None, lambda _: runner.run(session.catch_up()))  # type: ignore[arg-type]
        for _ in range(2):
            site.step(4.0)
            place.wait(0)
            FAULTS[name](place)
        with site.at_rest():
            records.read()
            deadline = time.monotonic() + 20
            while problems(session, site, records) and time.monotonic() < deadline:
                place.wait(0)
            assert problems(session, site, records) == []
        runner.run(session.aclose())
    assert site.count() > 20
    assert len(records.now()) > 10


def problems(session: Session, site: RushSite, records: Records) -> list[str]:
    """In what a session differs from what was."""
    known = {job.id: job.native_status for job in session.store.jobs.values()}
    wrong = [job for job, status in records.now().items() if known.get(job) != status]  # type: ignore[call-overload]
    return [*wrong, *ops_wrong(told(session), site), *sources_wrong(told(session))]


def test_an_op_that_is_lost_doubled_or_another_is_seen(tmp_path: Path) -> None:
    site = RushSite(tmp_path, RATE)
    site.step(4.0)
    site.stop()
    ops = site.ops()
    assert ops_wrong({"ops": ops, "dropped": 0}, site) == []
    assert ops_wrong({"ops": ops[5:], "dropped": 5}, site) == []
    assert "1 ops lost" in ops_wrong({"ops": ops[1:], "dropped": 0}, site)
    assert len(ops_wrong({"ops": [*ops[1:], ops[-1]], "dropped": 0}, site)) == 1
    assert len(ops_wrong({"ops": [*ops[1:], (*ops[0][:-1], 99)], "dropped": 0}, site)) == 1


def test_a_site_in_a_process_of_its_own_is_asked_as_one_that_is_here(tmp_path: Path) -> None:
    with closing(RushApart(tmp_path, RATE)) as site:
        site.step(4.0)
        with site.at_rest():
            ops = site.ops()
            assert len(ops) == site.count() > 20
            assert len(site.idle_records(2)) == 2
        with site.lock:
            begun = site.begun
            assert set(site.logs.values()) < set(tmp_path.iterdir())
        site.stop()
        site.thin_out(1)
        assert len(list(site.records.iterdir())) == 1
        assert (site.begun, site.lived_s) == (begun, 0.0)
        assert ops_wrong({"ops": site.ops(), "dropped": 0}, site) == []
    here = RushSite(tmp_path / "here", RATE)
    assert [(spec.setting, spec.role) for spec in site.specs] == [
        (spec.setting, spec.role) for spec in here.specs
    ]


def test_a_site_in_a_process_of_its_own_ends_also_while_it_is_held(tmp_path: Path) -> None:
    site = RushApart(tmp_path, RATE)
    site.start()
    with suppress(OSError), site.at_rest():
        site.close()
    with pytest.raises(OSError, match="closed"):
        site.count()


def test_a_site_forgets_what_happened_long_ago_and_counts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rush, "NOTES_KEPT", 3)
    witness = ForgetfulWitness()
    for number in range(5):
        witness.created(OpNote(f"op{number}", "run", f"j{number}", "u", None, None, Nanos(number)))
        witness.sent("op0", "agent")
    assert [note.op_id for note in witness] == ["op2", "op3", "op4"]
    assert witness.count == 5


def test_a_server_gives_jobs_unless_it_is_told_otherwise() -> None:
    with closing(BalsamStandIn()) as server:
        answer = httpx.get(f"{server.url}/jobs/?last_update_after=2026-01-01T00:00:00%2B00:00&limit=5")
        assert (answer.json()["count"], len(answer.json()["results"])) == (20, 5)
        server.mood = Mood.FAILS
        assert httpx.get(f"{server.url}/jobs/").status_code == 500


def test_only_toasts_are_expected_of_sources_that_fault() -> None:
    assert faults.FAULTS.keys() > set(OF_FILES)
    noted = "ERROR:__main__:toast: a: no such file\nCRITICAL:__main__:raised in a thread"
    assert without_toasts(noted) == "CRITICAL:__main__:raised in a thread"
