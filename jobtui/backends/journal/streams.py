"""Which entries of a journal are Sirepo's, and whose: the streams it holds, and what they are called.

Units and identifiers as rsconf deploys them; containers as the supervisor names them. An entry with no unit
(a journal without systemd) is told by its identifier. Reads nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from fnmatch import translate
from typing import NamedTuple

from jobtui.model.journal import JournalEntry, Match, Matches

UNIT, IDENTIFIER, CONTAINER = "_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "CONTAINER_NAME"
HOST = "_HOSTNAME"
DOCKER_UNIT = "docker.service"
JOURNALD = "systemd-journald"
CONTAINER_NAMES_MATCHED = 200
"""Containers that are asked for by name, where docker's unit does not tell their entries."""
STREAMS_KEPT = 2_000
"""Streams of one journal that are known at once; those first seen longest ago are forgotten."""

_UNITS = ("sirepo_job_supervisor.service", "sirepo.service", "sirepo@*.service", "sirepo-*.service")
_IDENTIFIERS = ("sirepo_job_supervisor", "sirepo", "sirepo-[0-9]*")
_CONTAINERS = ("srj-[sp]-*",)
_WILD = re.compile(r"[*?\[]")
_SUFFIX = re.compile(r"\.[a-z]+\Z")
_FULL_ID = 64
_SHORT_ID = 4


class StreamKind(StrEnum):
    """By what the entries of a stream are told."""

    UNIT = "unit"
    IDENTIFIER = "identifier"
    CONTAINER = "container"


class Stream(NamedTuple):
    """What one service or container of one host writes. `instance` tells containers of one name apart."""

    kind: StreamKind
    name: str
    host: str
    instance: str = ""

    @property
    def short(self) -> str:
        """The service or container as a person calls it."""
        return _SUFFIX.sub("", self.name).replace("@", "-") if self.kind is StreamKind.UNIT else self.name

    @property
    def matches(self) -> tuple[Match, ...]:
        """The group of matches that its entries fulfil."""
        on: tuple[Match, ...] = ((HOST, self.host),) if self.host else ()
        if self.kind is StreamKind.UNIT:
            return ((UNIT, self.name), *on)
        if self.kind is StreamKind.IDENTIFIER:
            return ((IDENTIFIER, self.name), *on)
        if not self.instance:
            return ((CONTAINER, self.name), *on)
        field = "CONTAINER_ID_FULL" if len(self.instance) == _FULL_ID else "CONTAINER_ID"
        return ((CONTAINER, self.name), (field, self.instance), *on)


class Wanted:
    """Which streams are wanted. Patterns as in a shell; a unit without a suffix is a service."""

    def __init__(
        self,
        units: Iterable[str] = _UNITS,
        identifiers: Iterable[str] = _IDENTIFIERS,
        containers: Iterable[str] = _CONTAINERS,
    ) -> None:
        self._units = tuple(unit if _SUFFIX.search(unit) else f"{unit}.service" for unit in units)
        self._identifiers = tuple(identifiers)
        self._containers = tuple(containers)
        self._fits_unit = _fits(self._units)
        self._fits_identifier = _fits(self._identifiers)
        self._fits_container = _fits(self._containers)

    @property
    def open_fields(self) -> tuple[str, ...]:
        """The fields whose values have to be known to ask for all that is wanted."""
        wild = ((UNIT, self._units), (IDENTIFIER, self._identifiers), (CONTAINER, self._containers))
        return tuple(field for field, patterns in wild if any(map(_WILD.search, patterns)))

    def matches(self, values: Mapping[str, Iterable[str]]) -> Matches:
        """What a journal is asked in which these values occur, of the fields in `open_fields`."""
        units, names = values.get(UNIT, ()), values.get(CONTAINER, ())
        groups: list[Match] = []
        groups += _asked(UNIT, self._units, self._fits_unit, units)
        identifiers = values.get(IDENTIFIER, ())
        groups += _asked(IDENTIFIER, self._identifiers, self._fits_identifier, identifiers)
        if self._containers:
            # Always, so that a container that is yet to start is seen from its first line on
            groups.append((UNIT, DOCKER_UNIT))
            if DOCKER_UNIT not in units:
                named = _asked(CONTAINER, self._containers, self._fits_container, names)
                groups += named[:CONTAINER_NAMES_MATCHED]
        groups.append((IDENTIFIER, JOURNALD))
        return tuple((match,) for match in dict.fromkeys(groups))

    def stream_of(self, entry: JournalEntry) -> Stream | None:
        """The stream of an entry; None when it is not wanted."""
        if entry.container:
            if self._fits_container(entry.container):
                return Stream(StreamKind.CONTAINER, entry.container, entry.host, entry.container_id)
        elif entry.unit:
            if self._fits_unit(entry.unit):
                return Stream(StreamKind.UNIT, entry.unit, entry.host)
        elif self._fits_identifier(entry.identifier):
            return Stream(StreamKind.IDENTIFIER, entry.identifier, entry.host)
        return None


def _fits(patterns: Iterable[str]) -> Callable[[str], bool]:
    program = re.compile("|".join(map(translate, patterns)) or r"(?!)")
    return lambda text: program.match(text) is not None


def _asked(
    field: str, patterns: Iterable[str], fits: Callable[[str], bool], values: Iterable[str]
) -> list[Match]:
    exact = [pattern for pattern in patterns if not _WILD.search(pattern)]
    return [(field, value) for value in (*exact, *sorted(filter(fits, values)))]


class StreamNames:
    """Gives streams their names, `sirepo_job_supervisor@v3`; a name once given stays.

    The host is called by its first label as long as no other host is called so. The second container under
    one name, and further ones, are told apart by the beginning of their ids: `srj-p-VUlhaMOD.3f2a@v3`.
    """

    def __init__(self, journal: str) -> None:
        self._journal = journal
        self._names: dict[Stream, str] = {}
        self._streams: dict[str, Stream] = {}
        self._hosts: dict[str, str] = {}

    def name_of(self, stream: Stream) -> str:
        """What a stream is called."""
        name = self._names.get(stream)
        if name is None:
            name = self._names[stream] = self._new_name(stream)
            self._streams[name] = stream
            if len(self._names) > STREAMS_KEPT:
                oldest = next(iter(self._names))
                del self._streams[self._names.pop(oldest)]
        return name

    def stream_called(self, name: str) -> Stream | None:
        """The stream with this name."""
        return self._streams.get(name)

    @property
    def known(self) -> Mapping[str, Stream]:
        """Every stream by its name, the one first seen first."""
        return self._streams

    def _new_name(self, stream: Stream) -> str:
        host = self._host(stream.host) if stream.host else self._journal
        name = f"{stream.short}@{host}"
        length = _SHORT_ID
        while name in self._streams and stream.instance and length <= len(stream.instance):
            name = f"{stream.short}.{stream.instance[:length]}@{host}"
            length += _SHORT_ID
        return name if name not in self._streams else f"{name} ({stream.kind.value})"

    def _host(self, host: str) -> str:
        short = host.partition(".")[0] or host
        owner = self._hosts.setdefault(short, host)
        return short if owner == host else host
