"""What starting costs, and the memory that is given back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobtui import allocator

ROOT = Path(__file__).parents[1]
FIXTURES = Path(__file__).parent / "fixtures" / "sirepo"

RUN_AND_TELL = """
import json, sys
from jobtui.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
print(json.dumps({"code": code, "modules": sorted(sys.modules)}), file=sys.stderr)
"""

HEAVY = {
    "--version": ("textual", "rich", "msgspec", "asyncio"),
    "--help": ("textual", "rich", "msgspec", "asyncio"),
    "jobs --json": ("textual", "rich", "httpx", "mcp", "pydantic"),
    "report states --json": ("textual",),
    "doctor --json": ("textual", "rich", "httpx"),
}
"""What a command must not have loaded when it ends."""


def run_python(source: str, words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Python with this source and these words; a database of records if the words are a command's."""
    arguments = words.split()
    if arguments and not words.startswith("--"):
        (cwd / "db").mkdir()
        (cwd / "db" / "supervisor-job").symlink_to(FIXTURES / "local" / "supervisor-job")
        arguments += ["--srdb", str(cwd / "db")]
    return subprocess.run(
        [sys.executable, "-c", source, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("command", HEAVY)
def test_a_one_shot_command_leaves_the_heavy_libraries_alone(command: str, tmp_path: Path) -> None:
    ran = run_python(RUN_AND_TELL, command, tmp_path)
    told = json.loads(ran.stderr.splitlines()[-1])
    assert told["code"] in (0, None), ran.stderr
    assert ran.stdout
    loaded = {name.partition(".")[0] for name in told["modules"]}
    assert not loaded & set(HEAVY[command])


INTERRUPT = """
import signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from jobtui.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["jobtui.cli", "jobtui.commands.jobs"])
def test_ctrl_c_while_it_is_imported_ends_it_quietly(module: str, tmp_path: Path) -> None:
    ran = run_python(f"MODULE = {module!r}\n{INTERRUPT}", "jobs", tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


WITHOUT_THREADS = """
import sys, threading

def start(thread):
    raise RuntimeError("can't start new thread")

threading.Thread.start = start
from jobtui.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("command", ["explain x", "doctor"])
def test_threads_that_cannot_start_are_no_fault_of_jobtui(command: str, tmp_path: Path) -> None:
    ran = run_python(WITHOUT_THREADS, command, tmp_path)
    assert ran.returncode in (1, 3, 4, 5)
    assert "ulimit -u" in ran.stdout + ran.stderr
    assert "fault of jobtui" not in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


WATCH_IMPORTS = """
import importlib, pkgutil, sys

def watch(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        written.append(f"opens {arguments[0]} for writing")
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.symlink", "os.truncate", "shutil.rmtree"):
        written.append(f"{event} {arguments}")
    elif event in ("socket.connect", "socket.bind", "subprocess.Popen", "os.fork", "os.system"):
        written.append(f"{event} {arguments}")

written = []
names = ["jobtui"]
import jobtui
names += [found.name for found in pkgutil.walk_packages(jobtui.__path__, "jobtui.")]
names.remove("jobtui.__main__")
# What libraries do when they are first loaded is theirs; only what remains is the project's.
for name in names:
    importlib.import_module(name)
for name in names:
    del sys.modules[name]
sys.addaudithook(watch)
for name in names:
    importlib.import_module(name)
print("\\n".join(written))
"""


def test_importing_writes_nothing_and_starts_nothing(tmp_path: Path) -> None:
    ran = run_python(WATCH_IMPORTS, "", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == ""
    assert ran.stderr == ""
    assert not list(tmp_path.iterdir())


LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is of Linux")
PROGRAM = """
import sys, threading
from jobtui.allocator import give_back, share_heaps

def private_kb():
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))

if "{mode}" == "shared" and not share_heaps():
    sys.exit("no glibc")
turns = [threading.Event() for _ in range(9)]
before = private_kb()
kept = []

def read(nth):
    turns[nth].wait()
    texts = [b"x" * 30_000 for _ in range(200)]
    kept.extend(texts[::50])  # a little stays in between
    del texts
    turns[nth + 1].set()
    turns[8].wait()

threads = [threading.Thread(target=read, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
turns[0].set()
turns[8].wait()
if "{mode}" == "shared":
    give_back()
print(private_kb() - before)
for thread in threads: thread.join()
"""


def left_kb(mode: str) -> int:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{mode}", mode)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if "no glibc" in run.stderr:
        pytest.skip("another C library")
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


@LINUX
def test_what_one_thread_let_go_of_is_of_use_to_the_next() -> None:
    assert left_kb("shared") * 4 < left_kb("as it is")


def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    allocator._glibc.cache_clear()
    try:
        assert not allocator.share_heaps()
        assert not allocator.give_back()
    finally:
        allocator._glibc.cache_clear()
