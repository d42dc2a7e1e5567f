"""Memory that threads dropped goes back to the system."""

import subprocess
import sys
from pathlib import Path

import pytest

from jobtui import allocator

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
