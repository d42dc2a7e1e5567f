"""`logs ID`: the lines that belong to a job, merged in time order, source in front.

The lines of its program's output have no times and come last, job by job.
"""

import asyncio
import posixpath
import re
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from jobtui.analysis.correlation.job_events import EVENTS_KEPT
from jobtui.analysis.correlation.ops import FIRST_STEPS_KEPT, STEPS_KEPT
from jobtui.analysis.find import (
    Candidate,
    Target,
    agents_called,
    find,
    is_array,
    is_host,
    is_of_unit,
    jobs_meant,
    ops_meant,
    references,
)
from jobtui.analysis.timeline import JobLine, in_time_order, job_lines, masked
from jobtui.backends.registry import LOG_FILE, Gives, build, kinds_that_give, of_setting
from jobtui.commands.container import LAST_LINES, MOST_LINES
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.printing import Report, SourceNames, print_csv, print_lines
from jobtui.commands.reader import Reader, until_ended
from jobtui.commands.streams import Exit, complain
from jobtui.model.clock import SECOND, TIME_LENGTH, Nanos, latest
from jobtui.model.commands import Command
from jobtui.model.health import SourceError, contained
from jobtui.model.ids import PREFIX_LENGTH, JobId, split_container
from jobtui.model.job_reader import LINES_BEHIND, Unreadable
from jobtui.model.jobs import Job, first_seen, is_within
from jobtui.model.journal import Matches
from jobtui.model.logs import RawLine
from jobtui.model.numbers import counted
from jobtui.model.ops import Certainty, Component, Op
from jobtui.model.pages import Log, LogLine, LogUnreadable, MaskedLines
from jobtui.model.secrets import mask_line
from jobtui.render.json_output import document, dumps, line_record
from jobtui.render.table import paint
from jobtui.render.text import NONE, Zone, date_time, safe
from jobtui.session import Session
from jobtui.store.store import Changes

if TYPE_CHECKING:
    from jobtui.backends.journal.source import Journal
    from jobtui.commands.find import FoundJob
    from jobtui.logs.journal import JournalPages
    from jobtui.session.outputs import OutputLines

LAST_ROWS, SINCE_ROWS = 2 * STEPS_KEPT, 10_000
"""How many rows of an engine are read of a job, without and with a time; of an op 200 are kept."""


async def with_continuations(lines: Sequence[JobLine], session: Session, unread: set[str]) -> list[JobLine]:
    """The lines, each followed by those that continue it in its file: tracebacks, output of programs.

    If a file can no longer be read, or has other lines there now, its lines have none. `unread` are the
    journals that failed at the last call: what they lack is reported once while they do.
    """
    job_reader, entries = session.job_reader(), await _in_journals(session, lines, unread)
    found: list[JobLine] = []
    async with job_reader.holding_logs():
        for line in lines:
            record: Sequence[RawLine] = ()
            if line.cursor is not None:
                record = [RawLine(None, 0, text) for text in entries.get(line.cursor, ())]
            else:
                with suppress(Unreadable):
                    record = await job_reader.lines_behind(line, 1 + LINES_BEHIND)
            found += [line, *(_continuing(line, raw) for raw in record[1:])]
    return found


async def _in_journals(session: Session, lines: Sequence[JobLine], unread: set[str]) -> dict[str, list[str]]:
    streams: dict[str, dict[str, int]] = {}
    for line in lines:
        if line.cursor is not None:
            streams.setdefault(line.source, {})[line.cursor] = line.offset
    found: dict[str, list[str]] = {}
    if not streams:
        return found
    from jobtui.logs.journal import journals_of  # few lines are of journals

    for source, wanted in streams.items():
        for journal in journals_of(session.sources):
            with suppress(SourceError):
                found |= await journal.continuations(source, wanted)
        alone = len(wanted.keys() - found)
        if alone and source not in unread:
            complain(f"{source}: lines whose further lines, such as tracebacks, were not read: {alone:,}")
        (unread.add if alone else unread.discard)(source)
    return found


def _continuing(line: JobLine, raw: RawLine) -> JobLine:
    offset = line.offset if line.cursor is not None else raw.offset
    return replace(
        line, line=raw.line or 0, offset=offset, text=raw.text, certainty=Certainty.ADJACENT, continues=True
    )


