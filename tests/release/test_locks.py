"""What is shipped beside the program agrees with it and with itself: locks, man page, completions."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jobtui.commands.streams import Exit
from jobtui.grammar import COMMANDS, GENERAL_FLAGS, OUTPUT_FLAGS, SETTINGS, Scope, flags_of
from release.locks import BASE, OURSELVES, REQUIREMENTS, by_name, parse_lock, read_lock
from release.manual import manual
from release.sbom import DEVELOPMENT, SBOM, bill, extras, project
from release.shares import SHARE, SHARES

BILLED = (BASE, *extras())
LOCKS = (*BILLED, DEVELOPMENT)


def wanted(name: str) -> dict[str, Requirement]:
    lines = [*project()["dependencies"], *(() if name == BASE else project()["optional-dependencies"][name])]
    return {canonicalize_name(one.name): one for one in map(Requirement, lines)}


def test_each_extra_has_its_lock() -> None:
    assert {path.stem for path in REQUIREMENTS.glob("*.txt")} == set(LOCKS)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_what_is_asked_for_and_nothing_else(name: str) -> None:
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
def test_extras_have_what_is_shared_in_the_same_version(name: str) -> None:
    own = by_name(read_lock(name))
    assert {one.name: one.version for one in read_lock(BASE)}.items() <= {
        one.name: one.version for one in own.values()
    }.items()


@pytest.mark.parametrize("text", ["requests\n", "a==1\nhttp://x", "--hash=x", "a==1 \\\n --hash=md5:0"])
def test_what_is_no_lock_is_an_error(text: str) -> None:
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


@pytest.mark.parametrize("name", SHARES)
def test_what_is_shared_is_what_the_program_has(name: str) -> None:
    assert (SHARE / name).read_text() == SHARES[name](), "renew them: scripts/manpage"


def test_nothing_else_is_shared() -> None:
    assert {str(path.relative_to(SHARE)) for path in SHARE.rglob("*") if path.is_file()} == set(SHARES)


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
    words |= {one.variable for one in SETTINGS if one.scope is not Scope.NOWHERE}
    assert not {word for word in words if word not in text}


def test_the_page_has_every_exit_code() -> None:
    codes = plain().partition(".SH EXIT STATUS")[2].partition(".SH")[0].splitlines()
    assert {code for code in codes if code.isdigit()} == {str(code.value) for code in Exit}


@pytest.mark.parametrize(
    "command",
    [["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-T", "lint", "-W", "warning"]],
    ids=lambda words: words[0],
)
def test_formatters_have_nothing_to_say(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    ran = subprocess.run([*command, str(PAGE)], capture_output=True, text=True, check=False)
    said = [line for line in (ran.stdout + ran.stderr).splitlines() if "missing date" not in line]
    assert not said
