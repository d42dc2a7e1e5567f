"""The wheel and the sdist: what is in them, what they say of themselves, and that they last."""

import os
import subprocess
import sys
import tarfile
from email.parser import BytesParser
from pathlib import Path
from zipfile import ZipFile

from jobtui import __version__
from release.sbom import project
from release.shares import SHARES

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
