"""What a session does for one question, and several profiles side by side."""

import asyncio
import json
import threading
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from jobtui.analysis.counts import profile_states
from jobtui.backends.base import Batch, Unopened
from jobtui.backends.log_start import TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.config import ConfigError, load
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import SourceError, SourceHealth, SourceMissing, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail, JobStatus
from jobtui.model.logs import LogRecord, Reached
from jobtui.model.ops import Correlation
from jobtui.render.sources import labels, profile_line
from jobtui.session import Session
from jobtui.store import poller
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from jobtui.transport.blocks import Limits
from tests.backends.log_fakes import log_file
from tests.builders import a_job, job_id
from tests.commands.running import Runner
from tests.conftest import NOW
from tests.fakes import FakeCorrelation, ScriptedSource, batch
from tests.rows import CAPTURES
from tests.waiting import LONG_S, stop, wait_until


@pytest.mark.parametrize(
    ("error", "state", "why", "skipped"),
    [
        (SourceMissing("a: gone"), SourceState.DOWN, "a: gone", []),
        (SourceError("a/x.json: torn"), SourceState.PARTIAL, None, [(job_id(), "a/x.json: torn")]),
    ],
    ids=["a source that is down", "a record that is torn"],
)
async def test_look_up_notes_a_failure_and_asks_the_next_source(
    clock: FixedClock, error: SourceError, state: SourceState, why: str | None, skipped: list[object]
) -> None:
    sources = [ScriptedSource(name="a", details={job_id(): error}), ScriptedSource(name="b", details=DETAILS)]
    async with Session(sources, clock) as session:
        assert await session.look_up(job_id()) == DETAIL
        first, second = session.store.sources()
    assert (first.state, first.error, second.state) == (state, why, SourceState.OK)
    assert [(one.where, one.why) for one in first.last_skips] == skipped


DETAIL = JobDetail(job=a_job(0), runs=(), history=(), native={})
DETAILS = {job_id(): DETAIL}


async def test_one_job_is_looked_up_without_a_poll(clock: FixedClock) -> None:
    source = ScriptedSource(details=DETAILS)
    async with Session([source], clock) as session:
        assert await session.look_up(job_id()) == DETAIL
        assert session.store.job(job_id()) == a_job()
        assert await session.look_up(job_id(7)) is None
        (health,) = session.store.sources()
    assert (health.state, health.records, health.read_at) == (SourceState.OK, 1, clock.now())
    assert (source.polls, source.closed) == (0, 1)


async def test_a_source_can_be_added_later_and_kinds_be_chosen(clock: FixedClock) -> None:
    db = ScriptedSource([batch(a_job(1))], name="db")
    log = ScriptedSource([batch(a_job(2))], name="log", kind="logfile")
    async with Session([db], clock) as session:
        session.add(log)
        await session.catch_up({"logfile"})
        assert (db.polls, log.polls) == (0, 1)
        await session.catch_up()
        assert set(session.store.jobs) == {job_id(1), job_id(2)}
    assert (db.closed, log.closed) == (1, 1)


async def test_a_source_that_hangs_holds_up_no_other(clock: FixedClock) -> None:
    slow, other = (ScriptedSource([batch(a_job(n))], name=name) for n, name in enumerate(("slow", "other")))
    async with Session([slow, other], clock) as session:
        await session.catch_up()
        slow.hold()
        running = asyncio.create_task(session.run())
        other.add(batch(a_job(2)))
        clock.advance(30)
        await wait_until(lambda: job_id(2) in session.store.jobs)
        lags = {health.name: (health.state, health.lag_s(clock.now())) for health in session.store.sources()}
        assert lags == {"slow": (SourceState.OK, 30), "other": (SourceState.OK, 0)}
        slow.add(batch(a_job(3)))
        slow.go_on()
        await wait_until(lambda: job_id(3) in session.store.jobs)
        await stop(running)


