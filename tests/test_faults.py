"""What goes wrong in jobtui itself costs what was being dealt with, is counted by its place, and no more."""

import ast
import asyncio
import inspect
import os
import pkgutil
import re
import shutil
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing, nullcontext
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import jobtui.backends
from jobtui.analysis import alerts, cause, find
from jobtui.analysis.correlation.agent_lines import AgentPass
from jobtui.analysis.correlation.correlator import Correlator, SupervisorPass, WriterSurvey
from jobtui.analysis.explain.verdict import explain
from jobtui.backends.archive.search import ScriptQuery, Tally, find_script, search
from jobtui.backends.balsam.site_logs import SiteDirectories, SiteLogs
from jobtui.backends.base import LISTS, Batch, Source, Unopened
from jobtui.backends.job_reader import JobReader
from jobtui.backends.registry import SOURCES, build
from jobtui.backends.traces import jaeger, receiver
from jobtui.backends.traces.jaeger import Jaeger
from jobtui.commands import jobs as jobs_command
from jobtui.commands import mcp, runner, watch
from jobtui.commands.context import make_context
from jobtui.commands.remember import FinishedRuns
from jobtui.config import load
from jobtui.formats import sarchive
from jobtui.formats.job_output import OutputReader
from jobtui.formats.parser import LogParser, SiteLogParser
from jobtui.grammar import COMMAND_BY_NAME, COMMANDS, DASHBOARD, Invocation, Subcommand
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_rfc3339
from jobtui.model.health import MOST_LOCATIONS, Faults, SourceHealth, SourceState, contained, location_of
from jobtui.model.ids import JobId
from jobtui.model.job_reader import LINES_BEHIND
from jobtui.model.jobs import JobStatus
from jobtui.model.scripts import ScriptPeriod, Wanted
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.model.traces import TraceSearch
from jobtui.recording.database import FILE_NAME, About, Recording
from jobtui.recording.recorder import Recorder, RecordingWriter
from jobtui.render import columns
from jobtui.session import Session, evidence
from jobtui.session.evidence import Gatherer
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from jobtui.widgets import job_rows
from jobtui.widgets.job_rows import JobRows, Order
from tests.backends.traces.sending import listening, send
from tests.builders import a_job
from tests.commands.running import AT, CAPTURES, Runner
from tests.conftest import NOW
from tests.fakes import SECRET, FakeCorrelation, Injected, ScriptedSource, batch, fail, fail_later, fail_once
from tests.loopback import served
from tests.modules import called_name, nodes
from tests.rows import FIXTURES, ROWS
from tests.trace_servers import Jaeger as JaegerServer
from tests.trace_servers import Site, Spans
from tests.tracing import TRACE_ID
from tests.waiting import stop, wait_until

JOB, OTHER, BAD = map(a_job, range(3))
ROW = columns.RowContext(now=NOW)
CAPTURE = CAPTURES / "local"
RUN = [DASHBOARD, *(command for command in COMMANDS if command.name != "completion")]  # which prints a table
FAILED_OF_CAPTURE = JobId("DJouDZ9T-4F4EUZjI-heightWeightReport")


async def fail_walking(*arguments: object, **named: object) -> AsyncIterator[Any]:
    yield fail()


def test_a_fault_is_known_by_its_place_and_never_by_what_it_says(
    expected_faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contained("trying"):
        Nanos(int(SECRET))
    with contained("trying"):
        to_rfc3339("x")  # type: ignore[arg-type]
    by_location = {fault.location.partition(":")[0]: fault for fault in expected_faults.all()}
    assert [*by_location] == [__name__, "jobtui.model.clock"]
    assert {fault.kind for fault in by_location.values()} == {"ValueError", "TypeError"}
    assert not any(SECRET in fault.line for fault in expected_faults.all())
    with pytest.raises(ValueError, match=SECRET) as raised:
        int(SECRET)
    assert location_of(raised.value).startswith(f"{__name__}:")
    assert location_of(ValueError(SECRET)) == "?"
    monkeypatch.setattr("jobtui.model.health.location_of", fail)
    assert Faults().note(raised.value, "trying").location == "?"


def test_faults_are_counted_and_their_places_are_bounded(expected_faults: Faults) -> None:
    for number in range(MOST_LOCATIONS + 50):
        kind = type(f"Kind{number}", (Exception,), {})
        for _ in range(2):
            with contained("trying"):
                raise kind
    assert len(expected_faults) == 2 * (MOST_LOCATIONS + 50)
    assert len(expected_faults.all()) <= MOST_LOCATIONS + 1
    assert expected_faults.all()[0].count == 2


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, RecursionError])
def test_contained_counts_all_but_exits(kind: type[BaseException], expected_faults: Faults) -> None:
    is_fault = issubclass(kind, Exception)
    with nullcontext() if is_fault else pytest.raises(kind), contained("trying"):
        raise kind
    assert [fault.kind for fault in expected_faults.all()] == ([kind.__name__] if is_fault else [])


