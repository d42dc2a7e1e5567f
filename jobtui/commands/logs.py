"""`logs ID`: the lines that belong to a job, merged in time order, source in front."""

import asyncio
import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from jobtui.analysis.job_lines import JobLine, job_lines
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.continuations import with_continuations
from jobtui.commands.exits import Exit
from jobtui.commands.names import SourceNames
from jobtui.commands.printing import print_csv, print_document, print_lines, print_not_found
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.resolve import resolve
from jobtui.commands.streams import complain
from jobtui.model.ids import PREFIX_LENGTH, JobId
from jobtui.model.ops import Agent, Certainty, Op
from jobtui.model.secrets import mask_text
from jobtui.render.json_output import document, dumps, line_record
from jobtui.render.table import paint
from jobtui.render.text import NONE, Zone, date_time, show

FOLLOW_PERIOD_S = 0.25
CSV_COLUMNS = ("at", "source", "line", "component", "op", "agent", "level", "certainty", "text")

Chosen = Callable[[JobLine], bool]


def run(context: Context) -> Exit:
    """Print the lines, and with `--follow` go on until interrupted."""
    return in_session(context, _logs)


async def _logs(reader: Reader) -> Exit:
    following = reader.context.flag("follow") is not None
    found = await resolve(reader, reader.context.words[0], to_end=following)
    if found.job is None:
        return print_not_found("logs", {"lines": []}, found, reader)
    await reader.read_logs(found.detail, to_end=following)
    chosen = _choice(reader, found.job.id)
    if chosen is None:
        return reader.settle(Exit.NOT_FOUND)
    log = _JobLog(reader, found.job.id, chosen)
    lines = await log.fresh()
    last = reader.context.flag("lines")
    shown = lines if last is None else lines[max(0, len(lines) - int(last)) :]
    printer = _Printer(reader)
    if not following:
        printer.whole(shown)
        return reader.settle(Exit.FINE)
    printer.more(shown)
    await _follow(reader, found.job.id, log, printer)
    return reader.settle(Exit.FINE)


class _JobLog:
    """The chosen lines of a job, those that are new at each look."""

    def __init__(self, reader: Reader, job_id: JobId, chosen: Chosen) -> None:
        self._session = reader.session
        self._job_id = job_id
        self._chosen = chosen
        self._seen: set[tuple[str, int, str]] = set()

    async def fresh(self) -> list[JobLine]:
        """What was not there at the last look."""
        correlation = self._session.store.correlation
        ops, unlinked = correlation.ops_of(self._job_id), correlation.unlinked_of(self._job_id)
        lines = [line for line in job_lines(self._job_id, ops, unlinked) if line.place not in self._seen]
        self._seen.update(line.place for line in lines)
        return [line for line in await with_continuations(lines, self._session) if self._chosen(line)]


async def _follow(reader: Reader, job_id: JobId, log: _JobLog, printer: "_Printer") -> None:
    following = asyncio.ensure_future(reader.follow_logs())
    stopped, changed = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stopped.set)
    unsubscribe = reader.session.store.subscribe(
        lambda changes: changed.set() if job_id in changes.jobs else None
    )
    try:
        while not stopped.is_set() and not following.done():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), FOLLOW_PERIOD_S)
            if changed.is_set():
                changed.clear()
                printer.more(await log.fresh())
    finally:
        unsubscribe()
        loop.remove_signal_handler(signal.SIGINT)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


def _choice(reader: Reader, job_id: JobId) -> Chosen | None:
    """The test of `--agent`, `--op` and `--grep`; None when there is no such agent or op, which is said."""
    context = reader.context
    correlation = reader.session.store.correlation
    ops = correlation.ops_of(job_id)
    tests: list[Chosen] = []
    if (name := context.flag("agent")) is not None:
        wanted = _agents_called(name, correlation.agents())
        agents = {str(_agent_of(op)) for op in ops if _agent_of(op)}
        if not wanted & agents:
            complain(f"no agent {name} worked for {job_id}, only {', '.join(sorted(agents)) or 'none'}")
            return None
        tests.append(lambda line: line.op is not None and _agent_of(line.op) in wanted)
    if (name := context.flag("op")) is not None:
        prefix = name[:PREFIX_LENGTH]
        if prefix not in {op.op for op in ops}:
            complain(f"no op {name} of {job_id}, only {', '.join(op.op for op in ops) or 'none'}")
            return None
        tests.append(lambda line: line.op is not None and line.op.op == prefix)
    if (unit := context.flag("unit")) is not None:
        tests.append(lambda line: is_of_unit(line.source, unit))
    if (pattern := context.flag("grep")) is not None:
        search = re.compile(pattern).search
        tests.append(lambda line: search(mask_text(line.text)) is not None)
    return lambda line: all(test(line) for test in tests)


def is_of_unit(source: str, unit: str) -> bool:
    """Whether a source is what somebody calls so: a unit, with its host or not, a container, a log file.

    As in a shell a name may have wildcards.
    """
    short = unit.removesuffix(".service").replace("sirepo@", "sirepo-")
    stream = source.rpartition("@")[0] or source
    instance = stream.partition(".")[0]
    file = source.rsplit("/", 1)[-1]
    names = (source, stream, instance, file, file.removesuffix(".log"))
    return any(fnmatchcase(name, wanted) for name in names for wanted in (unit, short))


def _agent_of(op: Op) -> str | None:
    return op.agent or op.assigned_agent


def _agents_called(name: str, agents: Iterable[Agent]) -> frozenset[str]:
    """The prefixes of the agents that a prefix, a full id or a container names."""
    return frozenset({name[:PREFIX_LENGTH], *(agent.agent for agent in agents if agent.container == name)})


class _Printer:
    """Prints lines in the format that was asked for."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._format = reader.context.format
        self._names = SourceNames(reader.sources)
        self._begun = False

    def whole(self, lines: Sequence[JobLine]) -> None:
        """All there is."""
        if self._format is OutputFormat.JSON:
            print_document("logs", {"lines": [line_record(line) for line in lines]}, self._reader)
        else:
            self.more(lines)

    def more(self, lines: Sequence[JobLine]) -> None:
        """Some lines, at once; as JSON one object a line."""
        if self._format is OutputFormat.JSON:
            print_lines(dumps(self._document(line)) for line in lines)
        elif self._format is OutputFormat.CSV:
            print_csv(CSV_COLUMNS, map(_flat, lines), head=not self._begun)
        else:
            width = max((len(self._place(line)) for line in lines), default=0)
            print_lines(self._text(line, width) for line in lines)
        self._begun = True
        sys.stdout.flush()

    def _document(self, line: JobLine) -> dict[str, object]:
        reader = self._reader
        return document("logs", line_record(line), reader.sources, reader.now, partial=reader.partial)

    def _place(self, line: JobLine) -> str:
        return self._names.place(line.source, line.line, line.offset, line.cursor)

    def _text(self, line: JobLine, width: int) -> str:
        colour = self._reader.context.colour
        at = f"{date_time(line.at)}{Zone.mark()}" if line.at is not None else NONE
        head = f"{at:<20}  {self._place(line):<{width}}"
        text = show(line.text)
        if line.continues:
            text = f"| {text}"
        elif line.certainty is Certainty.ADJACENT:
            text += "  (inferred)"
        return f"{paint(head, 'settled', colour)}  {text}"


def _flat(line: JobLine) -> dict[str, object]:
    op = line.op
    return line_record(line) | {"op": op.op if op else None, "agent": _agent_of(op) if op else None}
