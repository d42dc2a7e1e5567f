"""jobtui on a real HTCondor pool: verdicts beside what was planted; and beside HTCondor's own library.

Master, collector, negotiator, schedd and startd of Debian sid. It needs root: it is installed into a
directory of its own (400 MB), runs there (chroot) and in namespaces of its own: nothing is left of it.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobtui.backends.condor.source import CondorFile
from jobtui.formats.job_output import read_date
from jobtui.model.condor import EVENTS
from jobtui.model.health import SourceState
from jobtui.model.ids import condor_id
from jobtui.store.store import Store
from tests.commands.running import Runner
from tests.condor import CONDOR, executing, facts_in, facts_of, submitted
from tests.real.live import Due, System, Told, Watched, compare
from tests.real.sirepo_system import argv_of, free_port, process_ids
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


class CondorPool(System):
    """Starts it, runs HTCondor's commands in it as a user, stops it. `more` is added to its configuration."""

    def __init__(self, more: str = "") -> None:
        install()
        self.root = Path(tempfile.mkdtemp(prefix="pool-", dir=TREE / "srv"))
        self.place = Path("/", self.root.relative_to(TREE))
        """The same as the pool names it."""
        self.work = self.root / "work"
        self._more = more
        self._master: subprocess.Popen[bytes] | None = None

    def start_all(self) -> None:
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
        wait_for(self._is_up, timeout_s=START_S, step_s=0.5)

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
        slot = self.ads()[job]["RemoteHost"].partition("@")[0]
        for pid in process_ids():
            with contextlib.suppress(OSError):
                words, environ = argv_of(pid), Path(f"/proc/{pid}/environ").read_bytes()
                if (
                    "condor_starter" in "".join(words[:1])
                    and slot in words
                    and str(self.place).encode() in environ
                ):
                    os.kill(pid, signal.SIGKILL)


REMOVED, COMPLETED = 3, 4
STATES = {"idle": 1, "running": 2, "removed": REMOVED, "completed": COMPLETED, "held": 5, "suspended": 7}


class Planted(NamedTuple):
    """A kind of job, of `condor_pool.toml`. `state` is the JobStatus in which it stays, `verdict` is right.

    `then` is done to it, in turn, when it is in the state that each names. `status` is its status in tables,
    `says` are words of its sentence, `runs` the statuses of its runs. `by_log` is by event logs alone.
    """

    submit: str
    state: int
    verdict: str
    status: str
    says: str = ""
    then: Sequence[tuple[str, str]] = ()
    runs: list[str] | None = None
    by_log: str | None = None


def shell(script: str, more: str = "") -> str:
    quoted = script.replace("'", "''")
    return f"executable = /bin/sh\narguments = \"-c '{quoted}'\"\n{more}\n"


SLEEP = shell("sleep 600")
COUNT = "n=$(cat $(Cluster).n 2>/dev/null || echo 0); n=$((n+1)); echo $n > $(Cluster).n;"


def _planted(told: dict[str, Any]) -> Planted:
    script, more = told.pop("sh", "sleep 600").replace("COUNT", COUNT), told.pop("submit", "")
    submit = shell(script, more) if script else f"{more}\n"
    return Planted(submit, STATES[told.pop("state")], **told)


JOBS: Mapping[str, Planted] = {
    name: _planted(told)
    for name, told in tomllib.loads(Path(__file__).with_name("condor_pool.toml").read_text()).items()
}

FORMS: Mapping[str, str] = {"classic": "", "XML": "log_xml = true", "JSON": "+UserLogUseXML = 2"}
"""The forms of event logs, each with what a submit file says to get it."""
OF_DAG: Mapping[str, tuple[str, str, str]] = {
    "dag": ("some.dag.dagman.log", "program_failed", "exit status 1"),
    "node good": ("dag.log", "completed", ""),
    "node bad": ("dag.log", "program_failed", "exit status 3"),
    "late 0": ("factory.log", "completed", ""),
    **{f"late {n}": ("factory.log", "program_failed", f"exit status {n}") for n in (1, 2)},
}
"""Of each of those jobs its event log, its verdict, and words of it."""
DAG = Path(__file__).with_name("some.dag").read_text()
FACTORY = shell("exit $(Process)", "max_idle = 2") + "log = factory.log\n{form}\nqueue 3\n"
"""Late materialization: the schedd makes these jobs one after the other."""


