"""The wheel, the sdist and the single file: what is in them, what they unpack, and what they do without."""

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping
from email.parser import BytesParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from jobtui import __version__
from release import zipapp_start
from release.sbom import project
from release.shares import SHARES
from release.zipapp import pack

ROOT = Path(__file__).parents[2]
MOMENT = "1700000000"
NAME = f"jobtui-{__version__}"


def build(source: Path, target: str, place: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(place)]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": MOMENT}
    subprocess.run(command, cwd=source, env=environ, check=True, capture_output=True)
    (path,) = place.iterdir()
    return path


def test_wheel_and_sdist(tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    assert sdist.name == f"{NAME}.tar.gz"
    _check_sdist(sdist)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    wheels = [build(tmp_path / NAME, "wheel", tmp_path / which) for which in ("one", "another")]
    assert {wheel.name for wheel in wheels} == {f"{NAME}-py3-none-any.whl"}
    _check_wheel(wheels[0])
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def sources() -> set[str]:
    files = (path for path in (ROOT / "jobtui").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(ROOT)) for path in files}


def _check_wheel(path: Path) -> None:
    with ZipFile(path) as wheel:
        names = set(wheel.namelist())
        about = BytesParser().parsebytes(wheel.read(f"{NAME}.dist-info/METADATA"))
        entries = wheel.read(f"{NAME}.dist-info/entry_points.txt").decode()
    inside = {name for name in names if not name.startswith(f"{NAME}.")}
    assert inside == sources()
    assert {name for name in names if ".data/" in name} == {f"{NAME}.data/data/share/{one}" for one in SHARES}
    assert f"{NAME}.dist-info/sboms/sbom.cdx.json" in names
    assert f"{NAME}.dist-info/licenses/LICENSE" in names
    assert "jobtui = jobtui.__main__:main" in entries
    assert about["Requires-Python"] == project()["requires-python"]
    assert set(about.get_all("Provides-Extra") or ()) == set(project()["optional-dependencies"])
    assert about["License-Expression"] == "Apache-2.0"


def _check_sdist(path: Path) -> None:
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert names >= sources() | {f"share/{name}" for name in SHARES}
    assert names >= {"pyproject.toml", "LICENSE", "README.md", "PKG-INFO"}

    assert not {name for name in names if name.startswith(("tests/", ".venv", "dist/", "."))} - {".gitignore"}


HERE = f"cp{sys.version_info.major}{sys.version_info.minor}-{os.uname().machine}"
PROGRAM = "def main():\n    import library, sys\n    print(library.WHO, *sys.argv)\n    return 3\n"


def wheel(place: Path, name: str, files: Mapping[str, str]) -> Path:
    path = place / f"{name}-1-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
    return path


def made(place: Path, who: str = "one", target: str = HERE) -> Path:
    """A single file that prints who its library is."""
    place.mkdir(exist_ok=True)
    program = wheel(place, "jobtui", {"jobtui/__init__.py": "", "jobtui/__main__.py": PROGRAM})
    library = wheel(place, "library", {"library.py": f"WHO = {who!r}", "library-1.dist-info/RECORD": "x"})
    other = wheel(place, "other", {"library.py": "WHO = 'another Python'"})
    out = place / "jobtui.pyz"
    pack(out, {"cp30-vax": [program, other], target: [program, library]})
    return out


def run(file: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home.parent)}
    return subprocess.run(
        [sys.executable, str(file), *words], env=environ, capture_output=True, text=True, check=False
    )


def cache(home: Path) -> Path:
    return home / ".cache" / zipapp_start.ROOT


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


def test_it_is_unpacked_once_for_its_owner_alone(tmp_path: Path, home: Path) -> None:
    file = made(tmp_path / "made")
    ran = run(file, home, "a", "--b")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "one jobtui a --b\n", "")
    (place,) = cache(home).iterdir()
    assert {path.name for path in place.iterdir()} >= {"jobtui", "library.py"}
    assert not list(place.rglob("RECORD"))
    reached = [path for path in cache(home).rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert not reached
    (place / "library.py").write_text("WHO = 'the kept one'")
    shutil.rmtree(place / "__pycache__", ignore_errors=True)
    assert run(file, home).stdout == "the kept one jobtui\n"


def test_another_build_takes_the_place_of_one_that_nobody_runs(tmp_path: Path, home: Path) -> None:
    run(made(tmp_path / "one"), home)
    (first,) = cache(home).iterdir()
    (cache(home) / f"{zipapp_start.MAKING}interrupted").mkdir()
    held = os.open(first, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    assert run(made(tmp_path / "two", "two"), home).stdout == "two jobtui\n"
    assert first in cache(home).iterdir()
    os.close(held)
    assert run(made(tmp_path / "three", "three"), home).stdout == "three jobtui\n"
    assert len(list(cache(home).iterdir())) == 1


def test_a_cache_that_others_could_write_is_made_ones_own(tmp_path: Path, home: Path) -> None:
    cache(home).mkdir(parents=True)
    cache(home).chmod(0o777)
    assert run(made(tmp_path / "made"), home).returncode == 3
    assert stat.S_IMODE(cache(home).stat().st_mode) == 0o700


def test_without_a_place_to_keep_it_nothing_stays(tmp_path: Path, home: Path) -> None:
    cache(home).parent.mkdir()
    cache(home).symlink_to(tmp_path)  # whoever made this could change what is run
    before = sorted(tmp_path.iterdir())
    file = made(tmp_path / "made")
    assert run(file, home).stdout == "one jobtui\n"
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "made"])


def test_what_it_does_not_serve_is_said(tmp_path: Path, home: Path) -> None:
    ran = run(made(tmp_path / "made", target="cp399-x86_64"), home)
    assert ran.returncode == 1
    assert ran.stderr == f"this file serves cp30-vax, cp399-x86_64 on Linux with glibc, and not {HERE}\n"


def test_an_old_python_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert zipapp_start.main() == "jobtui needs Python 3.11 or newer, and this is 3.9"
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert wanted == f">={zipapp_start.dotted(zipapp_start.OLDEST)}"


def test_the_same_wheels_give_the_same_bytes(tmp_path: Path) -> None:
    file = made(tmp_path / "made")
    again = tmp_path / "again.pyz"
    program, library = (file.parent / f"{name}-1-py3-none-any.whl" for name in ("jobtui", "library"))
    pack(again, {"cp30-vax": [program, file.parent / "other-1-py3-none-any.whl"], HERE: [library, program]})
    assert again.read_bytes() == file.read_bytes()