FOLLOW_PERIOD_S = 0.25
OUTPUT_LOOKS = 8
"""After how many periods a job's output is read again."""
MOST_OUTPUTS = 20
"""Of how many jobs of a user, a host and so on the output is given, the newest."""
CSV_COLUMNS = ("at", "source", "line", "component", "op", "agent", "level", "certainty", "text")

Chosen = Callable[[JobLine], bool]
OpsByJob = Mapping[JobId, Sequence[Op]]
KINDS = frozenset({"agent", "container", "user", "host", "unit"})
"""Kinds besides a job that have lines."""
CHOOSING = frozenset({"agent", "op", "unit", "grep"})
"""Flags that leave lines out."""
JOB_TARGETS = frozenset({Target.JOB, Target.NUMBER, Target.CONDOR, Target.TRACE})
LATE_S = 30
"""How long after it was written a line may be received."""


async def run(reader: Reader) -> Exit:
    reader.follows = reader.context.flag("follow") is not None
    if (code := await _print_journals(reader, reader.context.words[0])) is not None:
        return code
    from jobtui.commands.find import print_not_found, resolve  # journals are asked before these are there
    from jobtui.session.outputs import OutputLines

    found = await resolve(reader, reader.context.words[0], KINDS)
    if found.job is not None and is_array(found.job):
        await reader.read_jobs()
        found = found._replace(job=None, candidates=(Candidate("array", found.job.id, 1.0, ""),))
    elif found.job is None and found.code is not Exit.FINE:
        return print_not_found({"lines": []}, found, reader)
    is_whole = not {"agent", "op", "grep"}.isdisjoint(reader.context.invocation.flags)
    rows = LAST_ROWS if reader.context.since is None else SINCE_ROWS
    newest = None if is_whole else max(rows, reader.context.most or 0)
    await reader.read_logs(found.detail, newest)
    names = _logs_of(reader, found.candidates[0]) if found.job is None else ()
    ops_of: Callable[[], OpsByJob] = dict if names else _ops_of(reader, found)
    chosen = _choice(reader, reader.context.words[0] if found.job is None else found.job.id, ops_of())
    if chosen is None:
        return reader.settle(Exit.NOT_FOUND)
    opened = reader.session.logs()
    jobs = [found] if found.job is not None else await _jobs_of(reader, found)
    is_unknown = not (jobs or names or ops_of())  # it has no known job: the lines that name it
    names = tuple(one for one in opened.names() if "/" in one) if is_unknown else names
    logs = {name: opened.open(name) for name in names}
    whole = _WholeLogs(reader, logs, _naming(reader, found.candidates[0], chosen) if is_unknown else chosen)
    of_ops = _of_ops(reader, ops_of, chosen)
    fresh = whole.fresh if names else of_ops
    if reader.context.flag("agent") or reader.context.flag("op"):
        jobs = []  # output of a program belongs to no op
    outputs = [OutputLines(one.job, one.detail, follows=reader.follows) for one in jobs if one.job]
    written = await _written(reader, outputs, chosen)
    if found.job is None and (of_all := ops_of() or jobs):
        best = found.candidates[0]
        complain(f"{best.kind} {best.id}: lines of {counted(len(of_all), 'job')}")
    lines = [*(await whole.fresh() if names else await of_ops()), *written]
    problems = [problem for one in outputs for problem in one.problems]
    for problem in problems[:1] if found.job is None else problems:
        more = f", and {len(problems) - 1} more are not read" if found.job is None and problems[1:] else ""
        complain(f"its output {problem}{more}")
    shown = lines if (most := reader.context.most) is None else lines[max(0, len(lines) - most) :]
    if unkept := _not_kept(lines, LAST_ROWS if reader.context.flag("grep") or most is None else most):
        complain(unkept)
    follow = partial(_follow, reader, found.job, fresh, outputs, logs.values(), chosen)
    return await _printed(reader, shown, follow)