async def test_a_session_leaves_no_thread_that_read_run_directories(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    async with Session([]) as session:
        assert session.job_reader() is session.job_reader()
        await session.job_reader().list_files(str(tmp_path))
        assert set(threading.enumerate()) > before
    await wait_until(lambda: set(threading.enumerate()) <= before)


CAPTURE = CAPTURES / "local"
FIRST_JOB = JobId("hZk95g40-4u2Pj0fB-heightWeightReport")


def short_tail(path: Path) -> LogFile:
    return LogFile(path, start=TailBytes(8_000))


async def test_reaching_back_finds_what_lies_before_the_tail_once() -> None:
    async with Session([short_tail(CAPTURE / "supervisor.log")]) as session:
        await session.catch_up()
        assert session.store.correlation.ops_of(FIRST_JOB) == ()
        assert await session.reach_back(Nanos(0))
        correlation = session.store.correlation
        assert [op.name for op in correlation.ops_of(FIRST_JOB)] == ["run", "analysis"]
        assert not await session.reach_back(Nanos(0))
        assert session.store.correlation is correlation


async def test_reading_back_reports_progress() -> None:
    path = CAPTURE / "supervisor.log"
    source = log_file(path, start=TailBytes(8_000), limits=Limits(block=4_096, batch=16_384))
    told: list[Reached] = []
    async with Session([source]) as session:
        await session.catch_up()
        assert await session.reach_back(Nanos(0), told.append)
        assert session.store.correlation.ops_of(FIRST_JOB)
    size = path.stat().st_size
    assert {reached.size for reached in told} == {size}, "the log did not grow"
    read = [reached.read for reached in told]
    assert read == sorted(read)
    assert read[0] < size
    assert read[-1] == size
    assert told[-1].records == path.read_bytes().count(b"\n")


@pytest.mark.parametrize("why", ["would have to be read", "not now"])
async def test_too_much_or_a_failure_changes_nothing(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    log = short_tail(CAPTURE / "supervisor.log")
    if why == "not now":
        failing = ScriptedSource([SourceError(why)] * 2, name=log.name, kind="logfile")
        monkeypatch.setattr(log, "starting_at", lambda at: failing)
    else:
        monkeypatch.setattr(poller, "REACHED_BYTES", 20_000)
    async with Session([log]) as session:
        await session.catch_up()
        before = session.store.correlation
        with pytest.raises(SourceError, match=why):
            await session.reach_back(Nanos(0))
        assert session.store.correlation is before


async def test_a_source_without_a_size_is_read_within_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "REACHED_RECORDS", 300)
    script = [Batch(cursor=str(number), count=100, more=True) for number in range(50)]
    source = ScriptedSource(script, name="journal", kind="journald")
    store = Store(FakeCorrelation(), FixedClock(Nanos(0)))
    told: list[Reached] = []
    with pytest.raises(SourceError, match="more than 300 records"):
        await poller.read_again([Poller(source, store)], store, told.append)
    assert source.polls == 3
    assert told[-1] == Reached(0, 0, 200)


async def test_reading_logs_that_never_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "RESTS_S", 0.0)
    script = [Batch(cursor=str(number), more=number % 2 == 0) for number in range(5_000)]
    sources = [ScriptedSource(script[at:], name=str(at), kind="logfile") for at in (0, 1)]
    store = Store(FakeCorrelation(), FixedClock(Nanos(0)))
    await poller.read_again([Poller(one, store) for one in sources], store, lambda _: None)
    assert max(one.polls for one in sources) < 10


async def test_a_log_that_grows_during_a_read_is_read_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(second: int, *, more: bool) -> Batch:
        record = LogRecord("log", second, 0, Nanos(second * SECOND), None, "", {}, f"line {second}")
        return Batch(cursor=str(second), records=(record,), more=more)

    one = ScriptedSource([lines(second, more=False) for second in (1, 20, 40)], name="short", kind="logfile")
    long = ScriptedSource([lines(second, more=second < 60) for second in range(2, 61)], kind="logfile")
    monkeypatch.setattr(poller, "monotonic", map(float, range(10_000)).__next__)
    correlation, fed = FakeCorrelation(), list[LogRecord]()
    monkeypatch.setattr(correlation, "feed", lambda records: fed.extend(records) or set())  # type: ignore[func-returns-value]
    store = Store(correlation, FixedClock(Nanos(0)))
    await poller.read_again([Poller(one, store), Poller(long, store)], store, lambda reached: None)
    seconds = [record.line for record in fed]
    assert seconds == sorted(seconds)
    assert seconds.count(40) == 2


