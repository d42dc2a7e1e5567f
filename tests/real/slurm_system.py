"""A real Slurm on this machine, with one node: munged, MariaDB, slurmdbd, slurmctld and slurmd of one test.

Needs root. Everything written is below one directory; nothing below /etc or /var is touched. What makes it
work without systemd: proctrack/linuxproc, no task plugin, a munge key and socket of its own, and SLURM_CONF.
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
from types import TracebackType
from typing import Self

import pytest

from tests.real.sirepo_system import free_port
from tests.waiting import wait_for

PROGRAMS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "sacctmgr", "sbatch")
USER = "nobody"
"""Whose jobs they are. Slurm wants a user that it can find everywhere."""
START_S = 60.0
CLUSTER = "huppel"

SLURMDBD = """\
AuthType=auth/munge
AuthInfo=socket={root}/munge.sock
DbdHost=localhost
DbdPort={dbd_port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
LogFile={root}/slurmdbd.log
PidFile={root}/slurmdbd.pid
"""

ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={dbd_port}
AccountingStoragePass={root}/munge.sock
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
AccountingStoreFlags=job_script,job_env
"""

SLURM = """\
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.sock
CredType=cred/munge
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
StateSaveLocation={root}/ctld
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
MinJobAge={keep_s}
{more}
MaxJobCount=20000
KillWait=2
InactiveLimit=0
{accounting}
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1024 State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=60 State=UP OverSubscribe=FORCE:32
"""


class SlurmSystem:
    """Starts it, submits jobs, asks it as its own users do, and stops it."""

    def __init__(self, root: Path, *, keep_s: int = 3600, accounting: bool = True, more: str = "") -> None:
        self.root = root
        self.work = root / "work"
        self._keep_s = keep_s
        self._accounting = accounting
        self._more = more
        self._ports = {f"{name}_port": free_port() for name in ("ctld", "slurmd", "dbd", "sql")}
        self._mariadbd: subprocess.Popen[bytes] | None = None
        self._stopped: list[int] = []

    @property
    def conf(self) -> Path:
        """What SLURM_CONF must name."""
        return self.root / "slurm.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment in which Slurm's commands find it."""
        return {**os.environ, "SLURM_CONF": str(self.conf), "TZ": "UTC"}

    def __enter__(self) -> Self:
        for name in ("ctld", "spool", "work", "munge"):
            (self.root / name).mkdir(mode=0o755, exist_ok=True)
        os.chmod(self.root / "munge", 0o700)
        account = pwd.getpwnam(USER)
        os.chown(self.work, account.pw_uid, account.pw_gid)
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start_all(self) -> None:
        values = {"root": self.root, "host": socket.gethostname().partition(".")[0], "cluster": CLUSTER,
                  "cpus": os.cpu_count() or 1, "keep_s": self._keep_s, "more": self._more,
                  **self._ports}  # fmt: skip
        accounting = ACCOUNTING.format(**values) if self._accounting else ""
        self.conf.write_text(SLURM.format(**values, accounting=accounting))
        self._start_munged()
        if self._accounting:
            self._start_accounting(SLURMDBD.format(**values))
        self.start("slurmctld")
        wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False), timeout_s=START_S, step_s=0.1)
        self.start("slurmd")
        wait_for(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T", check=False), timeout_s=START_S)

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
        self.run("mariadb-install-db", "--user=root", f"--datadir={data}", "--skip-test-db",
                 "--auth-root-authentication-method=normal")  # fmt: skip
        self._mariadbd = subprocess.Popen(
            ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={self.root}/db.sock",
             "--bind-address=127.0.0.1", f"--port={self._ports['sql_port']}",
             f"--pid-file={self.root}/mariadbd.pid", "--innodb-buffer-pool-size=64M",
             "--innodb-lock-wait-timeout=900"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        sql = ("mariadb", "-uroot", "-S", f"{self.root}/db.sock", "-e")
        wait_for(lambda: self.run(*sql, "select 1", check=False), timeout_s=START_S, step_s=0.1)
        self.run(*sql, "create user slurm@'localhost' identified by 'slurm';"
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
        subprocess.run(
            ["slurmdbd"], check=True, env={**self.environment, "SLURM_CONF": f"{self.root}/slurmdbd.conf"}
        )
        wait_for(lambda: self._listens(self._ports["dbd_port"]), timeout_s=START_S, step_s=0.1)

    @staticmethod
    def _listens(port: int) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", port)) == 0

    def start(self, daemon: str) -> None:
        """Start a daemon that goes into the background by itself."""
        self.run(daemon)

    def run(self, *words: str, check: bool = True) -> str:
        """What a command prints."""
        done = subprocess.run(
            words, check=check, env=self.environment, capture_output=True, text=True, errors="replace"
        )
        return done.stdout

    def submit(self, script: str, *options: str) -> str:
        """Submit a job as an ordinary user; its number."""
        return self.submit_words([*options, f"--wrap={script}"])

    def submit_words(self, words: Sequence[str]) -> str:
        """The same with the words of sbatch."""
        account = pwd.getpwnam(USER)
        done = subprocess.run(
            ["sbatch", "--parsable", "--export=NONE", *words], check=True, capture_output=True, text=True,
            cwd=self.work, env=self.environment, user=account.pw_uid, group=account.pw_gid, extra_groups=[],
        )  # fmt: skip
        return done.stdout.strip().partition(";")[0]

    def signal(self, daemon: str, number: signal.Signals) -> None:
        """Send a daemon a signal."""
        os.kill(int((self.root / f"{daemon}.pid").read_text()), number)

    def stop_daemon(self, daemon: str) -> None:
        """End one daemon and wait until it is gone."""
        file = self.root / f"{daemon}.pid"
        if not file.exists():
            return
        pid = int(file.read_text())
        for number in (signal.SIGCONT, signal.SIGTERM):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return
        wait_for(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), timeout_s=30)

    def stop(self) -> None:
        """End every job, and every daemon that it started."""
        self.run("scancel", f"--user={USER}", check=False)
        with contextlib.suppress(AssertionError):  # a daemon that is down knows of no jobs
            wait_for(lambda: not self.run("squeue", "-h", "-t", "R,CG", check=False), timeout_s=START_S)
        for daemon in ("slurmd", "slurmctld", "slurmdbd", "munged"):
            self.stop_daemon(daemon)
        if self._mariadbd is not None:
            self._mariadbd.terminate()
            self._mariadbd.wait()
            self._mariadbd = None


def _is_zombie(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def a_cluster(*, accounting: bool = True, more: str = "") -> Iterator[SlurmSystem]:
    """A running cluster, for a fixture; `more` are lines of slurm.conf. Skips where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("needs root: Slurm's daemons run jobs as others")
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    root = Path(tempfile.mkdtemp(prefix="slurm-"))
    root.chmod(0o755)
    try:
        with SlurmSystem(root, accounting=accounting, more=more) as running:
            yield running
    finally:
        shutil.rmtree(root)
