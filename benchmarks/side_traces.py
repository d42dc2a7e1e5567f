"""A Jaeger and a Tempo beside a simulated site, whose newest trace grows by a span each second.

They are asked when somebody wants to see traces. While they fault the list of traces is looked at, or the
trace that grows, until a question has met each way of not answering, and the screen says so of this server.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from benchmarks.growing_traces import SPANS, Answers, GrowingTraces, JaegerAnswers, TempoAnswers
from benchmarks.moody_server import Mood, MoodyServer, Question, Reply
from benchmarks.sides import Fault, Side, Wait
from benchmarks.tour import ENTER
from jobtui.model.trace_ids import TraceId
from jobtui.render.trace_facts import short_id

LOOKED = 60
"""So many seconds may it take until a question meets a fault and the screen says so."""
CLEARED = "\x15"
"""Removes what stands before the cursor in a line."""
SAID: Mapping[Mood, str] = {
    Mood.FAILS: "refused what was asked",
    Mood.DENIES: "a login is wanted",
    Mood.PAGE: "answers with a login page",
    Mood.HANGS: "no answer within",
    Mood.BREAKS: "it hung up",
    Mood.HALF: "the answer broke off",
    Mood.REFUSES: "cannot be connected to",
}
"""What the screen says of a server, by how it answers."""


class Trouble(NamedTuple):
    """How a server answers, one way after the other, while the list is looked at, or a trace."""

    moods: Sequence[Mood]
    of_trace: bool = False


class TraceServer(MoodyServer):
    """A server that notes when traces are listed, or one of them is asked for; polls do neither."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.listed = self.opened = 0
        super().__init__(answers.answer)

    def reply(self, question: Question) -> Reply:
        """What is answered to a request, as its mood is."""
        self.listed += self._answers.is_list(question.path)
        self.opened += self._answers.traces.newest.trace_id in question.path
        return super().reply(question)


class TraceServerSide(Side):
    """A server of traces."""

    ANSWERS: ClassVar[type[Answers]]
    IDS_BEGIN: ClassVar[str]
    TROUBLES: ClassVar[Mapping[str, Trouble]]

    def __init__(self) -> None:
        super().__init__()
        self.traces = GrowingTraces(f"{self.name}-service", self.IDS_BEGIN)
        self.tick()
        self._server = TraceServer(self.ANSWERS(self.traces))
        self.source = self._server.url
        self.flags = (f"--{self.name}", self.source)
        self._of_trace = False
        self._opened = self.traces.newest.trace_id
        self._says = ""

    def tick(self) -> None:
        """One more span."""
        self.traces.grow()
        self.written += 1

    @property
    def keys(self) -> Sequence[str]:  # type: ignore[override]
        """To the trace that was the newest when the fault began, or to the list of its traces."""
        if self._of_trace:
            return (":", f"goto {self._opened}{ENTER}")
        return ("5", "/", CLEARED, f"{self.IDS_BEGIN}{ENTER}")

    @property
    def shown(self) -> str:  # type: ignore[override]
        """The trace is on the screen, alone or in the list."""
        return short_id(TraceId(self._opened))

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls a server."""
        return {name: partial(self._befall, trouble) for name, trouble in self.TROUBLES.items()}

    def saw(self, screen: str) -> None:
        """Take note of what it says of this server."""
        said = (words for words in SAID.values() if f"{self.source}: {words}" in screen)
        self._says = next(said, "")

    def wrong(self, told: Mapping[str, Any]) -> list[str]:
        """In what the trace that is open, or the list, differs from what there is; whether it is well."""
        states = [state for name, state, _, _ in told["sources"] if name == self.source]
        wrong = [] if states == ["ok"] else [f"it is {states}"]
        for trace_id, spans in ((one.trace_id, one.spans) for one in self.traces.kept):
            known = told["traces"].get(trace_id, 0)
            if known > spans or (told["trace"] == trace_id and known < spans):
                wrong.append(f"{known} of {spans} spans of {trace_id} are known")
            if told["listed"] and told["listed"].get(trace_id) != spans:
                wrong.append(f"{trace_id} has {spans} spans, listed {told['listed'].get(trace_id)}")
        return [f"{self.name}: {one}" for one in wrong]

    def close(self) -> None:
        """End the server."""
        self._server.close()

    def _befall(self, trouble: Trouble, wait: Wait) -> None:
        while self.traces.newest.spans > SPANS // 2:
            self.tick()  # what is whole is asked for no more
        self._of_trace, self._opened = trouble.of_trace, self.traces.newest.trace_id
        wait(0.0)
        for mood in trouble.moods:
            if not self._is_met(mood, wait):
                self.missed.append(f"while it {mood.name}, the screen did not say: {SAID[mood]}")
        self._server.mood = Mood.WELL

    def _is_met(self, mood: Mood, wait: Wait) -> bool:
        """Whether a question met this mood and that was said, for which there is time."""
        before = self._asked
        self._server.mood = mood
        for _ in range(LOOKED):
            if self._says == SAID[mood] and (self._asked > before or mood is Mood.REFUSES):
                return True
            wait(1.0)
        return False

    @property
    def _asked(self) -> int:
        return self._server.opened if self._of_trace else self._server.listed


class JaegerSide(TraceServerSide):
    """A Jaeger."""

    name = "jaeger"
    ANSWERS, IDS_BEGIN = JaegerAnswers, "1aea9e5000000000"
    TROUBLES: ClassVar = {
        "refuses": Trouble((Mood.FAILS, Mood.DENIES, Mood.PAGE)),
        "breaks off": Trouble((Mood.BREAKS, Mood.HALF, Mood.REFUSES), of_trace=True),
        "hangs": Trouble((Mood.HANGS,)),
    }


class TempoSide(TraceServerSide):
    """A Tempo."""

    name = "tempo"
    ANSWERS, IDS_BEGIN = TempoAnswers, "7e3b050000000000"
    TROUBLES: ClassVar = {
        "refuses": Trouble((Mood.FAILS, Mood.DENIES, Mood.PAGE), of_trace=True),
        "breaks off": Trouble((Mood.BREAKS, Mood.HALF, Mood.REFUSES)),
        "hangs": Trouble((Mood.HANGS,), of_trace=True),
    }
