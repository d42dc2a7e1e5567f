"""Jobs of every kind, each ending in its own way, provoked in a real Sirepo over HTTP and by signals."""

import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.real.sirepo_browser import EXITS, Browser, Reply, Simulation
from tests.real.sirepo_system import SirepoSystem, argv_of, pause, started_by
from tests.waiting import wait_for

ANIMATION, REPORT = "activityAnimation", "heightWeightReport"
LONG, FAILING = "srunit_long_run", "srunit_error_run"
"""Names that make the program of this code take long, or fail."""

DEATH_TIMEOUT_S = 25.0
"""How long a user asks for a job whose agent died."""

STARTED = EXITS | {"running"}
NAMES = ("Rex", "Fido", "Bella", "Luna", "Max")


@dataclass(frozen=True, slots=True)
class Asked:
    """What was meant to happen to a job, the last state its user saw, and what `explain` said of it then."""

    jid: str
    kind: str
    state: str
    told: Mapping[str, Any]


class Jobs:
    """Provokes jobs for a fixed group of users; `asked` says which. `explain` explains one by its id."""

    kinds: ClassVar[Sequence[str]] = (
        "ok", "animation", "error", "cancel", "rerun", "queue", "stateless", "missing", "oom", "timeout",
        "download", "no_model", "agent_death", "restart",
    )  # fmt: skip
    """Every kind of job, in an order that leaves the supervisor's restart to the end."""

    def __init__(
        self,
        system: SirepoSystem,
        seed: int,
        explain: Callable[[str], Mapping[str, Any]] = lambda jid: {},
        users: int = 3,
    ) -> None:
        self.asked: list[Asked] = []
        self._system = system
        self._explain = explain
        self._random = random.Random(seed)
        self._users = [self._user() for _ in range(users)]

    def run(self, kinds: Sequence[str], after_each: Callable[[], None] = lambda: None) -> None:
        """One job of each kind, users in turn; calls `after_each` when it has come to rest."""
        for number, kind in enumerate(kinds):
            getattr(self, kind)(self._users[number % len(self._users)])
            after_each()

    def ok(self, user: Browser) -> None:
        simulation = self._simulation(user)
        self._note(user, simulation, REPORT, "ok", user.run(simulation, REPORT))

    def animation(self, user: Browser) -> None:
        """A parallel job that completes, of which three frames are looked at."""
        simulation = self._simulation(user)
        reply = user.run(simulation, ANIMATION)
        self._note(user, simulation, ANIMATION, "animation", reply)
        for frame in range(3 if reply.get("frameCount") else 0):
            told = (
                frame,
                ANIMATION,
                simulation.id,
                "myapp",
                reply["computeJobHash"],
                reply["computeJobSerial"],
            )
            user.call("/simulation-frame/" + "*".join(map(str, told)))

    def error(self, user: Browser) -> None:
        simulation = self._simulation(user, FAILING)
        self._note(user, simulation, REPORT, "error", user.run(simulation, REPORT))

    def no_model(self, user: Browser) -> None:
        """A simulation that is refused while it is prepared."""
        simulation = self._simulation(user)
        simulation.models["dog"]["breed"] = "user_alert=no such breed"
        self._note(user, simulation, REPORT, "no_model", user.run(simulation, REPORT))

    def cancel(self, user: Browser) -> None:
        simulation, report, reply = self._long(user, self._random.choice((ANIMATION, REPORT)))
        reply = user.call("/run-cancel", reply["nextRequest"])
        self._note(user, simulation, report, "cancel", user.wait(reply))

    def timeout(self, user: Browser) -> None:
        simulation, report, reply = self._long(user, REPORT)
        self._note(user, simulation, report, "timeout", user.wait(reply))

    def oom(self, user: Browser) -> None:
        """A program that is killed by signal 9, as the kernel does when memory is short."""
        simulation, report, reply = self._long(user, REPORT)
        self._kill(user, simulation, lambda pid: pid if "parameters.py" in " ".join(argv_of(pid)) else None)
        self._note(user, simulation, report, "oom", user.wait(reply))

    def agent_death(self, user: Browser) -> None:
        """An agent that is killed while its job runs.

        If the supervisor hears of the closed connection first, a local driver waits for the exit for ever.
        """
        simulation, report, reply = self._long(user, ANIMATION)
        self._kill(user, simulation, lambda pid: started_by(pid, "job_agent"))
        self._note(user, simulation, report, "agent_death", user.wait(reply, timeout_s=DEATH_TIMEOUT_S))

    def rerun(self, user: Browser) -> None:
        """Three runs of one job, the second of which fails."""
        simulation = self._simulation(user)
        reply: Reply = {}
        for number, name in enumerate(("Again", FAILING, "Again")):
            simulation.models["dog"]["height"] = 30 + number
            simulation.models["simulation"]["name"] = name
            reply = user.run(simulation, REPORT, forceRun=True)
        self._note(user, simulation, REPORT, "rerun", reply)

    def queue(self, user: Browser) -> None:
        """A job that waits for the slot another one holds, which is then stopped."""
        other = self._user()
        head, _, held = self._long(other, ANIMATION)
        simulation = self._simulation(user)

        def wait_in_line() -> None:
            self._note(user, simulation, ANIMATION, "queue", user.run(simulation, ANIMATION))

        waiter = threading.Thread(target=wait_in_line)
        waiter.start()
        pause(6.0)
        self._note(user, simulation, ANIMATION, "queued", {})
        self._note(other, head, ANIMATION, "running", held)
        held = other.call("/run-cancel", held["nextRequest"])
        self._note(other, head, ANIMATION, "queue_head", other.wait(held))
        waiter.join()

    def stateless(self, user: Browser) -> None:
        """A call of the code that is no simulation."""
        told = {"method": "global_resources", "simulationType": "myapp", "simulationId": "unused", "args": {}}
        reply = user.call("/stateless-compute", told)
        jid = f"{user.uid}-_1_stlss-global_resources"
        self.asked.append(Asked(jid, "stateless", str(reply.get("state")), self._explain(jid)))

    def missing(self, user: Browser) -> None:
        """A job that was only asked about."""
        simulation = self._simulation(user)
        self._note(user, simulation, REPORT, "missing", user.call("/run-status", simulation.request(REPORT)))

    def download(self, user: Browser) -> None:
        """A file that is fetched, and asked for again when its directory is gone."""
        simulation = self._simulation(user)
        self._note(user, simulation, ANIMATION, "download", user.run(simulation, ANIMATION))
        path = f"/download-run-file/myapp/{simulation.id}/{ANIMATION}/-1"
        user.call(path)
        shutil.rmtree(self._system.srdb / "user" / user.uid / "myapp" / simulation.id / ANIMATION)
        self._note(user, simulation, ANIMATION, "directory_gone", user.call(path))

    def restart(self, user: Browser) -> None:
        """A supervisor that is restarted while a job runs; then its user asks for the job."""
        simulation, report, _ = self._long(user, REPORT)
        self._system.restart_supervisor()
        reply = user.call("/run-status", simulation.request(report))
        self._note(user, simulation, report, "restart", user.wait(reply))

    def _user(self) -> Browser:
        user = self._system.browser()
        user.log_in()
        return user

    def _simulation(self, user: Browser, name: str | None = None) -> Simulation:
        name = name or f"{self._random.choice(NAMES)} {self._random.randint(1, 999)}"
        simulation = user.new_simulation(name)
        simulation.models["simulation"]["name"] = name  # the server numbers repeated names
        simulation.models["dog"].update(
            height=self._random.randint(20, 90), weight=self._random.randint(10, 95)
        )
        return simulation

    def _long(self, user: Browser, report: str) -> tuple[Simulation, str, Reply]:
        simulation = self._simulation(user, LONG)
        reply = user.run(simulation, report, until=STARTED)
        pause(3.0)
        return simulation, report, reply

    def _kill(self, user: Browser, simulation: Simulation, choose: Callable[[int], int | None]) -> None:
        place = self._system.srdb / "user" / user.uid / "myapp" / simulation.id
        victims: list[int] = []

        def found() -> bool:
            victims[:] = [v for pid in self._system.processes_in(place) if (v := choose(pid))]
            return bool(victims)

        wait_for(found)
        os.kill(victims[0], signal.SIGKILL)

    def _note(self, user: Browser, simulation: Simulation, report: str, kind: str, reply: Reply) -> None:
        jid = user.jid(simulation, report)
        self.asked.append(Asked(jid, kind, str(reply.get("state")), self._explain(jid)))
