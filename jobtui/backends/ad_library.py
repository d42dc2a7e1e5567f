"""HTCondor's own library (the extra `jobtui[htcondor]`) in a process of its own, evaluating expressions.

It is looked for without being imported: only `ad_child` imports it. The process is begun when there is a
question, answers many, and ends when it has none for a while. One expression that ends it, or takes too long,
has no value; the others have theirs.
"""

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import msgspec

from jobtui.model.ad_values import AdAnswer, AdQuestion

CHILD = Path(__file__).with_name("ad_child.py")
START_S = 10.0
"""How long the library may take to be loaded."""
PATIENCE_S = 5.0
"""How long an expression may take; before that its process ends itself for the time on the processor."""
IDLE_S = 10
"""How long the process waits for a question."""
MOST_ENDED = 2
"""Expressions of one inquiry that may end the process. It is not begun again for those after them."""
KEPT = 512
"""Answers that are remembered."""
NO_ANSWER = "ended HTCondor's library, or took it too long"
NOT_ASKED = "was not asked after others that ended HTCondor's library"
NOT_INSTALLED = "HTCondor's library is not there; pip install 'jobtui[htcondor]' evaluates them"
T = TypeVar("T")


class _Hello(msgspec.Struct):
    """What the process says first."""

    version: str = ""
    failed: str = ""


def directory_of_library() -> str | None:
    """Where the library is installed, None where it is not."""
    try:
        found = find_spec("classad2")
    except (ImportError, ValueError):
        return None
    return str(Path(found.origin).parents[1]) if found is not None and found.origin else None


class AdLibrary:
    """Answers questions about ads. `directory` is where `classad2` is, None where it is not installed.

    Where it cannot be used, `problem` says why, and nothing is answered.
    """

    def __init__(
        self, directory: str | None = None, patience_s: float = PATIENCE_S, idle_s: int = IDLE_S
    ) -> None:
        self._directory = directory
        self._idle_s = idle_s
        self._patience_s = patience_s
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._known: OrderedDict[AdQuestion, AdAnswer] = OrderedDict()
        self.version = ""
        self.problem = NOT_INSTALLED if directory is None else ""

    async def answers(self, questions: Iterable[AdQuestion]) -> Mapping[AdQuestion, AdAnswer] | None:
        """The answer to each question. None where the library cannot be used."""
        async with self._turn:
            try:
                return await self._answers(questions)
            except BaseException:
                self._killed()  # what it still says would be taken for the answer to another question
                raise

    async def _answers(self, questions: Iterable[AdQuestion]) -> Mapping[AdQuestion, AdAnswer] | None:
        found: dict[AdQuestion, AdAnswer] = {}
        ended = 0
        for question in questions:
            answer = self._known.get(question) or await self._answer(question, ended)
            if answer is None:
                return None
            ended += answer.failed == NO_ANSWER
            found[question] = answer
        return None if self.problem else found

    async def _answer(self, question: AdQuestion, ended: int) -> AdAnswer | None:
        """The answer of the process, which is begun where there is none."""
        if ended >= MOST_ENDED:
            return AdAnswer(failed=NOT_ASKED)
        begun = await self._begun()
        if begun is None:
            return None
        answer = await self._asked(question)
        if answer is None and not begun and await self._begun() is not None:
            answer = await self._asked(question)  # it may have ended for want of questions just then
        answer = answer or AdAnswer(failed=NO_ANSWER)
        self._known[question] = answer
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return answer

    async def _begun(self) -> bool | None:
        """Whether the process was begun just now, not before; None where that cannot be."""
        if self._process is not None and self._process.returncode is None:
            return False
        if self.problem or self._directory is None:
            return None
        await self._end()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(CHILD), self._directory, str(self._idle_s),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL, env={"LC_ALL": "C.UTF-8"},
            )  # fmt: skip
        except OSError as error:
            self.problem = f"HTCondor's library cannot be run: {error}"
            return None
        hello = await self._told(_Hello, START_S) or _Hello(failed="it ended")
        self.version = hello.version
        self.problem = f"HTCondor's library cannot be loaded: {hello.failed}" if hello.failed else ""
        return None if self.problem else True

    async def _asked(self, question: AdQuestion) -> AdAnswer | None:
        """What the process says to a question, None where it ended or was ended."""
        process = self._process
        if process is None or process.stdin is None:
            return None
        process.stdin.write(msgspec.json.encode(question) + b"\n")
        with suppress(ConnectionError):
            await process.stdin.drain()
        return await self._told(AdAnswer, self._patience_s)

    async def _told(self, kind: type[T], patience_s: float) -> T | None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        with suppress(TimeoutError, ValueError, msgspec.MsgspecError):
            async with asyncio.timeout(patience_s):
                return msgspec.json.decode(await process.stdout.readline(), type=kind)
        await self._end()
        return None

    def _killed(self) -> asyncio.subprocess.Process | None:
        """The process that there was, which is to end now."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
        return process

    async def _end(self) -> None:
        if (process := self._killed()) is not None:
            await process.wait()

    async def aclose(self) -> None:
        """End the process. It can be asked again."""
        async with self._turn:
            await self._end()
