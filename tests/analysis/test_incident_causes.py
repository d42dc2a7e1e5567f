"""What loses many runs at once is one incident, whatever the runs are and whatever is said of each."""

import json
from collections.abc import Callable, Coroutine

import pytest

from jobtui.analysis.explain.native import Beside
from jobtui.analysis.explain.survey import samples
from jobtui.analysis.incidents import Incidents, incidents
from jobtui.backends.sirepo_record import read_detail
from jobtui.demo.incidents import LIGHT, Stage, good_plan, program_error
from jobtui.demo.settings import DriverName, Settings
from jobtui.demo.world import World
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from jobtui.model.verdicts import Code
from tests.analysis.captured import correlate
from tests.builders import a_job
from tests.conftest import NOW

MODELS = (
    ("srw", "multiElectronAnimation"), ("genesis", "animation"), ("elegant", "animation"), LIGHT,
    ("zgoubi", "twissReport"),
)  # fmt: skip
LONG_S = 3_000.0
ASKED_FOR_S = 20.0


async def runs_on(stage: Stage, model: tuple[str, str], *, asks_again: bool) -> None:
    """A run that is to take long; its user may look again once it is lost."""
    simulation = await stage.simulation(model, "long")
    answer = await stage.browser.start(simulation, good_plan(simulation.model, LONG_S))
    await stage.browser.watch(simulation, answer, for_s=ASKED_FOR_S)
    await stage.wait(ASKED_FOR_S)
    if asks_again:
        await stage.browser.watch(simulation, await stage.browser.poll(simulation))


class Site:
    """A simulated site with runs of many models, of many users."""

    def __init__(self, driver: DriverName) -> None:
        self.world = World(7, Settings(users=0, driver=driver, slots_parallel=3, slots_sequential=3))
        self.world.start()
        self.stages: list[Stage] = []

    def begin(self) -> None:
        """Let runs begin, half of whose users look again later."""
        for number, model in enumerate((*MODELS, *MODELS)):
            stage = self.stage()
            asks = number < len(MODELS)
            self.world.play(lambda s=stage, m=model, a=asks: runs_on(s, m, asks_again=a))  # type: ignore[misc]
        self.wait(28)

    def stage(self) -> Stage:
        """Another user."""
        self.stages.append(Stage(self.world, self.world.add_user()))
        return self.stages[-1]

    def play(self, script: Callable[[], Coroutine[object, object, None]], seconds: int) -> None:
        """Let something happen."""
        self.world.play(script)
        self.wait(seconds)

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self.world.advance(Nanos(self.world.kernel.now + seconds * SECOND))

    def incidents(self) -> Incidents:
        """What its logs and records tell."""
        records = {JobId(jid): json.dumps(one).encode() for jid, one in self.world.records().items()}
        jobs = [read_detail(text, jid, 0, "db", "record").job for jid, text in records.items()]
        knows = correlate({name: self.world.log(name) for name in self.world.logs()})
        return incidents(samples(knows, jobs, [], self.world.kernel.now, lambda job: Beside()))


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("driver", [DriverName.LOCAL, DriverName.DOCKER])
def test_a_restart_is_one_incident_and_what_failed_by_itself_stands_apart(
    driver: DriverName, crash: bool
) -> None:
    site = Site(driver)
    other = site.stage()
    site.play(lambda: program_error(other), 40)
    site.begin()
    site.play(lambda: site.world.restart(crash=crash), 60)
    found = site.incidents()
    (group,) = found.groups
    assert len(group.jobs) == 2 * len(MODELS)
    assert {code for code, _ in group.codes} == {Code.SUPERVISOR_RESTARTED, Code.STALE_RECORD}
    assert sum(count for _, count in group.codes) == len(group.jobs)
    assert group.shared[0][0] == "restart"
    assert [(one.code, one.first) for one in found.alone] == [(Code.PROGRAM_FAILED, other.jid)]


def test_two_restarts_are_two_incidents() -> None:
    site = Site(DriverName.LOCAL)
    for _ in range(2):
        site.begin()
        site.play(site.world.restart, 60)
    found = site.incidents()
    assert [len(group.jobs) for group in found.groups] == [2 * len(MODELS)] * 2
    assert len({group.shared[0][1] for group in found.groups}) == 2


def test_jobs_of_other_systems_get_verdicts_of_their_own() -> None:
    job = a_job(system="slurm", status=JobStatus.FAILED, native_status="OUT_OF_MEMORY")
    (one,) = samples(correlate({}), [job], [], NOW, lambda job: Beside())
    assert (one.verdict.code, one.run) == (Code.OUT_OF_MEMORY, None)
