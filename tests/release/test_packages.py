"""What is shipped: wheel, sdist, single file, what agrees with them; how `scripts/system-packages` waits."""

import fcntl
import json
import os
import re
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
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jobtui import __version__
from jobtui.commands.streams import Exit
from jobtui.grammar import COMMANDS, GENERAL_FLAGS, OUTPUT_FLAGS, SETTINGS, flags_of
from release import zipapp_start
from release.locks import BASE, OURSELVES, REQUIREMENTS, by_name, parse_lock, read_lock
from release.manual import manual
from release.sbom import DEVELOPMENT, SBOM, bill, extras, project
from release.shares import MADE, SHARE, SHARES
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


def test_the_single_file_is_unpacked_once_for_its_owner_alone(tmp_path: Path, home: Path) -> None:
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


def test_another_build_replaces_one_that_nobody_runs(tmp_path: Path, home: Path) -> None:
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


def test_a_cache_that_others_could_write_is_made_private(tmp_path: Path, home: Path) -> None:
    cache(home).mkdir(parents=True)
    cache(home).chmod(0o777)
    assert run(made(tmp_path / "made"), home).returncode == 3
    assert stat.S_IMODE(cache(home).stat().st_mode) == 0o700


def test_the_single_file_leaves_nothing_without_a_place_to_keep_it(tmp_path: Path, home: Path) -> None:
    cache(home).parent.mkdir()
    cache(home).symlink_to(tmp_path)  # whoever made this could change what is run
    before = sorted(tmp_path.iterdir())
    file = made(tmp_path / "made")
    assert run(file, home).stdout == "one jobtui\n"
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "made"])


def test_the_single_file_says_which_machines_it_serves(tmp_path: Path, home: Path) -> None:
    ran = run(made(tmp_path / "made", target="cp399-x86_64"), home)
    assert ran.returncode == 1
    assert ran.stderr == f"this file serves cp30-vax, cp399-x86_64 on Linux with glibc, and not {HERE}\n"


def test_an_old_python_gets_a_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
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


BILLED = (BASE, *extras())
LOCKS = (*BILLED, DEVELOPMENT)


def wanted(name: str) -> dict[str, Requirement]:
    lines = [*project()["dependencies"], *(() if name == BASE else project()["optional-dependencies"][name])]
    return {canonicalize_name(one.name): one for one in map(Requirement, lines)}


def test_each_extra_has_its_lock() -> None:
    assert {path.stem for path in REQUIREMENTS.glob("*.txt")} == set(LOCKS)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_the_requirements_and_nothing_else(name: str) -> None:
    locked = by_name(read_lock(name))
    asked = {one.name for one in locked.values() if OURSELVES in one.wanted_by}
    assert asked == set(wanted(name)), "renew the locks: scripts/lock"
    for requirement in wanted(name).values():
        pin = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version), "renew the locks: scripts/lock"
    for one in locked.values():
        assert one.wanted_by, one.name
        assert {who for who in one.wanted_by if who != OURSELVES} <= set(locked), one.name
        assert one.hashes, one.name


@pytest.mark.parametrize("name", LOCKS)
def test_shared_libraries_have_the_same_version_in_all_extras(name: str) -> None:
    own = by_name(read_lock(name))
    assert {one.name: one.version for one in read_lock(BASE)}.items() <= {
        one.name: one.version for one in own.values()
    }.items()


@pytest.mark.parametrize("text", ["requests\n", "a==1\nhttp://x", "--hash=x", "a==1 \\\n --hash=md5:0"])
def test_text_that_is_not_a_lock_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no line of a lock"):
        list(parse_lock(text))


def test_the_bill_of_materials_is_that_of_the_locks() -> None:
    assert SBOM.read_text() == bill(), "renew it: scripts/lock"
    document = json.loads(SBOM.read_text())
    named = {(one["name"], one["version"]) for one in document["components"]}
    assert named == {(one.name, one.version) for lock in BILLED for one in read_lock(lock)}
    refs = {one["bom-ref"] for one in document["components"]} | {document["metadata"]["component"]["bom-ref"]}
    graph = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    assert set(graph) == refs
    assert {ref for needed in graph.values() for ref in needed} <= refs
    required = {one["name"] for one in document["components"] if one["scope"] == "required"}
    assert required == {one.name for one in read_lock(BASE)}
    assert all(one["licenses"] for one in document["components"])
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", document["serialNumber"])