def plant(pool: CondorPool, form: str, patience_s: float = 600.0) -> dict[str, str]:
    """Submit all of them and see them into their states; the number of each by its name."""
    (pool.work / "not-a-program").write_text("#!/nowhere/interpreter\n")
    (pool.work / "not-a-program").chmod(0o755)
    numbers = {}
    for number, (name, planted) in enumerate(JOBS.items()):
        cluster = pool.submit(f"{planted.submit}\nlog = {number}.log\n{FORMS[form]}\nqueue\n")
        numbers[name] = f"{cluster}.0"
    _see_through(pool, numbers, patience_s)
    return numbers


def plant_dag(pool: CondorPool, form: str) -> dict[str, str]:
    """Run a DAG of which one node fails, and jobs that are made late; the number of each by its name."""
    for name, status in (("good", 0), ("bad", 3)):
        (pool.work / f"{name}.sub").write_text(shell(f"exit {status}") + "log = dag.log\nqueue\n")
    (pool.work / "some.dag").write_text(DAG)
    pool.run("condor_submit_dag", "some.dag")
    factory = pool.submit(FACTORY.format(form=FORMS[form]))
    wait_for(lambda: len(_over(pool)) == DAG_JOBS + 3 and not pool.queued(), timeout_s=600, step_s=1)
    of_dag = {number: ad for number, ad in _over(pool).items() if ad["ClusterId"] != factory}
    nodes = {f"node {ad['DAGNodeName']}" if "DAGNodeName" in ad else "dag": job for job, ad in of_dag.items()}
    return {**nodes, **{f"late {proc}": f"{factory}.{proc}" for proc in range(3)}}


DAG_JOBS = 3


def _over(pool: CondorPool) -> dict[str, dict[str, Any]]:
    return {number: ad for number, ad in pool.ads().items() if ad["JobStatus"] in (REMOVED, COMPLETED)}


def _see_through(pool: CondorPool, numbers: Mapping[str, str], patience_s: float) -> None:
    left = {name: list(JOBS[name].then) for name in numbers}
    until = time.monotonic() + patience_s
    while True:
        ads = pool.ads()
        waited_for = {}
        for name, number in numbers.items():
            state = ads.get(number, {}).get("JobStatus")
            if left[name]:
                wanted, command = left[name][0]
                is_begun = "JobCurrentStartExecutingDate" in ads.get(number, ())
                if state == STATES[wanted] and (wanted != "running" or is_begun):
                    by_name = {"kill_starter": pool.kill_starter}
                    by_name.get(command, partial(pool.run, *command.split()))(number)
                    del left[name][0]
                waited_for[name] = state
            elif state != JOBS[name].state:
                waited_for[name] = state
        if not waited_for:
            return
        if time.monotonic() > until:
            raise AssertionError(f"not in their states: {waited_for}")
        time.sleep(0.5)


pytestmark = pytest.mark.real

PYTHON = os.environ.get("REAL_HTCONDOR_PYTHON", "")
READER = Path(__file__).with_name("condor_reading.py")
COMPARED = (
    "SubmitHost", "ExecuteHost", "SlotName", "HoldReason", "HoldReasonCode", "HoldReasonSubCode", "Reason",
    "ReturnValue", "TerminatedBySignal", "JobsubJobId", "StartdName", "DisconnectReason",
)  # fmt: skip
"""Attributes that mean the same in both, where both have them."""

needs_library = pytest.mark.skipif(not PYTHON, reason="HTCondor's library is not there")


def read_by_library(*paths: Path) -> list[dict[str, object]]:
    """The events of files, with the attributes of each."""
    command = [PYTHON, str(READER), *map(str, paths)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"TZ": "UTC"})
    return [json.loads(line) for line in ran.stdout.splitlines()]


