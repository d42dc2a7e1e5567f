"""All four ways to a journal at once on live systems, with hosts that die, fall silent and come back.

A host here is journald, sshd and gatewayd in namespaces, as root: it has its own network, its own /run and
/var/log/journal, machine id and name; all else it shares. Its cable can be pulled. All is ended by its id.
"""

import asyncio
import contextlib
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.pty_meter import percentile
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.case import SURE
from jobtui.analysis.killer import JobEnd, find_killer
from jobtui.backends.base import Batch
from jobtui.backends.job_reader import JobReader
from jobtui.backends.journal.records import WantedStreams
from jobtui.backends.journal.source import Journal, maker_of
from jobtui.model.clock import SECOND, Nanos, SystemClock, to_rfc3339
from jobtui.model.health import SourceState
from jobtui.model.journal import Gap
from jobtui.store.poller import Poller
from jobtui.store.store import Changes, Store
from tests.backends.journal.rigs import Gatewayd, Sshd, ssh_client
from tests.real.live import System
from tests.waiting import stop, wait_for, wait_until

PLACES = (Path("/run/systemd/journal"), Path("/run/log/journal"))
JOURNALD = "/lib/systemd/systemd-journald"
SERVICE = "sirepo_job_supervisor"
SETTINGS = "[Journal]\nRateLimitIntervalSec=0\nStorage=volatile\n"
MAKE_HOST = Path(__file__).with_name("make_host.sh").read_text()


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


class JournalHost(System):
    """One host. `root` is for its keys and logs, `number` tells it from the others."""

    def __init__(self, root: Path, number: int) -> None:
        self.name = f"node{number}"
        self._root = root
        self._net = f"jt{os.getpid() % 100_000}n{number}"
        self._subnet = f"10.{random.randint(64, 127)}.{random.randint(0, 255)}"
        self._stack = ExitStack()
        self._holder: subprocess.Popen[bytes] | None = None
        self._journald: subprocess.Popen[bytes] | None = None

    def start_all(self) -> None:
        self._root.mkdir(parents=True)
        self._stack.callback(self._unplug)
        self._plug_in()
        self._stack.callback(self._end)
        self._hold()
        self.sender = Sender(self.files_root)
        self._stack.callback(self.sender.close)
        self.start_journald()
        self.sshd = Sshd(self._root / "sshd", address=self.address, prefix=self._inside)
        self.sshd.prepare()
        self.sshd.start()
        self._stack.callback(self.sshd.die)
        log = self._root / "gatewayd.log"
        self.gatewayd = Gatewayd(None, log, address=self.address, prefix=self._inside)
        self.gatewayd.start()
        self._stack.callback(self.gatewayd.die)

    def stop(self) -> None:
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
    with ExitStack() as stack:
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
    return {place for top in (*PLACES, Path("/var/log/journal")) if top.is_dir() for place in top.iterdir()}


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


SEND_EVERY_S = 0.02


