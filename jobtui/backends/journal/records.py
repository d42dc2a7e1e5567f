"""Entries of a journal as log records: which are Sirepo's, which stream each is of, and what is missing.

Units and identifiers as rsconf deploys them; containers as the supervisor names them. An entry with no unit
(a journal without systemd) is recognized by its identifier. Docker gives a long line in pieces of 16 KiB, all
but the last with CONTAINER_PARTIAL_MESSAGE=true (docker's documentation of its journald driver). Reads
nothing.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from fnmatch import translate
from typing import NamedTuple

import msgspec

from jobtui.formats.journal_export import MESSAGE_LIMIT
from jobtui.formats.parser import LogParser
from jobtui.model.bounded import Bounded
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import rows_of
from jobtui.model.journal import Gap, JournalEntry, Match, Matches, position_at
from jobtui.model.logs import LogRecord
from jobtui.model.numbers import counted, whole

UNIT, IDENTIFIER, CONTAINER = "_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "CONTAINER_NAME"
HOST = "_HOSTNAME"
DOCKER_UNIT = "docker.service"
JOURNALD = "systemd-journald"
CONTAINER_NAMES_MATCHED = 200
"""How many containers are asked for by name, if docker's unit does not match their entries."""
STREAMS_KEPT = 2_000
"""How many streams of one journal are kept; those first seen longest ago are forgotten."""

_UNITS = ("sirepo_job_supervisor.service", "sirepo.service", "sirepo@*.service", "sirepo-*.service")
_IDENTIFIERS = ("sirepo_job_supervisor", "sirepo", "sirepo-[0-9]*")
_CONTAINERS = ("srj-[sp]-*",)
_WILD = re.compile(r"[*?\[]")
_SUFFIX = re.compile(r"\.[a-z]+\Z")
_FULL_ID = 64
_SHORT_ID = 4

OP_HAS = "runDir"  # a word in lines that create or send an op of a job: they name both
START_HAS = "default_command"  # a word in the line that a supervisor writes at its start
_OP = re.compile(r"_Op\((?:DESTROYED, )?\w+, (\w{4})|\bo=(?!None)(\w{4})\b", re.ASCII)
_AGENT = re.compile(r"Driver\(a=(\w{4})\b", re.ASCII)


def ops_named(text: str) -> set[str]:
    """The ops that a line names, as other lines write them."""
    return {one or other for one, other in _OP.findall(text)}


def agents_named(text: str) -> set[str]:
    return set(_AGENT.findall(text))


class StreamKind(StrEnum):
    """The fields by which the entries of a stream are recognized."""

    UNIT = "unit"
    IDENTIFIER = "identifier"
    CONTAINER = "container"


_FIELDS = {StreamKind.UNIT: UNIT, StreamKind.IDENTIFIER: IDENTIFIER, StreamKind.CONTAINER: CONTAINER}


class Stream(NamedTuple):
    """What one service or container of a host writes. `instance` distinguishes containers of one name."""

    kind: StreamKind
    name: str
    host: str
    instance: str = ""

    @property
    def short(self) -> str:
        return _SUFFIX.sub("", self.name).replace("@", "-") if self.kind is StreamKind.UNIT else self.name

    @property
    def matches(self) -> tuple[Match, ...]:
        own: list[Match] = [(_FIELDS[self.kind], self.name)]
        if self.instance:
            field = "CONTAINER_ID_FULL" if len(self.instance) == _FULL_ID else "CONTAINER_ID"
            own.append((field, self.instance))
        return (*own, *(((HOST, self.host),) if self.host else ()))


class WantedStreams:
    """Which streams are wanted. Patterns as in a shell; a unit without a suffix is a service."""

    def __init__(
        self,
        units: Iterable[str] = _UNITS,
        identifiers: Iterable[str] = _IDENTIFIERS,
        containers: Iterable[str] = _CONTAINERS,
    ) -> None:
        services = (unit if _SUFFIX.search(unit) else f"{unit}.service" for unit in units)
        self._patterns = {
            UNIT: tuple(services), IDENTIFIER: tuple(identifiers), CONTAINER: tuple(containers)
        }  # fmt: skip
        self._programs = {
            field: re.compile("|".join(map(translate, patterns)) or r"(?!)")
            for field, patterns in self._patterns.items()
        }

    @property
    def open_fields(self) -> tuple[str, ...]:
        return tuple(field for field, patterns in self._patterns.items() if any(map(_WILD.search, patterns)))

    def matches(self, values: Mapping[str, Iterable[str]]) -> Matches:
        """The matches for a journal that has these values in the fields of `open_fields`."""
        groups = [*self._matches_for(UNIT, values), *self._matches_for(IDENTIFIER, values)]
        if self._patterns[CONTAINER]:
            # Always, so that a container that starts later is seen from its first line on
            groups.append((UNIT, DOCKER_UNIT))
            if DOCKER_UNIT not in values.get(UNIT, ()):
                groups += self._matches_for(CONTAINER, values)[:CONTAINER_NAMES_MATCHED]
        groups.append((IDENTIFIER, JOURNALD))
        return tuple((match,) for match in dict.fromkeys(groups))

    def _matches_for(self, field: str, values: Mapping[str, Iterable[str]]) -> list[Match]:
        exact = [pattern for pattern in self._patterns[field] if not _WILD.search(pattern)]
        fitting = sorted(filter(self._programs[field].match, values.get(field, ())))
        return [(field, value) for value in (*exact, *fitting)]

    def stream_of(self, entry: JournalEntry) -> Stream | None:
        if entry.container:
            stream = Stream(StreamKind.CONTAINER, entry.container, entry.host, entry.container_id)
        elif entry.unit:
            stream = Stream(StreamKind.UNIT, entry.unit, entry.host)
        else:
            stream = Stream(StreamKind.IDENTIFIER, entry.identifier, entry.host)
        return stream if self._programs[_FIELDS[stream.kind]].match(stream.name) else None


