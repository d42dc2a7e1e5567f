"""One scene for all screens: jobs, ops and sources as they stand at the tests' now."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.base import Batch
from jobtui.backends.job_reader import JobReader
from jobtui.model.clock import FixedClock
from jobtui.model.health import Skip, SourceError, SourceMissing
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.jobs import Job, JobDetail, JobStatus, Run
from jobtui.model.ops import Agent, AgentState, Certainty, Component, HeldOp, Op, OpStatus
from jobtui.model.slurm import Cluster
from jobtui.model.traces import JOB_ATTRIBUTES
from jobtui.session import Session
from jobtui.store.store import Store
from jobtui.theme import DARK
from jobtui.widgets.filter_bar import FilterBar
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.record_list import ChoiceList
from tests.builders import a_job, a_step, ago, an_agent, an_op, fields_of
from tests.conftest import NOW
from tests.fakes import FakeCorrelation, ScriptedSource, batch
from tests.rows import table
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text

FLAGS = {"sirepo_db": "--srdb", "logfile": "--log"}
FAILED = JobId("EPRSqtUW-IVh7w74d-heightWeightReport")
LAST = {"line": 88_214, "text": f"new status=error _ComputeJob({FAILED} u=EPRSqtUW running [_Op(run, pb5u)])"}

TABLES = table("scene")


def rows(kind: str, words: Mapping[str, type[StrEnum]]) -> Iterator[dict[str, Any]]:
    for one in TABLES[kind]:
        known = {key: value for key, value in one.items() if key != "null"}
        yield fields_of(known, words) | dict.fromkeys(one.get("null", ()))


def jobs() -> tuple[Job, ...]:
    return tuple(a_job(one.pop("number"), **one) for one in rows("job", {"status": JobStatus}))


def ops() -> tuple[Op, ...]:
    found = []
    for one in rows("op", {"status": OpStatus}):
        steps = [
            a_step(name, after_s, component=Component(component), certainty=Certainty(certainty), **told)
            for name, after_s, component, certainty in one.pop("steps", ())
            for told in [LAST if name == "status error" else {}]
        ]
        found.append(an_op(one.pop("name"), jid=FAILED, steps=steps, **one))
    return tuple(found)


def agents() -> tuple[Agent, ...]:
    first, *others = (an_agent(one.pop("agent"), **one) for one in rows("agent", {"state": AgentState}))
    return (msgspec.structs.replace(first, ops=(RUN,)), *others)


@dataclass
class Scene:
    script: Sequence[Batch | SourceError] = field(default_factory=lambda: [batch(*jobs())])
    open_at: JobId | None = None
    theme: str = DARK.name
    agents: Sequence[Agent] = ()
    job_attributes: tuple[str, ...] = JOB_ATTRIBUTES
    clusters: tuple[Cluster, ...] = ()

    def __post_init__(self) -> None:
        self.clock = FixedClock(NOW)
        if self.clusters:
            self.script = [batch(*jobs(), clusters=self.clusters)]
        self.db = ScriptedSource(self.script, name="/srv/db")
        self.log = ScriptedSource(
            [Batch(cursor="1", count=88_214, skipped=(Skip("line 7", "cut off"),), skip_count=1)],
            name="/var/log/supervisor.log",
            kind="logfile",
        )
        self.dead = ScriptedSource(
            [SourceMissing("no such file: /srv/none/agent.log")], name="/srv/none/agent.log", kind="logfile"
        )
        self.correlation = FakeCorrelation(ops(), self.agents)
        self.session = Session([], self.clock)
        self.session.store = Store(self.correlation, self.clock)
        self.session.store.traces.job_attributes = self.job_attributes
        # There are no files behind its logs
        self.session._job_reader = JobReader(lambda: self.session.sources, self.session.reach_back)
        for source in (self.db, self.log, self.dead):
            self.session.add(source)
        words = [word for source in self.session.sources for word in (FLAGS[source.kind], source.name)]
        self.app = JobtuiApp(self.session, self.open_at, theme=self.theme, words=words)

    @property
    def store(self) -> Store:
        return self.session.store

    def is_read(self) -> bool:
        return all(source.polls for source in (self.db, self.log, self.dead))


@asynccontextmanager
async def read(
    scene: Scene | None = None, *, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Scene, Pilot[None]]]:
    scene = Scene() if scene is None else scene
    async with scene.app.run_test(size=size) as pilot:
        await wait_until(scene.is_read, pilot)
        yield scene, pilot


async def ready(scene: Scene, pilot: Pilot[None]) -> JobTable:
    table = scene.app.screen_stack[0].query_one(JobTable)
    await wait_until(lambda: scene.is_read() and len(table.rows.jobs) == len(jobs()), pilot)
    return table


@asynccontextmanager
async def on_jobs(
    scene: Scene | None = None, *, size: tuple[int, int] = (120, 40), notifications: bool = False
) -> AsyncIterator[tuple[Scene, Pilot[None], JobTable]]:
    scene = scene or Scene()
    async with scene.app.run_test(size=size, notifications=notifications) as pilot:
        yield scene, pilot, await ready(scene, pilot)


async def see(app: JobtuiApp, pilot: Pilot[None], text: str) -> list[str]:
    await wait_until(lambda: text in "\n".join(screen_text(app)), pilot)
    return screen_text(app)


def a_run(number: int, status: JobStatus, queued_s: float, **fields: object) -> Run:
    values: dict[str, object] = {
        "queued_at": ago(queued_s),
        "started_at": ago(queued_s - 1),
        "ended_at": ago(queued_s - 3),
        "native_status": status.value,
    } | fields
    return Run(number=number, status=status, **values)  # type: ignore[arg-type]


def with_runs(scene: Scene, *runs: Run, **native: object) -> Scene:
    job = a_job(id=FAILED, status=JobStatus.FAILED, error="no such element: crystal3", runs=len(runs))
    detail = JobDetail(
        job=job, runs=runs, history=runs[:-1], native={"runs": len(runs)} | native, path="/srv/db/x"
    )
    scene.db._details = {FAILED: detail}
    return scene


THREE = (
    a_run(1, JobStatus.COMPLETED, 300_000),
    a_run(2, JobStatus.FAILED, 90_000, error="no such element: crystal2"),
    a_run(3, JobStatus.FAILED, 62, error="no such element: crystal3", limit_s=3_600.0),
)


async def prompt(pilot: Pilot[None], key: str, said: str) -> FilterInput:
    await press(pilot, key, until=lambda: pilot.app.screen.query(FilterInput))
    field = pilot.app.screen.query_one(FilterInput)
    await wait_until(lambda: field.has_focus, pilot)
    field.value = said
    field.cursor_position = len(said)
    await pilot.pause()
    return field


async def say(pilot: Pilot[None], said: str) -> None:
    bar = (await prompt(pilot, "colon", said)).query_ancestor(FilterBar)
    await pilot.press("enter")
    await wait_until(lambda: bar.mistake or not bar.is_attached, pilot)  # the next one is another line


async def opened(scene: Scene, pilot: Pilot[None], query: str) -> ChoiceList:
    await wait_until(scene.is_read, pilot)
    await prompt(pilot, "ctrl+p", query)
    return scene.app.screen.query_one(ChoiceList)


def words(found: ChoiceList) -> list[str]:
    return [" ".join(reversed(choice)).lstrip() for choice in found.records]


RUN = HeldOp(OpPrefix("pb5u"), "run", FAILED, ago(59))
