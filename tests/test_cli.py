"""The grammar of the command line, and what is said when it is not kept."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.cli import UsageError, main, parse
from jobtui.grammar import COMMANDS, DASHBOARD, SETTINGS, Option, flags_of
from tests.rows import table

LINES = table("command_lines")["lines"]


@pytest.mark.parametrize(("line", "command", "words", "settings", "flags"), LINES)
def test_parse_reads_a_command_line(
    line: list[str], command: str, words: list[str], settings: dict[str, list[str]], flags: dict[str, str]
) -> None:
    found = parse(line)
    assert (found.command.name, list(found.words)) == (command, words)
    assert ({name: list(values) for name, values in found.settings.items()}, found.flags) == (settings, flags)
    assert "help" in parse(["jobs", "-h"]).flags


def test_help_and_version_read_no_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--srdb", "/nowhere", "help", "show"]) == 0
    as_word = capsys.readouterr().out
    assert main(["show", "--help"]) == 0
    assert "Usage: jobtui [FLAGS] show ID" in (as_flag := capsys.readouterr().out)
    assert as_word == as_flag
    assert main(["--version", "--srdb", "/nowhere"]) == 0
    assert capsys.readouterr().out.startswith("jobtui 0")


def test_help_names_everything_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    program = capsys.readouterr().out
    assert all(f"  {command.name}" in program and command.summary[:20] in program for command in COMMANDS)
    assert all(f"{setting.flag} " in program for setting in SETTINGS)
    for command in COMMANDS:
        main([command.name, "--help"])
        own = capsys.readouterr().out
        assert all(flag.flag in own for flag in command.flags)
        assert max(map(len, own.splitlines())) <= 100


def test_each_spelling_has_one_meaning() -> None:
    meaning: dict[str, object] = {}
    everything: list[Option] = [flag for command in (DASHBOARD, *COMMANDS) for flag in flags_of(command)]
    for flag in everything:
        for spelling in (flag.flag, flag.short and f"-{flag.short}"):
            if spelling:
                told = flag._replace(help="")
                assert meaning.setdefault(spelling, told) == told
    assert not set(meaning) & {setting.flag for setting in SETTINGS}


_WORDS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["--", "-", "-f", "-n", "--json", "--srdb", "--srdb=x", "logs", "jobs", "-fn", "--lines=3"]
    ),
)


@given(st.lists(_WORDS, max_size=6))
def test_no_command_line_breaks_the_parser(arguments: list[str]) -> None:
    with suppress(UsageError):
        parse(arguments)