class StreamNames:
    """Names streams: `sirepo_job_supervisor@v3`. A name never changes.

    The host is named by its first label unless another host has the same, and by its site if several are
    read: `sirepo_job_supervisor@v3.hpc`. The second container under one name, and further ones, are
    distinguished by the beginning of their ids: `srj-p-VUlhaMOD.3f2a@v3`.
    """

    def __init__(self, journal: str, site: str = "") -> None:
        self._journal = journal
        self.site = site
        self._names: dict[Stream, str] = {}
        self.known: dict[str, Stream] = {}
        self._hosts: dict[str, str] = {}

    def name_of(self, stream: Stream) -> str:
        if (known := self._names.get(stream)) is not None:
            return known
        host = self._host(stream.host) if stream.host else self._journal
        host = f"{host}.{self.site}" if self.site else host
        name = f"{stream.short}@{host}"
        length = _SHORT_ID
        while name in self.known and stream.instance and length <= len(stream.instance):
            name = f"{stream.short}.{stream.instance[:length]}@{host}"
            length += _SHORT_ID
        name = name if name not in self.known else f"{name} ({stream.kind.value})"
        self._names[stream] = name
        self.known[name] = stream
        if len(self._names) > STREAMS_KEPT:
            oldest = next(iter(self._names))
            del self.known[self._names.pop(oldest)]
        return name

    def _host(self, host: str) -> str:
        short = host.partition(".")[0] or host
        owner = self._hosts.setdefault(short, host)
        return short if owner == host else host


def position_after(last: int, at: Nanos) -> int:
    """The position of an entry received at this time; the one before it has the position `last`."""
    return max(position_at(at), last + 1)


RATE_LIMIT_S = 30
"""journald's default RateLimitIntervalSec: its message about dropped messages covers this time before it."""
GAPS_KEPT = 50
GAPS_NAMED = 3

_SUPPRESSED = re.compile(r"Suppressed (\d+) messages? from (\S+)", re.ASCII)


def suppressed(entry: JournalEntry) -> Gap | None:
    """The gap that an entry of journald itself reports; None for any other entry."""
    found = _SUPPRESSED.match(entry.message) if entry.identifier == JOURNALD else None
    if found is None:
        return None
    start = Nanos(entry.at - RATE_LIMIT_S * SECOND)
    unit = found[2].rsplit("/", 1)[-1]
    return Gap(
        start,
        entry.at,
        f"journald dropped {counted(whole(found[1]) or 0, 'message')} of {unit}: its rate limit",
        unit,
    )


class Gaps:
    """The newest few gaps of one journal."""

    def __init__(self) -> None:
        self._gaps: deque[Gap] = deque(maxlen=GAPS_KEPT)
        self._outage: Gap | None = None
        self._reached_at: Nanos | None = None

    def __iter__(self) -> Iterator[Gap]:
        yield from self._gaps
        if self._outage is not None:
            yield self._outage

    def add(self, gap: Gap) -> None:
        self._gaps.append(gap)

    def failed(self, now: Nanos, why: str) -> None:
        if self._outage is None:
            start = now if self._reached_at is None else self._reached_at
            self._outage = Gap(start, None, why)

    def reached(self, now: Nanos) -> None:
        """It can be read again; what was written during an outage has come, too."""
        if self._outage is not None:
            if self._reached_at is not None:
                self._gaps.append(self._outage._replace(end=now, recovered=True))
            self._outage = None
        self._reached_at = now

    @property
    def words(self) -> str:
        gaps = list(self)[-GAPS_NAMED:]
        more = len(self._gaps) - GAPS_NAMED
        return "; ".join([*(map(gap_words, gaps)), *([f"{more} earlier gaps"] if more > 0 else [])])