async def test_a_cancellation_that_nobody_asked_for_is_a_fault(expected_faults: Faults) -> None:
    async def cancelled() -> None:
        with contained("waiting"):
            await asyncio.Event().wait()

    task = asyncio.ensure_future(cancelled())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not expected_faults.all()
    with contained("waiting"):
        raise asyncio.CancelledError
    assert [fault.kind for fault in expected_faults.all()] == ["CancelledError"]


def source_classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(jobtui.backends.__path__, "jobtui.backends."):
        for found in vars(import_module(module.name)).values():
            is_ours = isinstance(found, type) and found.__module__ == module.name and found is not Source
            is_polled = inspect.iscoroutinefunction(getattr(found, "poll", None))
            if is_ours and is_polled and not inspect.isabstract(found):
                yield found


def breaking(kind: type, method: str) -> Any:
    async def nothing(self: Any, *arguments: Any) -> Batch:
        await asyncio.sleep(0.05)
        return Batch(cursor="1")

    body: dict[str, Any] = {
        **dict.fromkeys(("poll", "changed", "aclose"), nothing), "__init__": lambda self: None,
        "name": f"broken {kind.__name__}", "kind": "broken", "source": None, "cluster": "",
    }  # fmt: skip
    is_walked = inspect.isasyncgenfunction(getattr(kind, method))
    fails = {**body, method: fail_walking if is_walked else fail_later}
    return type(f"Broken{kind.__name__}", (kind,), fails)()


STAGES = {"poll": "reading X", "changed": "waiting for X", "aclose": "closing X"}


@pytest.mark.parametrize("method", STAGES)
@pytest.mark.parametrize("kind", [*source_classes()], ids=lambda kind: kind.__name__)
async def test_a_source_that_raises_costs_no_other(kind: type, method: str, expected_faults: Faults) -> None:
    good = ScriptedSource([batch(JOB)])
    async with Session([breaking(kind, method), good], FixedClock(NOW)) as session:
        running = asyncio.ensure_future(session.run())
        await wait_until(lambda: JOB.id in session.store.jobs)
        good.add(batch(OTHER))
        await wait_until(lambda: OTHER.id in session.store.jobs)
        broken, other = session.store.sources()
        assert other.state is SourceState.OK
        await wait_until(lambda: expected_faults.all() or method == "aclose")
        if method == "poll":
            assert (broken.state, broken.reason) == (SourceState.DOWN, expected_faults.all()[0].words)
        await stop(running)
    (fault,) = expected_faults.all()
    assert (fault.kind, fault.stage) == ("Injected", STAGES[method].replace("X", "broken"))


def test_a_class_of_every_kind_of_source_is_tried() -> None:
    told = {"journald", "loki", "elastic_logs", "elastic_jobs"}  # classes of several kinds are told theirs
    assert {one.kind for one in SOURCES} - told <= {getattr(kind, "kind", "") for kind in source_classes()}


async def ask_for_trace(session: Session) -> object:
    return (await session.traces.fetch(TRACE_ID)).notes


async def search_traces(session: Session) -> object:
    return (await session.traces.search(TraceSearch())).notes


async def find_a_script(session: Session) -> object:
    return (await find_script(session.sources, Wanted("7"))).tried


async def search_scripts(session: Session) -> object:
    tally = Tally()
    async for _ in search(session.sources, ScriptQuery("x", "", ScriptPeriod()), tally):
        pass
    return tally.reasons


async def look_up(session: Session) -> object:
    await session.look_up(JOB.id)
    return session.store.sources()[0].last_skips


QUESTIONS: dict[str, tuple[Callable[[Session], Awaitable[object]], str]] = {
    "trace": (ask_for_trace, "asking X"), "search": (search_traces, "asking X"),
    "find": (find_a_script, "looking for a script"), "walk": (search_scripts, "searching scripts"),
    "detail": (look_up, "looking up a job"),
}  # fmt: skip
"""What sources are asked, besides for news: how a session asks it and gives what is said of the answer."""
POLLED = {"poll", "read", "changed", "aclose"}
BY_OTHERS = {
    "continuations", "list_files", "read_file",
    "sample_lines", "is_reachable", "services", "cluster_name", "matches_named",
}  # fmt: skip
"""What sources are asked by a `JobReader` (`backends/test_run_dir.py`), a command, a source or a replay."""


def asked_of(kind: type) -> set[str]:
    members = ((name, getattr(kind, name)) for name in dir(kind) if not name.startswith("_"))
    is_later = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return {name for name, one in members if any(test(one) for test in is_later)} - POLLED


