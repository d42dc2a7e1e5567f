"""Sources that are asked and not read, as archives of scripts and servers of traces: answers, kept and given.

An answer is kept under what was asked. Scripts are bytes, so their secrets are masked here, by the names of
variables and line by line.
"""

from collections.abc import AsyncIterator, Callable

import msgspec

from jobtui.backends.recording.codec import What
from jobtui.backends.recording.replayed import ReplayedSource
from jobtui.model.scripts import (
    Answer,
    ArchivedScript,
    Outcome,
    Span,
    Tried,
    Variable,
    Walked,
    Wanted,
)
from jobtui.model.secret_lines import masked_lines
from jobtui.model.secrets import MASK, is_secret_key
from jobtui.model.trace_desk import TraceList, TraceSearch, is_wanted, newest, summary_of
from jobtui.model.trace_ids import TraceId
from jobtui.model.traces import Telemetry, Trace

NOT_KEPT = "the recording has no answer to this"


def masked_answer(answer: Answer) -> Answer:
    """An answer of an archive without secrets."""
    return answer if answer.script is None else answer._replace(script=_masked_script(answer.script))


def _masked_script(script: ArchivedScript) -> ArchivedScript:
    environment = script.environment
    if environment is not None:
        variables = tuple(map(_masked_variable, environment.variables))
        environment = msgspec.structs.replace(environment, variables=variables)
    return msgspec.structs.replace(script, script=_masked(script.script), environment=environment)


def _masked_variable(variable: Variable) -> Variable:
    if variable.value is None:
        return variable
    is_secret = is_secret_key(variable.name.decode("utf-8", "replace"))
    return variable._replace(value=MASK.encode() if is_secret else _masked(variable.value))


def _masked(data: bytes) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    masked = "\n".join(masked_lines(text.split("\n")))
    return data if masked == text else masked.encode("utf-8", "surrogateescape")


class ReplayedScripts(ReplayedSource):
    """An archive as it answered. Only what was asked for is known."""

    cluster = ""

    async def find(self, wanted: Wanted) -> Answer:
        """The script of a job, and what came of looking."""
        found = await self.answer(What.SCRIPT, wanted.shown)
        if found is None:
            return Answer(None, (Tried(self.name, Outcome.NOT_THERE, NOT_KEPT),))
        answer: Answer = found
        return answer

    async def walk(self, span: Span, told: Callable[[str], None]) -> AsyncIterator[Walked]:
        """What was kept cannot be gone through."""
        yield Walked(cut=NOT_KEPT)


class ReplayedTraces(ReplayedSource):
    """A server of traces as it answered. Only what was asked for is known."""

    async def trace(self, trace_id: TraceId) -> Telemetry | None:
        """A trace as it was when it was asked for."""
        found: Telemetry | None = await self.answer(What.TRACE, trace_id)
        return found

    async def search(self, search: TraceSearch) -> TraceList:
        """Those of the traces that were kept that are wanted."""
        kept = [trace for trace in await self._traces() if is_wanted(trace, search)]
        return TraceList(newest((summary_of(trace, self.name) for trace in kept), search.most))

    async def services(self) -> tuple[str, ...]:
        """The services of the traces that were kept."""
        return tuple(sorted({span.service for trace in await self._traces() for span in trace.spans}))

    async def operations(self, service: str) -> tuple[str, ...]:
        """The names of their spans of a service."""
        traces = await self._traces()
        return tuple(sorted({s.name for trace in traces for s in trace.spans if s.service == service}))

    async def _traces(self) -> list[Trace]:
        found = []
        for key in await self.asked(What.TRACE):
            told = await self.trace(TraceId(key))
            if told is not None and told.spans:
                found.append(Trace(trace_id=told.spans[0].trace_id, spans=told.spans, logs=told.logs))
        return found
