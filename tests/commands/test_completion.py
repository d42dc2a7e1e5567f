"""`completion`: scripts that shells take, and that offer what there is."""

import shutil
import subprocess
from pathlib import Path

import pytest

from jobtui.grammar import COMMANDS, DASHBOARD, SETTINGS, flags_of
from tests.commands.running import Runner

TRY = r"""
offers() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _jobtui
  printf '%s\n' "${COMPREPLY[@]}"
}
offers "$@"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_names_every_command_and_flag(shell: str, run: Runner) -> None:
    script = run("completion", shell).out
    flags = {flag.flag for command in (DASHBOARD, *COMMANDS) for flag in flags_of(command)}
    names = {setting.flag for setting in SETTINGS} | flags
    written = {f"-l {name[2:]}" for name in names} if shell == "fish" else names
    assert all(name in script for name in written | {command.name for command in COMMANDS})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_understood_by_its_shell(shell: str, run: Runner, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    path = tmp_path / "script"
    path.write_text(run("completion", shell).out)
    checked = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["jobtui", "ti"], {"timeline"}),
        (["jobtui", "--sr"], {"--srdb"}),
        (["jobtui", "logs", "X", "--gr"], {"--grep"}),
        (["jobtui", "--json", "jobs", "--gr"], {""}),
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
    script = run("completion", "bash").out + TRY
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.splitlines()) == offered
