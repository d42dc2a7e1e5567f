"""Words for shells: each of them that is installed gives back exactly what was put in."""

import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends.journal.shell import command_line, quoted

SHELLS = [shell for shell in ("sh", "dash", "bash", "zsh", "csh", "tcsh", "fish") if shutil.which(shell)]
ECHO = "import sys; sys.stdout.buffer.write('\\0'.join(sys.argv[1:]).encode('utf-8', 'surrogateescape'))"
HOSTILE = (
    "plain",
    "",
    "a b",
    "'; touch /tmp/owned; '",
    '"$(id)"',
    "`id`",
    "$HOME",
    "~root",
    "a\\x2db",
    "ends with \\",
    "\\'",
    "\\\\'!'",
    "!!",
    "a!b",
    "*",
    "{a,b}",
    "=ls",
    "%1",
    "^a^b",
    "#no",
    "-rf",
    "a|b&c;d<e>f",
    "CONTAINER_NAME=srj-p-ü$'x",
    "tab\tand more",
    "\x1b[31mred",
)


def given_back(shell: str, words: list[str]) -> list[str]:
    """What a program is given that a shell runs for this line."""
    line = command_line([sys.executable, "-c", ECHO, *words])
    done = subprocess.run([shell, "-c", line], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")


@pytest.mark.parametrize("shell", SHELLS)
def test_hostile_words_arrive_as_they_are(shell: str) -> None:
    assert given_back(shell, [*HOSTILE]) == [*HOSTILE]


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), max_size=20), min_size=1))
def test_any_words_arrive_as_they_are(words: list[str]) -> None:
    for shell in SHELLS:
        assert given_back(shell, words) == words


def test_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quoted("a\0b")


def test_plain_words_stay_readable() -> None:
    assert command_line(["journalctl", "_SYSTEMD_UNIT=a.service"]) == "journalctl _SYSTEMD_UNIT=a.service"