async def test_an_announced_source_is_named_at_once_and_read_when_asked_for() -> None:
    path = CAPTURE / "supervisor.log"
    announced = Unopened(str(path), "logfile", lambda: LogFile(path))
    async with Session([announced]) as session:
        assert [source.name for source in session.store.sources()] == [str(path)]
        assert session.store.correlation.ops_of(FIRST_JOB) == ()
        heard = asyncio.Event()
        session.store.subscribe(lambda changes: heard.set())
        running = asyncio.create_task(session.run())
        await asyncio.sleep(0)
        assert [source.name for source in session.sources] == [str(path)]
        async with asyncio.timeout(LONG_S):
            while not session.store.correlation.ops_of(FIRST_JOB):
                heard.clear()
                await heard.wait()
        await stop(running)


@pytest.fixture
def two_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with two profiles, each with a database of one job; a log is in both."""
    for site, status in (("prod", "running"), ("hpc", "error")):
        directory = tmp_path / site / "supervisor-job"
        directory.mkdir(parents=True)
        jid = f"vn9mPEFC-{site:a<8}-animation"
        (directory / f"{jid}.json").write_text(json.dumps({"computeJid": jid, "status": status}))
    log = tmp_path / "shared.log"
    log.write_text("")
    config = tmp_path / "config.toml"
    config.write_text(
        f'log = "{log}"\n'
        f'[profiles.prod]\nsrdb = "{tmp_path}/prod"\n[profiles.prod.hosts]\nv3 = "ssh://v3"\n'
        f'[profiles.hpc]\nsrdb = "{tmp_path}/hpc"\n[profiles.hpc.hosts]\nv7 = "ssh://v7"\n'
    )
    monkeypatch.setenv("JOBTUI_CONFIG", str(config))
    return tmp_path


def test_their_sources_are_read_together_each_with_its_profile(two_sites: Path) -> None:
    config = load({"profile": ("prod, hpc",)}, {"JOBTUI_CONFIG": str(two_sites / "config.toml")})
    told = {Path(spec.target).name: spec.profile for spec in config.sources}
    assert told == {"prod": "prod", "hpc": "hpc", "shared.log": ""}
    assert config.profile == "prod,hpc"
    assert config.hosts == {"v3": "ssh://v3", "v7": "ssh://v7"}
    assert {*config.profile_of_source.values()} == {"prod", "hpc"}
    with pytest.raises(ConfigError, match='no profile "nowhere"'):
        load({"profile": ("prod,nowhere",)}, {"JOBTUI_CONFIG": str(two_sites / "config.toml")})


def test_one_table_has_the_jobs_of_both_and_status_has_a_line_for_each(two_sites: Path, run: Runner) -> None:
    table = run("jobs", "--profile", "prod,hpc").out.splitlines()
    assert "PROFILE" in table[0]
    assert {("prod" in line, "hpc" in line) for line in table[1:]} == {(True, False), (False, True)}
    lines = run("status", "--profile", "prod,hpc").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["prod", "hpc"]
    assert "1 of 1 source up · 1 running" in lines[1]
    document = run("status", "--json", "--profile", "prod,hpc").json
    assert [one["profile"] for one in document["profiles"]] == ["prod", "hpc"]
    assert {one.get("profile") for one in document["sources"]} == {"prod", "hpc"}
    sites = {one["id"]: one["profile"] for one in run("jobs", "--json", "--profile", "prod,hpc").json["jobs"]}
    for command, (jid, site) in product(("explain", "show", "timeline"), sites.items()):
        assert run(command, jid, "--json", "--profile", "prod,hpc").json["job"]["profile"] == site
        assert site in jid
    following = run("explain", jid, "--json", "--profile", "prod,hpc").json["next"]
    ours = [one["command"] for one in following if one["command"].startswith("jobtui ")]
    assert ours
    assert all("--profile prod,hpc" in command for command in ours)
    told = run("doctor", "--profile", "prod,hpc").out
    assert told.count(": 1 job\n") == told.count(f": {two_sites}/") == 2, told
    alone = run("jobs", "--profile", "prod").out
    assert "PROFILE" not in alone
    assert run("status", "--json", "--profile", "prod").json["profiles"] == []


def job(source: str, number: int, **more: Any) -> Any:
    return a_job(number, source=source, **more)


def test_a_status_line_says_what_is_unusual() -> None:
    ended = [
        *(job("a", n, status=JobStatus.FAILED, ended_at=Nanos(NOW - 60 * SECOND)) for n in range(6)),
        *(job("a", n, status=JobStatus.COMPLETED, ended_at=Nanos(NOW - 60 * SECOND)) for n in range(6, 12)),
        *(
            job("a", n, status=JobStatus.COMPLETED, ended_at=Nanos(NOW - 7_200 * SECOND))
            for n in range(12, 32)
        ),
        job("b", 40, status=JobStatus.PENDING, queued_at=Nanos(NOW - 3_600 * SECOND), started_at=None),
        job("b", 41, status=JobStatus.RUNNING),
        job("c", 42, status=JobStatus.RUNNING),
    ]
    health = [
        SourceHealth(name="a", kind="sirepo_db", profile="prod", state=SourceState.OK),
        SourceHealth(name="b", kind="sirepo_db", profile="hpc", state=SourceState.DOWN),
        SourceHealth(name="c", kind="sirepo_db"),
    ]
    profile_of = {one.name: one.profile for one in health}.__getitem__
    states = partial(profile_states, profile_of=profile_of, now_of=lambda _: NOW)
    prod, hpc = states(("prod", "hpc"), ended, health)
    assert (prod.ended, prod.failed, prod.usual_share, prod.is_unusual) == (12, 6, 0.0, True)
    assert (hpc.up, hpc.sources, hpc.running, hpc.longest_wait_s) == (0, 1, 1, 3_600.0)
    texts = ["".join(span.text for span in profile_line(state)) for state in (prod, hpc)]
    assert texts == [
        " prod  1 of 1 source up · 0 running · 50 % of 12 failed in 1h, usually 0 %",
        " hpc  0 of 1 source up · 1 running · longest wait 1h",
    ]
    assert labels(health)[:2] == ["prod: db", "hpc: db"]
    assert states(("prod",), ended, health[:1]) == []
    assert states(("prod", "logs"), ended, health)[1].sources == 0


def ops_in(correlation: Correlation) -> list[tuple[object, ...]]:
    return sorted(
        (op.op, op.name, op.jid or "", op.status, op.ended_at or 0, tuple((s.step, s.text) for s in op.steps))
        for op in correlation.ops()
    )


def late() -> ScriptedSource:
    """A journal that begins after every time, and has nothing before."""
    source = ScriptedSource(name="journal", kind="journald")
    source.begins_after = lambda at: True  # type: ignore[attr-defined]
    source.starting_at = lambda at: ScriptedSource(name="journal", kind="journald")  # type: ignore[attr-defined]
    return source


@pytest.mark.parametrize("name", ["docker", "sbatch", "legacy-2020"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
async def test_reading_back_keeps_what_is_gone_from_a_log(tmp_path: Path, name: str, share: float) -> None:
    source = CAPTURE.parent / name / "supervisor.log"
    lines = source.read_bytes().splitlines(keepends=True)
    log = tmp_path / "supervisor.log"
    log.write_bytes(b"".join(lines))
    async with Session([LogFile(log), late()]) as session:
        await session.catch_up()
        before = ops_in(session.store.correlation)
        agents = {agent.agent for agent in session.store.correlation.agents()}
        log.write_bytes(b"".join(lines[int(len(lines) * share) :]))
        assert await session.reach_back(Nanos(0))
        assert ops_in(session.store.correlation) == before
        assert {agent.agent for agent in session.store.correlation.agents()} == agents
        assert session.store.correlation.dropped_ops == 0


async def test_an_op_without_its_first_lines_continues(tmp_path: Path) -> None:
    lines = (CAPTURE / "supervisor.log").read_bytes().splitlines(keepends=True)
    log = tmp_path / "supervisor.log"
    for cut in range(len(lines) // 2, len(lines), 37):
        log.write_bytes(b"".join(lines[:cut]))
        async with Session([LogFile(log), late()]) as session:
            await session.catch_up()
            log.rename(tmp_path / "gone")
            log.write_bytes(b"")
            await session.catch_up()
            assert await session.reach_back(Nanos(0))
            with log.open("ab") as file:
                file.writelines(lines[cut:])
            await session.catch_up()
            known = ops_in(session.store.correlation)
        log.write_bytes(b"".join(lines))
        async with Session([LogFile(log)]) as session:
            await session.catch_up()
            whole = ops_in(session.store.correlation)
        assert [op[:3] for op in known] == [op[:3] for op in whole]
        assert [op[3] for op in known] == [op[3] for op in whole]
