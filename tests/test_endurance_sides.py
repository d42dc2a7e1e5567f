"""What is beside the site in the endurance run, in small: its sources fault, nothing is lost or doubled."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks import side_sources, sides
from benchmarks.endurance import all_faults, sources_wrong
from benchmarks.faults import FAULTS, Place
from benchmarks.side_archives import ElasticSide, KafkaSide, ServerArchiveSide
from benchmarks.side_condor import CondorSide
from benchmarks.side_files import AgentCopiesSide, ArchiveSide, TraceFileSide
from benchmarks.side_journals import GatewaySide, JournalSide
from benchmarks.side_slurm import SlurmSide
from benchmarks.side_sources import left_out, made_sides
from benchmarks.sides import Fault, Side, Sides
from jobtui.backends.agent_copies import AgentCopies
from jobtui.backends.archive import elastic_http, kafka_topic
from jobtui.backends.archive.directory import ArchiveDirectory
from jobtui.backends.archive.elastic import ElasticArchive
from jobtui.backends.archive.elastic_http import ElasticClient
from jobtui.backends.archive.finding import find_script
from jobtui.backends.archive.kafka import KafkaArchive
from jobtui.backends.archive.kafka_topic import Topic
from jobtui.backends.base import Source
from jobtui.backends.condor_files import CondorFile
from jobtui.backends.journal.opening import open_journal
from jobtui.backends.slurm import commands
from jobtui.backends.slurm import source as slurm
from jobtui.backends.slurm.commands import Commands
from jobtui.backends.trace_files import TraceFile
from jobtui.model.clock import Nanos
from jobtui.model.scripts import Wanted
from jobtui.model.specs import SourceSpec
from jobtui.session import Session
from tests.waiting import LONG_S, wait_for

AT_ONCE = ("trace file", "archive", "agent copies", "slurm", "condor", "elastic", "kafka")
"""Of these a fault shows at the very next reading."""
MAKES: Mapping[str, Callable[[Path], Side]] = {
    "trace file": lambda place: TraceFileSide(place / "traces"),
    "archive": lambda place: ArchiveSide(place / "archive"),
    "agent copies": lambda place: AgentCopiesSide(place),
    "slurm": lambda place: SlurmSide(place / "slurm"),
    "condor": lambda place: CondorSide(place / "condor"),
    "elastic": lambda place: ElasticSide(),
    "kafka": lambda place: KafkaSide(),
    "journal": lambda place: JournalSide(place / "v1"),
    "gatewayd": lambda place: GatewaySide(place / "v2"),
}


def sources_of(side: Side, place: Path) -> list[Source]:
    """The sources that read what is beside the site; as soon as they are asked."""
    if isinstance(side, CondorSide):
        return [CondorFile(Path(file)) for file in side.flags[1::2]]
    return [source_of(side, place)]


def source_of(side: Side, place: Path) -> Source:
    """The source that reads what is beside the site."""
    if isinstance(side, AgentCopiesSide):
        return AgentCopies(place, lambda: ["sbatchOF"], every_s=0)
    if isinstance(side, SlurmSide):
        return slurm.Slurm(Commands("local"), every_s=0, share=1e9)
    if isinstance(side, ArchiveSide):
        return ArchiveDirectory(side.source)
    if isinstance(side, ElasticSide):
        return ElasticArchive(ElasticClient(side.source))
    if isinstance(side, KafkaSide):
        return KafkaArchive(Topic(*side.source.split("/")))
    if isinstance(side, TraceFileSide):
        return TraceFile(Path(side.source))
    return open_journal(SourceSpec("journal", side.source), Nanos(0))


def told(session: Session) -> dict[str, Any]:
    """What a session knows, as the dashboard of the endurance run tells it."""
    sources = session.store.sources()
    return {
        "jobs": {job.id: job.native_status for job in session.store.jobs.values()},
        "records": {source.name: source.records for source in sources},
        "sources": [[source.name, source.state, source.skipped, source.error] for source in sources],
    }


class Read:
    """A session on one of them, read whenever a fault waits."""

    def __init__(self, side: Side, place: Path, runner: asyncio.Runner) -> None:
        self._side, self._runner = side, runner
        self.session = Session(sources_of(side, place))
        self.was_not_well = False

    def wait(self, seconds: float) -> None:
        """Read what there is, and look at what is only asked."""
        self._runner.run(self.session.catch_up())
        self.was_not_well |= any(source.state != "ok" for source in self.session.store.sources())
        self._side.saw(self._shown())

    def _shown(self) -> str:
        """What a screen would say of it."""
        if not isinstance(self._side, ServerArchiveSide):
            return ""
        answer = self._runner.run(find_script(self.session.sources, Wanted(self._side.job)))
        script = answer.script.script.decode() if answer.script else ""
        return "\n".join([script, *(f"{tried.where} {tried.result}" for tried in answer.tried)])

    def problems(self) -> list[str]:
        """In what it differs from what was written, when it was given time to be well again."""
        deadline = time.monotonic() + LONG_S
        while (wrong := self._wrong()) and time.monotonic() < deadline:
            self.wait(0)
        return wrong

    def _wrong(self) -> list[str]:
        known = told(self.session)
        unseen = [] if self._side.shown in self._shown() else [f"{self._side.shown} is not shown"]
        return [*self._side.wrong(known), *self._side.missed, *sources_wrong(known), *unseen]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "ACCOUNTS_SOON_S", 0.0)
    monkeypatch.setattr(commands, "QUEUE_S", 1.0)
    monkeypatch.setattr(elastic_http, "TIMEOUT_S", 1.0)
    monkeypatch.setattr(kafka_topic, "ANSWER_S", 1.0)


@pytest.mark.parametrize("name", MAKES)
def test_what_befalls_a_source_costs_no_record_and_doubles_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := left_out().get(name):
        pytest.skip(f"needs {missing}")
    (tmp_path / "supervisor-job").mkdir()
    with asyncio.Runner() as runner, closing(MAKES[name](tmp_path)) as side:
        for variable, value in side.environ.items():
            monkeypatch.setenv(variable, value)
        read = Read(side, tmp_path, runner)
        for fault in side.faults.values():
            for _ in range(20):
                side.tick()
            assert read.problems() == []
            fault(read.wait)
            assert read.problems() == []
        assert read.was_not_well or name not in AT_ONCE
        runner.run(read.session.aclose())


def test_a_fault_that_nobody_was_told_of_is_said() -> None:
    with closing(ElasticSide()) as side:
        fault = side.faults["answers 500"]
        fault(lambda seconds: side.saw(f"{side.source} not there"))
        assert side.missed == ["FAILS: the screen does not say that it does not answer"]
        side.missed.clear()
        fault(lambda seconds: side.saw(f"{side.source} no answer: answered 500"))
        assert side.missed == []


class Counted(Side):
    """One that only counts."""

    name = source = "counted"

    @property
    def faults(self) -> Mapping[str, Fault]:
        return {"one more": lambda wait: self.tick()}

    def tick(self) -> None:
        self.written += 1


def test_what_is_lost_doubled_or_not_there_is_said() -> None:
    side = Counted()
    side.tick()
    assert side.wrong({"records": {"counted": 1}}) == []
    assert side.wrong({"records": {"counted": 0}}) == ["counted: 1 lost"]
    assert side.wrong({"records": {"counted": 3}}) == ["counted: 2 too many"]
    assert side.wrong({"records": {}}) == ["counted: there is no source counted"]


def test_a_job_of_slurm_that_is_lost_or_another_is_said(tmp_path: Path) -> None:
    side = SlurmSide(tmp_path / "slurm")
    jobs = {f"slurm/{number}": "RUNNING" for number in range(1, 11)}
    assert side.wrong({"jobs": {**jobs, "other-id": "error"}}) == []
    assert side.wrong({"jobs": {**jobs, "slurm/3": "FAILED"}}) == [
        "slurm: slurm/3 is RUNNING, known as FAILED"
    ]
    assert len(side.wrong({"jobs": {}})) == 10


def test_they_live_by_themselves_but_not_while_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "TICK_S", 0.001)
    beside = Sides([side := Counted()])
    beside.start()
    wait_for(lambda: side.written > 3)
    with beside.at_rest():
        before = side.written
        beside.faults["counted: one more"](lambda seconds: None)
        assert side.written == beside.written == before + 1
    beside.close()
    beside.close()


class Asked(Side):
    """One that is only asked when a person wants to know."""

    name, keys, shown = "asked", ("k",), "well"

    @property
    def faults(self) -> Mapping[str, Fault]:
        return {"one": lambda wait: wait(1.0), "two": lambda wait: wait(2.0)}

    def tick(self) -> None:
        """Nothing happens."""


def test_each_source_faults_before_one_faults_in_another_way() -> None:
    beside = Sides([asked := Asked(), Counted()])
    assert list(beside.faults) == ["asked: one", "counted: one more", "asked: two"]
    assert [beside.asked(name) for name in beside.faults] == [asked, None, asked]


def test_what_is_only_asked_is_looked_at_while_it_faults() -> None:
    waited: list[tuple[str, float]] = []
    faults = all_faults(
        Place(None, None, None, lambda seconds: None),  # type: ignore[arg-type]
        Sides([Asked()]),
        lambda name: lambda seconds: waited.append((name, seconds)),
    )
    faults["asked: one"]()
    assert waited == [("asked: one", 1.0)]


def test_everything_faults_in_turn_what_is_beside_the_site_as_well() -> None:
    place: Any = Place(None, None, None, lambda seconds: None)  # type: ignore[arg-type]
    side = Counted()
    faults = all_faults(place, Sides([side]), lambda name: place.wait)
    first, *others = FAULTS
    assert list(faults) == [first, "counted: one more", *others]
    faults["counted: one more"]()
    assert side.written == 1


def test_what_cannot_be_had_on_a_machine_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_sources, "journal_remote", lambda: None)
    monkeypatch.setattr(side_sources, "gatewayd", lambda: None)
    monkeypatch.setattr(side_sources, "find_spec", lambda name: None)
    (tmp_path / "supervisor-job").mkdir()
    made = made_sides(tmp_path, tmp_path)
    for side in made:
        side.close()
    assert not {side.name for side in made} & left_out().keys()
    assert left_out().keys() == {"journal", "gatewayd", "kafka"}
