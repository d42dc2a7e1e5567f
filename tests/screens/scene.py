"""One scene for all screens: jobs, ops and sources as they stand at the tests' now."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.base import Batch
from jobtui.model.clock import FixedClock
from jobtui.model.health import Skip
from jobtui.model.ids import AgentPrefix, JobId, OpPrefix
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.ops import LANES, Agent, Certainty, Op, OpStatus
from jobtui.model.source_errors import SourceError, SourceMissing
from jobtui.session import Session
from jobtui.store.store import Store
from jobtui.theme import DARK
from jobtui.widgets.job_table import JobTable
from tests.builders import a_job, a_step, ago, an_op
from tests.conftest import NOW
from tests.fakes import FakeCorrelation, ScriptedSource, batch
from tests.waiting import wait_until

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
