"""A real Sirepo on this machine: its API server and its job supervisor, started from an installed package.

Everything it writes is below one directory: `db` (SIREPO_SRDB_ROOT), `log/server.log`, `log/supervisor.log`,
`log/container-*.log`, and `witness.jsonl` with the truth. With the Docker driver a stand-in plays the docker
client; all else is Sirepo's own. Processes are ended by what they were started with, nothing else is touched.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.live import System
from tests.real.sirepo_browser import Browser, NoAnswer
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.real.sirepo_cluster import Cluster

HERE = Path(__file__).parent
DOCKER_HOST = "v1.sirepo.example"
START_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 12.0


class Driver(StrEnum):
    """How the supervisor runs agents."""

    LOCAL = "local"
    DOCKER = "docker"
    SBATCH = "sbatch"
    """On the cluster, with local agents beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One way to run Sirepo. `prefixed` lines begin with time and pid; in production the journal has it."""

    driver: Driver
    prefixed: bool
    slots: int = 1
    sequential_limit_s: int = 20


@dataclass(slots=True)
class SirepoSystem(System):
    """A running Sirepo; `venv` is where the package is installed."""

    venv: Path
    root: Path
    setup: Setup
    cluster: "Cluster | None" = None
    port: int = field(default_factory=lambda: free_port())
    supervisor_port: int = field(default_factory=lambda: free_port())
    _server: "subprocess.Popen[bytes] | None" = None
    _supervisor: "subprocess.Popen[bytes] | None" = None

    @property
    def srdb(self) -> Path:
        return self.root / "db"

    @property
    def logs(self) -> Path:
        return self.root / "log"

    @property
    def witness(self) -> Path:
        return self.root / "witness.jsonl"

    def start_all(self) -> None:
        for place in (self.srdb, self.logs, self.root / "home", self.root / "work"):
            place.mkdir(parents=True)
        for name in (".bashrc", ".bash_profile"):  # what an agent's shell reads for its path
            (self.root / "home" / name).write_text(f'export PATH="{self.venv / "bin"}:/usr/bin:/bin"\n')
        if self.setup.driver is Driver.DOCKER:
            self._install_stand_in()
        self._server = self._start("server", [self.venv / "bin/sirepo", "service", "server"])
        self._supervisor = self._start_supervisor()
        self._wait_until_up()

    def browser(self) -> Browser:
        return Browser(self.port)

    def stop(self) -> None:
        """End it all, and what it has left behind."""
        for process in (self._supervisor, self._server):
            if process is not None:
                end(process)
        for pid in self._descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def restart_supervisor(self) -> None:
        """Stop the supervisor as a deployment would, start a new one, wait until it answers."""
        assert self._supervisor is not None
        end(self._supervisor)
        self._supervisor = self._start_supervisor()
        self._wait_until_up()

    def processes_in(self, place: Path) -> Iterator[int]:
        """Ids of the processes that work in a directory or below it."""
        for pid in process_ids():
            with contextlib.suppress(OSError):
                if Path(os.readlink(f"/proc/{pid}/cwd")).is_relative_to(place):
                    yield pid

    def _start_supervisor(self) -> "subprocess.Popen[bytes]":
        command: list[Path | str] = [
            self.venv / "bin/python",
            HERE / "witness.py",
            self.witness,
            "job_supervisor",
        ]
        return self._start("supervisor", command)

    def _start(self, name: str, command: list[Path | str]) -> "subprocess.Popen[bytes]":
        with (self.logs / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.root / "work",
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait_until_up(self) -> None:
        browser = self.browser()

        def answers() -> bool:
            for process in (self._server, self._supervisor):
                assert process is not None
                assert process.poll() is None, f"Sirepo did not start, see {self.logs}"
            try:
                return browser.call("/job-supervisor-ping", {}).get("state") == "ok"
            except NoAnswer:
                return False

        wait_for(answers, timeout_s=START_TIMEOUT_S, step_s=0.2)

    def _install_stand_in(self) -> None:
        tools = self.root / "tools"
        tools.mkdir()
        shutil.copy(HERE / "docker_stand_in.sh", tools / "docker")
        keys = self.root / "docker_tls" / DOCKER_HOST
        keys.mkdir(parents=True)
        for name in ("cacert", "cert", "key"):
            (keys / f"{name}.pem").touch()

    def _environment(self) -> dict[str, str]:
        supervisor = f"http://127.0.0.1:{self.supervisor_port}"
        beside_cluster = self.setup.driver is Driver.SBATCH
        prefix = f"SIREPO_JOB_DRIVER_{Driver.LOCAL.upper() if beside_cluster else self.setup.driver.upper()}"
        return {
            "HOME": str(self.root / "home"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PATH": f"{self.root / 'tools'}:{self.venv / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONUNBUFFERED": "1",
            "PYKERN_PKCONFIG_CHANNEL": "dev",
            "PYKERN_PKDEBUG_REDIRECT_LOGGING": "1",
            "PYKERN_PKDEBUG_WANT_PID_TIME": "1" if self.setup.prefixed else "",
            "SIREPO_AUTH_METHODS": "guest",
            "SIREPO_FEATURE_CONFIG_SIM_TYPES": "myapp",
            "SIREPO_SRDB_ROOT": str(self.srdb),
            "SIREPO_JOB_API_SUPERVISOR_URI": supervisor,
            "SIREPO_PKCLI_SERVICE_IP": "127.0.0.1",
            "SIREPO_PKCLI_SERVICE_PORT": str(self.port),
            "SIREPO_PKCLI_SERVICE_USE_RELOADER": "",
            "SIREPO_PKCLI_JOB_SUPERVISOR_USE_RELOADER": "",
            "SIREPO_PKCLI_JOB_SUPERVISOR_PORT": str(self.supervisor_port),
            "SIREPO_PKCLI_JOB_AGENT_DEV_SOURCE_DIRS": "",
            "SIREPO_JOB_DRIVER_MODULES": "local:sbatch" if beside_cluster else self.setup.driver,
            "SIREPO_JOB_SUPERVISOR_MAX_SECS_SEQUENTIAL": str(self.setup.sequential_limit_s),
            # The defaults, 5 and 8 s, are short for a busy machine: jobs then hang in pending.
            f"{prefix}_AGENT_STARTING_SECS": "40",
            f"{prefix}_SUPERVISOR_URI": supervisor,
            **(self._docker_settings() if self.setup.driver is Driver.DOCKER else self._local_settings()),
            **(self.cluster.settings(self.root / "home", supervisor) if self.cluster else {}),
        }

    def _local_settings(self) -> dict[str, str]:
        return {
            f"SIREPO_JOB_DRIVER_LOCAL_SLOTS_{kind}": str(self.setup.slots)
            for kind in ("PARALLEL", "SEQUENTIAL")
        }

    def _docker_settings(self) -> dict[str, str]:
        return {
            "STAND_IN_STATE": str(self.root / "containers"),
            "STAND_IN_LOGS": str(self.logs),
            "SIREPO_JOB_DRIVER_DOCKER_HOSTS": DOCKER_HOST,
            "SIREPO_JOB_DRIVER_DOCKER_TLS_DIR": str(self.root / "docker_tls"),
            "SIREPO_JOB_DRIVER_DOCKER_DEV_VOLUMES": "",
        }

    def _descendants(self) -> Iterator[int]:
        """Processes that were started with a database root of this system in their environment."""
        roots = [self.srdb, *([self.cluster.scratch] if self.cluster else [])]
        marks = {f"SIREPO_SRDB_ROOT={root}".encode() for root in roots}
        for pid in process_ids():
            with contextlib.suppress(OSError):
                if marks & set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")):
                    yield pid


def process_ids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now, in the range that Sirepo accepts."""
    while True:
        port = random.randint(20_000, 32_767)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process, gently at first, then its whole group."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_S)
        process.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def argv_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def started_by(pid: int, word: str) -> int | None:
    """The nearest ancestor of a process, itself included, that has a word in its command line."""
    while pid > 1:
        if word in argv_of(pid):
            return pid
        pid = parent_of(pid)
    return None


def pause(seconds: float) -> None:
    """Let the real system work for a while: what is tested is that something happens in the middle of it."""
    time.sleep(seconds)
