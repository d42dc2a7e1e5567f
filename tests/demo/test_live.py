"""The simulated site and its Balsam: deterministic, in real formats, with its truth beside it; and live."""

import json
import os
import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from jobtui.analysis.traces.failures import study_trace
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.demo.balsam import HISTORY_S, TOKEN, BalsamSite, serving
from jobtui.demo.live import SPANS, LiveDemo
from jobtui.demo.messages import Record
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG
from jobtui.formats.otlp_protobuf import read_telemetry
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_seconds
from jobtui.model.ids import TraceId
from jobtui.model.traces import Trace, growing
from jobtui.store.traces import TraceStore
from tests.demo.sites import DriverName
from tests.demo.workload import Settings, WatchedWorld, simulate
from tests.loopback import timed
from tests.polling import polled
from tests.rows import CAPTURES

NOW = Nanos(1_795_206_870 * SECOND)


def _demo(directory: Path, **options: object) -> tuple[LiveDemo, FixedClock]:
    clock = FixedClock(NOW)
    demo = LiveDemo(directory, clock=clock, **options)  # type: ignore[arg-type]
    demo.prepare()
    return demo, clock


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> LiveDemo:
    """A demo as it begins, for those who only look."""
    return _demo(tmp_path_factory.mktemp("history"))[0]


def _records(demo: LiveDemo) -> list[Record]:
    files = sorted((demo.directory / "db" / "supervisor-job").iterdir())
    return [json.loads(file.read_bytes()) for file in files]


def _let_pass(demo: LiveDemo, clock: FixedClock, seconds: float) -> None:
    for _ in range(int(seconds / 0.5)):
        clock.advance(0.5)
        demo.step()


def test_history_is_there_at_once(history: LiveDemo) -> None:
    records = _records(history)
    ended = [r for r in records if r["status"] in {"completed", "error", "canceled"}]
    assert len(ended) >= 24
    assert len({r["status"] for r in records}) >= 4
    assert len({r["simulationType"] for r in records}) >= 5
    now = to_seconds(NOW)
    assert all(now - HISTORY_S <= r["computeJobQueued"] <= now for r in ended)
    assert any(r["status"] == "running" for r in records)


def traces_of(demo: LiveDemo) -> dict[TraceId, Trace]:
    book = TraceStore()
    for line in (demo.directory / SPANS).read_bytes().splitlines():
        told = read_telemetry(line, "spans")
        assert not told.skip_count
        book.add(told.spans, told.logs)
    return {one: trace for one in book.ids() if (trace := book.trace(one))}


def test_the_history_has_traces_that_failed_and_ended_well(history: LiveDemo) -> None:
    found = [study_trace(trace) for trace in traces_of(history).values()]
    failed = [one for one in found if one.has_failed]
    assert len(found) > 20
    assert failed
    assert all(one.causes[0].span.name == "step" and one.causes[0].exception for one in failed)
    assert not any(one.skewed or one.tree.doubles for one in found)


def test_the_simulated_site_continues(tmp_path: Path) -> None:
    demo, clock = _demo(tmp_path)
    growing_traces = [one for one, trace in traces_of(demo).items() if growing(trace, NOW)]
    before = _records(demo)
    logs = [demo.directory / name for name in (SUPERVISOR_LOG, SERVER_LOG)]
    sizes = [path.stat().st_size for path in logs]
    seen: dict[str, set[float]] = {}
    for _ in range(40):
        _let_pass(demo, clock, 5)
        for record in _records(demo):
            if record["status"] == "running" and record["isParallel"]:
                seen.setdefault(record["computeJid"], set()).add(record["parallelStatus"]["percentComplete"])

    after = _records(demo)
    assert len(after) >= len(before) + 5
    assert all(path.stat().st_size > size for path, size in zip(logs, sizes, strict=True))
    newest = max(r["dbUpdateTime"] for r in after)
    assert to_seconds(clock.now()) - 20 < newest <= to_seconds(clock.now()) + 1
    assert any(len(values) > 3 for values in seen.values())
    assert any(path.stat().st_size > 500 for path in (demo.directory / "db").rglob("run.log"))
    names = [r["simName"] or "" for r in after]
    odd = [name for name in names if re.search(r"[\x00-\x1f\u200b-\u202e]|\[/", name) or not name.isascii()]
    assert 0 < len(odd) < len(names) / 5
    assert growing_traces
    later = traces_of(demo)
    assert any(not growing(later[one], Nanos(NOW + 900 * SECOND)) for one in growing_traces)


