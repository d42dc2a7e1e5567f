"""Words for shells: each of them that is installed gives back what was put in, and runs nothing else."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.model.commands import Command, command_line
from jobtui.model.secrets import mask_text
from tests.modules import nodes
from tests.offenders import each
from tests.rows import table

SHELLS = [shell for shell in ("sh", "dash", "bash", "zsh", "csh", "tcsh", "fish") if shutil.which(shell)]
ECHO = "import sys; sys.stdout.buffer.write('\\0'.join(sys.argv[1:]).encode('utf-8', 'surrogateescape'))"
TEXTS = table("commands")
HOSTILE, ATTACKS = TEXTS["hostile"], TEXTS["attacks"]


def given_back(shell: str, words: list[str]) -> list[str]:
    """What a program is given that a shell runs for this line."""
    line = command_line([sys.executable, "-c", ECHO, *words])
    done = subprocess.run([shell, "-c", line], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")


@each(*SHELLS)
def test_hostile_words_arrive_as_they_are(shell: str) -> None:
    assert given_back(shell, [*HOSTILE]) == [*HOSTILE]


RECORDER = """\
record() { for word in "$@"; do printf 'w%s\\n' "$word"; done; echo end; }
jobtui() { record jobtui "$@"; }; tail() { record tail "$@"; }; less() { record less "$@"; }
cd() { shift $(($# - 1)); record cd "$1"; }
ssh() { shift $(($# - 1)); (eval "$1"); }
"""
"""Stands for the programs that are offered; `ssh` has a second shell."""
OUTSIDE = st.one_of(
    st.sampled_from((*HOSTILE, *ATTACKS)),
    st.text(max_size=30),
    st.text(st.sampled_from("'\"\\$`;&|<>(){}[]*?!#~= \n\tpassword=token:-x/"), max_size=30),
    st.builds(
        lambda key, rest: f"{key}={rest}", st.sampled_from(("password", "token", "PGPASSWORD")), st.text()
    ),
)


def pasted(shell: str, commands: Sequence[Command], where: Path) -> list[list[str]]:
    """What the programs are given when each command is pasted, a line each; bash expands history, too."""
    history = "set -o history -o histexpand\n" if shell == "bash" else ""
    lines = [history, RECORDER, *(f"{one}\n" for one in commands)]
    done = subprocess.run(
        [shell], input="".join(lines), capture_output=True, text=True, cwd=where, timeout=60, check=False
    )
    found = [part.split("\n") for part in done.stdout.split("\nend\n")]
    return [[word[1:] for word in words if word] for words in found if any(words)]


@pytest.mark.parametrize("shell", [one for one in ("sh", "dash", "bash", "zsh") if one in SHELLS])
def test_an_offered_command_says_the_same_to_a_shell_and_runs_nothing(shell: str, tmp_path: Path) -> None:
    tried = 0

    @settings(max_examples=60, deadline=None)
    @given(st.lists(OUTSIDE, min_size=1, max_size=12))
    def paste(outside: list[str]) -> None:
        nonlocal tried
        made = [
            (["tail", "-n", "5", "--", word], Command("tail", "-n", "5", "--", about=[word]))
            for word in outside
        ]
        made += [(["jobtui", "show", word], Command("jobtui", "show", about=[word])) for word in outside]
        made += [(["less", "--", word], Command("less", "--", about=[word], host="v1")) for word in outside]
        offered = [(words, command) for words, command in made if command]
        tried += len(offered)
        assert pasted(shell, [command for _, command in offered], tmp_path) == [words for words, _ in offered]
        assert not [*tmp_path.iterdir()]

    paste()
    assert tried


@given(OUTSIDE)
def test_an_offered_command_is_shown_as_it_is(word: str) -> None:
    command = Command("jobtui", "find", about=[word])

    assert mask_text(command) == command
    assert command.isprintable()
    assert not (word.startswith("-") and command)


@each(*ATTACKS)
def test_a_word_with_a_secret_or_a_sign_that_hides_gets_no_command(word: str) -> None:
    is_harmless = word in {"';touch PWNED;'", "$(touch PWNED)", "`touch PWNED`", "!touch", "=touch"}
    assert bool(Command("jobtui", "find", about=[word])) is is_harmless


def test_nothing_else_quotes_for_a_shell() -> None:
    """`shlex.quote` and `shlex.join` are used for what is run, and for nothing that is offered."""
    found = set()
    for name, node in nodes("shlex"):
        is_import = isinstance(node, ast.ImportFrom) and node.module == "shlex"
        names = {one.name for one in node.names} if is_import else set()  # type: ignore[attr-defined]
        if names & {"quote", "join"} or ast.unparse(node) in ("shlex.quote", "shlex.join"):
            found.add(name)
    assert found <= {"web/server.py"}
