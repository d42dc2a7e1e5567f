"""Wheel and sdist, installed by pip, pipx and uv into environments that have nothing else; scripts/package.

They land in dist/ of the checkout, as they would be published.
"""

import os
import shutil
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from release.locks import BASE, REQUIREMENTS, read_lock
from release.sbom import SBOM, extras
from release.shares import SHARES
from tests.real.installed import clean, ran, try_program

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