def _not_kept(lines: Sequence[JobLine], most: int) -> str:
    """Words if some of the last `most` lines may be missing: not all of an op and of a job are kept."""
    own = [line for line in lines if line.component is not Component.JOB]
    cut = [line for line in own if line.op is not None and line.op.dropped_steps]
    last, loose = STEPS_KEPT - FIRST_STEPS_KEPT, sum(line.op is None for line in own)
    if not (cut and most > last) and not (loose >= EVENTS_KEPT < most):
        return ""
    ids = {line.job_id if line.op is None else line.op.op for line in cut or own[-1:]}
    kept = f"the first {FIRST_STEPS_KEPT} and the last {last} lines of an op, {EVENTS_KEPT} without one"
    every = Command("jobtui", "logs", (cut or own)[-1].source, "--grep", "|".join(sorted(ids)))
    return f"only some of its lines were kept ({kept}); for more: {every}"


def _naming(reader: Reader, candidate: Candidate, chosen: Chosen) -> Chosen:
    """The test of a line that names something, or one of its agents."""
    ids = agents_called(candidate.id, reader.session.store.correlation.agents())
    search = re.compile(rf"\b(?:{'|'.join(map(re.escape, (candidate.id, *ids)))})").search
    return lambda line: search(line.text) is not None and chosen(line)


async def _printed(reader: Reader, lines: list[JobLine], follow: Callable[[], Awaitable[None]]) -> Exit:
    if not reader.follows:
        if not lines:
            chosen = [f"--{name}" for name in reader.context.invocation.flags if name in CHOOSING]
            way = f" with {' and '.join(chosen)}" if chosen else ""
            complain(f"no line of {reader.context.words[0]} was found{way}")
        return _report(reader, lines).answer(reader, Exit.FINE)
    _print_followed(reader, lines, is_first=True)
    await follow()
    return reader.settle(Exit.FINE)


async def _print_journals(reader: Reader, name: str) -> Exit | None:
    """Print what a container, a unit or a host wrote to journals; nothing else is read of them.

    None if a job or a log file may be meant, or no journal has a line of it.
    """
    async with AsyncExitStack() as opened:
        logs = await _journals_of(reader, name, opened)
        chosen = _choice(reader, name, {}) if logs else None
        if chosen is None:
            return None
        written = _WholeLogs(reader, logs, chosen)
        await reader.watched(written.look(), lambda: f"{written.looked:,} lines searched")
        if not written.looked:
            return None
        lines = written.found()
        if split_container(name) is not None:
            complain(f"container {name}: its lines in {counted(len(logs), 'journal')}")
        for source, log in logs.items():
            if log.extent.event:
                complain(f"{source}: {log.extent.event}")
        follow = partial(_follow, reader, None, written.fresh, (), logs.values(), chosen)
        return await _printed(reader, lines, follow)


async def _journals_of(reader: Reader, name: str, opened: AsyncExitStack) -> "dict[str, JournalPages]":
    """The logs of a container, a unit or a host in journals; none if something else may be meant."""
    context, is_container = reader.context, split_container(name) is not None
    is_other = any(LOG_FILE.names(spec) and is_of_unit(spec.target, name) for spec in reader.specs)
    is_other |= not is_container and not JOB_TARGETS.isdisjoint(ref.target for ref in references(name))
    if is_other or context.replay or context.flag("agent") or context.flag("op"):
        return {}
    logs: dict[str, JournalPages] = {}
    with suppress(SourceError):  # else they are read in another way, with the same result
        for spec in reader.specs:
            if not of_setting(spec.setting).is_journal:
                continue
            journal = cast("Journal", build(spec))
            opened.push_async_callback(journal.aclose)
            asked: Matches = ((("CONTAINER_NAME", name),),)
            if not is_container:
                asked = await journal.matches_named(name, is_of_unit)
            if asked:
                from jobtui.logs.journal import open_matching

                logs[journal.name] = open_matching(journal, asked, 1 + _page_lines(context))
                opened.push_async_callback(logs[journal.name].aclose)
        if logs and not is_container:
            reader.add_job_sources()
            await reader.catch_up()
        is_job = not is_container and any(one.is_sure for one in find(name, reader.session.store.jobs))
        return {} if is_job else logs
    return {}


