"""A cluster for a real Sirepo: a real Slurm, an ssh server that starts agents there, and its users' jobs."""

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import ClassVar

from jobtui.analysis.keys import POLLED_S
from tests.real.live import System
from tests.real.sirepo_browser import EXITS, Browser, Reply, Simulation
from tests.real.sirepo_jobs import ANIMATION, FAILING, LONG, STARTED, Jobs
from tests.real.sirepo_system import HERE, argv_of, end, free_port, pause, process_ids
from tests.real.slurm_system import SlurmSystem
from tests.waiting import wait_for

HOST = "hpc.sirepo.example"
USER = "jdoe"
START_S = 300.0
LOST_S = 20.0
"""How long its user asks for a job whose agent was killed."""


class Cluster(System):
    """Starts the ssh server of a cluster. Agents and jobs work below `root`, as the user who runs this."""

    def __init__(self, venv: Path, root: Path, slurm: SlurmSystem) -> None:
        self.slurm = slurm
        self.password = secrets.token_hex(8)
        self._venv = venv
        self._root = root
        self._port = free_port()
        self._sshd: subprocess.Popen[bytes] | None = None

    @property
    def scratch(self) -> Path:
        """Where the agent of its user works."""
        return self._root / "scratch" / USER

    def start_all(self) -> None:
        home = self._root / "home"
        home.mkdir(parents=True)
        (home / ".bashrc").write_text(f'export PATH="{self._path}"\n')
        with (self._root / "sshd.log").open("wb") as log:
            self._sshd = subprocess.Popen(
                [self._venv / "bin/python", HERE / "cluster_sshd.py", str(self._port), USER],
                env={
                    "HOME": str(home), "USER": USER, "LANG": "C.UTF-8", "PATH": self._path,
                    "SLURM_CONF": str(self.slurm.conf), "CLUSTER_PASSWORD": self.password,
                },
                cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        wait_for(lambda: "\n" in self._printed(), timeout_s=START_S)

    def stop(self) -> None:
        if self._sshd is not None:
            end(self._sshd)

    def _printed(self) -> str:
        return (self._root / "sshd.log").read_text()

    @property
    def _path(self) -> str:
        return f"{self._venv / 'bin'}:/usr/bin:/bin"

    def settings(self, home: Path, supervisor: str) -> dict[str, str]:
        """What a supervisor with this home directory needs to know; its ssh client finds the port there."""
        (home / ".ssh").mkdir(mode=0o700, exist_ok=True)
        (home / ".ssh" / "config").write_text(f"Host {HOST}\n  HostName 127.0.0.1\n  Port {self._port}\n")
        known = f"{HOST},[{HOST}]:{self._port},[127.0.0.1]:{self._port} {self._printed().strip()}"
        return {
            "SIREPO_SIMULATION_DB_SBATCH_DISPLAY": "HPC",
            "SIREPO_FEATURE_CONFIG_SBATCH_SIM_TYPES": "myapp",
            "SIREPO_JOB_SUPERVISOR_SBATCH_POLL_SECS": "2",
            "SIREPO_JOB_DRIVER_SBATCH_HOST": HOST,
            "SIREPO_JOB_DRIVER_SBATCH_HOST_KEY": known,
            "SIREPO_JOB_DRIVER_SBATCH_SIREPO_CMD": str(self._venv / "bin/sirepo"),
            "SIREPO_JOB_DRIVER_SBATCH_SRDB_ROOT": str(self._root / "scratch" / "{sbatch_user}"),
            "SIREPO_JOB_DRIVER_SBATCH_SUPERVISOR_URI": supervisor,
            "SIREPO_JOB_DRIVER_SBATCH_AGENT_STARTING_SECS": "60",
            "SIREPO_JOB_DRIVER_SBATCH_AGENT_LOG_READ_SLEEP": "1",
        }

    def kill_agent(self) -> None:
        """End the agent at once; what it submitted goes on."""
        mark = f"SIREPO_SRDB_ROOT={self.scratch}".encode()
        killed = 0
        for pid in process_ids():
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if "start_sbatch" in argv_of(pid) and mark in environ:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            except OSError:
                continue
        assert killed, "no agent runs on the cluster"


class ClusterJobs(Jobs):
    """Provokes jobs that run through Slurm. One user alone logs in: two would share the agent's directory."""

    kinds: ClassVar[Sequence[str]] = (
        "no_login", "wrong_password", "on_cluster", "fails", "killed", "canceled", "canceled_there",
        "over_time", "refused", "never", "waits", "restarted", "agent_killed",
    )  # fmt: skip
    """Those that end agents are the last."""

    def no_login(self, user: Browser) -> None:
        """A job of somebody who is not logged in to the cluster."""
        user = self._users[1]
        simulation = self._of_cluster(user)
        self._note(user, simulation, ANIMATION, "no_login", user.run(simulation, ANIMATION))

    def wrong_password(self, user: Browser) -> None:
        """The same after a login that failed."""
        user = self._users[2]
        simulation = self._of_cluster(user)
        self._log_in(user, simulation, "no" + self._cluster.password)
        self._note(user, simulation, ANIMATION, "wrong_password", user.run(simulation, ANIMATION))

    def on_cluster(self, user: Browser) -> None:
        self._ends("on_cluster")

    def fails(self, user: Browser) -> None:
        self._ends("fails", FAILING)

    def refused(self, user: Browser) -> None:
        """A job that Slurm does not take."""
        self._partition("DRAIN")
        self._ends("refused")
        self._partition("UP")

    def never(self, user: Browser) -> None:
        """A job that asks for more than the cluster has, which its user stops then."""
        simulation, reply = self._waits(sbatchCores=999)
        self._note(self._user_of_cluster, simulation, ANIMATION, "never", reply)
        self._note_end("stopped", simulation, self._user_of_cluster.call("/run-cancel", reply["nextRequest"]))

    def killed(self, user: Browser) -> None:
        simulation, reply = self._runs()
        self._cluster.slurm.run("scancel", "--full", "--signal=KILL", self._slurm_id(simulation))
        self._note_end("killed", simulation, reply)

    def canceled(self, user: Browser) -> None:
        """A job that its user stops in Sirepo."""
        simulation, reply = self._runs()
        self._note(self._user_of_cluster, simulation, ANIMATION, "runs_there", reply)
        reply = self._user_of_cluster.call("/run-cancel", reply["nextRequest"])
        self._note_end("canceled", simulation, reply)

    def canceled_there(self, user: Browser) -> None:
        """A job that somebody cancels with scancel."""
        simulation, reply = self._runs()
        self._cluster.slurm.run("scancel", self._slurm_id(simulation))
        self._note_end("canceled_there", simulation, reply)

    def over_time(self, user: Browser) -> None:
        simulation, reply = self._runs(sbatchHours=0.016)
        self._note_end("over_time", simulation, reply)

    def waits(self, user: Browser) -> None:
        """A job that waits in Slurm, whose nodes are not available, and runs when they are."""
        self._partition("DOWN")
        simulation, reply = self._waits()
        self._note(self._user_of_cluster, simulation, ANIMATION, "waits", reply)
        self._partition("UP")
        self._note_end("waited", simulation, reply)

    def restarted(self, user: Browser) -> None:
        """A supervisor that is restarted while a job runs; its user asks, and logs in again."""
        simulation, _ = self._runs()
        self._system.restart_supervisor()
        user = self._user_of_cluster
        reply = user.call("/run-status", simulation.request(ANIMATION))
        self._note(user, simulation, ANIMATION, "restarted", reply)
        self._log_in(user, simulation, self._cluster.password)
        reply = user.ask(simulation, ANIMATION, until={"running"})
        self._note(user, simulation, ANIMATION, "found_again", reply)
        self._note_end("canceled", simulation, user.call("/run-cancel", reply["nextRequest"]))

    def agent_killed(self, user: Browser) -> None:
        """An agent that is killed; its job goes on in Slurm, until somebody cancels it there."""
        simulation, reply = self._runs()
        self._cluster.kill_agent()
        user = self._user_of_cluster
        self._note(user, simulation, ANIMATION, "agent_killed", user.wait(reply, timeout_s=LOST_S))
        self._cluster.slurm.run("scancel", self._slurm_id(simulation))
        self._note(user, simulation, ANIMATION, "lost", user.wait(reply, timeout_s=POLLED_S + 10))

    @property
    def _cluster(self) -> Cluster:
        assert self._system.cluster is not None
        return self._system.cluster

    @property
    def _user_of_cluster(self) -> Browser:
        return self._users[0]

    def _of_cluster(self, user: Browser, name: str | None = None, **asked: float) -> Simulation:
        simulation = self._simulation(user, name)
        simulation.models[ANIMATION].update(
            {"jobRunMode": "sbatch", "sbatchHours": 0.5, "sbatchCores": 1, "sbatchNodes": 1} | asked
        )
        return simulation

    def _log_in(self, user: Browser, simulation: Simulation, password: str) -> Reply:
        given = {"username": USER, "password": password, "otp": ""}
        return user.call("/sbatch-login", simulation.request(ANIMATION) | {"sbatchCredentials": given})

    def _submitted(self, simulation: Simulation, until: Collection[str]) -> Reply:
        """What its user sees of a job that was submitted, after a log in if there was none."""
        user = self._user_of_cluster
        self._log_in(user, simulation, self._cluster.password)
        return user.run(simulation, ANIMATION, until=until)

    def _ends(self, kind: str, name: str | None = None, **asked: float) -> None:
        simulation = self._of_cluster(self._user_of_cluster, name, **asked)
        self._note_end(kind, simulation, self._submitted(simulation, EXITS))

    def _runs(self, **asked: float) -> tuple[Simulation, Reply]:
        """A job that is in the middle of running, in Slurm too."""
        simulation = self._of_cluster(self._user_of_cluster, LONG, **asked)
        reply = self._submitted(simulation, STARTED)
        assert reply.get("state") == "running", reply
        pause(3.0)
        return simulation, reply

    def _waits(self, **asked: float) -> tuple[Simulation, Reply]:
        """A job that Slurm has and does not begin."""
        simulation = self._of_cluster(self._user_of_cluster, None, **asked)
        reply = self._submitted(simulation, {"pending"})
        wait_for(lambda: self._slurm_id(simulation), timeout_s=START_S)
        pause(6.0)
        return simulation, reply

    def _partition(self, state: str) -> None:
        self._cluster.slurm.run("scontrol", "update", "PartitionName=debug", f"State={state}")

    def _note_end(self, kind: str, simulation: Simulation, reply: Reply) -> None:
        user = self._user_of_cluster
        self._note(user, simulation, ANIMATION, kind, user.wait(reply))

    def _slurm_id(self, simulation: Simulation) -> str:
        jid = self._user_of_cluster.jid(simulation, ANIMATION)
        for file in self._cluster.scratch.glob(f"user/*/myapp/{jid}/sbatch_status.json"):
            return str(json.loads(file.read_text())["sbatch_id"] or "")
        return ""