@dataclass(slots=True)
class Seen:
    """What came of one journal: numbers in order, when each came, and what was told."""

    numbers: list[int] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    states: list[tuple[float, SourceState, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gaps: tuple[Gap, ...] = ()

    def lags(self, sent: "Sent", start: float, end: float) -> list[float]:
        """Seconds from written to seen, of what was written between two times."""
        pairs = zip(self.numbers, self.at, strict=True)
        return [at - sent.at[number] for number, at in pairs if start <= sent.at[number] < end]


class Watching(Store):
    """A store that remembers what it was given."""

    def __init__(self) -> None:
        super().__init__(Correlator(), SystemClock())
        self.seen: dict[str, Seen] = {}

    def apply(self, source: str, batch: Batch) -> Changes:
        seen = self.seen.setdefault(source, Seen())
        now = time.time()
        for record in batch.records:
            if record.fields.get("run_dir", "") and "/real/" in record.text:
                seen.numbers.append(int(record.text.rpartition("/")[2]))
                seen.at.append(now)
        if batch.note and batch.note not in seen.notes[-1:]:
            seen.notes.append(batch.note)
        changes = super().apply(source, batch)
        self._note_state(source)
        return changes

    def fail(self, source: str, error: str) -> Changes:
        changes = super().fail(source, error)
        self._note_state(source)
        return changes

    def state(self, source: str) -> SourceState:
        return next(health.state for health in self.sources() if health.name == source)

    def _note_state(self, source: str) -> None:
        health = next(health for health in self.sources() if health.name == source)
        told = self.seen.setdefault(source, Seen()).states
        state = (health.state, health.error or "")
        if not told or told[-1][1:] != state:
            told.append((time.time(), *state))


@asynccontextmanager
async def watching(targets: Mapping[str, str], since: float) -> AsyncIterator[Watching]:
    """One poller for each journal, as a session has them."""
    store = Watching()
    wanted = WantedStreams(units=(), identifiers=(SERVICE,), containers=())
    journals = {
        name: Journal(name, maker_of(target), wanted=wanted, since=Nanos(int(since * SECOND)))
        for name, target in targets.items()
    }
    tasks = [asyncio.create_task(Poller(journal, store).run()) for journal in journals.values()]
    try:
        yield store
    finally:
        for task in tasks:
            await stop(task)
        for name, journal in journals.items():
            store.seen.setdefault(name, Seen()).gaps = tuple(journal.gaps)
            await journal.aclose()


@dataclass(slots=True)
class Sent:
    """When each number was written to one journal."""

    sender: Sender
    at: list[float] = field(default_factory=list)
    pauses: bool = False


async def send(all_sent: Iterable[Sent]) -> None:
    """Write to all journals, all the time."""
    while True:
        for sent in all_sent:
            if not sent.pauses:
                sent.at.append(time.time())
                sent.sender.send()
        await asyncio.sleep(SEND_EVERY_S)


pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make hosts of namespaces"),
    pytest.mark.skipif(bool(missing_programs()), reason=f"needs {missing_programs()}"),
]

CALM_S = 3.0
DEAD_S = 5.0
NOTICED_S = 45.0
"""Three keep-alives that go unanswered, and what a busy machine takes."""
BACK_S = 60.0
SEEN_AT_ONCE_S = 0.6
"""The budget for following, 95 of 100 times."""
TOLD_WITHIN_S = 3.0
SILENCE_S = 25.0
"""Up to here after a cable was pulled it may be believed that a host is merely quiet."""
AFFECTED = ("ssh", "http")


@dataclass(slots=True)
class Story:
    """What was done when, what was written, and what jobtui saw."""

    sent: Mapping[str, Sent] = field(default_factory=dict)
    seen: Mapping[str, Seen] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    address: Mapping[str, str] = field(default_factory=dict)
    doctor: "subprocess.CompletedProcess[str] | None" = None

    def note(self, what: str) -> None:
        self.times[what] = time.time()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    root = tmp_path_factory.mktemp("hosts")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        client = stack.enter_context(ssh_client(root / "client", patch))
        by_ssh, by_http, by_files = (
            stack.enter_context(JournalHost(root / f"host{number}", number)) for number in range(1, 4)
        )
        client.settings(by_ssh.sshd.root)
        here = stack.enter_context(journal_here())
        targets = {
            "local": "local",
            "directory": str(by_files.directory),
            "ssh": by_ssh.sshd.spec,
            "http": by_http.gatewayd.spec,
        }
        senders: dict[str, Sender] = {
            "local": here,
            "directory": by_files.sender,
            "ssh": by_ssh.sender,
            "http": by_http.sender,
        }
        yield asyncio.run(tell(targets, senders, by_ssh, by_http, by_files))


async def tell(
    targets: Mapping[str, str],
    senders: Mapping[str, Sender],
    by_ssh: JournalHost,
    by_http: JournalHost,
    by_files: JournalHost,
) -> Story:
    story = Story(address={"ssh": by_ssh.address, "http": by_http.address})
    story.sent = sent = {name: Sent(sender) for name, sender in senders.items()}
    async with watching(targets, time.time()) as store:
        story.seen = store.seen
        sending = asyncio.create_task(send(sent.values()))
        await all_come(store, sent, targets)
        await asyncio.sleep(CALM_S)
        story.note("killed")
        by_ssh.sshd.die()
        by_http.gatewayd.die()
        await asyncio.sleep(DEAD_S)
        story.doctor = await asyncio.to_thread(doctor, [*targets.values()])
        story.note("restarted")
        by_ssh.sshd.start()
        by_http.gatewayd.start()
        await all_come(store, sent, targets)
        await asyncio.sleep(CALM_S)

        story.note("pulled")
        by_ssh.pull_cable()
        by_http.pull_cable()
        await wait_until(
            lambda: all(store.state(name) is SourceState.DOWN for name in AFFECTED), timeout_s=NOTICED_S
        )
        story.note("plugged in")
        by_ssh.plug_cable_in()
        by_http.plug_cable_in()
        await all_come(store, sent, targets)

        sent["directory"].pauses = True
        await asyncio.sleep(0.5)
        by_files.kill_journald()
        await asyncio.to_thread(by_files.start_journald)
        sent["directory"].pauses = False
        await asyncio.sleep(CALM_S)
        story.note("end")
        for each in sent.values():
            each.pauses = True
        await all_come(store, sent, targets)
        await stop(sending)
    return story


async def all_come(store: Watching, sent: Mapping[str, Sent], targets: Mapping[str, str]) -> None:
    """Wait until all that is written by now has come of every journal."""
    written = {name: len(sent[name].at) for name in targets}
    await wait_until(
        lambda: all(
            name in store.seen and len(store.seen[name].numbers) >= count for name, count in written.items()
        ),
        timeout_s=BACK_S,
    )


def doctor(targets: list[str]) -> "subprocess.CompletedProcess[str]":
    flags = [word for target in targets for word in ("--journal", target)]
    return subprocess.run(
        [sys.executable, "-m", "jobtui", "doctor", *flags],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.parametrize("name", ["local", "directory", "ssh", "http"])
def test_nothing_is_lost_and_nothing_comes_twice(story: Story, name: str) -> None:
    assert len(story.sent[name].at) > 500
    assert story.seen[name].numbers == list(range(len(story.sent[name].at)))


@pytest.mark.parametrize("name", ["local", "directory", "ssh", "http"])
def test_lines_are_seen_at_once_while_all_is_well(story: Story, name: str) -> None:
    lags = story.seen[name].lags(story.sent[name], story.times["killed"] - 2.5, story.times["killed"] - 1.0)
    assert len(lags) > 20
    assert percentile(lags, 0.95) <= SEEN_AT_ONCE_S


@pytest.mark.parametrize("name", ["local", "directory"])
def test_other_journals_are_unaffected(story: Story, name: str) -> None:
    seen = story.seen[name]
    lags = seen.lags(story.sent[name], story.times["killed"], story.times["plugged in"])
    assert percentile(lags, 0.95) <= SEEN_AT_ONCE_S
    assert [state for _, state, _ in seen.states if state is SourceState.DOWN] == []
    assert seen.gaps == ()


@pytest.mark.parametrize("name", AFFECTED)
def test_each_outage_is_reported_with_its_times(story: Story, name: str) -> None:
    first, second = story.seen[name].gaps
    assert first.recovered
    assert second.recovered
    times = {what: at * SECOND for what, at in story.times.items()}
    assert abs(first.start - times["killed"]) <= TOLD_WITHIN_S * SECOND
    assert times["killed"] <= second.start
    assert times["pulled"] - TOLD_WITHIN_S * SECOND <= second.start
    assert second.start <= times["pulled"] + SILENCE_S * SECOND
    for gap, back in ((first, "restarted"), (second, "plugged in")):
        assert gap.end is not None
        assert times[back] <= gap.end <= times[back] + BACK_S * SECOND
    for gap in (first, second):
        assert to_rfc3339(Nanos(gap.start // SECOND * SECOND)) in story.seen[name].notes[-1]


@pytest.mark.parametrize("name", AFFECTED)
def test_a_host_that_dies_is_reported_soon_and_in_words(story: Story, name: str) -> None:
    down = [(at, error) for at, state, error in story.seen[name].states if state is SourceState.DOWN]
    assert 0 <= down[0][0] - story.times["killed"] <= TOLD_WITHIN_S
    remedy = {"ssh": "systemctl status ssh", "http": "systemctl status systemd-journal-gatewayd.socket"}
    assert any(remedy[name] in error for _, error in down)
    silent = [error for at, error in down if at >= story.times["pulled"]]
    assert any("answer" in error and story.address[name] in error for error in silent)


def test_the_doctor_says_what_to_do(story: Story) -> None:
    assert story.doctor is not None
    assert story.doctor.returncode == 1, story.doctor.stdout
    assert "systemctl status ssh" in story.doctor.stdout
    assert "systemctl status systemd-journal-gatewayd.socket" in story.doctor.stdout


GROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
LIMITS = ("memory.limit_in_bytes", "memory.max")
GREEDY = "echo $$ >{}/cgroup.procs && exec python3 -c 'taken = b\"1\" * (200 << 20)'"


async def nothing_again(at: Nanos, told: object) -> bool:
    return False


@pytest.fixture
def group() -> Iterator[Path]:
    """A memory cgroup of 40 MB, called as Docker calls that of a container."""
    root = next((root for root in GROUPS if (root / "cgroup.procs").exists()), None)
    if root is None or os.geteuid() or missing_programs():
        pytest.skip(f"needs root and control groups; missing: {missing_programs() or 'none'}")
    made = root / f"docker-{secrets.token_hex(32)}.scope"
    made.mkdir()
    try:
        limit = next((made / name for name in LIMITS if (made / name).exists()), None)
        if limit is None:
            pytest.skip("memory is no controller of this machine's control groups")
        limit.write_text(str(40 << 20))
        yield made
    finally:
        made.rmdir()


async def test_the_kernel_is_named_and_only_for_its_own_container(
    group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JournalHost(tmp_path / "host", 4) as host, ssh_client(tmp_path / "client", monkeypatch) as client:
        client.settings(host.sshd.root)
        done = await asyncio.create_subprocess_exec("sh", "-c", GREEDY.format(group))
        assert await done.wait() == -9
        ending = JobEnd(SystemClock().now(), host.name, names=frozenset({group.name[7:19]}))
        reader = JobReader(tuple, nothing_again)
        for journal in (str(host.directory), host.gatewayd.spec, host.sshd.spec):
            found = await reader.host_messages(host.name, journal, *ending.window)
            while not find_killer(found, ending).words:  # it comes to the journal a moment later
                found = await reader.host_messages(host.name, journal, *ending.window)
            killer = find_killer(found, ending)
            told = f"memory cgroup of {group.name[:19]} reached 40 MB (host {host.name}, "
            assert killer.words.startswith(f"killed by the kernel: {told}")
            assert killer.confidence == SURE
            other = find_killer(found, ending._replace(names=frozenset({"0123456789ab"})))
            assert (other.words, bool(other.near)) == ("", True)
