"""The single file, made of the real libraries, on a host with a Python and no network; scripts/package."""

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from release import zipapp_start
from release.locks import BASE, read_lock
from release.zipapp import MACHINES, PYTHONS, build
from tests.real.installed import OFFLINE, clean, ran, try_program

pytestmark = pytest.mark.real

APART = ("unshare", "--map-root-user", "--net")
"""Runs a program with no network at all, not even loopback."""
CONNECT = "import socket; socket.create_connection(('127.0.0.1', 22), 1)"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zipapp") / "jobtui.pyz"
    build(path)
    return path


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python without pip and without any library."""
    place = tmp_path_factory.mktemp("bare") / "venv"
    ran([sys.executable, "-m", "venv", "--without-pip", place], clean(place.parent / "home"))
    return place / "bin" / "python"


def test_it_runs_without_a_network(file: Path, bare: Path, tmp_path: Path) -> None:
    environ = clean(tmp_path / "home", **OFFLINE)
    refused = subprocess.run([*APART, bare, "-c", CONNECT], capture_output=True, text=True, check=False)
    assert "Network is unreachable" in refused.stderr, "no program can be run without a network here"
    try_program([*APART, bare, file], environ)
    (place,) = (tmp_path / "home" / ".cache" / zipapp_start.ROOT).iterdir()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    help_text = ran([*APART, bare, file, "--help"], environ)
    assert "Exit codes" in help_text


def test_a_home_that_cannot_be_written_is_enough(file: Path, bare: Path, tmp_path: Path) -> None:
    environ = clean(tmp_path / "home", XDG_CACHE_HOME="/proc/nowhere", **OFFLINE)
    assert ran([bare, file, "--version"], environ).startswith("jobtui ")
    assert [path.name for path in (tmp_path / "home").iterdir()] == []


def works(python: str) -> bool:
    """Whether a Python of this name is there; a name may also stand for a missing one."""
    return (
        bool(shutil.which(python)) and not subprocess.run([python, "-c", ""], capture_output=True).returncode
    )


def test_the_single_file_runs_on_every_target(file: Path) -> None:
    with ZipFile(file) as archive:
        targets = json.loads(archive.read("index.json"))["targets"]
    pythons = [f"cp{python.replace('.', '')}" for python in PYTHONS]
    assert set(targets) == {f"{python}-{machine}" for python in pythons for machine in MACHINES}
    libraries = {one.name for one in read_lock(BASE)} | {"jobtui"}
    for wheels in targets.values():
        assert {wheel.partition("-")[0].lower().replace("_", "-") for wheel in wheels} == libraries
    for name in filter(works, ("python3.12", "python3.13", "python3.14")):
        try_program([name, file], clean(file.parent / name, **OFFLINE))
