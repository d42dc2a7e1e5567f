"""`completion`: scripts that shells take, and what is offered for the words typed so far."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jobtui.grammar import COMMANDS, SETTINGS, flags_of
from tests.commands.running import Runner, sources_of

TRY = r"""
offers() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _jobtui "$1"
  printf '%s\n' "${COMPREPLY[@]}"
}
offers "$@"
"""
FAILED = "hZk95g40-tAdRyEYP-heightWeightReport"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_understood_by_its_shell(shell: str, run: Runner, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    path = tmp_path / "script"
    path.write_text(run("completion", shell).out)
    checked = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_command_and_flag_is_offered(run: Runner) -> None:
    assert {*run("completion", "bash", "--", "").out.split()} >= {command.name for command in COMMANDS}
    for command in COMMANDS:
        offered = run("completion", "bash", "--", command.name, "--").out.split()
        assert {*offered} == {one.flag for one in SETTINGS} | {one.flag for one in flags_of(command)}


def test_jobs_are_offered_those_that_failed_first(run: Runner) -> None:
    offered = run("completion", "fish", "--", *sources_of("local"), "explain", "").out.splitlines()
    statuses = [line.split("\t")[1].split()[0] for line in offered]
    assert statuses == sorted(statuses, key=lambda status: status != "failed")
    assert len({*statuses}) > 1
    begun = run("completion", "bash", "--", *sources_of("local"), "explain", FAILED[:6]).out
    assert FAILED in begun.splitlines()
    assert all(line.startswith(FAILED[:6]) for line in begun.splitlines())


def test_a_colon_in_a_word_parts_no_description_from_it_in_zsh(run: Runner) -> None:
    assert run("completion", "zsh", "--", "jobs", "status:pu").out == "status\\:purged\n"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["jobtui", "ti"], {"timeline"}),
        (["jobtui", "--sr"], {"--srdb"}),
        (["jobtui", "logs", "X", "--gr"], {"--grep"}),
        (["jobtui", "--json", "jobs", "--gr"], {""}),
        (["jobtui", "jobs", "status", ":", "pu"], {"purged"}),
        (["jobtui", "completion", "z"], {"zsh"}),
        (["jobtui", "--log", "su"], {"supervisor="}),
        (["jobtui", "--log", "server", "=", "a"], {"a b.log"}),
        (["jobtui", "--srdb", "d"], {"db dir"}),
        (["jobtui", "--since", ""], {""}),
    ],
)
def test_bash_offers_what_fits(words: list[str], offered: set[str], run: Runner, tmp_path: Path) -> None:
    (tmp_path / "db dir").mkdir()
    (tmp_path / "a b.log").touch()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", run("completion", "bash").out + TRY, "bash", *words],
        cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {*done.stdout.splitlines()} == offered