async def _jobs_of(reader: Reader, found: "FoundJob") -> "list[FoundJob]":
    """The newest jobs of a user and so on with something in the requested time, oldest first."""
    context, store, knows = reader.context, reader.session.store, reader.session.store.correlation
    begin, end = context.since or Nanos(0), context.until or context.clock.now()
    known = map(store.job, reversed(jobs_meant(found.candidates[0], store.jobs, knows.ops(), knows.agents())))
    then = [job for job in known if job is not None and is_within(job, begin, end) and not is_array(job)]
    shown = sorted(then[-MOST_OUTPUTS:], key=lambda job: (first_seen(job) or 0, len(job.id), job.id))
    return [found._replace(job=job, detail=await reader.look_up(job.id)) for job in shown]


def _ops_of(reader: Reader, found: "FoundJob") -> Callable[[], OpsByJob]:
    """A function that gives the ops of a job, a user, an agent, or the agents of a container."""
    knows = reader.session.store.correlation
    if found.job is not None:
        job_id = found.job.id
        return lambda: {job_id: knows.ops_of(job_id)}
    candidate = found.candidates[0]

    def ops_of() -> OpsByJob:
        known = knows.agents()
        jobs = dict.fromkeys(op.jid for op in ops_meant(candidate, knows.ops(), known) if op.jid is not None)
        return {job_id: tuple(ops_meant(candidate, knows.ops_of(job_id), known)) for job_id in jobs}

    return ops_of


def _page_lines(context: Context) -> int:
    """How many lines are read at a time: as many as are printed, unless some are left out."""
    is_chosen = context.until is not None or not {"grep", "unit"}.isdisjoint(context.invocation.flags)
    return LAST_LINES if is_chosen or not context.most else min(context.most, LAST_LINES)


def _logs_of(reader: Reader, named: Candidate) -> tuple[str, ...]:
    """The logs that a unit names, or those of a host; none if only ops and agents name it."""
    known = reader.session.logs().names()
    if named.kind == "host":
        return tuple(name for name in known if "/" not in name and is_host(name.rpartition("@")[2], named.id))
    return tuple(name for name in known if named.kind == "unit" and is_of_unit(name, named.id))


def _of_ops(
    reader: Reader, ops_of: Callable[[], OpsByJob], chosen: Chosen
) -> Callable[[], Awaitable[list[JobLine]]]:
    """A function that gives the chosen lines of ops and their jobs, at each call only new ones."""
    session, is_all = reader.session, reader.follows or reader.context.flag("grep")
    most = 0 if is_all else reader.context.most or 0  # lines that continue others are not read
    seen, held, unread = set[tuple[str, int, str]](), dict[tuple[str, int, str], JobLine](), set[str]()

    def take(changes: Changes | None = None) -> None:
        for job_id, ops in ops_of().items():
            if changes is None or job_id in changes.jobs:
                lines = job_lines(job_id, ops, session.store.correlation.unlinked_of(job_id))
                held.update((line.key, line) for line in lines if line.key not in seen)

    async def fresh() -> list[JobLine]:
        take()
        lines = in_time_order(held.values())
        seen.update(held)
        held.clear()
        at = [number for number, line in enumerate(lines) if chosen(line)][-most:][:1] if most else []
        before, last = lines[: sum(at)], lines[sum(at) :]  # a line may say what is secret in the next
        lines = [*before, *await with_continuations(last, session, unread)]
        return [line for line in masked(lines) if chosen(line)]

    session.store.subscribe(take)  # of an op only the last lines are kept
    return fresh


