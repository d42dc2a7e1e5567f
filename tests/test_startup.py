"""What starting costs, and the memory that is given back."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobtui import allocator
from jobtui.model.patterns import regex
from tests.rows import CAPTURES

ROOT = Path(__file__).parents[1]


def program(name: str) -> str:
    return (CAPTURES.parent / "programs" / name).read_text()


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
        (cwd / "db" / "supervisor-job").symlink_to(CAPTURES / "local" / "supervisor-job")
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
    ran = run_python(program("modules"), command, tmp_path)
    told = json.loads(ran.stderr.splitlines()[-1])
    assert told["code"] in (0, None), ran.stderr
    assert ran.stdout
    loaded = {name.partition(".")[0] for name in told["modules"]}
    assert not loaded & set(HEAVY[command])


@pytest.mark.parametrize("module", ["jobtui.cli", "jobtui.commands.jobs"])
def test_ctrl_c_while_it_is_imported_ends_it_quietly(module: str, tmp_path: Path) -> None:
    ran = run_python(f"MODULE = {module!r}\n{program('interrupted')}", "jobs", tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


@pytest.mark.parametrize("command", ["explain x", "doctor"])
def test_threads_that_cannot_start_are_not_a_fault_of_jobtui(command: str, tmp_path: Path) -> None:
    ran = run_python(program("without_threads"), command, tmp_path)
    assert ran.returncode in (1, 3, 4, 5)
    assert "ulimit -u" in ran.stdout + ran.stderr
    assert "fault of jobtui" not in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def test_importing_writes_nothing_and_starts_nothing_and_every_pattern_compiles(tmp_path: Path) -> None:
    ran = run_python(program("imports"), "", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == ""
    assert ran.stderr == ""
    assert not list(tmp_path.iterdir())


def test_a_pattern_that_is_compiled_when_it_is_first_used_is_as_any_other() -> None:
    lazy, eager = regex(r"(?P<n>\d+)a", re.IGNORECASE), re.compile(r"(?P<n>\d+)a", re.IGNORECASE)
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (eager.pattern, eager.flags, eager.groupindex)
    assert [found["n"] for found in lazy.finditer("1a 22A")] == ["1", "22"]


def left_kb(mode: str, cwd: Path) -> int:
    run = run_python(program("heaps").replace("{mode}", mode), "", cwd)
    if "no glibc" in run.stderr:
        pytest.skip("another C library")
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def test_memory_freed_by_one_thread_is_used_by_the_next(tmp_path: Path) -> None:
    assert left_kb("shared", tmp_path) * 4 < left_kb("as it is", tmp_path)


def test_on_other_systems_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    allocator._glibc.cache_clear()
    try:
        assert not allocator.share_heaps()
        assert not allocator.give_back()
    finally:
        allocator._glibc.cache_clear()
