"""Wheel, sdist and single file, each where nothing else is: by pip, pipx, uv, or without a network.

scripts/package runs it. They land in dist/ of the checkout, as they would be published.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

from jobtui import __version__
from release import zipapp_start
from release.locks import BASE, REQUIREMENTS, read_lock
from release.sbom import SBOM, extras
from release.shares import SHARES
from release.zipapp import MACHINES, PYTHONS, build
from tests.terminals import PtyProgram

KEPT = ("PATH", "LANG", "LC_ALL", "PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR", "UV_DEFAULT_INDEX")
"""What of the environment an installed program is given; nothing of this checkout."""
NOWHERE = "http://127.0.0.1:1"
OFFLINE = {name: NOWHERE for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
"""Proxies that are not there."""


def clean(home: Path, **more: str) -> Mapping[str, str]:
    """The environment of somebody with this home directory."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    return {**kept, "HOME": str(home), "TMPDIR": str(home), **more}


def ran(words: Sequence[str | Path], environ: Mapping[str, str], cwd: Path | None = None) -> str:
    """What a program prints, which must end well."""
    done = subprocess.run(
        [*map(str, words)],
        env=environ,
        cwd=cwd or environ["HOME"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def try_program(words: Sequence[str | Path], environ: Mapping[str, str]) -> None:
    """Start it in all the ways that a newcomer does."""
    assert ran([*words, "--version"], environ) == f"jobtui {__version__}\n"
    assert "STATE" in ran([*words, "demo", "--seed", "3"], environ)
    assert "WHAT HAPPENS" in ran([*words, "demo", "--incident", "list"], environ)
    command = ["env", "-i", "TERM=xterm-256color", *(f"{name}={value}" for name, value in environ.items())]
    start = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
    with PtyProgram(["-c", start, *command, *map(str, words), "demo", "--seed", "3"]) as program:
        program.wait_seen(b"jobtui demo")
        program.wait_seen(b"quit")
        program.press(b"q")
        program.wait_seen(b"\x1b[?1049l")
        assert program.wait_end(20) == 0


pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
PIPX = os.environ.get("REAL_PIPX", "")
UV = os.environ.get("REAL_UV", "")
EPOCH = "1700000000"
LEFT_OUT = shutil.ignore_patterns(".*_cache", ".venv", ".git", "tests", "dist")
MODULES = {"kafka": "confluent_kafka", "mcp": "mcp", "serve": "textual_serve.server"}
"""What each extra is for, by the module that is there with it."""
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with wheel and sdist; both came out the same from two directories at two times."""
    places = [tmp_path_factory.mktemp("dist") for _ in range(2)]
    built = []
    for place in places:
        # Each from a copy, so that neither place nor time of its files can matter
        copy = place / "copy"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        environ = clean(place / "home", SOURCE_DATE_EPOCH=EPOCH)
        ran([sys.executable, "-m", "hatchling", "build", "--directory", place / "out"], environ, cwd=copy)
        built.append({path.name: path.read_bytes() for path in (place / "out").iterdir()})
    assert built[0] == built[1]
    DIST.mkdir(exist_ok=True)
    for name, data in built[0].items():
        (DIST / name).write_bytes(data)
    return places[0] / "out"


@pytest.fixture
def wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def fresh(place: Path, environ: Mapping[str, str]) -> Path:
    """A new virtual environment; its directory of programs."""
    ran([sys.executable, "-m", "venv", place], environ)
    return place / "bin"


@pytest.mark.parametrize("suffix", ["whl", "tar.gz"])
def test_pip(suffix: str, dist: Path, home: Path) -> None:
    environ = clean(home)
    programs = fresh(home / "venv", environ)
    (file,) = dist.glob(f"*.{suffix}")
    ran([programs / "pip", "install", "--quiet", file], environ)
    ran([programs / "pip", "check"], environ)
    try_program([programs / "jobtui"], environ)
    assert not [name for name in SHARES if not (home / "venv" / "share" / name).is_file()]


def test_pipx(wheel: Path, home: Path) -> None:
    environ = clean(home, PIPX_HOME=str(home / "pipx"), PIPX_BIN_DIR=str(home / "bin"))
    environ = {**environ, "PIPX_MAN_DIR": str(home / "man")}
    ran([PIPX, "install", "--python", sys.executable, wheel], environ)
    try_program([home / "bin" / "jobtui"], environ)
    assert (home / "man" / "man1" / "jobtui.1").is_file()


def test_uv(wheel: Path, home: Path) -> None:
    environ = clean(home, UV_TOOL_DIR=str(home / "uv"), UV_TOOL_BIN_DIR=str(home / "bin"))
    ran([UV, "tool", "install", "--quiet", "--python", sys.executable, wheel], environ)
    try_program([home / "bin" / "jobtui"], environ)


@pytest.mark.parametrize("extra", extras())
def test_an_extra_brings_what_it_is_for(extra: str, wheel: Path, home: Path) -> None:
    environ = clean(home)
    programs = fresh(home / "venv", environ)
    ran([UV, "pip", "install", "--quiet", "--python", programs / "python", f"{wheel}[{extra}]"], environ)
    ran([programs / "python", "-c", f"import {MODULES[extra]}"], environ)


@pytest.mark.parametrize("name", [BASE, "serve"])
def test_the_locks_are_enough(name: str, wheel: Path, home: Path) -> None:
    environ = clean(home)
    programs = fresh(home / "venv", environ)
    lock = REQUIREMENTS / f"{name}.txt"
    ran(
        [programs / "pip", "install", "--quiet", "--require-hashes", "--only-binary=:all:", "-r", lock],
        environ,
    )
    ran([programs / "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], environ)
    ran([programs / "pip", "check"], environ)
    frozen = set(ran([programs / "pip", "freeze", "--exclude", "jobtui"], environ).lower().split())
    pinned = {f"{one.name}=={one.version}" for one in read_lock(name) if not one.marker}
    assert pinned <= {line.replace("_", "-") for line in frozen}
    try_program([programs / "jobtui"], environ)


def test_a_distribution_finds_everything_in_its_place(wheel: Path, home: Path) -> None:
    environ = clean(home)
    root = home / "root"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    ran([*pip, "--ignore-installed", "--root", root, "--prefix", "/usr", wheel], environ)
    assert os.access(root / "usr" / "bin" / "jobtui", os.X_OK)
    for name in SHARES:
        mode = stat.S_IMODE((root / "usr" / "share" / name).stat().st_mode)
        assert mode == 0o644, name
    (libraries,) = (root / "usr" / "lib").glob("python3*/site-packages")
    assert {path.name.partition("-")[0] for path in libraries.iterdir()} == {"jobtui"}
    assert {path.name for path in (root / "usr").iterdir()} == {"bin", "lib", "share"}
    page = root / "usr" / "share" / "man" / "man1" / "jobtui.1"
    assert "EXIT STATUS" in ran(["man", "--warnings", "-P", "cat", "-l", page], {**environ, "MANWIDTH": "80"})


def test_the_bill_of_materials_is_valid(home: Path) -> None:
    environ = clean(home)
    programs = fresh(home / "venv", environ)
    library = "cyclonedx-python-lib[json-validation]>=9,<12"
    ran([UV, "pip", "install", "--quiet", "--python", programs / "python", library], environ)
    assert ran([programs / "python", "-c", VALIDATE, SBOM], environ) == "None\n"


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