class _WholeLogs:
    """The chosen lines of some logs, in the order of time: as many as are asked for, then new ones.

    A problem is reported once while it lasts. What has to match is also looked for further back.
    """

    def __init__(self, reader: Reader, logs: Mapping[str, Log], chosen: Chosen) -> None:
        self._context, self._chosen = reader.context, chosen
        self._logs = logs
        self._problems: dict[str, str] = {}
        self._reported: dict[str, str] = {}
        self._ends: dict[str, int] = {}
        usual = LAST_LINES if reader.context.since is None else MOST_LINES
        most = usual if reader.context.most is None else reader.context.most
        self._most, self._at_once = most, _page_lines(reader.context)
        self._found: dict[str, deque[JobLine]] = {}
        self.looked = 0

    async def fresh(self) -> list[JobLine]:
        """First as many as are asked for, then all that are new."""
        await self.look()
        return self.found()

    async def look(self) -> None:
        self._found.clear()
        await asyncio.gather(*(self._look_at(name, log) for name, log in self._logs.items()))

    def found(self) -> list[JobLine]:
        """What the last look found, even if it was stopped."""
        lines = in_time_order(line for of_one in self._found.values() for line in of_one)
        for problem in self._problems.items() - self._reported.items():
            complain(problem[1])
        self._reported = dict(self._problems)
        most, self._most, self._at_once = self._most, MOST_LINES, LAST_LINES
        return lines[max(0, len(lines) - most) :]

    async def _look_at(self, name: str, log: Log) -> None:
        self._problems.pop(name, None)
        try:
            end = (await log.look()).end
            await self._read(name, log, end)
        except LogUnreadable as error:
            self._problems[name] = str(error)
        else:
            self._ends[name] = end

    async def _read(self, name: str, log: Log, end: int) -> None:
        """Find the chosen lines up to `end` that were not read yet and are of the requested time."""
        since, until = self._context.since or 0, self._context.until or sys.maxsize
        found = self._found[name] = deque[JobLine]()
        begin, position, shown = max(0, self._ends.get(name, 0)), end, MaskedLines(log)
        most, looked, fits = min(self._most, MOST_LINES), 0, list[JobLine]()
        if self._context.until is not None and not begin:
            position = await log.position_of_time(Nanos(until + LATE_S * SECOND)) or end
        while position > begin and len(found) < most and (looked < MOST_LINES or since):
            page = await shown.before(position, self._at_once)
            lines = [self._line(name, line) for line in page.lines if line.position >= begin]
            is_before = any(line.at is not None and line.at < since for line in lines)
            fits = [*_within(lines, since, until)]
            found.extendleft(filter(self._chosen, reversed(fits)))
            looked, self.looked = looked + len(fits), self.looked + len(fits)
            is_open = bool(page.lines) and not (page.at_edge or is_before)
            position = page.lines[0].position if is_open else begin
        if position > begin and (len(found) < most or most == MOST_LINES):
            back = next((f" to {date_time(line.at)}{Zone.mark()}" for line in fits if line.at), "")
            words = f"only its last {looked:,} lines were searched, back{back}"
            self._problems[name] = f"{name}: {words}; --since, and --until, choose others"

    def _line(self, name: str, line: LogLine) -> JobLine:
        cursor = "" if line.at is not None else None
        origin = (line.origin or name, 0, line.position)
        note = f" ({line.note})" if line.note and line.size > len(line.text.encode()) else ""
        at = line.at or latest(line.text[:TIME_LENGTH], self._context.clock.now())
        return JobLine("", at, Component.LOG, f"{line.text}{note}", *origin, Certainty.ADJACENT, cursor)


def _within(lines: Sequence[JobLine], since: int, until: int) -> Iterator[JobLine]:
    """The lines of the requested time. One without a time has that of the line before it, else after it."""
    at = next((line.at for line in lines if line.at is not None), None)
    for line in lines:
        at = at if line.at is None else line.at
        if at is None or since <= at <= until:
            yield line


async def _written(reader: Reader, outputs: "Sequence[OutputLines]", chosen: Chosen) -> list[JobLine]:
    """The new chosen lines of outputs; lines left out before them are reported."""
    lines, session = list[JobLine](), reader.session
    for one in outputs:
        lines += filter(chosen, await one.fresh(session.store, session.job_reader(), session.reach))
        for path, size in one.skipped:
            complain(f"{path}: {size:,} bytes are left out; only its end is read")
    return lines


async def _follow(
    reader: Reader,
    job: Job | None,
    fresh_lines: Callable[[], Awaitable[list[JobLine]]],
    outputs: "Sequence[OutputLines]",
    logs: Collection[Log],
    chosen: Chosen,
) -> None:
    """Print new lines, of this job or of any, until ctrl+c; whole logs grow without a change of a job."""
    if reader.partial:  # it was stopped already
        return
    changed = asyncio.Event()
    reader.session.store.subscribe(lambda _: changed.set())
    kinds = {*kinds_that_give(Gives.LOGS)}
    if job is not None and job.status.is_live and not job.needs_logs:  # its record tells where it writes to
        kinds |= {source.kind for source in reader.session.sources if source.name == job.source}

    async def follow() -> None:
        await reader.session.run(kinds)
        if logs or any(one.files or one.job.status.is_live for one in outputs):
            await asyncio.Event().wait()

    async def tell() -> None:
        for looks in count(1):
            await asyncio.sleep(FOLLOW_PERIOD_S)
            fresh: list[JobLine] = []
            with contained("reading the lines of a job"):
                if changed.is_set():
                    changed.clear()
                    fresh += await fresh_lines()
                if looks % OUTPUT_LOOKS == 0:
                    fresh += await _written(reader, outputs, chosen)
            _print_followed(reader, fresh)

    await until_ended(follow(), tell(), *(_watch(log, changed) for log in logs))


