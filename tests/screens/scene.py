"""One scene for all screens: jobs, ops and sources as they stand at the tests' now."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from textual.command import CommandInput, CommandList, CommandPalette
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.base import Batch
from jobtui.model.clock import FixedClock
from jobtui.model.health import Skip
from jobtui.model.ids import AgentPrefix, JobId, OpPrefix
from jobtui.model.jobs import Job, JobDetail, JobStatus, Run
from jobtui.model.ops import LANES, Agent, AgentState, Certainty, HeldOp, Op, OpStatus
from jobtui.model.source_errors import SourceError, SourceMissing
from jobtui.session import Session
from jobtui.store.store import Store
from jobtui.theme import DARK
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.job_table import JobTable
from tests.builders import a_job, a_step, ago, an_agent, an_op
from tests.conftest import NOW
from tests.fakes import FakeCorrelation, ScriptedSource, batch
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text

FLAGS = {"sirepo_db": "--srdb", "logfile": "--log"}
FAILED = JobId("EPRSqtUW-IVh7w74d-heightWeightReport")


def jobs() -> tuple[Job, ...]:
    animation = {"model": "multiElectronAnimation", "mode": "parallel", "app": "srw"}
    return (
        a_job(
            1,
            name="Beamline 7 survey",
            status=JobStatus.PENDING,
            started_at=None,
            queued_at=ago(372),
            **animation,
        ),
        a_job(2, name="fel scan 12", owner="EPRSqtUW", started_at=ago(4_000), percent=98.0, **animation),
        a_job(3, name="Doubler", owner="u8sKq2Pe", started_at=ago(720), percent=41.0, host="v4", **animation),
        a_job(4, name="heights", owner="LoIEQ6fa", started_at=ago(3)),
        a_job(
            5,
            name="tracking 表 A",
            owner="hj3Ze0Qq",
            app="elegant",
            mode="sbatch",
            status=JobStatus.PENDING,
            started_at=None,
            queued_at=ago(41),
            message="Waiting for CPU resources await=cpu_slot",
        ),
        a_job(
            id=FAILED,
            name="Beamline 7 test",
            status=JobStatus.FAILED,
            error="no such element: crystal3",
            queued_at=ago(124),
            started_at=ago(123),
            ended_at=ago(120),
            runs=3,
        ),
        a_job(
            7, name="heights", owner="LoIEQ6fa", status=JobStatus.COMPLETED, ended_at=ago(130), percent=100.0
        ),
        a_job(8, name="old [bold]one[/]", status=JobStatus.CANCELED, ended_at=ago(90_000), limit_s=3_600.0),
        a_job(
            9, name=None, status=JobStatus.MISSING, started_at=None, queued_at=None, updated_at=None, runs=0
        ),
        a_job(10, name="frame", model="_1_stlss-frame", status=JobStatus.MISSING, is_quasi=True),
    )


def ops() -> tuple[Op, ...]:
    server, supervisor, driver, agent, job_cmd = LANES[0]
    run = an_op(
        "run",
        jid=FAILED,
        status=OpStatus.ENDED,
        ended_at=ago(57),
        steps=[
            a_step("api_runSimulation", 0, component=server, certainty=Certainty.JID),
            a_step("request", 0, component=supervisor, certainty=Certainty.JID),
            a_step("op created", 0, component=supervisor, certainty=Certainty.JID),
            a_step("agent start", 0, component=driver),
            a_step("alive", 9, component=driver, certainty=Certainty.ADJACENT),
            a_step("sent", 9, component=driver),
            a_step("arrived", 9, component=agent),
            a_step("job_cmd started", 9, component=job_cmd, certainty=Certainty.JID),
            a_step("reply ok", 10, component=driver),
            a_step("status running", 10, component=supervisor, certainty=Certainty.JID),
            a_step(
                "status error",
                12,
                component=supervisor,
                certainty=Certainty.JID,
                line=88_214,
                text=f"new status=error _ComputeJob({FAILED} u=EPRSqtUW running [_Op(run, pb5u)])",
            ),
            a_step("job_cmd exited 0", 12, component=job_cmd, certainty=Certainty.JID),
        ],
    )
    analysis = [
        an_op(
            "analysis",
            jid=FAILED,
            op=OpPrefix(prefix),
            agent=AgentPrefix("k9Lm"),
            status=OpStatus.ENDED,
            ended_at=ago(59),
        )
        for prefix in ("k2Wc", "9QxZ")
    ]
    asked = an_op("run_status", jid=FAILED, op=OpPrefix("zzzz"), status=OpStatus.ENDED, ended_at=ago(59))
    return (run, *analysis, asked)


@dataclass
class Scene:
    script: Sequence[Batch | SourceError] = field(default_factory=lambda: [batch(*jobs())])
    open_at: JobId | None = None
    theme: str = DARK.name
    agents: Sequence[Agent] = ()
    job_attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.clock = FixedClock(NOW)
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
        self.session.job_attributes = self.job_attributes
        self.session.store = Store(self.correlation, self.clock)
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
    """The table of jobs, once all of them are in it."""
    table = scene.app.screen_stack[0].query_one(JobTable)
    await wait_until(lambda: scene.is_read() and table.total == len(jobs()), pilot)
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


def agents() -> tuple[Agent, ...]:
    nowhere: dict[str, str | None] = {"host": None, "container": None, "container_id": None}
    return (
        an_agent("WUt4", driver="LocalDriver", kind="sequential", **nowhere, state=AgentState.CONNECTED,
                 ops=(RUN,), messages=41, log="/var/log/supervisor.log"),
        an_agent("t7K7", uid="u8sKq2Pe", container="srj-p-u8sKq2Pe", host="v4.example.org",
                 state=AgentState.LOST, since=ago(130), why="docker start: non-zero exit=137"),
        an_agent("hOJT", uid="u8sKq2Pe", container="srj-p-u8sKq2Pe", host="v4.example.org", restarts=1),
        an_agent("ukUt", driver="SbatchDriver", uid="3pMDuIiL", **nowhere | {"host": "cori"},
                 cluster_log="/scratch/jdoe/job_agent.log", messages=1_234),
        an_agent("XGv8", kind="sequential", container="srj-s-EPRSqtUW", state=AgentState.NEVER_CONNECTED,
                 since=ago(40), why="did not connect within 8 s", connected_at=None, messages=0),
        an_agent("old9", state=AgentState.KILLED, since=ago(9_000), why="stopped, as it was idle"),
        an_agent("new1", state=AgentState.STARTING, since=ago(3), connected_at=None, uid="LoIEQ6fa"),
    )  # fmt: skip


async def prompt(pilot: Pilot[None], key: str, said: str) -> FilterInput:
    await press(pilot, key, until=lambda: pilot.app.screen.query(FilterInput))
    field = pilot.app.screen.query_one(FilterInput)
    await wait_until(lambda: field.has_focus, pilot)
    field.value = said
    field.cursor_position = len(said)
    await pilot.pause()
    return field


async def say(pilot: Pilot[None], said: str) -> None:
    await prompt(pilot, "colon", said)
    await pilot.press("enter")
    await pilot.pause()


async def opened(scene: Scene, pilot: Pilot[None], query: str) -> CommandList:
    await wait_until(scene.is_read, pilot)
    await press(pilot, "ctrl+p", until=CommandPalette)
    scene.app.screen.query_one(CommandInput).value = query
    return scene.app.screen.query_one(CommandList)


def words(found: CommandList) -> list[str]:
    return [str(option.prompt) for option in found.options]


RUN = HeldOp(OpPrefix("pb5u"), "run", FAILED, ago(59))