def gap_words(gap: Gap) -> str:
    start = to_rfc3339(Nanos(gap.start // SECOND * SECOND))
    if gap.end is None:
        return f"not reached since {start}: {gap.why}"
    end = to_rfc3339(Nanos(gap.end // SECOND * SECOND))
    day, _, clock = end.partition("T")
    span = f"{start} to {clock if start.startswith(day) else end}"
    if gap.recovered:
        return f"not reached {span}, read later, nothing missing: {gap.why}"
    return f"{gap.why}, {span}"


LINES_OPEN = 200
"""How many unfinished lines are held; those that began longest ago are given as they are."""

_Writer = tuple[str, str, str, int | None]


class SplitLines:
    """Joins pieces of lines. Pieces of the two outputs of a container may be mixed."""

    def __init__(self) -> None:
        self._open: OrderedDict[_Writer, JournalEntry] = OrderedDict()

    def joined(self, entries: Iterable[JournalEntry]) -> Iterator[JournalEntry]:
        """The entries. Pieces become one entry, the first of them; its message may be cut."""
        for entry in entries:
            writer = entry.host, entry.container, entry.container_id, entry.priority
            begun = self._open.pop(writer, None) if entry.container else None
            line = entry
            if begun is not None:
                message = (begun.message + entry.message)[:MESSAGE_LIMIT]
                size = begun.size + entry.size
                line = msgspec.structs.replace(begun, message=message, size=size, is_begun=entry.is_begun)
            if not entry.is_begun or not entry.container:
                yield line
                continue
            self._open[writer] = line
            if len(self._open) > LINES_OPEN:
                yield self._open.popitem(last=False)[1]


PARSERS_KEPT = 1_000
"""How many processes' last lines are remembered; those that wrote longest ago are forgotten."""
WRITTEN_WITHIN = 2 * SECOND
"""Within this time a line counts as received when written: its own clock has whole seconds."""

_Process = tuple[Stream, str, int | None]


class EntryRecords:
    """Takes the entries of one journal in order."""

    def __init__(self, wanted: WantedStreams, names: StreamNames) -> None:
        self._wanted = wanted
        self._names = names
        self._parsers = Bounded[_Process, LogParser](PARSERS_KEPT)
        self._positions = Bounded[Stream, int](PARSERS_KEPT)
        self._lines = SplitLines()
        self.lost: list[str] = []
        """Why entries were left out; its reader clears it."""

    def take(self, entries: Iterable[JournalEntry]) -> tuple[list[LogRecord], list[Gap], int]:
        records: list[LogRecord] = []
        gaps: list[Gap] = []
        wanted = 0

        def take(entry: JournalEntry) -> None:
            nonlocal wanted
            stream = self._wanted.stream_of(entry)
            if stream is not None:
                wanted += 1
                records.extend(self._records(entry, stream))
            elif gap := suppressed(entry):
                gaps.append(gap)

        for _ in rows_of(self._lines.joined(entries), take, lambda _, why: self.lost.append(why)):
            pass
        return records, gaps, wanted

    def _records(self, entry: JournalEntry, stream: Stream) -> Iterator[LogRecord]:
        position = self._positions[stream] = position_after(self._positions.get(stream, -1), entry.at)
        container = stream.name if stream.kind is StreamKind.CONTAINER else None
        # In a container a process has another number than on the host, where it is that of docker itself
        pid = None if container else entry.pid
        at = entry.sent_at or entry.at
        found = self._parser(stream, entry).read_message(entry.message, position, 0, at, pid)
        for nth, record in enumerate(found):
            yield msgspec.structs.replace(
                record,
                at=record.at if record.container else _written_at(record.at, at),
                container=record.container or container,
                cursor=entry.cursor,
                identity=identity_of(entry, nth),
            )

    def _parser(self, stream: Stream, entry: JournalEntry) -> LogParser:
        process = (stream, entry.boot, None if stream.kind is StreamKind.CONTAINER else entry.pid)
        parser = self._parsers.get(process) or LogParser(self._names.name_of(stream))
        self._parsers[process] = parser
        return parser


def identity_of(entry: JournalEntry, nth: int = 0) -> int:
    """The same for all copies of an entry: collected copies get new cursors. Valid in this process only."""
    if entry.monotonic_us is None or not entry.boot:
        return hash((entry.host, entry.at, entry.pid, entry.message, nth))
    return hash((entry.machine, entry.boot, entry.monotonic_us, entry.message, nth))


def _written_at(own: Nanos | None, received: Nanos) -> Nanos:
    """When a line was written: the second in its text, more exactly if it was received at once."""
    if own is None:
        return received
    return Nanos(min(received, own + SECOND - 1_000)) if own <= received < own + WRITTEN_WITHIN else own
