"""A recording in place of the live systems: sources, answers about jobs, logs, and its clock.

Answers are recorded as they were given, secrets masked, under a key that has the whole question. Scripts are
bytes, so their secrets are masked here, by the names of variables and line by line.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from jobtui.backends.base import Batch, DetailOf, DetailSource, Source, TraceSource, merged
from jobtui.backends.job_reader import JobReader
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.formats.levels import level_of
from jobtui.logs.lists import Lines, ListedLog
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import SourceUnreachable
from jobtui.model.ids import JobId, TraceId
from jobtui.model.job_reader import Unreadable
from jobtui.model.jobs import NOT_READ, Job, JobDetail, Run
from jobtui.model.logs import RawLine, Reached
from jobtui.model.memory import JobMemory
from jobtui.model.pages import Extent, Log, LogLine, SourceLogs
from jobtui.model.scripts import Answer, Outcome, ScriptPeriod, ScriptSource, Tried, Variable, Walked, Wanted
from jobtui.model.secret_words import MASK
from jobtui.model.secrets import is_secret_key, mask_text, masked_lines
from jobtui.model.traces import Telemetry, Trace, TraceList, TraceSearch, is_wanted, newest, summary_of
from jobtui.recording.database import Entry, Item, Recording
from jobtui.transport.worker import Worker

AT_ONCE = 50


class ReplayClock:
    """The present time of a recording. Tasks that wait for it to move are woken."""

    def __init__(self, at: Nanos) -> None:
        self._at = at
        self._moved = asyncio.Event()

    def now(self) -> Nanos:
        return self._at

    def set(self, at: Nanos) -> None:
        self._at = at
        self._moved.set()
        self._moved = asyncio.Event()

    async def moved(self) -> None:
        await self._moved.wait()


class OpenRecording(NamedTuple):
    recording: Recording
    worker: Worker
    clock: ReplayClock

    async def answer(self, what: Item, source: int | None, key: str) -> Any:
        """The last answer to a question up to the present time, None if it was not asked."""
        if source is None:
            return None
        until = self.clock.now()
        found = await self.worker.run(lambda: self.recording.answer(what, source, key, until))
        return None if found is None else found.value


class ReplayedSource:
    """A recorded source. `number` is its number in the recording, None if nothing of it was recorded."""

    def __init__(self, opened: OpenRecording, kind: str, name: str, number: int | None) -> None:
        self.kind = kind
        self.name = name
        self.number = number
        self._opened = opened
        self._recording, self._worker, self._clock = opened
        self._seq = -1
        self._failure = ""
        self._read_to: Nanos | None = None

    async def poll(self, cursor: str | None) -> Batch:
        return await self._worker.run(lambda: self._next(first=cursor is None))

    async def changed(self, timeout_s: float) -> None:
        while self._clock.now() == self._read_to:
            await self._clock.moved()

    async def aclose(self) -> None:
        pass

    def _next(self, *, first: bool) -> Batch:
        if first:
            self._seq, self._failure = -1, ""
        self._read_to = self._clock.now()
        if self.number is None:
            return Batch()
        until = self._read_to
        early = self._recording.early_jobs(self.number, until) if self._seq < 0 else ()
        entries = self._recording.delivered(self.number, max(0, self._seq), until, AT_ONCE)
        # A job that is gone in one batch may be back in the next
        ends = (at + 1 for at, one in enumerate(entries) if one.what is Item.BATCH and one.value.gone)
        taken = entries[: next(ends, len(entries))]
        if taken:
            self._failure = str(taken[-1].value) if taken[-1].what is Item.FAILURE else ""
        elif self._failure:
            raise SourceUnreachable(self._failure)
        self._seq = taken[-1].seq if taken else max(0, self._seq)
        parts = [Batch(jobs=early, count=0)] + [one.value for one in taken if one.what is Item.BATCH]
        failing = takewhile(lambda one: one.what is Item.FAILURE, reversed(taken))
        since = min((one.at for one in failing), default=None)
        return msgspec.structs.replace(merged(parts), cursor=str(self._seq), more=bool(taken), read_at=since)


class ReplayedJobs(ReplayedSource):
    async def detail(self, job_id: JobId) -> JobDetail | None:
        """The whole record as it was last read, else what is recorded of the job; None without either."""
        return await self._worker.run(lambda: self._detail(job_id))

    def _detail(self, job_id: JobId) -> JobDetail | None:
        if self.number is None:
            return None
        now = self._clock.now()
        found = self._recording.answer(Item.DETAIL, self.number, job_id, now)
        detail: JobDetail | None = found.value if found is not None else self._delivered(job_id, now)
        last = next(iter(self._recording.newest(self.number, now, 1)), None)
        if detail is None or last is None or last.what is not Item.FAILURE or (found and found.at > last.at):
            return detail
        why = str(last.value).removeprefix(f"{self.name}: ")
        since = f"{self.name} cannot be read since {to_rfc3339(last.at)}: {why}"
        return msgspec.structs.replace(detail, facts=(*detail.facts, (NOT_READ, since)))

    def _delivered(self, job_id: JobId, now: Nanos) -> JobDetail | None:
        if (job := self._recording.last_job(self.number or 0, job_id, now)) is None:
            return None
        # The present run, as far as the job itself describes it
        shared = {name: getattr(job, name) for name in Run.__struct_fields__ if name in Job.__struct_fields__}
        run = Run(number=max(1, job.runs), **shared)
        return JobDetail(job=job, runs=(run,), history=(), native={})


SPEEDS = (1, 10, 60, 600)
"""How many recorded seconds pass in one, key by key; then it stops."""


class ReplayPlayer:
    """The position in a recording. Moving it changes what all sources give.

    `start_over` reads all again from the beginning. `speed`: recorded seconds per second, 0 if stopped.
    """

    def __init__(self, opened: OpenRecording, start_over: Callable[[], Awaitable[None]]) -> None:
        recording, _, clock = self._recording, self._worker, self._clock = opened
        self._start_over = start_over
        self._reading = asyncio.Lock()
        self._asked = 0
        self.speed = 0
        self.begins_at = min(recording.begins_at or recording.about.at, clock.now())
        self.ends_at = max(recording.ends_at or recording.about.at, clock.now())

    @property
    def at(self) -> Nanos:
        return self._clock.now()

    def play(self) -> None:
        """Start, or go faster, or stop after the fastest speed. It stops at the end."""
        following = dict(zip((0, *SPEEDS), (*SPEEDS, 0), strict=True))
        self.speed = following[self.speed] if self.at < self.ends_at else 0

    def tick(self, passed_s: float) -> None:
        if not self.speed:
            return
        self._clock.set(min(self.ends_at, Nanos(self.at + round(passed_s * self.speed * SECOND))))
        if self.at >= self.ends_at:
            self.speed = 0

    async def go(self, at: Nanos) -> None:
        """Move to a time, or to the nearest one in the recording."""
        before, wanted = self.at, min(max(at, self.begins_at), self.ends_at)
        if wanted == before:
            return
        self._clock.set(wanted)
        if wanted > before:
            return
        # Everything is read again; earlier requests that still wait are not needed
        self._asked += 1
        nth = self._asked
        async with self._reading:
            if nth == self._asked:
                await self._start_over()

    async def go_to_change(self, *, forward: bool) -> None:
        """Move to the next delivery, or to the one before. There is no move at either end."""
        at = await self._worker.run(lambda: self._recording.next_change(self.at, forward=forward))
        if at is not None:
            await self.go(at)


NOT_KEPT = "the recording has no answer to this"


def masked_answer(answer: Answer) -> Answer:
    if (script := answer.script) is None:
        return answer
    environment = script.environment
    if environment is not None:
        variables = tuple(map(_masked_variable, environment.variables))
        environment = msgspec.structs.replace(environment, variables=variables)
    masked = msgspec.structs.replace(script, script=_masked(script.script), environment=environment)
    return answer._replace(script=masked)


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
    """A recorded archive. It only has answers to questions that were asked."""

    cluster = ""

    async def find(self, wanted: Wanted) -> Answer:
        found: Answer | None = await self._opened.answer(Item.SCRIPT, self.number, wanted.shown)
        return found or Answer(None, (Tried(self.name, Outcome.NOT_THERE, NOT_KEPT),))

    async def walk(self, span: ScriptPeriod, progress: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        yield Walked(cut=NOT_KEPT)


class ReplayedTraces(ReplayedSource):
    """A recorded trace server. It only has answers to questions that were asked."""

    async def trace(self, trace_id: TraceId) -> Telemetry | None:
        found: Telemetry | None = await self._opened.answer(Item.TRACE, self.number, trace_id)
        return found

    async def search(self, search: TraceSearch) -> TraceList:
        if (number := self.number) is None:
            return TraceList(())
        found = []
        for key in await self._worker.run(lambda: self._recording.keys(Item.TRACE, number)):
            answer = await self.trace(TraceId(key))
            if answer is not None and answer.spans:
                trace = Trace(trace_id=answer.spans[0].trace_id, spans=answer.spans, logs=answer.logs)
                if is_wanted(trace, search):
                    found.append(summary_of(trace, self.name))
        return TraceList(newest(found, search.most))


ANSWERS = "desk"
"""The source name of answers that belong to no single source."""
NOT_RECORDED = "is not in the recording"
BETWEEN = "\t"


def key_of(*asked: object) -> str:
    return mask_text(BETWEEN.join(map(str, asked)))


class Question(NamedTuple):
    """A question to a `JobReader` whose answer is recorded: its key, and its subject in words."""

    what: Item
    key: Callable[..., str] = key_of
    subject: Callable[..., str] = str


QUESTIONS: Mapping[str, Question] = {
    "lines_behind": Question(Item.LINES, lambda one, most: key_of(one.source, one.offset, one.cursor or "")),
    "list_files": Question(Item.LISTING),
    "read_file": Question(Item.FILE, subject=lambda path, name, tail: f"{path}/{name}"),
    "noted_on_cluster": Question(Item.NOTED, lambda paths: key_of(*paths)),
    "host_messages": Question(
        Item.MESSAGES,
        lambda host, journal, begin, end: key_of(host, begin, end),
        lambda host, *more: f"journal of {host}",
    ),
    "remembered": Question(Item.REMEMBERED, lambda job, text, now: key_of(job.id, text)),
}
"""By the method that answers. Other methods ask the recorded sources."""


async def _answered(opened: OpenRecording, name: str, asked: Sequence[Any]) -> Any:
    """The recorded answer. Raises Unreadable if there is none, or if it says why not."""
    question = QUESTIONS[name]
    source = opened.recording.source(ANSWERS, "")
    answer = await opened.answer(question.what, source, question.key(*asked))
    if name == "lines_behind":
        step, most = asked
        alone = RawLine(step.line if step.line > 0 else None, step.offset, step.text)
        return (alone,) if answer is None else answer[:most]
    if name == "remembered":
        return answer if isinstance(answer, JobMemory) else JobMemory(asked[-1])
    if isinstance(answer, str) or (answer is None and name != "noted_on_cluster"):
        raise Unreadable(answer or f"{question.subject(*asked)}: {NOT_RECORDED}")
    return answer


async def _stays(at: Nanos, progress: Callable[[Reached], None]) -> bool:
    return False


ENTRIES_AT_FIRST = 5_000
"""How many of the newest entries of each source are read at first."""
ENTRIES_AT_ONCE = 500
"""How many entries are read at a time as the clock moves on."""


class ReplayedLogs:
    """A `SourceLogs` on a recording: of each log the lines with a known shape, as they were read."""

    def __init__(self, opened: OpenRecording, sources: Callable[[], Sequence[int]]) -> None:
        self._opened = opened
        self._sources = sources

    def names(self) -> tuple[str, ...]:
        return self._opened.recording.logs(self._sources())

    def open(self, name: str) -> Log:
        return ReplayedLog(name, ReplayedLines(self._opened, self._sources(), frozenset({name})))

    def merged(self, names: Sequence[str] | None = None) -> Log:
        wanted = frozenset(self.names() if names is None else names)
        return ReplayedLog("", ReplayedLines(self._opened, self._sources(), wanted))


class ReplayedLog(ListedLog):
    """Lines up to the time of the clock; if that was set back, they are read again."""

    def __init__(self, name: str, lines: "ReplayedLines") -> None:
        super().__init__(name, lines)
        self._recorded_lines = lines

    async def look(self) -> Extent:
        """Add new lines, or drop those that are not written yet. Raises LogUnreadable."""
        if self._recorded_lines.is_set_back():
            self.forget()
        extent = await super().look()
        return extent._replace(event="its end only") if self._recorded_lines.begins_late else extent


class ReplayedLines(Lines):
    """The lines of some logs, the earliest first. `begins_late` says that there are earlier ones."""

    def __init__(self, opened: OpenRecording, sources: Sequence[int], names: frozenset[str]) -> None:
        self._recording, self._worker, self._clock = opened
        self._sources = sources
        self._names = names
        self._read_to: Nanos | None = None
        self._seqs: dict[int, int] = {}
        self._count = 0
        self.begins_late = False

    async def load(self) -> Sequence[LogLine]:
        return await self._worker.run(self._load)

    async def is_changed(self) -> bool:
        return self._clock.now() != self._read_to

    def is_set_back(self) -> bool:
        if self._read_to is None or self._clock.now() >= self._read_to:
            return False
        self._read_to = None
        self._seqs.clear()
        self._count = 0
        self.begins_late = False
        return True

    def _load(self) -> Sequence[LogLine]:
        until = self._clock.now()
        entries = [entry for source in self._sources for entry in self._entries(source, until)]
        self._read_to = until
        records = [record for entry in entries for record in getattr(entry.value, "records", ())]
        lines: list[LogLine] = []
        for record in sorted((r for r in records if r.source in self._names), key=lambda one: one.at or 0):
            for text in record.text.split("\n"):
                lines.append(LogLine(
                    position=self._count, end=self._count + 1, text=text, size=len(text),
                    level=level_of(text), at=record.at,
                    origin=record.source if len(self._names) > 1 else "", stamped=True,
                ))  # fmt: skip
                self._count += 1
        return lines

    def _entries(self, source: int, until: Nanos) -> Iterator[Entry]:
        """The entries of a source since the last call; the last ones if there are many."""
        if source not in self._seqs:
            newest = self._recording.newest(source, until, ENTRIES_AT_FIRST)
            self._seqs[source] = newest[-1].seq if newest else 0
            self.begins_late |= bool(newest) and self._recording.has_before(source, newest[0].seq)
            yield from newest
        while entries := self._recording.delivered(source, self._seqs[source], until, ENTRIES_AT_ONCE):
            self._seqs[source] = entries[-1].seq
            yield from entries


KINDS: tuple[tuple[type, type[ReplayedSource]], ...] = (
    (ScriptSource, ReplayedScripts),
    (TraceSource, ReplayedTraces),
    (DetailSource, ReplayedJobs),
)
"""The replacements of sources that can do more than be polled."""


class RecordingReplay:
    """Replaces the live systems by a recording. `clock` is a time in it, at first when it was made."""

    def __init__(self, path: Path) -> None:
        with ExitStack() as unless_read:
            self.recording = unless_read.enter_context(closing(Recording(path)))
            about = self.recording.about
            self.clock = ReplayClock(about.at if about.job_id else self.recording.ends_at or about.at)
            unless_read.pop_all()
        self._opened = OpenRecording(self.recording, Worker(f"replay {path}"), self.clock)

    def in_place_of(self, source: Source) -> Source:
        """The replacement of a source, which itself is never opened."""
        kinds = tuple(kind for known, kind in KINDS if isinstance(source, known)) or (ReplayedSource,)
        make: type[ReplayedSource] = type("Replayed", kinds, {})
        return make(self._opened, source.kind, source.name, self.recording.source(source.kind, source.name))

    def job_reader(self, sources: Callable[[], Sequence[Source]], detail_of: DetailOf) -> JobReader:
        def replayed(name: str, asked: Sequence[Any]) -> Awaitable[Any] | None:
            return _answered(self._opened, name, asked) if name in QUESTIONS else None

        return JobReader(sources, _stays, detail_of, replayed=replayed)

    def logs(self, sources: Callable[[], Sequence[Source]]) -> SourceLogs:
        kinds = kinds_that_give(Gives.LOGS)

        def numbers() -> tuple[int, ...]:
            replayed = (source for source in sources() if isinstance(source, ReplayedSource))
            return tuple(one.number for one in replayed if one.kind in kinds and one.number is not None)

        return ReplayedLogs(self._opened, numbers)

    def player(self, start_over: Callable[[], Awaitable[None]]) -> ReplayPlayer:
        return ReplayPlayer(self._opened, start_over)

    def close(self) -> None:
        self._opened.worker.soon(self.recording.close)
        self._opened.worker.close()