@needs_library
def test_every_event_is_read_as_htcondor_reads_it() -> None:
    for path in sorted(CONDOR.glob("*.log")):
        told, facts = read_by_library(path), facts_in(path)
        assert len(told) == len(facts) > 0
        for theirs, ours in zip(told, facts, strict=True):
            number = condor_id(ours.job)
            assert number is not None
            assert (theirs["Cluster"], theirs["Proc"]) == (number.cluster, number.proc)
            assert EVENTS[int(str(theirs["EventTypeNumber"]))].name == ours.what
            moment = read_date(str(theirs["EventTime"]))
            assert moment is not None
            assert moment[0] == ours.at
            both = [name for name in COMPARED if name in theirs and name in ours.values]
            assert {name: str(theirs[name]) for name in both} == {name: ours.values[name] for name in both}


@needs_library
def test_a_damaged_event_costs_that_event_and_not_all_that_follow(tmp_path: Path) -> None:
    path = tmp_path / "damaged.log"
    path.write_text(submitted() + "000 (8.0.0) 2026-11-20 10:0\0\n...\n" + executing())
    with pytest.raises(subprocess.CalledProcessError):
        read_by_library(path)  # why it is not what reads logs here
    assert [fact.what for fact in facts_in(path)] == ["submit", "log_gap", "execute"]


class Scene(NamedTuple):
    """A pool with its jobs in their states. `followed` is what a dashboard knows that read all the while."""

    pool: CondorPool
    form: str
    numbers: Mapping[str, str]
    ads: tuple[Path, Path]
    followed: Store


OPTIONS = {"classic": "-long", "XML": "-xml", "JSON": "-json"}
"""By the form of the event logs that of the ads."""


@contextmanager
def followed(path: Path) -> Iterator[Store]:
    """What is known to who follows an event log as a dashboard does, in a thread of its own."""
    watched = Watched(CondorFile(path))
    ends = threading.Event()

    async def follow() -> None:
        while not ends.is_set():
            await asyncio.sleep(0.5)
            await watched.poll()
        await watched.poll()
        await watched.source.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(follow()), daemon=True)
    thread.start()
    try:
        yield watched.store
    finally:
        ends.set()
        thread.join(60)


@pytest.fixture(scope="module", params=FORMS)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    form = str(request.param)
    more = "EVENT_LOG = $(LOG)/EventLog\nEVENT_LOG_MAX_SIZE = 20000\nEVENT_LOG_MAX_ROTATIONS = 30\n"
    if form != "classic":
        more += f"EVENT_LOG_FORMAT_OPTIONS = {form}\n"
    with CondorPool(more) as pool:
        with followed(pool.root / "log" / "EventLog") as known:
            numbers = {**plant_dag(pool, form), **plant(pool, form)}
            option = OPTIONS[form]
            ads = (pool.root / "queue.ads", pool.root / "history.ads")
            ads[0].write_text(pool.run("condor_q", "-allusers", option))
            ads[1].write_text(pool.run("condor_history", option))
        yield Scene(pool, form, numbers, ads, known)