async def _watch(log: Log, changed: asyncio.Event) -> None:
    while True:
        await log.changed(OUTPUT_LOOKS * FOLLOW_PERIOD_S)
        changed.set()
        await asyncio.sleep(FOLLOW_PERIOD_S)


def _choice(reader: Reader, name_of_all: str, ops_by_job: OpsByJob) -> Chosen | None:
    """The test of `--agent`, `--op` and `--grep`; None, with a message, if no such agent or op is known."""
    context = reader.context
    ops = [op for several in ops_by_job.values() for op in several]
    tests: list[Chosen] = []
    if (name := context.flag("agent")) is not None:
        wanted = agents_called(name, reader.session.store.correlation.agents())
        agents = {str(op.any_agent) for op in ops if op.any_agent}
        if not wanted & agents:
            complain(f"no agent {name} worked for {name_of_all}, only {', '.join(sorted(agents)) or 'none'}")
            return None
        tests.append(lambda line: line.op is not None and line.op.any_agent in wanted)
    if (name := context.flag("op")) is not None:
        prefix = name[:PREFIX_LENGTH]
        if prefix not in {op.op for op in ops}:
            complain(f"no op {name} of {name_of_all}, only {', '.join(op.op for op in ops) or 'none'}")
            return None
        tests.append(lambda line: line.op is not None and line.op.op == prefix)
    # Copied lines come with later ones. Without other flags `--at` follows a clock that is ahead.
    if (until := context.until) is not None and until != context.clock.now():
        tests.append(lambda line: line.at is None or line.at <= until)
    if (unit := context.flag("unit")) is not None:
        tests.append(lambda line: is_of_unit(line.source, unit))
    if (pattern := context.flag("grep")) is not None:
        search = re.compile(pattern).search
        tests.append(lambda line: search(mask_line(line.text)) is not None)
    return lambda line: all(test(line) for test in tests)


def _report(reader: Reader, lines: Sequence[JobLine]) -> Report:
    return Report(
        lambda: {"lines": [line_record(line) for line in lines]},
        CSV_COLUMNS,
        lambda: map(_flat, lines),
        lambda width: _texts(lines, SourceNames(reader.sources)),
    )


def _print_followed(reader: Reader, lines: Sequence[JobLine], *, is_first: bool = False) -> None:
    match reader.context.format:
        case OutputFormat.JSON:
            sources, now, is_partial = reader.sources, reader.now, reader.partial
            records = (document("logs", line_record(one), sources, now, partial=is_partial) for one in lines)
            print_lines(map(dumps, records))
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, map(_flat, lines), head=is_first)
        case _:
            _report(reader, lines).print(reader.context, reader)
    sys.stdout.flush()


def _texts(lines: Sequence[JobLine], names: SourceNames) -> Iterator[str]:
    """The lines behind their times and locations; the directory of a file that is no source is above it."""
    paths = [("", one) if one[:1] != "/" else posixpath.split(one) for one in map(names.location_of, lines)]
    width, above = max((len(location) for _, location in paths), default=0), ""
    for line, (directory, location) in zip(lines, paths, strict=True):
        if directory not in (above, ""):
            yield paint(directory, "heading")
        above = directory
        at = f"{date_time(line.at)}{Zone.mark()}" if line.at is not None else NONE
        text = safe(mask_line(line.text))
        if line.continues:
            text = f"| {text}"
        elif line.certainty is Certainty.ADJACENT and line.job_id:
            text += "  (inferred)"
        yield f"{paint(f'{at:<20}  {location:<{width}}', 'settled')}  {text}"


def _flat(line: JobLine) -> dict[str, object]:
    op = line.op
    return line_record(line) | {"op": op.op if op else None, "agent": op.any_agent if op else None}
