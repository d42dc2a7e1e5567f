"""A real HTCondor pool on this machine: master, collector, negotiator, schedd and startd of Debian sid.

Needs root: it is installed into a directory of its own (400 MB), runs there (chroot) and in namespaces of its
own for mounts and processes, so that nothing of it is left when it ends.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from tests.real.sirepo_system import free_port
from tests.waiting import wait_for

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobtui-real"
TREE = CACHE / "condor-sid"
USER = "someone"
START_S = 300.0
INSTALL_S = 1200.0
ZONE = "XST6"
"""The zone of the pool's clock, which its logs do not name, and which is not this machine's."""

CONFIG = Path(__file__).with_name("condor_config").read_text()


def install() -> None:
    """Install it, once; a test is skipped where that cannot be."""
    if os.geteuid() != 0:
        pytest.skip("an HTCondor pool needs root")
    if shutil.which("unshare") is None:
        pytest.skip("an HTCondor pool needs unshare (util-linux)")
    if TREE.exists():
        return
    if shutil.which("debootstrap") is None:
        subprocess.run(["apt-get", "install", "-y", "-qq", "debootstrap"], check=True, timeout=INSTALL_S)
    draft = TREE.with_name(f"{TREE.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    script = (
        'set -e; debootstrap --variant=minbase sid "$1"; mount -t proc proc "$1/proc"; chroot "$1" sh -c "'
        "export DEBIAN_FRONTEND=noninteractive;"
        "apt-get install -y -qq --no-install-recommends minicondor && apt-get clean"
        f' && useradd --create-home {USER}"'
    )
    try:
        subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", draft],
            check=True, timeout=INSTALL_S, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        draft.rename(TREE)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


class CondorPool:
    """Starts it, runs HTCondor's commands in it as a user, stops it. `more` is added to its configuration."""

    def __init__(self, more: str = "") -> None:
        install()
        self.root = Path(tempfile.mkdtemp(prefix="pool-", dir=TREE / "srv"))
        self.place = Path("/", self.root.relative_to(TREE))
        """The same as the pool names it."""
        self.work = self.root / "work"
        self._more = more
        self._master: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.root.chmod(0o755)
        for name in ("log", "spool", "execute", "run", "lock", "work"):
            (self.root / name).mkdir()
        (self.root / "execute").chmod(0o755)
        config = CONFIG.format(place=self.place, port=free_port()) + self._more
        (self.root / "condor_config").write_text(config)
        of_condor = [self.place / name for name in ("log", "spool", "execute", "run", "lock")]
        subprocess.run(["chroot", TREE, "chown", "condor:", *of_condor], check=True)
        subprocess.run(["chroot", TREE, "chown", f"{USER}:", self.place / "work"], check=True)
        self._master = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={TREE / 'proc'}",
             "chroot", TREE, "condor_master", "-f"],
            env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_for(self._is_up, timeout_s=START_S, step_s=0.5)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self._master is not None:
            self._master.kill()  # unshare: the kernel ends all others with the first of their namespace
            self._master.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, *command: object, text: str | None = None, check: bool = True) -> str:
        """What one of HTCondor's commands prints, run as a user in the directory of jobs."""
        ran = subprocess.run(
            ["chroot", f"--userspec={USER}:{USER}", TREE, "env", f"--chdir={self.place / 'work'}",
             *map(str, command)],
            env=self._environment, input=text, capture_output=True, text=True, timeout=START_S, check=False,
        )  # fmt: skip
        if check and ran.returncode:
            raise RuntimeError(f"{command} ends with {ran.returncode}: {ran.stderr}{ran.stdout}")
        return ran.stdout

    def submit(self, text: str, *, extra: Sequence[str] = ()) -> int:
        printed = self.run("condor_submit", "-terse", *extra, "-", text=text)
        return int(printed.partition(".")[0])

    def ads(self) -> dict[str, dict[str, Any]]:
        """The ads of all jobs, those in the queue and those that left it, by their number."""
        found = {}
        for command in ("condor_history", "condor_q"):
            more = ("-allusers",) if command == "condor_q" else ()
            for ad in json.loads(self.run(command, *more, "-json") or "[]"):
                found[f"{ad['ClusterId']}.{ad['ProcId']}"] = ad
        return found

    def queued(self) -> int:
        return len(json.loads(self.run("condor_q", "-allusers", "-json") or "[]"))

    @property
    def _environment(self) -> Mapping[str, str]:
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TZ": ZONE, "LC_ALL": "C.UTF-8",
            "CONDOR_CONFIG": str(self.place / "condor_config"),
        }  # fmt: skip

    def _is_up(self) -> bool:
        return "slot1" in self.run("condor_status", check=False) and bool(
            self.run("condor_status", "-schedd", "-af", "Name", check=False).strip()
        )

    def kill_starter(self, job: str) -> None:
        """End what looks after a job where it runs, as a crash of its host does."""
        slot = self.ads()[job]["RemoteHost"].partition("@")[0].encode()
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (path / "cmdline").read_bytes().split(b"\0")
                is_own = str(self.place).encode() in (path / "environ").read_bytes()
                if b"condor_starter" in words[0] and slot in words and is_own:
                    os.kill(int(path.name), signal.SIGKILL)
