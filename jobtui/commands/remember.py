"""`remember` writes the memory of finished runs; `seen` and `changed` read it."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.keys import ENDS
from jobtui.analysis.recurrence import day_of, finished
from jobtui.analysis.signature import failure_text
from jobtui.analysis.times import parse_moment
from jobtui.commands.context import Context
from jobtui.commands.printing import Report, first
from jobtui.commands.reader import configured, limits_of, session_to_watch, until_ended
from jobtui.commands.streams import Exit, clear_progress, complain
from jobtui.grammar import COMMAND_BY_NAME, Invocation
from jobtui.memory.database import FILE_NAME, MOST_SHOWN, Memory
from jobtui.memory.writer import MemoryThread, MemoryWriter, forget
from jobtui.model.clock import Nanos, SystemClock
from jobtui.model.health import FAULTS, contained
from jobtui.model.ids import JobId
from jobtui.model.job_reader import Unreadable
from jobtui.model.jobs import SIREPO, Job, JobStatus
from jobtui.model.memory import FIELDS, Compared, EndedRun, MemoryOverview
from jobtui.model.numbers import counted
from jobtui.recording.database import RecordingError
from jobtui.recording.writer import MOST_WAITING, BatchWriter, One
from jobtui.render import memory as rendered
from jobtui.render.columns import TimeLook, printed
from jobtui.render.text import show
from jobtui.session import Session
from jobtui.session.evidence import MOST_JOBS_READ, Gatherer
from jobtui.store.store import Changes

JOBS_BETWEEN_RESTS = 64
Answer = TypeVar("Answer")


class FinishedRuns:
    """Notes which jobs of a session change; `take` passes those that have finished to `put`.

    While `is_full`, it waits.
    """

    def __init__(
        self, session: Session, put: Callable[[EndedRun], None], is_full: Callable[[], bool] = lambda: False
    ) -> None:
        self._session, self._put, self._is_full = session, put, is_full
        self._due: dict[JobId, None] = dict.fromkeys(session.store.jobs)
        self._known: dict[JobId, Nanos | None] = {}
        self._changed = asyncio.Event()
        self._failed, self._gatherer = 0, Gatherer.of(session)
        session.store.subscribe(self._note)

    def _note(self, changes: Changes) -> None:
        for job_id in changes.gone:
            self._known.pop(job_id, None)
        self._due.update(dict.fromkeys(changes.jobs))
        self._changed.set()

    async def follow(self) -> None:
        while True:
            self._changed.clear()
            await self.take()
            await self._changed.wait()

    async def take(self) -> None:
        number = 0
        self._gatherer = Gatherer.of(self._session)
        while self._due:
            job_id = next(iter(self._due))
            del self._due[job_id]
            with contained("remembering"):
                await self._look_at(job_id)
            number += 1
            if number % JOBS_BETWEEN_RESTS == 0:
                await asyncio.sleep(0)
            while self._is_full():  # noqa: ASYNC110 - nothing tells when it is written
                await asyncio.sleep(0.1)

    async def _look_at(self, job_id: JobId) -> None:
        job = self._session.store.job(job_id)
        if job is None or job.is_quasi:
            return
        if job_id not in self._known and job.system == SIREPO and job.runs > 1:
            await self._earlier_runs(job)
        known = self._known.setdefault(job_id, None)
        if job.status not in ENDS or known == (ended := job.ended_at or job.updated_at):
            return
        self._known[job_id] = ended
        job = self._session.store.with_agent(job)
        verdict, text = job.status.value, ""
        if job.status is not JobStatus.COMPLETED:
            self._failed += 1
            if self._failed % MOST_JOBS_READ == 0:  # a new one may still read outputs
                self._gatherer = Gatherer.of(self._session)
            found = explain(await self._gatherer.kept(job))
            verdict, text = found.code.value, failure_text(job, found)
        if (one := finished(job, verdict, text)) is not None:
            self._put(one)

    async def _earlier_runs(self, job: Job) -> None:
        with suppress(Unreadable):
            detail = await self._session.job_reader().detail(job.id)
            for run in detail.runs[:-1] if detail is not None else ():
                if run.status in ENDS:
                    failed = run.status is JobStatus.FAILED
                    text = (run.error or run.alert or run.native_status) if failed else ""
                    one = finished(job, run.status.value, text, run)
                    if one is not None:
                        self._put(one)


DEFAULT_MB, LEAST_MB = 2_000, 10
REPORT_EVERY_S, READ_AGAIN_S = 1.0, 2.0
MOST_DAYS = 28
"""The most days of a period that is compared."""
NOTHING = "nothing is remembered yet; run `jobtui remember`: it begins with what the sources still know"
REMEMBERED = frozenset({"seen", "changed"})


@contextmanager
def with_memory(context: Context) -> Iterator[Context]:
    """The context with a memory of its own for a while, which has taken in what its sources know now.

    Raises RecordingError where no temporary directory can be made.
    """
    once = Invocation(COMMAND_BY_NAME["remember"], (), {}, {"once": ""})
    try:
        holder = TemporaryDirectory(prefix="jobtui-memory-")
    except OSError as error:
        raise RecordingError(f"no temporary directory for a memory: {error.strerror}; set TMPDIR") from error
    with holder as directory:
        context = context._replace(remembers=True, memory=Path(directory) / FILE_NAME)
        run(context._replace(invocation=once, clock=context.clock if context.replay else SystemClock()))
        yield context


def open_memory(megabytes: int = DEFAULT_MB, path: Path | None = None) -> MemoryThread:
    """The writer of the memory. Raises RecordingError, OSError."""
    return MemoryThread(MemoryWriter(Memory(path).path, megabytes << 20))


def runs_of(session: Session, memory: MemoryThread) -> FinishedRuns:
    return FinishedRuns(
        session, memory.put, lambda: memory.problem is None and memory.waiting > MOST_WAITING // 2
    )


def run(context: Context) -> Exit:
    """Remember until interrupted; with --once, or on a recording, what the sources know now."""
    path = Memory(context.memory).path
    if context.flag("forget") is not None:
        try:
            complain(f"{path}: {'removed' if forget(path) else 'not there'}")
        except OSError as error:
            return complain(f"{path}: cannot be removed: {error.strerror}", Exit.FAILED)
        return Exit.FINE
    not_at = "remember keeps what is known now, so --at cannot be used"
    limits = limits_of(context, DEFAULT_MB, LEAST_MB, not_at)
    if isinstance(limits, Exit):
        return limits
    megabytes, for_s = limits
    try:
        memory = open_memory(megabytes, path)
    except (RecordingError, OSError) as error:
        return complain(str(error), Exit.NO_SOURCE)
    with closing(memory):
        asyncio.run(_remember(context, memory, for_s))
    lost = f", {memory.lost:,} lost" if memory.lost else ""
    if lost or context.memory is None:
        complain(f"{path}: {counted(memory.kept, 'run')} added{lost}; jobtui seen shows them")
    return Exit.NO_SOURCE if memory.lost else Exit.FINE


async def _remember(context: Context, memory: MemoryThread, for_s: float | None) -> None:
    async with session_to_watch(context, configured(context)) as session:
        runs = runs_of(session, memory)

        async def take_now() -> None:
            with contained("remembering"):
                await session.catch_up()
                await runs.take()

        is_once = context.flag("once") is not None or context.replay is not None
        work = (take_now(),) if is_once else (kept_reading(session), runs.follow())
        await until_ended(*work, say(memory), for_s=for_s)


async def kept_reading(session: Session) -> None:
    """Read until cancelled; begin again if reading ends with a fault."""
    while True:
        with contained("reading what is recorded"):
            await session.run()
        await asyncio.sleep(READ_AGAIN_S)


async def say(writer: BatchWriter[One], words: Callable[[], str] | None = None) -> None:
    """Report once each error of writing, and faults of jobtui; on a terminal also the progress."""
    said: str | None = None
    faults: set[tuple[str, str]] = set()
    is_shown = words is not None and sys.stderr.isatty()
    try:
        while True:
            if writer.problem != said and (said := writer.problem) is not None:
                complain(f"{said}; trying again")
            for fault in FAULTS.all():
                if (fault.location, fault.kind) not in faults:
                    faults.add((fault.location, fault.kind))
                    complain(f"{fault.words}; everything else is kept")
            if words is not None and is_shown:
                sys.stderr.write(f"\r{words()} (ctrl+c ends it)\x1b[K")
                sys.stderr.flush()
            await asyncio.sleep(REPORT_EVERY_S)
    finally:
        if is_shown:
            clear_progress()


def _asked(
    context: Context, memory: Memory, ask: Callable[[], Answer], none: Mapping[str, object]
) -> Answer | Exit:
    """The answer of the memory; if it has none, says why, prints `none`, and gives the exit code."""
    try:
        if memory.is_there:
            return ask()
        complain(NOTHING)
    except ValueError as error:
        return complain(str(error), Exit.USAGE)
    except RecordingError as error:
        complain(str(error))
    Report(lambda: none).print(context)
    return Exit.NO_SOURCE


def run_seen(context: Context) -> Exit:
    """Print failures. NOT_FOUND if none has the text, ATTENTION if a site deviates."""
    memory, now, text = Memory(context.memory), context.clock.now(), " ".join(context.words)
    most = MOST_SHOWN if context.most is None else context.most
    found = _asked(
        context,
        memory,
        lambda: MemoryOverview(memory.signatures(now, text, most)) if text else memory.overview(now, most),
        rendered.overview_record(MemoryOverview()),
    )
    if isinstance(found, Exit):
        return found

    def lines(width: int | None) -> Iterator[str]:
        if found.sites:
            yield rendered.sites_words(found.sites)
        yield from map(rendered.host_words, found.shares)
        if found.signatures:
            yield from printed(rendered.SEEN_COLUMNS[:-1], found.signatures, TimeLook(now), width)
        for seen in found.signatures if len(found.signatures) == 1 else ():
            yield f"such as {show(seen.job)}: {show(seen.example)}"
            yield rendered.seen_words(seen, now)

    rows = [rendered.listed_record(one) for one in found.signatures]
    Report(lambda: rendered.overview_record(found), rendered.SEEN_CSV, lambda: rows, lines).print(context)
    if text and not found.signatures:
        return complain(f"{show(text)}: no such failure is remembered", Exit.NOT_FOUND)
    return Exit.ATTENTION if found.sites else Exit.FINE


def run_changed(context: Context) -> Exit:
    """Print the differences. ATTENTION if there are any."""
    memory = Memory(context.memory)
    now, empty = context.clock.now(), {"runs": 0, "before": 0, "changes": list[object]()}
    found = _asked(context, memory, lambda: _compared(memory, context.words, now), empty)
    if isinstance(found, Exit):
        return found
    Report(
        lambda: {
            "runs": found.now,
            "before": found.before,
            "changes": list(map(rendered.change_record, found.changes)),
        },
        rendered.CHANGE_CSV,
        lambda: map(rendered.change_record, found.changes),
        lambda width: map(rendered.change_words, first(found.changes, context)),
    ).print(context)
    if not found.changes:
        complain(f"found no difference between {counted(found.now, 'run')} and the {found.before:,} before")
    return Exit.ATTENTION if found.changes else Exit.FINE


def _compared(memory: Memory, words: tuple[str, ...], now: Nanos) -> Compared:
    """Compare by times or filters. Raises ValueError that says what they must be."""
    facts = [word.partition(":") for word in words]
    if len(words) == 2 and all(field in FIELDS and value for field, _, value in facts):
        one, other = ((field, value) for field, _, value in facts)
        return memory.compared(one, other)
    moments = [parse_moment(word) for word in words]
    days = [day_of(moment.span(now).start) for moment in moments if moment is not None]
    if len(days) != len(words) or len(days) > 2:
        two = f"two of {', '.join(FIELDS)}, as host:v4 host:v7"
        raise ValueError(f"expected one or two times such as 7d, or {two}")
    today = day_of(now)
    first, middle = (2 * days[0] - today - 1, days[0]) if len(days) == 1 else (days[0], days[1])
    if not first < middle <= today or max(middle - first, today - middle) > MOST_DAYS:
        raise ValueError(
            f"whole days are compared (UTC), at most {MOST_DAYS}; T1 must be before T2, such as 14d 7d"
        )
    return memory.compared(range(first, middle), range(middle, today + 1))
