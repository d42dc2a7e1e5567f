"""A real Slurm on this machine: munged, MariaDB, slurmdbd, slurmctld and some slurmd of one test.

Needs root. Everything written is below one directory; nothing below /etc or /var is touched. What makes it
work without systemd: proctrack/linuxproc, no task plugin, a munge key and socket of its own, and SLURM_CONF.
Its programs are those of this machine, or those of another Debian release in a directory (`inside`), which
are run with chroot; the directory of the test is mounted there under its own name.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobtui.backends.slurm.client import Commands
from jobtui.backends.slurm.source import Slurm
from tests.real.live import System
from tests.real.sirepo_system import argv_of, free_port, parent_of, process_ids
from tests.waiting import has_ended, wait_for

PROGRAMS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "sacctmgr", "sbatch")
USER = "nobody"
"""Whose jobs they are. Slurm wants a user that it can find everywhere."""
START_S = 300.0
CLUSTER = "huppel"

SLURMDBD = Path(__file__).with_name("slurmdbd.conf").read_text()

ACCOUNTING = Path(__file__).with_name("slurm_accounting.conf").read_text()

SLURM = Path(__file__).with_name("slurm.conf").read_text()
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=32 RealMemory=8000 {more}\n"
PARTITIONS = "PartitionName=debug Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=FORCE:32\n"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
COMMANDS = ("squeue", "sacct", "scontrol", "sdiag")
"""What jobtui runs."""


class SlurmSystem(System):
    """Starts it, submits jobs, asks it as its own users do, and stops it."""

    def __init__(
        self,
        root: Path,
        *,
        accounting: bool = True,
        more: str = "",
        nodes: int = 1,
        partitions: str = PARTITIONS,
        inside: Path | None = None,
        node_options: Mapping[str, str] | None = None,
        gres: str = "",
        enforces: bool = False,
    ) -> None:
        self.root = root
        self.work = root / "work"
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self._accounting = accounting
        self._more = more
        self._partitions = partitions
        self._inside = inside
        self._node_options = node_options or {}
        self._gres = gres
        self._enforces = "AccountingStorageEnforce=limits,qos\n" if enforces else ""
        self._mounts = [(str(path), f"{inside}{path}") for path in (root, Path("/proc"))]
        self._ports = {f"{name}_port": free_port() for name in ("ctld", "dbd", "sql")}
        self._mariadbd: subprocess.Popen[bytes] | None = None
        self._stopped: list[int] = []

    @property
    def conf(self) -> Path:
        return self.root / "slurm.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.conf), "TZ": "UTC", "PATH": SYSTEM_PATH}

    @property
    def search_path(self) -> str:
        """PATH with which jobtui finds the commands of this Slurm."""
        return f"{self.root}/bin{os.pathsep}{os.environ['PATH']}"

    def start_all(self) -> None:
        for name in ("ctld", "spool", "work", "munge", "bin"):
            (self.root / name).mkdir(mode=0o755, exist_ok=True)
        os.chmod(self.root / "munge", 0o700)
        account = pwd.getpwnam(USER)
        os.chown(self.work, account.pw_uid, account.pw_gid)
        if self._inside is not None:
            self._enter(self._inside)
        self._start_daemons()

    def _enter(self, inside: Path) -> None:
        """Let the other release see this directory and the processes; its commands for who runs them here."""
        (inside / "etc/hosts").write_text(f"127.0.0.1 localhost {_host()}\n")
        for here, there in self._mounts:
            Path(there).mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", here, there], check=True)
        for name in COMMANDS:
            command = self.root / "bin" / name
            command.write_text(f'#!/bin/sh\nexec /usr/sbin/chroot {inside} /usr/bin/{name} "$@"\n')
            command.chmod(0o755)

    def _start_daemons(self) -> None:
        host = _host()
        values = {"root": self.root, "host": host, "cluster": CLUSTER, "more": self._more, **self._ports}
        nodes = (
            NODE.format(name=name, host=host, port=free_port(), more=self._node_options.get(name, ""))
            for name in self.nodes
        )
        accounting = ACCOUNTING.format(**values) + self._enforces if self._accounting else ""
        text = SLURM.format(**values, accounting=accounting)
        self.conf.write_text(text + "".join(nodes) + self._partitions)
        (self.root / "gres.conf").write_text(self._gres.format(**values))
        for name in ("gpu0", "gpu1", "fpga0"):  # stand for devices
            (self.root / name).touch()
        (self.root / "cgroup.conf").write_text("" if self._inside is None else "CgroupPlugin=disabled\n")
        self._start_munged()
        if self._accounting:
            self._start_accounting(SLURMDBD.format(**values))
        self.start("slurmctld")
        for name in self.nodes:
            self.start_node(name)

    def _start_munged(self) -> None:
        key = self.root / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.run(
            "munged", "--force", f"--key-file={key}", f"--socket={self.root}/munge.sock",
            f"--pid-file={self.root}/munged.pid", f"--log-file={self.root}/munge/log",
            f"--seed-file={self.root}/munge/seed",
        )  # fmt: skip

    def _start_accounting(self, conf: str) -> None:
        data = self.root / "db"
        self.run_here("mariadb-install-db", "--user=root", f"--datadir={data}", "--skip-test-db",
                 "--auth-root-authentication-method=normal")  # fmt: skip
        self._mariadbd = subprocess.Popen(
            ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={self.root}/db.sock",
             "--bind-address=127.0.0.1", f"--port={self._ports['sql_port']}",
             f"--pid-file={self.root}/mariadbd.pid", "--innodb-buffer-pool-size=64M",
             "--innodb-lock-wait-timeout=900"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        sql = ("mariadb", "-uroot", "-S", f"{self.root}/db.sock", "-e")
        wait_for(lambda: self.run_here(*sql, "select 1", check=False), timeout_s=START_S, step_s=0.1)
        self.run_here(*sql, "create user slurm@'localhost' identified by 'slurm';"
                 "create user slurm@'127.0.0.1' identified by 'slurm'; create database slurm_acct_db;"
                 "grant all on slurm_acct_db.* to slurm@'localhost';"
                 "grant all on slurm_acct_db.* to slurm@'127.0.0.1'")  # fmt: skip
        file = self.root / "slurmdbd.conf"
        file.write_text(conf)
        file.chmod(0o600)
        self.start_dbd()
        for words in (("cluster", CLUSTER), ("account", "science", "Description=x", "Organization=lab"),
                      ("user", USER, "Account=science"), ("user", "root", "Account=science")):  # fmt: skip
            self.run("sacctmgr", "-i", "add", *words, check=False)

    def start_dbd(self) -> None:
        """Start the daemon of accounting; it reads its file beside the one that SLURM_CONF names."""
        said = self._words(["slurmdbd"])
        subprocess.run(said, check=True, env={**self.environment, "SLURM_CONF": f"{self.root}/slurmdbd.conf"})
        wait_for(lambda: self._listens(self._ports["dbd_port"]), timeout_s=START_S, step_s=0.1)

    @staticmethod
    def _listens(port: int) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", port)) == 0

    def start(self, daemon: str) -> None:
        """Start slurmctld and wait until it answers."""
        self.run(daemon)
        wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False), timeout_s=START_S, step_s=0.1)

    def start_node(self, name: str) -> None:
        self.run("slurmd", "-N", name)
        words = ("sinfo", "-h", "-N", "-n", name, "-o", "%T")
        wait_for(lambda: "idle" in self.run(*words, check=False), timeout_s=START_S, step_s=0.2)

    def _words(self, words: Sequence[str]) -> list[str]:
        return [*([] if self._inside is None else ["chroot", str(self._inside)]), *words]

    def run(self, *words: str, check: bool = True) -> str:
        """What a command of this Slurm prints."""
        return self.run_here(*self._words(words), check=check)

    def run_here(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            words, check=check, env=self.environment, capture_output=True, text=True, errors="replace"
        )
        return done.stdout

    def submit(self, script: str, *options: str) -> str:
        return self.submit_words([*options, f"--wrap={script}"])

    def submit_words(self, words: Sequence[str]) -> str:
        return self.run_as_user("sbatch", "--parsable", "--export=NONE", *words).strip().partition(";")[0]

    def run_as_user(self, *words: str) -> str:
        """What a command prints that an ordinary user gives."""
        become = ("setpriv", f"--reuid={USER}", "--regid=nogroup", "--clear-groups", "env", "-C")
        line = self._words([*become, str(self.work), *words])
        done = subprocess.run(line, check=False, capture_output=True, text=True, env=self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kill_node(self, name: str) -> None:
        self.signal(f"slurmd-{name}", signal.SIGKILL)

    def signal(self, daemon: str, number: signal.Signals) -> None:
        os.kill(int((self.root / f"{daemon}.pid").read_text()), number)

    def stop_daemon(self, daemon: str) -> None:
        file = self.root / f"{daemon}.pid"
        if not file.exists():
            return
        pid = int(file.read_text())
        for number in (signal.SIGCONT, signal.SIGTERM):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return
        wait_for(lambda: has_ended(pid), timeout_s=START_S)

    def _end_steps(self) -> None:
        """End what a node that was killed left: a script, what started it, and all that it started."""
        parents = {pid: parent_of(pid) for pid in process_ids()}
        scripts = [pid for pid in parents if f"{self.root}/spool/" in " ".join(argv_of(pid))]
        ending = {parents[script] for script in scripts} - {0, 1}
        while more := {pid for pid, parent in parents.items() if parent in ending} - ending:
            ending |= more
        for pid in ending:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End every job, and every daemon that it started."""
        self.run("scancel", f"--user={USER}", check=False)
        with contextlib.suppress(AssertionError):  # a daemon that is down knows of no jobs
            wait_for(lambda: not self.run("squeue", "-h", "-t", "R,CG", check=False), timeout_s=START_S)
        self._end_steps()
        for daemon in (*(f"slurmd-{name}" for name in self.nodes), "slurmctld", "slurmdbd", "munged"):
            self.stop_daemon(daemon)
        if self._mariadbd is not None:
            self._mariadbd.terminate()
            self._mariadbd.wait()
            self._mariadbd = None
        for _, there in self._mounts if self._inside is not None else ():
            self.run_here("umount", "--lazy", there, check=False)


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def newer_release() -> Path:
    """The directory with Debian's newer release in which Slurm is installed; skips where there is none."""
    inside = Path(os.environ.get("REAL_SLURM_INSIDE", "/nonexistent"))
    if not (inside / "usr/sbin/slurmctld").exists():
        pytest.skip(f"no newer Slurm in REAL_SLURM_INSIDE ({inside}): scripts/real installs it as root")
    return inside


def local_slurm() -> Slurm:
    """The source on the cluster that SLURM_CONF names."""
    return Slurm(Commands("local"))


def a_cluster(**options: Any) -> Iterator[SlurmSystem]:
    """A running cluster, for a fixture; the options are those of `SlurmSystem`. Skips where there is none."""
    if os.geteuid() != 0:
        pytest.skip("needs root: Slurm's daemons run jobs as others")
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    root = Path(tempfile.mkdtemp(prefix="slurm-"))
    root.chmod(0o755)
    try:
        with SlurmSystem(root, **options) as running:
            yield running
    finally:
        shutil.rmtree(root)