Served = tuple[str, Path, FixedClock]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    clock = FixedClock(NOW)
    with serving(tmp_path, 1, clock) as (url, login):
        yield url, login, clock


def grown(seed: int = 1, seconds: int = 0) -> BalsamSite:
    site = BalsamSite(seed, NOW)
    site.advance(Nanos(NOW + seconds * SECOND))
    return site


def test_a_client_that_left_before_its_answer_is_not_reported(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    address = urlsplit(served[0])
    for _ in range(20):
        with socket.create_connection((address.hostname, address.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.send(b"GET /jobs/ HTTP/1.1\r\n")
    assert httpx.get(served[0]).status_code == 401
    assert capfd.readouterr().err == ""


async def test_the_same_source_reads_it_as_a_real_server(served: Served) -> None:
    url, _, clock = served
    source = timed(Balsam(BalsamClient(url, lambda: TOKEN)), clock)
    batches = await polled(source)
    assert not sum(batch.skip_count for batch in batches)
    site = grown()
    jobs = {job.id: job.native_status for batch in batches for job in batch.jobs}
    assert jobs == {f"balsam/{number}": job["state"] for number, job in site.jobs.items()}
    changes = {change.id for batch in batches for change in batch.changes}
    assert changes == {event["id"] for event in site.events}
    assert {one.id for batch in batches for one in batch.allocations} == set(site.batch_jobs)
    clock.advance(600)
    later = await polled(source)
    grew = grown(1, 600)
    assert max(change.id for batch in later for change in batch.changes) == grew.events[-1]["id"]
    await source.aclose()


def test_the_login_is_required_and_valid_for_one_server_only(served: Served) -> None:
    url, login, _ = served
    assert httpx.get(f"{url}/jobs/").status_code == 401
    assert httpx.get(f"{url}/nothing/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 404
    assert os.stat(login).st_mode & 0o777 == 0o600


REAL_RECORD = CAPTURES / "local" / "supervisor-job" / "DJouDZ9T-4F4EUZjI-heightWeightReport.json"

SITES = {
    "local": Settings(users=3, ops=150),
    "troubled": Settings(users=3, ops=150, restarts=0.03, crashes=0.03, agent_deaths=0.06),
    "docker": Settings(users=3, ops=150, driver=DriverName.DOCKER, pid_time=False, agent_deaths=0.05),
    "cluster": Settings(users=1, sbatch_users=3, ops=150, agent_deaths=0.03, restarts=0.01),
}


@pytest.fixture(params=SITES, scope="module")
def world(request: pytest.FixtureRequest) -> WatchedWorld:
    return simulate(11, SITES[request.param])


def _everything(world: WatchedWorld) -> dict[str, object]:
    logs: dict[str, object] = {name: world.log(name) for name in world.logs()}
    return logs | {"records": json.dumps(world.records()), "truth": world.witness.ops}


@pytest.mark.parametrize("site", SITES)
def test_same_seed_gives_same_bytes(site: str) -> None:
    assert _everything(simulate(5, SITES[site])) == _everything(simulate(5, SITES[site]))


def test_truth_of_jobs_is_what_the_records_say(world: WatchedWorld) -> None:
    records = world.records()

    assert {op.jid for op in world.witness.ops} - {None} <= set(records)
    for jid, record in records.items():
        runs = [entry for entry in (*record["history"], record) if entry["computeJobSerial"]]
        assert len(runs) == sum(op.name == "run" for op in world.witness.of_job(jid)), jid


def test_records_have_the_fields_of_the_real_ones(world: WatchedWorld) -> None:
    real = set(json.loads(REAL_RECORD.read_bytes()))
    for record in world.records().values():
        assert real <= set(record) <= real | {"parallelStatus", "queuedState", "internalError"}
        assert ("parallelStatus" in record) == record["isParallel"]
