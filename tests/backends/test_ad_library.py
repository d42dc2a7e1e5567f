"""The process beside this one in which expressions of job ads are evaluated, with a library that fails."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from jobtui.backends import ad_library
from jobtui.backends.ad_library import MOST_ENDED, NO_ANSWER, NOT_ASKED, AdLibrary, directory_of_library
from jobtui.model.ad_values import AdAnswer, AdQuestion
from tests.ad_stand_in import installed
from tests.waiting import wait_until

NUMBERS = count()


def ask(expression: str, **scope: str) -> AdQuestion:
    return AdQuestion(expression, tuple(scope.items()))


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[AdLibrary]:
    made = AdLibrary(installed(tmp_path), patience_s=20)
    yield made
    await made.aclose()


async def process_of(library: AdLibrary) -> int:
    question = ask("process", at=str(next(NUMBERS)))  # another one each time, as answers are remembered
    return int((await library.answers([question]) or {})[question].text)


def is_there(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


async def test_every_question_has_its_answer(library: AdLibrary) -> None:
    asked = [ask("1 + a", a="41"), ask("'x' + 'y'"), ask("1 > 2"), ask("[1]")]
    assert await library.answers(asked) == {
        asked[0]: AdAnswer("42", True),
        asked[1]: AdAnswer('"xy"'),
        asked[2]: AdAnswer("false", False),
        asked[3]: AdAnswer("a list"),
    }
    assert (library.version, library.problem) == ("0", "")


async def test_one_process_answers_many(library: AdLibrary) -> None:
    assert await process_of(library) == await process_of(library)


@pytest.mark.parametrize("word", ["crash", "spin", "babble"])
async def test_an_expression_that_ends_the_library_costs_its_own_value(word: str, library: AdLibrary) -> None:
    good, bad = [ask("1"), ask("2")], ask(word)
    assert await library.answers([good[0], bad, good[1]]) == {
        good[0]: AdAnswer("1", True), bad: AdAnswer(failed=NO_ANSWER), good[1]: AdAnswer("2", True),
    }  # fmt: skip


async def test_one_that_waits_is_not_waited_for(tmp_path: Path) -> None:
    library = AdLibrary(installed(tmp_path), patience_s=0.2)
    waits = ask("sleep")
    assert await library.answers([waits]) == {waits: AdAnswer(failed=NO_ANSWER)}
    await library.aclose()


@pytest.mark.parametrize("word", ["eat", "open", "connect"])
async def test_the_process_gets_no_memory_beyond_bounds_and_opens_nothing(
    word: str, library: AdLibrary
) -> None:
    assert await library.answers([ask(word)]) == {ask(word): AdAnswer(failed=NO_ANSWER)}


async def test_an_expression_may_use_the_processor_for_so_long_only(library: AdLibrary) -> None:
    answers = await library.answers([ask("seconds")])
    assert answers is not None
    assert 0 < int(answers[ask("seconds")].text) < 5


async def test_a_process_without_questions_ends(tmp_path: Path) -> None:
    library = AdLibrary(installed(tmp_path), idle_s=1)
    assert await library.answers([ask("1")]) is not None
    process = library._process
    assert process is not None
    assert await process.wait() == -signal.SIGALRM
    assert await library.answers([ask("2")]) == {ask("2"): AdAnswer("2", True)}
    await library.aclose()


async def test_a_question_that_nobody_waits_for_any_more_leaves_no_answer(library: AdLibrary) -> None:
    await library.answers([ask("0")])
    waiting = asyncio.create_task(library.answers([ask("slow", a="1")]))
    await wait_until(lambda: library._turn.locked())
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await library.answers([ask("2")]) == {ask("2"): AdAnswer("2", True)}


async def test_what_ended_it_is_not_asked_again_and_many_are_too_much(library: AdLibrary) -> None:
    bad = [ask("crash", at=str(at)) for at in range(MOST_ENDED + 2)]
    answers = await library.answers(bad)
    assert answers is not None
    assert [answers[one].failed for one in bad] == [NO_ANSWER] * MOST_ENDED + [NOT_ASKED] * 2
    before = await process_of(library)
    assert await library.answers(bad[:1]) == {bad[0]: AdAnswer(failed=NO_ANSWER)}
    assert await process_of(library) == before


async def test_a_process_that_went_for_want_of_questions_is_begun_again(library: AdLibrary) -> None:
    before = await process_of(library)
    os.kill(before, 9)
    assert await process_of(library) != before


async def test_closing_ends_the_process(library: AdLibrary) -> None:
    process = await process_of(library)
    await library.aclose()
    assert not is_there(process)


async def test_without_the_library_nothing_is_answered_and_no_process_begun() -> None:
    library = AdLibrary(None)
    assert await library.answers([ask("1")]) is None
    assert "pip install 'jobtui[htcondor]'" in library.problem


@pytest.mark.parametrize(
    "code", ["raise ImportError('libx.so')", "import os; os.abort()", "raise SystemExit"]
)
async def test_a_broken_installation_is_told_once(code: str, tmp_path: Path) -> None:
    library = AdLibrary(installed(tmp_path, code))
    assert await library.answers([ask("1")]) is None
    problem = library.problem
    assert "HTCondor's library cannot be loaded" in problem
    installed(tmp_path)
    assert await library.answers([ask("1")]) is None  # not begun for each job that is looked at
    assert library.problem == problem


async def test_a_program_that_cannot_be_run_is_told(
    library: AdLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert await library.answers([ask("1")]) is None
    assert "cannot be run" in library.problem


async def test_answers_that_are_remembered_have_a_bound(
    library: AdLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ad_library, "KEPT", 2)
    await library.answers([ask(str(at)) for at in range(5)])
    assert len(library._known) == 2


def test_it_is_looked_for_without_being_imported() -> None:
    before = set(sys.modules)
    directory_of_library()
    assert not {"classad2", "htcondor2"} & (set(sys.modules) - before)
