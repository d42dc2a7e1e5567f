"""The man page and the completions below share/ are those of the program, and formatters take the page."""

import shutil
import subprocess

import pytest

from jobtui.commands.streams import Exit
from jobtui.grammar import COMMANDS, GENERAL_FLAGS, OUTPUT_FLAGS, SETTINGS, Scope, flags_of
from release.manual import manual
from release.shares import SHARE, SHARES

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
