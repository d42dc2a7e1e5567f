"""Scripts that Slurm keeps: what slurmctld and accounting print of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.slurm.client import CommandAnswer, Commands
from jobtui.backends.slurm.source import below_rule, find_kept, variables_of
from jobtui.model.health import SourceUnreachable
from jobtui.model.scripts import Outcome, Variable, Wanted
from tests.rows import ROWS

RULE = b"-" * 80
NOTHING = b"Batch Script for 1\n" + RULE + b"\nNONE\n\n"


class Printed(Commands):
    def __init__(self, live: CommandAnswer, script: bytes = b"", environment: bytes = b"") -> None:
        super().__init__("local")
        self._live, self._script, self._environment = live, script, environment

    async def scontrol(self, *words: str) -> CommandAnswer:
        return self._live

    async def sacct(self, option: str, native: str) -> CommandAnswer:
        if option == "--env-vars":
            return CommandAnswer(self._environment)
        if self._script == b"down":
            raise SourceUnreachable("local: accounting does not answer")
        return CommandAnswer(self._script)


def kept(text: bytes) -> bytes:
    return b"Batch Script for 1\n" + RULE + b"\n" + text + b"\n"


@given(st.binary())
def test_what_is_below_the_rule_is_the_text(text: bytes) -> None:
    assert below_rule(kept(text)) == (None if text in (b"NONE", b"NONE\n") else text)
    below_rule(text)


async def test_what_slurmctld_knows_is_exact_and_goes_first() -> None:
    script = b"#!/bin/sh\nprintf 'caf\xe9'"
    answer = await find_kept(Printed(CommandAnswer(script), kept(b"#!/bin/sh\nprintf 'caf?'")), Wanted("1"))
    assert answer.script is not None
    assert answer.script.script == script
    assert answer.script.source == "local: scontrol write batch_script 1 -"


async def test_accounting_has_what_slurmctld_let_go_of() -> None:
    gone = CommandAnswer(b"", said="job script retrieval failed: Invalid job id specified")
    printed = Printed(gone, kept(b"#!/bin/sh\nrun\n"), kept(b"A=1\nB=x\ny\nC=z"))
    answer = await find_kept(printed, Wanted("1"))
    assert answer.script is not None
    assert answer.script.environment is not None
    assert answer.script.script == b"#!/bin/sh\nrun\n"
    assert answer.script.environment.variables[1] == Variable(b"B", b"x\ny")
    assert len(answer.script.notes) == 2
    assert [one.outcome for one in answer.tried] == [Outcome.NOT_THERE, Outcome.FOUND]


@pytest.mark.parametrize(("said", "script", "outcomes"), ROWS["why Slurm keeps no script"])
async def test_why_there_is_none(said: str, script: str, outcomes: list[str]) -> None:
    answer = await find_kept(
        Printed(CommandAnswer(b"", said=said), NOTHING if script == "NONE" else script.encode()), Wanted("1")
    )
    assert answer.script is None
    assert [one.outcome for one in answer.tried] == outcomes


@pytest.mark.parametrize(("text", "variables"), ROWS["variables that sacct prints"])
def test_variables_are_parted_by_lines_that_begin_with_a_name(text: str, variables: list[list[str]]) -> None:
    assert variables_of(text.encode()) == [Variable(name.encode(), of.encode()) for name, of in variables]
