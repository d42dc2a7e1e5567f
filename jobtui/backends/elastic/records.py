"""What the documents of an index mean: presets, searches, hits as rows, and jobs made of them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import msgspec

from jobtui.backends.elastic.client import Document
from jobtui.backends.engine import EngineRow, RowQuery, united
from jobtui.backends.slurm.records import job_of
from jobtui.formats.condor_events import EventReader, Form, form_of
from jobtui.formats.json_values import as_list
from jobtui.formats.slurm import accounted_job
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.condor import CondorFact
from jobtui.model.health import Skip, rows_of
from jobtui.model.ids import JobId, named
from jobtui.model.jobs import Job
from jobtui.model.journal import Matches
from jobtui.model.numbers import whole, whole_of
from jobtui.model.slurm import SYSTEM
from jobtui.model.tables import tables_of

LEFT_OUT_MOST = 1_000
"""The most ids that a search leaves out; others that come again are dropped here."""
NANOS_FROM = 10**17
"""A time as a number from here on is in nanoseconds, below in milliseconds."""
MILLISECOND = 1_000_000
SERVER_WAITS = "20s"
"""The time after which the server returns what it has found so far."""
VALUES_MOST = 1_000
EVENT_END = "\n..."
OF_LINES = frozenset({"MESSAGE", "text"})
OF_PARTS = {"_": ("ArrayJobID", "ArrayTaskID"), "+": ("HetJobID", "HetJobOffset")}
"""The fields that name a task of an array, as `22_1`, and a part of a heterogeneous job, as `22+1`."""


class Preset(msgspec.Struct, frozen=True):
    """How documents are written. `fields` are those that each of ours may have there, the likeliest first."""

    name: str
    gives: str
    time: str
    fields: dict[str, tuple[str, ...]] = {}
    reads: str = ""

    def paths_of(self, field: str) -> Iterator[str]:
        for path in self.fields.get(field, ()):
            yield from (path, f"{path}.keyword")


@cache
def presets() -> Mapping[str, Preset]:
    tables = tables_of("jobtui.backends.elastic", "presets")
    return {name: msgspec.convert({**table, "name": name}, Preset) for name, table in tables.items()}


def _first(value: object) -> object:
    return value[0] if isinstance(value, list) and value else value


def value_at(document: Document, path: str) -> object:
    """The value at a path, nested, flat with dots, or partly so. None for nothing."""
    if path in document:
        return document[path]
    head, dot, rest = path.partition(".")
    while dot:
        inner = _first(document.get(head))
        if isinstance(inner, dict) and (found := value_at(inner, rest)) is not None:
            return found
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def text_at(document: Document, paths: Iterable[str], is_of_lines: bool = False) -> str:
    """The first of these fields that is a text, a number or a truth; "" for none."""
    for path in paths:
        values = value_at(document, path)
        found = [one for one in as_list(values) or [values] if isinstance(one, str | int | float)]
        if found:
            texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in found]
            return "\n".join(texts) if is_of_lines else texts[0]
    return ""


def fields_of(document: Document, preset: Preset) -> dict[str, str]:
    """The fields that a document has. The first of several values counts; several texts are all lines."""
    found = ((field, text_at(document, paths, field in OF_LINES)) for field, paths in preset.fields.items())
    return {field: text for field, text in found if text}


def search_of(asked: RowQuery, preset: Preset) -> dict[str, object]:
    """The search for rows, also of a point in time that a walk has open."""
    walk = asked.walk
    filters: list[Document] = []
    if asked.begin is not None or asked.end is not None:
        filters.append(_within(preset, asked.begin, asked.end))
    filters += [_any_of(asked.matches, preset)] if asked.matches else []
    bounded: dict[str, object] = {"filter": filters}
    if asked.without and not (walk and walk.after):
        bounded["must_not"] = [{"ids": {"values": list(asked.without)[-LEFT_OUT_MOST:]}}]
    order = {"order": "desc" if asked.back else "asc", "unmapped_type": "date"}
    query: dict[str, object] = {
        "query": {"bool": bounded}, "sort": [{preset.time: order}], "size": asked.most,
        "track_total_hits": False, "timeout": SERVER_WAITS,
    }  # fmt: skip
    if walk is not None and walk.point:
        query["pit"] = {"id": walk.point, "keep_alive": "1m"}
        query |= {"search_after": walk.after} if walk.after else {}
    return query


def values_search(field: str, preset: Preset, begin: Nanos | None, *, keyword: bool) -> dict[str, object]:
    end = ".keyword" if keyword else ""
    groups = {
        str(nth): {"terms": {"field": path + end, "size": VALUES_MOST}}
        for nth, path in enumerate(preset.fields[field])
    }
    query: dict[str, object] = {"size": 0, "aggs": groups, "timeout": SERVER_WAITS}
    if begin is not None:
        query["query"] = _within(preset, begin, None)
    return query


def _within(preset: Preset, begin: Nanos | None, end: Nanos | None) -> Document:
    """Both ends are included, to the nanosecond; the form is said, as a field may be kept in another."""
    bounds = {"format": "strict_date_optional_time"}
    for word, at in (("gte", begin), ("lte", end)):
        if at is not None:
            whole_second = Nanos(at // SECOND * SECOND)
            bounds[word] = f"{to_rfc3339(whole_second).removesuffix('Z')}.{at % SECOND:09d}Z"
    return {"range": {preset.time: bounds}}


def _any_of(matches: Matches, preset: Preset) -> Document:
    """A clause that holds where any group does."""
    clauses: list[Document] = []
    for fields in united(matches):
        each: list[list[Document]] = [
            [{"terms": {path: values}} for path in preset.paths_of(field)] for field, values in fields
        ]
        clauses += each[0] if len(each) == 1 else [{"bool": {"filter": [*map(_either, each)]}}]
    return _either(clauses)


def _either(clauses: list[Document]) -> Document:
    if not clauses:
        return {"match_none": {}}
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def row_of(hit: Document) -> EngineRow:
    """A hit as a row. Raises ValueError for one without an id, a time or a document."""
    identity, order = hit.get("_id"), as_list(hit.get("sort"))
    source = hit.get("_source")
    at = whole_of(order[0]) if order else None
    if not isinstance(identity, str) or at is None or not isinstance(source, dict):
        raise ValueError("a hit has no id, no time, or no document")
    return EngineRow(Nanos(at if at >= NANOS_FROM else at * MILLISECOND), identity, source)


class JobsRead(NamedTuple):
    """Jobs made of documents."""

    jobs: list[Job]
    facts: list[CondorFact]
    skips: list[Skip]


class DocumentReader:
    """Makes jobs of rows, in their order, as a preset says.

    `label` tells the index from others, `clusters` are those in it, `home` is the one that is asked itself,
    too. Any other of several has numbers of its own.
    """

    def __init__(
        self, source: str, preset: Preset, label: str = "", clusters: Iterable[str] = (), home: str = ""
    ) -> None:
        self._source = source
        self._preset = preset
        self._label = label
        self._clusters = frozenset(clusters)
        self._home = home.lower()
        self._events: dict[str, EventReader] = {}

    def _system_of(self, cluster: str) -> str:
        is_home = cluster.lower() == self._home if self._home else not self._clusters - {cluster}
        own = "" if is_home else cluster
        return named(SYSTEM, ".".join(filter(None, (self._label, own))))

    def asked_for(self, job_id: JobId) -> Matches:
        """The search for the record of a Slurm job; nothing for the id of another."""
        system, _, number = job_id.partition("/")
        sign = next((one for one in OF_PARTS if one in number), "")
        group = tuple(zip(OF_PARTS.get(sign, ("JobID",)), number.split(sign or None), strict=False))
        clusters = [one for one in self._clusters or {""} if self._system_of(one) == system]
        return tuple((*group, ("Cluster", one)) if one else group for one in clusters)

    def read(self, rows: list[EngineRow]) -> JobsRead:
        found = JobsRead([], [], [])

        def skip(row: EngineRow, why: str) -> None:
            found.skips.append(Skip(f"{self._source}, document {row.id}", why))

        if self._preset.reads == SYSTEM:
            found.jobs.extend(rows_of(rows, self._job, skip, ValueError))
        else:
            found.facts.extend(chain.from_iterable(rows_of(rows, self._facts, skip, ValueError)))
        return found

    def _job(self, row: EngineRow) -> Job:
        fields = fields_of(row.body, self._preset)
        for sign, (whole_job, part) in OF_PARTS.items():
            if part in fields:
                fields["JobID"] = f"{fields.get(whole_job)}{sign}{fields[part]}"
        job = accounted_job(fields)
        if job is None:
            raise ValueError("is no record of a Slurm job")
        limit = whole_of(row.body.get("time_limit"))
        whole = msgspec.structs.replace(
            job,
            limit_s=None if limit is None else float(limit),
            stdout=text_at(row.body, ("std_out",)),
            stderr=text_at(row.body, ("std_err",)),
        )
        return job_of(whole, self._source, self._system_of(job.cluster))

    def _facts(self, row: EngineRow) -> list[CondorFact]:
        if self._preset.reads == "ads":
            data, place, form = msgspec.json.encode(row.body), self._source, Form.JSON_ADS
            number = crc32(row.id.encode())
        else:
            fields = fields_of(row.body, self._preset)
            text = fields.get("text", "").removesuffix("\n").removesuffix(EVENT_END)
            data = f"{text}\n...\n".encode("utf-8", "replace")
            place = f"{self._source} {fields.get('host', '')}:{fields.get('path', '')}"
            number = whole(fields.get("offset"), crc32(row.id.encode()))
            found = form_of(data)
            form = Form.CLASSIC if found is None or found is Form.OUTPUT else found
        reader = self._events.setdefault(place, EventReader(place))
        read = reader.read(form, data, number, 0, Nanos(row.at + SECOND), to_end=True)
        if read.skips:
            raise ValueError(read.skips[0].why)
        return read.facts