def test_every_verdict_matches_the_planted_fault(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    run, told = Runner(capsys), list[Told]()
    schedd_log = scene.pool.root / "log" / "EventLog"
    assert len(list(schedd_log.parent.glob("EventLog*"))) > 2
    for name, number in scene.numbers.items():
        own = scene.pool.work / (OF_DAG[name][0] if name in OF_DAG else f"{list(JOBS).index(name)}.log")
        ways = {"log": (own,), "schedd's log": (schedd_log,), "ads": scene.ads, "all": (own, *scene.ads)}
        for way, paths in ways.items():
            flags = [word for path in paths for word in ("--condor-log", path)]
            said = run(*flags, "explain", number, "--json")
            document = said.json if said.out else {"verdict": said.err, "sentence": ""}
            told.append((f"{name}, {way}", right_of(name, way), document))
    compare(scene.form, told, capsys)
    assert len(told) == 4 * (len(JOBS) + len(OF_DAG))


def right_of(name: str, way: str) -> Due:
    """What must be said of a job by what is read."""
    if name in OF_DAG:
        _, verdict, says = OF_DAG[name]
        return Due(verdict, (says,))
    planted = JOBS[name]
    if planted.by_log is not None and way in ("log", "schedd's log"):
        return Due(planted.by_log)
    return Due(planted.verdict, (planted.says,))


def test_following_over_rotations_tells_how_the_jobs_ended(scene: Scene) -> None:
    by_number = {job_id.partition("@")[0]: job for job_id, job in scene.followed.jobs.items()}
    for name, planted in JOBS.items():
        job = by_number[scene.numbers[name]]
        expected = {"held at submit": "pending", "good with 3": "failed"}.get(name, planted.status)
        assert (name, job.status.value) == (name, expected)
        assert job.alert != "a part of its log is missing"
        if planted.runs is not None:
            detail = scene.followed.detail(job.id)
            assert detail is not None
            assert (name, [run.status.value for run in detail.runs]) == (name, planted.runs)
    (health,) = scene.followed.sources()
    assert (health.skipped, health.state) == (0, SourceState.OK)


UNMET = (
    "request_memory = 64000", 'requirements = HasFileTransfer && OpSys == "WINDOWS"', "request_gpus = 1",
    'request_memory = 15900\nrequirements = (TARGET.Cpus > 2 && SlotType =!= "x") && TARGET.Nothing > 3',
    'requirements = OpSys == "WINDOWS" || (Arch == "sparc" || 100 < Cpus)',
    "requirements = (Memory > 100000 || TARGET.HasNothing) && Cpus >= 1",
    '+Wanted = "Plan9"\nrequirements = TARGET.OpSysName == MY.Wanted || TARGET.OpSys == MY.Wanted',
)  # fmt: skip
_PART = re.compile(r"^ +\[(\d+)\] +: (.*)$", re.MULTILINE)
_STEP = re.compile(r"^\[\d+\] +(\d+)(?: +\d+)?  (\S.*)$", re.MULTILINE)


def counts_of(analysis: str) -> dict[str, str]:
    """How many slots meet each condition by `condor_q -better-analyze`, one of several written out."""
    parts = dict(_PART.findall(analysis))

    def whole(text: str) -> str:
        return re.sub(r"\[(\d+)\]", lambda found: whole(parts[found[1]]), text)

    return {bare(whole(text)): count for count, text in _STEP.findall(analysis)}


def bare(text: str) -> str:
    return re.sub(r"[()\s]", "", text)


def test_as_many_slots_meet_a_condition_as_htcondor_says(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, run, compared = scene.pool, Runner(capsys), 0
    numbers = [f"{pool.submit(f'{SLEEP}{asks}{chr(10)}queue{chr(10)}')}.0" for asks in UNMET]
    files = (pool.root / "machines.ads", pool.root / "waiting.ads")
    for path, command in zip(files, (("condor_status",), ("condor_q", "-allusers")), strict=True):
        path.write_text(pool.run(*command, OPTIONS[scene.form]))
    for number in numbers:
        theirs = counts_of(pool.run("condor_q", "-better-analyze", number))
        said = run("--condor-log", files[0], "--condor-log", files[1], "explain", number, "--json").json
        needs = {bare(one["what"].partition(" (= ")[0]): one["how"] for one in said["pending"]["needs"]}
        both = {text for text in theirs.keys() & needs.keys() if needs[text][0].isdigit()}
        assert {text: needs[text].split()[0] for text in both} == {text: theirs[text] for text in both}
        assert [text for text in both if theirs[text] == "0"]
        assert "which none of the 1 slot in" in said["sentence"]
        compared += len(both)
    assert compared >= len(UNMET)


def test_every_event_of_the_pool_is_read_and_understood(scene: Scene) -> None:
    for path in (*scene.pool.work.glob("*.log"), *scene.pool.root.glob("log/EventLog*")):
        text = path.read_text()
        mark = "EventTypeNumber" if text[:1] in ("<", "{") else "\n...\n"
        facts = facts_of(text.encode(), str(path))
        assert (path.name, len(facts)) == (path.name, text.count(mark))
