"""Hosts with journals of their own on this machine: journald, sshd and gatewayd in namespaces, as root.

A host has its own network, its own /run and /var/log/journal, machine id and name; all else it shares. Its
cable can be pulled. Everything is ended by its own id, and nothing of the machine's own is touched.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.backends.journal.rigs import Gatewayd, Sshd
from tests.waiting import wait_for

PLACES = (Path("/run/systemd/journal"), Path("/run/log/journal"))
JOURNALD = "/lib/systemd/systemd-journald"
SERVICE = "sirepo_job_supervisor"
SETTINGS = "[Journal]\nRateLimitIntervalSec=0\nStorage=volatile\n"
MAKE_HOST = """
mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/log/journal && mount --bind "$1" /etc/machine-id
mkdir -p /run/systemd/journal /run/systemd/journald.conf.d /run/log/journal /run/sshd
printf '%s' "$2" >/run/systemd/journald.conf.d/jobtui.conf
hostname "$3" && touch /run/made && exec sleep infinity
"""


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


class Sender:
    """Writes numbered lines of the job supervisor to a journald. A line's number is its run directory."""

    def __init__(self, root: Path) -> None:
        self._place = root / "run/systemd/journal/socket"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sent = 0

    def connect(self) -> None:
        wait_for(self._is_connected)

    def send(self) -> int:
        number, self.sent = self.sent, self.sent + 1
        text = f"sirepo/job_supervisor.py:12:send _Op(run, abcd) runDir=/real/{number}"
        self._socket.send(f"MESSAGE={text}\nPRIORITY=6\nSYSLOG_IDENTIFIER={SERVICE}\n".encode())
        return number

    def close(self) -> None:
        self._socket.close()

    def _is_connected(self) -> bool:
        with contextlib.suppress(OSError):
            self._socket.connect(str(self._place))
            return True
        return False


class JournalHost:
    """One host; a context manager. `root` is for its keys and logs, `number` tells it from the others."""

    def __init__(self, root: Path, number: int) -> None:
        self.name = f"node{number}"
        self._root = root
        self._net = f"jt{os.getpid() % 100_000}n{number}"
        self._subnet = f"10.{random.randint(64, 127)}.{random.randint(0, 255)}"
        self._stack = contextlib.ExitStack()
        self._holder: subprocess.Popen[bytes] | None = None
        self._journald: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "JournalHost":
        with contextlib.ExitStack() as stack:
            self._root.mkdir(parents=True)
            stack.callback(self._unplug)
            self._plug_in()
            stack.callback(self._end)
            self._hold()
            self.sender = Sender(self.files_root)
            stack.callback(self.sender.close)
            self.start_journald()
            self.sshd = Sshd(self._root / "sshd", address=self.address, prefix=self._inside)
            self.sshd.prepare()
            self.sshd.start()
            stack.callback(lambda: self.sshd.die())
            log = self._root / "gatewayd.log"
            self.gatewayd = Gatewayd(None, log, address=self.address, prefix=self._inside)
            self.gatewayd.start()
            stack.callback(lambda: self.gatewayd.die())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def address(self) -> str:
        """Where it is reached."""
        return f"{self._subnet}.2"

    @property
    def files_root(self) -> Path:
        """Its own `/`, as seen from here."""
        assert self._holder is not None
        return Path(f"/proc/{self._holder.pid}/root")

    @property
    def directory(self) -> Path:
        """Its journal files, as seen from here."""
        return self.files_root / "run/log/journal"

    def start_journald(self) -> None:
        self._journald = self._start(JOURNALD)
        self.sender.connect()

    def kill_journald(self) -> None:
        end(self._journald)

    def pull_cable(self) -> None:
        """From now on nothing that is sent to it is answered, and nobody is told."""
        run(*self._inside, "ip", "address", "delete", f"{self.address}/30", "dev", "eth0")

    def plug_cable_in(self) -> None:
        """Undo that."""
        run(*self._inside, "ip", "address", "add", f"{self.address}/30", "dev", "eth0")

    @property
    def _inside(self) -> tuple[str, ...]:
        assert self._holder is not None
        return ("nsenter", "--target", str(self._holder.pid), "--mount", "--net", "--uts", "--")

    def _plug_in(self) -> None:
        here, there = f"{self._net}a", f"{self._net}b"
        run("ip", "netns", "add", self._net)
        run("ip", "link", "add", here, "type", "veth", "peer", "name", there)
        run("ip", "link", "set", there, "netns", self._net, "name", "eth0")
        run("ip", "address", "add", f"{self._subnet}.1/30", "dev", here)
        run("ip", "link", "set", here, "up")
        for words in (f"address add {self.address}/30 dev eth0", "link set eth0 up", "link set lo up"):
            run("ip", "-n", self._net, *words.split())

    def _unplug(self) -> None:
        for words in (f"link delete {self._net}a", f"netns delete {self._net}"):
            subprocess.run(["ip", *words.split()], check=False, capture_output=True, timeout=180)

    def _hold(self) -> None:
        machine_id = self._root / "machine-id"
        machine_id.write_text(f"{uuid.uuid4().hex}\n")
        unshare = ("unshare", "--mount", "--uts", "--propagation", "private")
        make = ("sh", "-c", MAKE_HOST, "sh", str(machine_id), SETTINGS, self.name)
        # `ip netns exec` would mount a /sys of its own, in which journald finds no control groups
        self._holder = subprocess.Popen(["nsenter", f"--net=/run/netns/{self._net}", *unshare, *make])
        wait_for(lambda: (self.files_root / "run/made").exists())

    def _start(self, *command: str) -> "subprocess.Popen[bytes]":
        with (self._root / "log").open("ab") as log:
            return subprocess.Popen(
                [*self._inside, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _end(self) -> None:
        end(self._journald)
        end(self._holder)


def end(process: "subprocess.Popen[bytes] | None") -> None:
    if process is not None:
        process.send_signal(signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def journal_here() -> Iterator[Sender]:
    """The journal of this machine: the one it has, else a journald of ours, ended and removed afterwards."""
    sender = Sender(Path("/"))
    with contextlib.ExitStack() as stack:
        stack.callback(sender.close)
        if not sender._is_connected():
            stack.callback(remove_new, journal_directories())
            for place in PLACES:
                place.mkdir(parents=True, exist_ok=True)
            process = subprocess.Popen([JOURNALD], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(end, process)
            sender.connect()
        yield sender


def journal_directories() -> set[Path]:
    """Where journals of this machine are, and journald's sockets."""
    return {
        place for root in (*PLACES, Path("/var/log/journal")) if root.is_dir() for place in root.iterdir()
    }


def remove_new(before: set[Path]) -> None:
    for made in journal_directories() - before:
        if made.is_dir():
            shutil.rmtree(made)
        else:
            made.unlink()


def missing_programs() -> str:
    """What is not installed of all that hosts need; "" when all is there."""
    names = ("ip", "nsenter", "unshare", "ssh", "journalctl")
    return ", ".join(name for name in names if shutil.which(name) is None)
