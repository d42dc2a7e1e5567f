"""The single file for hosts without pip: jobtui and its libraries, for several Pythons and machines.

    python -m release.zipapp OUT

The libraries are wheels of the lock, taken by their hashes. Some have C inside (msgspec, PyYAML,
protobuf), which no Python loads out of a zip file: so all is unpacked at the first start, and run from there
(`zipapp_start`). The same lock and the same sources give the same bytes.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from release.locks import BASE, REQUIREMENTS

ROOT = Path(__file__).parents[1]
START = Path(__file__).with_name("zipapp_start.py")
SHEBANG = b"#!/usr/bin/env python3\n"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
GLIBC = ("manylinux_2_17", "manylinux2014", "manylinux_2_5", "manylinux1", "manylinux_2_28", "manylinux_2_27")
"""What wheels may be made for: glibc 2.17, which is that of RHEL 7, or an older one; the last two for
rapidfuzz only, which has no other wheels, and does without its compiled part where that cannot be loaded.
"""
LEFT_OUT = (".dist-info/RECORD", ".pyi", ".data/")
"""Parts of paths that no run needs, the man page among them."""
Target = str
"""A Python and a machine, as `cp311-x86_64`."""


def build(out: Path) -> None:
    """Make the file. Raises CalledProcessError when a library cannot be had."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        own = _own_wheel(place / "own")
        targets = {
            f"cp{python.replace('.', '')}-{machine}": [own, *_download(place, python, machine)]
            for python in PYTHONS
            for machine in MACHINES
        }
        out.parent.mkdir(parents=True, exist_ok=True)
        pack(out, targets)


def _own_wheel(place: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = place.glob("*.whl")
    return wheel


def _download(place: Path, python: str, machine: str) -> list[Path]:
    """The wheels of the lock for a Python on a machine."""
    directory = place / f"{python}-{machine}"
    platforms = [word for glibc in GLIBC for word in ("--platform", f"{glibc}_{machine}")]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    which = ["--implementation", "cp", "--python-version", python, *platforms]
    trusted = ["--no-deps", "--require-hashes", "--only-binary", ":all:"]
    lock = ["--requirement", str(REQUIREMENTS / f"{BASE}.txt")]
    subprocess.run([*pip, *which, *trusted, "--dest", str(directory), *lock], check=True)
    return sorted(directory.iterdir())


def pack(out: Path, targets: Mapping[Target, Sequence[Path]]) -> None:
    """Write the archive: each wheel once, and which of them a target needs."""
    wheels = {wheel.name: wheel for chosen in targets.values() for wheel in chosen}
    names = {target: sorted(wheel.name for wheel in chosen) for target, chosen in targets.items()}
    digest = hashlib.sha256(START.read_bytes())
    for name in sorted(wheels):
        digest.update(hashlib.sha256(wheels[name].read_bytes()).digest())
    index = {"build": digest.hexdigest()[:16], "targets": names}
    with open(out, "wb") as file:
        file.write(SHEBANG)
        with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=9) as archive:
            _add(archive, "__main__.py", START.read_bytes())
            _add(archive, "index.json", json.dumps(index, indent=1).encode())
            for name in sorted(wheels):
                _add_wheel(archive, name, wheels[name])
    os.chmod(out, 0o755)


def _add_wheel(archive: ZipFile, name: str, wheel: Path) -> None:
    with ZipFile(wheel) as unpacked:
        for inside in _needed(unpacked.namelist()):
            _add(archive, f"wheels/{name}/{inside}", unpacked.read(inside))


def _needed(names: Iterable[str]) -> list[str]:
    return sorted(
        name for name in names if not name.endswith("/") and not any(part in name for part in LEFT_OUT)
    )


def _add(archive: ZipFile, name: str, data: bytes) -> None:
    """Add a file without the time, which ZIP counts from 1980 on."""
    info = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