ASKED = [(kind, method) for kind in source_classes() for method in sorted(asked_of(kind) & QUESTIONS.keys())]


def test_every_question_to_a_source_is_tried() -> None:
    known = QUESTIONS.keys() | BY_OTHERS
    assert {question for kind in source_classes() for question in asked_of(kind)} <= known
    asked = {kind.__name__ for kind, _ in ASKED}
    assert asked > {"Jaeger", "Tempo", "ElasticArchive", "KafkaArchive", "Slurm"}


@pytest.mark.parametrize(
    ("kind", "method"), ASKED, ids=[f"{kind.__name__}-{method}" for kind, method in ASKED]
)
async def test_a_question_that_raises_costs_itself(kind: type, method: str, expected_faults: Faults) -> None:
    good = ScriptedSource([batch(JOB)])
    async with Session([breaking(kind, method), good], FixedClock(NOW)) as session:
        ask, stage = QUESTIONS[method]
        said = await ask(session)
        assert expected_faults.all()[0].words in str(said)
        await session.catch_up()
        assert JOB.id in session.store.jobs
        assert session.store.sources()[1].state is SourceState.OK
    (fault,) = expected_faults.all()
    assert (fault.kind, fault.stage) == ("Injected", stage.replace("X", "broken"))
    assert SECRET not in str(said)