def test_nothing_is_installed_but_what_is_locked(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    for part in ("scripts", "requirements"):
        shutil.copytree(root / part, tmp_path / part)
    shutil.copy(root / "pyproject.toml", tmp_path)
    (python := tmp_path / ".venv/bin/python").parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\n')
    python.chmod(0o755)
    subprocess.run([tmp_path / "scripts/install"], check=True, capture_output=True)
    installs = [call for call in (tmp_path / "calls").read_text().split("\n") if "pip install" in call]
    locked, ours = installs
    assert {"--require-hashes", "requirements/dev.txt"} <= {*locked.split()}
    assert {"--no-deps", "--no-build-isolation", "--editable"} <= {*ours.split()}


PAGE = SHARE / "man" / "man1" / "jobtui.1"


def test_generated_files_are_up_to_date_and_share_has_no_others() -> None:
    paths = {str(path.relative_to(SHARE)): path for path in SHARE.rglob("*") if path.is_file()}
    there = {name: path.read_text() for name, path in (paths | {n: SHARE.parent / n for n in MADE}).items()}
    assert there == {name: make() for name, make in (SHARES | MADE).items()}, "renew them: scripts/manpage"


def plain() -> str:
    page = manual()
    for escape in (r"\fB", r"\fI", r"\fR", r"\&"):
        page = page.replace(escape, "")
    return page.replace(r"\-", "-").replace(r"\(ti", "~").replace(r"\(aq", "'").replace(r"\(ga", "`")


def test_the_page_has_every_command_flag_and_setting() -> None:
    text = plain()
    words = {command.name for command in COMMANDS}
    words |= {flag.flag for command in COMMANDS for flag in flags_of(command)}
    words |= {flag.flag for flag in (*OUTPUT_FLAGS, *GENERAL_FLAGS)}
    words |= {word for one in SETTINGS for word in (one.flag, one.help)}
    words |= {one.variable for one in SETTINGS if one.in_files}
    assert not {word for word in words if word not in text}


def test_the_page_has_every_exit_code() -> None:
    codes = plain().partition(".SH EXIT STATUS")[2].partition(".SH")[0].splitlines()
    assert {code for code in codes if code.isdigit()} == {str(code.value) for code in Exit}


@pytest.mark.parametrize(
    "command",
    [["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-T", "lint", "-W", "warning"]],
    ids=lambda words: words[0],
)
def test_formatters_find_nothing_to_change(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    ran = subprocess.run([*command, str(PAGE)], capture_output=True, text=True, check=False)
    said = [line for line in (ran.stdout + ran.stderr).splitlines() if "missing date" not in line]
    assert not said


SCRIPT = Path(__file__).parents[2] / "scripts" / "system-packages"
LOCKED = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr)"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Stand-ins: apt-get fails with the text of `said` as often as `times` says; sleep counts and returns."""
    (tmp_path / "apt-get").write_text(
        f"""#!/bin/sh
echo "$*" >> {tmp_path}/calls
left=$(cat {tmp_path}/times)
[ "$left" -gt 0 ] || exit 0
echo $((left - 1)) > {tmp_path}/times
cat {tmp_path}/said >&2
exit 100
"""
    )
    (tmp_path / "sleep").write_text(f"#!/bin/sh\necho $1 >> {tmp_path}/slept\n")
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    for name in ("apt-get", "sleep", "id"):
        (tmp_path / name).chmod(0o755)
    return tmp_path


def installed(programs: Path, said: str, times: int) -> subprocess.CompletedProcess[str]:
    (programs / "said").write_text(said)
    (programs / "times").write_text(str(times))
    environ = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    words = [str(SCRIPT), "no-such-program=no-such-package"]
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("said", "times", "slept_s", "words"),
    [
        (LOCKED, 3, None, "apt is locked by another program"),
        (LOCKED, 10_000, 300, "still locked by another program after 300 s"),
        ("E: Unable to locate package no-such-package", 1, 0, "Unable to locate package"),
    ],
    ids=["a lock is waited for", "no longer than it says", "any other failure ends it at once"],
)
def test_a_lock_is_waited_for(programs: Path, said: str, times: int, slept_s: int | None, words: str) -> None:
    ran = installed(programs, said, times)
    slept = programs / "slept"
    waits = [*map(int, slept.read_text().split())] if slept.exists() else []
    assert ran.stderr.count(words) == 1
    assert ran.returncode == (0 if slept_s is None else 1)
    assert len(waits) == 3 if slept_s is None else sum(waits) == slept_s
    assert ("process 7" in ran.stderr) is (slept_s == 300)
    if slept_s is None:
        assert (programs / "calls").read_text().split("\n")[-2].endswith("no-such-package")