async def test_an_export_that_raises_is_answered_and_counted(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    async with listening() as taker:
        with monkeypatch.context() as patched:
            patched.setattr(receiver, "read_export", fail)
            sent = await send(taker, b"{}")
        batch_of_it = await taker.poll(None)
        assert (await send(taker, b"{}")).status == 200
    (fault,) = expected_faults.all()
    assert (sent.status, batch_of_it.skip_count, fault.stage) == (500, 1, "reading what was sent")
    assert fault.words in str(sent.json["message"])
    assert fault.words in batch_of_it.skipped[0].why


async def test_a_source_that_cannot_be_made_costs_no_other_source(expected_faults: Faults) -> None:
    good = ScriptedSource([batch(JOB)])
    async with Session([Unopened("bad", "logfile", fail), good], FixedClock(NOW)) as session:
        running = asyncio.ensure_future(session.run())
        await wait_until(lambda: JOB.id in session.store.jobs)
        await wait_until(lambda: session.store.sources()[0].state is SourceState.DOWN)
        await stop(running)
    assert [fault.stage for fault in expected_faults.all()] == ["opening logfile"]


@pytest.mark.parametrize("name", ["jobs", "records", "a batch"])
async def test_a_record_that_the_store_cannot_take_costs_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    store = Store(FakeCorrelation(), FixedClock(NOW))
    apply = store.apply

    def is_bad(told: Batch) -> bool:
        if name == "a batch":
            return len(told.jobs) > 1
        return any(one in (BAD, "bad") for one in getattr(told, name))

    monkeypatch.setattr(store, "apply", lambda source, told: fail() if is_bad(told) else apply(source, told))
    told = {"jobs": batch(JOB, BAD, OTHER), "records": batch(JOB, OTHER, records=("bad",))}
    source = ScriptedSource([told.get(name, batch(JOB, OTHER))])
    await Poller(source, store).catch_up()
    assert {JOB.id, OTHER.id} <= store.jobs.keys()
    (health,) = store.sources()
    state = SourceState.OK if name == "a batch" else SourceState.PARTIAL
    assert (health.state, health.skipped) == (state, int(name != "a batch"))
    assert source.polls == 1, "the records are not read again"
    stage = "taking in a batch" if name == "a batch" else f"taking in {name}"
    assert [fault.stage for fault in expected_faults.all()] == [stage]
    assert name in (*LISTS, "a batch")


async def test_a_batch_that_the_store_cannot_take_at_all_is_a_source_that_is_down(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    store = Store(FakeCorrelation(), FixedClock(NOW))
    told: Any = SimpleNamespace(delivered=lambda *given: None, failed=fail)
    poller = Poller(ScriptedSource([batch(JOB)]), store, observer=told)
    monkeypatch.setattr(store, "apply", fail)
    assert not await poller.poll_once()
    (health,) = store.sources()
    kind = poller.source.kind
    assert (health.state, f"(reading {kind})" in health.reason) == (SourceState.DOWN, True)
    # of the record and of the recorder, raised at one place; of the batch
    counted = [(one.stage, one.count) for one in expected_faults.all()]
    assert counted == [("taking in jobs", 2), (f"reading {kind}", 1)]


def test_a_listener_that_raises_costs_no_other_listener(expected_faults: Faults) -> None:
    store = Store(FakeCorrelation(), FixedClock(NOW))
    store.add_source("db", "sirepo_db")
    heard: list[object] = []
    for listener in (fail, heard.append, fail):
        store.subscribe(listener)
    store.apply("db", batch(JOB))
    assert len(heard) == 1
    assert [(fault.stage, fault.count) for fault in expected_faults.all()] == [("notifying of changes", 2)]


@pytest.mark.parametrize("reads", [SupervisorPass, AgentPass])
async def test_records_that_cannot_be_correlated_cost_themselves(reads: Any, expected_faults: Faults) -> None:
    async def ops_with(every: int) -> tuple[int, int]:
        with pytest.MonkeyPatch.context() as patched:
            seen, read = 0, reads.read

            def reading(self: Any, record: Any) -> Any:
                nonlocal seen
                seen += 1
                return fail() if seen % every == 0 else read(self, record)

            patched.setattr(reads, "read", reading)
            async with Session([build(SourceSpec("log", str(CAPTURE / "supervisor.log")))]) as session:
                await session.catch_up()
                return len([*session.store.correlation.ops()]), session.store.sources()[0].records

    whole, records = await ops_with(10**9)
    assert not expected_faults.all()
    some, again = await ops_with(50)
    assert records == again
    assert 0 < some <= whole
    assert {fault.stage for fault in expected_faults.all()} == {"correlating"}


async def test_a_job_that_cannot_be_explained_costs_no_other(expected_faults: Faults) -> None:
    sample = Gatherer.sample

    async def sampled(self: Gatherer, job: Any) -> Any:
        return fail() if job.id.endswith("heightWeightReport") else await sample(self, job)

    async with Session([build(SourceSpec("srdb", str(CAPTURE)))], FixedClock(NOW)) as session:
        await session.catch_up()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Gatherer, "sample", sampled)
            found = await Gatherer.of(session).survey(Nanos(0), NOW)
        whole = await Gatherer.of(session).survey(Nanos(0), NOW)
    assert 0 < found.looked_at == whole.looked_at - len(expected_faults)
    assert {fault.stage for fault in expected_faults.all()} == {"explaining"}


@pytest.mark.parametrize("broken", ["delivered", "put"])
async def test_a_recorder_that_raises_loses_that_and_says_so(
    broken: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    about = About(version="0", made_at=NOW, at=NOW, config={})
    writer = RecordingWriter(tmp_path / FILE_NAME, about, 1 << 20)
    recorder = Recorder(writer, FixedClock(NOW))
    owner: Any = recorder if broken == "delivered" else writer
    work = getattr(owner, broken)
    monkeypatch.setattr(owner, broken, lambda *given: fail() if JOB.id in str(given) else work(*given))
    source = ScriptedSource([batch(JOB, more=True), batch(OTHER)])
    store = Store(FakeCorrelation(), FixedClock(NOW))
    await Poller(source, store, observer=recorder).catch_up()
    await asyncio.to_thread(recorder.close)
    writer.close()
    assert {JOB.id, OTHER.id} <= store.jobs.keys()
    with closing(Recording(tmp_path)) as recording:
        kept = str(recording.delivered(recording.source(source.kind, source.name) or 0, -1, NOW, 10))
    assert OTHER.id in kept
    assert JOB.id not in kept
    assert {fault.stage for fault in expected_faults.all()} == {"recording"}


def test_a_recording_goes_on_after_its_reader_died(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    reads, read = 0, Session.run

    async def reading(self: Session) -> None:
        nonlocal reads
        reads += 1
        if reads < 3:
            raise Injected(SECRET)
        going = asyncio.ensure_future(read(self))
        await wait_until(lambda: self.store.jobs)
        os.kill(os.getpid(), signal.SIGTERM)
        await going

    monkeypatch.setattr(Session, "run", reading)
    monkeypatch.setattr("jobtui.commands.remember.READ_AGAIN_S", 0.01)
    ran = run("record", tmp_path / "kept", "--srdb", CAPTURE)
    assert [(one.stage, one.count) for one in expected_faults.all()] == [("reading what is recorded", 2)]
    assert expected_faults.all()[0].words in ran.err
    assert re.search(r" [1-9]\d* records kept", ran.err)
    assert not re.search(r"\d lost", ran.err)


def words_of(command: Subcommand) -> list[str]:
    argument = command.argument
    if argument is None or not argument.required:
        return [command.name] if command is not DASHBOARD else []
    return [command.name, argument.choices[0] if argument.choices else "x"]


@pytest.mark.parametrize("command", RUN, ids=lambda command: command.name)
def test_a_command_that_raises_says_so_in_a_line(
    command: Subcommand, run: Runner, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    runs = runner(command.name)
    monkeypatch.setattr(import_module(runs.__module__), runs.__name__, fail)
    ran = run(*words_of(command))
    assert ran.code == 70
    (line,) = ran.err.splitlines()
    (fault,) = expected_faults.all()
    assert fault.words in line
    assert fault.stage == "running the command"
    assert SECRET not in ran.out + ran.err


@pytest.mark.parametrize(("words", "code"), [(("jobs", "--nothing"), 2), (("jobs",), 70)])
def test_a_line_on_stderr_that_raises_says_so(
    words: tuple[str, ...], code: int, run: Runner, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    monkeypatch.setattr("jobtui.render.text.show", fail)
    monkeypatch.setattr("jobtui.commands.jobs.run", fail)
    ran = run(*words)
    assert (ran.code, SECRET in ran.err) == (code, False)
    fault = expected_faults.all()[-1]
    assert (fault.stage, ran.err) == ("saying what is wrong", f"jobtui: {fault.words}\n")


@pytest.mark.parametrize(
    ("place", "name", "stage"),
    [
        ("render.json_output", "job_record", "printing a job"),
        ("commands.jobs", "_within", "sorting jobs"),
        ("commands.jobs", "needs_person", "sorting jobs"),
    ],
)
def test_a_command_says_what_is_missing_for_a_fault(
    place: str, name: str, stage: str, run: Runner, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    module = import_module(f"jobtui.{place}")
    work: Callable[..., Any] = getattr(module, name)
    whole = run("jobs", "--srdb", CAPTURE, "--at", AT, "--json").json
    bad = whole["jobs"][1]["id"]
    monkeypatch.setattr(module, name, lambda job, of: fail() if job.id == bad else work(job, of))
    ran = run("jobs", "--srdb", CAPTURE, "--at", AT, "--json")
    assert ran.json["jobs"] == [job for job in whole["jobs"] if job["id"] != bad]
    (fault,) = ran.json["faults"]
    assert (fault["kind"], fault["stage"], fault["count"]) == ("Injected", stage, 1)
    assert ran.code == 70
    assert "faults" not in whole


@pytest.mark.parametrize(("stage", "broken"), ROWS["stages of a command about a job"])
def test_a_command_about_a_job_prints_what_it_has(
    stage: str, broken: str, run: Runner, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    monkeypatch.setattr("jobtui.commands.reader.WHOLE_BYTES", 0)
    monkeypatch.setattr(broken, fail_later if broken.endswith("_here") else fail)
    flags = ("--srdb", CAPTURE, "--log", CAPTURE / "supervisor.log", "--at", AT)
    command = {"finding": "find", "looking for locations": "show"}.get(stage, "explain")
    ran = run(command, FAILED_OF_CAPTURE, *flags, "--json")
    assert FAILED_OF_CAPTURE in ran.out
    assert [one["stage"] for one in ran.json["faults"]] == [stage]
    assert SECRET not in ran.out + ran.err


@pytest.mark.parametrize(
    ("owner", "name", "says"),
    [
        (Correlator, "_read", "jobtui: a fault of jobtui: Injected at {place}"),
        (import_module("jobtui.commands.doctor"), "_examine", "{words}"),
    ],
    ids=["correlating", "examining a source"],
)
def test_doctor_lists_faults_and_fails(
    owner: object, name: str, says: str, run: Runner, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    monkeypatch.setattr(owner, name, fail if owner is Correlator else fail_later)
    ran = run("doctor", "--srdb", CAPTURE, "--log", CAPTURE / "supervisor.log", "--at", AT)
    fault = expected_faults.all()[0]
    assert (ran.code, fault.stage) == (1, "correlating" if owner is Correlator else "examining a source")
    assert says.format(place=fault.location, words=fault.words) in ran.out
    assert SECRET not in ran.out + ran.err


async def test_a_callback_that_raises_is_counted(expected_faults: Faults) -> None:
    async with Session([ScriptedSource([batch(JOB)])], FixedClock(NOW)) as session:
        asyncio.get_running_loop().call_soon(fail)
        await wait_until(expected_faults.all)
        await session.catch_up()
        assert JOB.id in session.store.jobs
    assert [fault.stage for fault in expected_faults.all()] == ["in the background"]


def test_a_fault_that_ends_a_thread_or_a_closing_is_counted(
    run: Runner, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    def jobs_command(context: object) -> int:
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        type("Closed", (), {"__del__": lambda self: fail()})()
        return 0

    runs = runner("jobs")
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(import_module(runs.__module__), runs.__name__, jobs_command)
    ran = run("jobs")
    assert ran.code == 70
    (fault,) = expected_faults.all()
    assert (fault.stage, fault.count) == ("in the background", 2)
    assert fault.words in ran.err
    assert SECRET not in ran.err


async def read_by(source: Source) -> tuple[list[Any], SourceHealth]:
    """What a source reads of the files that are there, and how it then is."""
    found: list[Any] = []
    store = Store(FakeCorrelation(), FixedClock(NOW))
    apply = store.apply

    def applied(name: str, told: Batch) -> Any:
        found.extend((*told.records, *told.condor))
        return apply(name, msgspec.structs.replace(told, condor=()))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "apply", applied)
        await Poller(source, store).catch_up()
    await source.aclose()
    (health,) = store.sources()
    return found, health


def site_logs(path: Path) -> Source:
    (path.parent / "log").mkdir()
    path.rename(path.parent / "log" / "service_2026-11-22_003951.log")
    return SiteLogs(lambda: (SiteDirectories("balsam", (str(path.parent),)),))


SITE_LOG = FIXTURES / "balsam" / "site_logs" / "service_2026-11-20_173100.log"
PROGRAM_OUTPUT = FIXTURES / "tracing" / "81430001.0.out"
SUPERVISOR_LOG = CAPTURE / "supervisor.log", lambda path: build(SourceSpec("log", str(path)))
BYTE_READERS: dict[str, tuple[Path, Callable[[Path], Source], object, str, str]] = {
    "supervisor": (*SUPERVISOR_LOG, LogParser, "parse", "reading a log"),
    "line of the supervisor": (*SUPERVISOR_LOG, LogParser, "_read", "reading a line"),
    "site": (SITE_LOG, site_logs, SiteLogParser, "_record", "reading a log"),
    "output of an HTCondor job": (
        PROGRAM_OUTPUT,
        lambda path: build(SourceSpec("condor_log", str(path))),
        OutputReader, "_facts", "reading a record",
    ),
}  # fmt: skip
"""Of what reads bytes: a file, its source, what is made to raise for one line, and the stage that is told."""


@pytest.mark.parametrize("kind", BYTE_READERS)
async def test_a_line_that_a_reader_of_bytes_raises_on_costs_itself(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    captured, source_of, owner, name, stage = BYTE_READERS[kind]
    lines = captured.read_bytes().splitlines(keepends=True)
    work = getattr(owner, name)
    results: list[tuple[list[Any], SourceHealth]] = []
    for is_bad in (False, True):
        (folder := tmp_path / str(is_bad)).mkdir()
        if is_bad:
            lines.insert(1, lines[results[0][0][0].line - 1].rstrip() + b" BAD\n")
            patched = lambda self, *given: fail() if "BAD" in str(given) else work(self, *given)  # noqa: E731
            monkeypatch.setattr(owner, name, patched)
        (path := folder / captured.name).write_bytes(b"".join(lines))
        results.append(await read_by(source_of(path)))
    (whole, sound), (left, health) = results
    assert 0 < len(whole) == len(left)
    assert (health.skipped, health.state) == (sound.skipped + 1, SourceState.PARTIAL)
    (fault,) = expected_faults.all()
    assert (fault.stage, fault.words) == (stage, health.last_skips[-1].why)


async def test_a_summary_of_a_trace_that_raises_costs_itself(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    summary = jaeger._summary
    spans, found = Spans(), []
    for bad in ("", spans.ids[0]):
        told = lambda one, bad=bad: fail() if one["traceId"] == bad else summary(one)  # noqa: E731
        monkeypatch.setattr(jaeger, "_summary", told)
        with served(Site(JaegerServer(spans))) as address:
            source = build(SourceSpec("jaeger", address), ReadWindow(until=Nanos(1_795_300_000 * SECOND)))
            assert isinstance(source, Jaeger)
            found.append({one.trace_id for one in (await source.search(TraceSearch())).traces})
            await source.aclose()
    assert found[0] - found[1] == {spans.ids[0]}
    assert found[1]
    assert [fault.stage for fault in expected_faults.all()] == ["reading a trace's summary"]


async def test_every_view_reads_as_many_lines_of_a_step_and_none_needs_them(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    sources = [build(SourceSpec("srdb", str(CAPTURE))), build(SourceSpec("log", f"{CAPTURE}/supervisor.log"))]
    asked: list[int] = []

    async def lines(self: object, step: object, most: int) -> object:
        asked.append(most)
        return fail()

    monkeypatch.setattr(evidence, "lines_wanted", lambda ops: [step for op in ops for step in op.steps][:1])
    monkeypatch.setattr(JobReader, "lines_behind", lines)
    async with Session(sources, FixedClock(NOW)) as session:
        await session.catch_up()
        job = session.store.jobs[FAILED_OF_CAPTURE]
        for gather in (Gatherer.whole, Gatherer.gather):
            assert explain(await gather(Gatherer.of(session), job.id)).sentence
        await Gatherer.of(session).sample(job)
    assert asked == [LINES_BEHIND] * 3
    assert [(one.stage, one.count) for one in expected_faults.all()] == [("reading the lines of a step", 3)]


@pytest.mark.parametrize("part", ["with_continuations", "_written"])
def test_lines_of_a_job_that_cannot_be_read_cost_themselves(
    part: str, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    log = tmp_path / "supervisor.log"
    shutil.copy(CAPTURE / "supervisor.log", log)
    job = "DJouDZ9T-4F4EUZjI-heightWeightReport"
    logs = import_module("jobtui.commands.logs")
    read, looks = attrgetter(part)(logs), 0

    async def reading(*given: Any) -> Any:
        nonlocal looks
        looks += 1
        with log.open("a") as file:
            file.write(line.replace(" 20:3", " 20:5"))
        if looks == 2:  # the first look is before anything is followed
            return fail()
        if looks > 3:
            os.kill(os.getpid(), signal.SIGINT)
        return await read(*given)

    line = next(one for one in log.read_text().splitlines(keepends=True) if job in one)
    monkeypatch.setattr(f"jobtui.commands.logs.{part}", reading)
    monkeypatch.setattr(logs, "FOLLOW_PERIOD_S", 0.01)
    ran = run("logs", job, "-f", "--log", log, "--srdb", CAPTURE)
    assert looks > 3
    assert expected_faults.all()[0].words in ran.err
    assert {fault.stage for fault in expected_faults.all()} == {"reading the lines of a job"}


def test_a_change_that_cannot_be_delivered_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    words = watch.job_words
    monkeypatch.setattr(watch, "job_words", lambda job, now: fail() if job == BAD else words(job, now))
    store = Store(FakeCorrelation(), FixedClock(NOW))
    store.add_source("db", "sirepo_db")
    held: Any = SimpleNamespace(store=store, clock=FixedClock(NOW), most=None)
    origin = watch.WatchPrinter(held, held)
    store.apply("db", batch(JOB, BAD, OTHER))
    store.fail("db", "gone")
    told = "\n".join(origin.more())
    assert [one.id in told for one in (JOB, BAD, OTHER)] == [True, False, True]
    assert "source db is down" in told
    assert [fault.stage for fault in expected_faults.all()] == ["printing changes"]


def judged_again() -> object:
    (rows := JobRows(lambda: NOW)).apply([JOB, BAD, a_job(7, status=JobStatus.FAILED, ended_at=NOW)])
    return rows.index.window(0, 9)


def filtered_again() -> object:
    (rows := JobRows(lambda: NOW)).apply([ended := a_job(7, status=JobStatus.FAILED, ended_at=NOW), BAD])
    rows.set_order(Order(rows.urgency, keep=lambda job: job.percent != 5.0 or fail()))
    while rows.is_sorting:
        rows.work()
    rows.apply([msgspec.structs.replace(ended, percent=5.0)])
    return rows.index.window(0, 9)


def ordered_again() -> object:
    """By a key that raises for one, then by keys that do not compare."""
    (rows := JobRows(lambda: NOW)).apply([JOB, OTHER, BAD])
    for key in (lambda job: fail() if job == BAD else job.id, lambda job: 5 if job == BAD else job.id):
        rows.set_order(Order(key))
        while rows.is_sorting:
            rows.work()
        assert {*rows.index.window(0, 9)} == {JOB.id, OTHER.id, BAD.id}
    return rows


def caused_again() -> object:
    async def gathered() -> object:
        async with Session([build(SourceSpec("srdb", str(CAPTURE)))], FixedClock(NOW)) as session:
            await session.catch_up()
            return await Gatherer.of(session).whole(FAILED_OF_CAPTURE)

    return asyncio.run(gathered())


def correlated_again() -> object:
    log = CAPTURE / "supervisor.log"
    (correlator := Correlator()).feed(LogParser("").parse(log.read_bytes(), 0, 1, NOW).records)
    return next(iter(correlator.ops()))


def waited_again() -> object:
    live = a_job(5, status=JobStatus.RUNNING)
    (trouble := alerts.AlertFinder(Nanos(0)))._live[live.id] = False
    return trouble.look({live.id: live}, NOW)


STEPS: dict[str, tuple[object, str, Callable[[], object]]] = {
    "finding": (find._Search, "resolve", lambda: find.find(JOB.id, {JOB.id: JOB})),
    "finding: a name": (find._Search, "add_named", lambda: find.find(JOB.id, {JOB.id: JOB})),
    "finding: what failed": (find._Search, "add_failed", lambda: find.find("no such thing", {JOB.id: JOB})),
    "correlating: what was heard": (WriterSurvey, "add", correlated_again),
    "sorting jobs": (
        jobs_command,
        "needs_person",
        lambda: jobs_command.in_order([JOB, BAD], lambda job: NOW),
    ),
    "printing a row": (columns, "cells_of", lambda: [*columns.job_table([JOB], ROW, 80)]),
    "showing a cell": (
        columns,
        "needs_person",
        lambda: columns.text_widths(columns.JOB_COLUMNS, [JOB], ROW, 80),
    ),
    "judging a job": (job_rows, "needs_person", judged_again),
    "judging a job: how recently it failed": (job_rows, "FRESH_S", judged_again),
    "judging a job: one that waited": (alerts.AlertFinder, "_is_stuck_now", waited_again),
    "filtering": (job_rows, "__doc__", filtered_again),
    "sorting rows": (job_rows, "__doc__", ordered_again),
    "reading a script": (
        sarchive,
        "_script_in",
        lambda: [sarchive.parse_script({"id": "7", "script": "x"}, "there")],
    ),
    "reading what its program wrote": (cause, "find_cause", caused_again),
}
"""What is made to raise, and what comes of it anyway."""


@pytest.mark.parametrize("stage", STEPS)
def test_a_failed_step_is_lost(stage: str, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults) -> None:
    owner, name, ask = STEPS[stage]
    monkeypatch.setattr(owner, name, fail)
    assert ask() is not None
    assert stage.partition(":")[0] in {fault.stage for fault in expected_faults.all()}


@pytest.mark.parametrize("broken", ["_look_at", "take"])
def test_a_run_that_cannot_be_looked_at_is_not_remembered_and_that_is_said(
    broken: str, run: Runner, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    fail_once(monkeypatch, FinishedRuns, broken)
    ran = run("remember", "--once", "--srdb", CAPTURE)
    assert (" 0 runs" in ran.err) is (broken == "take")
    assert expected_faults.all()[0].words in ran.err
    assert (ran.code, {fault.stage for fault in expected_faults.all()}) == (70, {"remembering"})


def test_changes_are_printed_again_after_a_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    asked: list[watch.WatchPrinter] = []

    def more(self: watch.WatchPrinter) -> list[str]:
        asked.append(self)
        if len(asked) > 1:
            os.kill(os.getpid(), signal.SIGINT)
            return ["told again"]
        return fail()  # type: ignore[no-any-return]

    monkeypatch.setattr(watch.WatchPrinter, "more", more)
    monkeypatch.setattr(watch, "REPORT_EVERY_S", 0.01)
    context = make_context(Invocation(DASHBOARD, (), {}, {}), load({"srdb": (str(CAPTURE),)}, {}), fail)
    asyncio.run(watch.watch(context, context.config.sources))
    assert "told again" in capsys.readouterr().out
    assert [fault.stage for fault in expected_faults.all()] == ["printing changes"]


@pytest.mark.parametrize("broken", ["runner", "make_context", "fenced"])
async def test_a_command_that_raises_costs_one_answer_to_an_assistant(
    broken: str, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    monkeypatch.setattr(mcp, broken, (lambda name: fail) if broken == "runner" else fail)
    invocation = Invocation(COMMAND_BY_NAME["mcp"], (), {}, {})
    context = make_context(invocation, load({}, {}), lambda *_: None)
    said, is_wrong = await mcp.answered(context, Invocation(COMMAND_BY_NAME["doctor"], (), {}, {}))
    (fault,) = expected_faults.all()
    assert (said, is_wrong, fault.stage) == (fault.words, True, "answering doctor")


def stages() -> Iterator[str]:
    for _, node in nodes("contained", "kept_up", "BatchWriter", ".each(", ".note("):
        if not isinstance(node, ast.Call):
            continue
        called, words = called_name(node.func), node.args
        if called == "partial":
            called, words = called_name(words[0]), words[1:]
        at = {"contained": 0, "each": 0, "note": 1, "kept_up": 1, "__init__": 1}.get(called)
        if at is None or len(words) <= at:
            continue
        if isinstance(words[at], STAGE_WORDS):
            yield _words(words[at])
        elif called in ("contained", "kept_up"):  # a stage that is given: what gives it is listed
            assert ast.unparse(words[at]) in ("stage", "self._stage"), ast.unparse(node)


STAGE_WORDS = (ast.Constant, ast.JoinedStr)


def _words(said: ast.expr) -> str:
    parts = said.values if isinstance(said, ast.JoinedStr) else [said]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)


BY_PLACE = {"X for X", "in X", "working on X", "drawing X", "composing X", "opening X", "taking in X"}
"""Stages that are told with the place; `screens/test_faults.py` lets all those of screens raise."""


def test_the_tests_raise_an_exception_at_every_stage() -> None:
    tests = "\n".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    found = {*stages()}
    assert found > BY_PLACE
    missing = [stage for stage in found - BY_PLACE if f'"{stage.removesuffix("X")}' not in tests]
    assert not missing, "no test lets something raise there and says the stage"
