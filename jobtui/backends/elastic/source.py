"""An index of Elasticsearch or OpenSearch as a source of logs: presets, searches, hits read as a journal."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cache, partial

import msgspec

from jobtui.backends import engine
from jobtui.backends.elastic.client import Document, ElasticClient, SearchAnswer, TextFieldError
from jobtui.backends.journal.source import Journal, journal_of
from jobtui.formats.json_values import as_dict, as_list
from jobtui.model.clock import LATEST_S, MILLISECOND, SECOND, Clock, Nanos, SystemClock, to_rfc3339
from jobtui.model.health import SourceError, SourceUnreachable, rows_of
from jobtui.model.ids import PREFIX_LENGTH
from jobtui.model.journal import Matches
from jobtui.model.numbers import whole_of
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.model.tables import tables_of
from jobtui.transport.unpacking import TooLarge

LEFT_OUT_MOST = 10_000
"""The most ids that a search excludes; other repeated rows are dropped here."""
NANOS_FROM = 10**13
"""A time as a number from here on is in nanoseconds, below in milliseconds: no older or later one is read."""
LATEST = Nanos(LATEST_S * SECOND)
CAST = {"numeric_type": "date_nanos"}
"""Sorts times as nanoseconds, however each index maps them."""
NOT_CAST = "it is older than 7.2: rows may be missing if indices map their times as date and as date_nanos"
SERVER_WAITS = "20s"
"""The time after which the server returns what it has found so far."""
VALUES_MOST = 1_000
LEAST_ROWS = 8
OF_LINES = frozenset({"MESSAGE", "text"})


class Preset(msgspec.Struct, frozen=True):
    """How documents are written, and which: those that have a field, if one is named.

    `fields` are the names that each of our fields may have, likeliest first. `joined`: see presets.toml.
    """

    name: str
    gives: str
    time: str
    fields: dict[str, tuple[str, ...]] = {}
    reads: str = ""
    only_with: str = ""
    joined: tuple[str, ...] = ()


@cache
def presets() -> Mapping[str, Preset]:
    tables = tables_of("jobtui.backends.elastic", "presets")
    return {name: msgspec.convert({**table, "name": name}, Preset) for name, table in tables.items()}


def value_at(document: Document, path: str) -> object:
    """The value at a path that is nested, flat with dots, or a mix; None if there is none."""
    if path in document:
        return document[path]
    head, dot, rest = path.partition(".")
    while dot:
        inner = document.get(head)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(inner, dict) and (found := value_at(inner, rest)) is not None:
            return found
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def text_at(document: Document, paths: Iterable[str], is_of_lines: bool = False) -> str:
    """The first of these fields that is a text, a number or a boolean; "" for none."""
    for path in paths:
        values = value_at(document, path)
        if isinstance(values, str):  # as nearly all are
            return values
        found = [one for one in as_list(values) or [values] if isinstance(one, str | int | float)]
        if found:
            texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in found]
            return "\n".join(texts) if is_of_lines else texts[0]
    return ""


def fields_of(document: Document, preset: Preset, wanted: Collection[str] | None = None) -> dict[str, str]:
    """The fields of a document. Of several values the first counts; several texts are joined as lines."""
    known = wanted or preset.fields
    texts = [text_at(document, preset.fields.get(field, ()), field in OF_LINES) for field in known]
    return {field: text for field, text in zip(known, texts, strict=True) if text}


def search_of(asked: engine.RowQuery, preset: Preset, cast: Mapping[str, str]) -> dict[str, object]:
    """The search for rows, also of a point in time that a walk has open."""
    walk = asked.walk
    filters = [_within(preset, asked.begin, asked.end)]
    filters += [{"exists": {"field": preset.only_with}}] if preset.only_with else []
    filters += [_any_of(asked.matches, preset)] if asked.matches else []
    filters += [_with_one_of(words, preset) for words in asked.words]
    left_out = list(() if walk and walk.after else asked.without)[-LEFT_OUT_MOST:]
    bounded = {"filter": filters, "must_not": _these(left_out)}
    order = {"order": "desc" if asked.back else "asc", "unmapped_type": "date", **cast}
    query: dict[str, object] = {
        "query": {"bool": bounded}, "sort": [{preset.time: order}], "size": asked.most,
        "track_total_hits": False, "timeout": SERVER_WAITS,
    }  # fmt: skip
    if walk is not None and walk.point:
        query["pit"] = {"id": walk.point, "keep_alive": "1m"}
        query |= {"search_after": walk.after} if walk.after else {}
    return query


def _with_one_of(words: Collection[str], preset: Preset) -> Document:
    """A clause for one of these words, or an id joined to another by a colon or dot between two letters."""
    forms = [(form, 0 if form.endswith("}") else -1) for form in preset.joined]
    ids = [one for one in words if len(one) > PREFIX_LENGTH]
    joined = (form.format(one) for one in ids for form, end in forms if one[end].isalpha())
    text = {"query": " ".join((*words, *joined)), "operator": "or"}
    return either_of([{"match": {path: text}} for path in preset.fields["MESSAGE"]])


def _these(rows: Iterable[str]) -> list[Document]:
    """Clauses for these rows: an id is unique in one index only, and a name may stand for several."""
    by_index = defaultdict[str, list[str]](list)
    for index, _, identity in (one.partition("/") for one in rows):
        by_index[index].append(identity)
    both = ([{"term": {"_index": index}}, {"ids": {"values": ids}}] for index, ids in by_index.items())
    return [{"bool": {"filter": one}} for one in both]


def values_search(field: str, preset: Preset, begin: Nanos | None, *, keyword: bool) -> dict[str, object]:
    end = ".keyword" if keyword else ""
    groups = {
        str(nth): {"terms": {"field": path + end, "size": VALUES_MOST}}
        for nth, path in enumerate(preset.fields[field])
    }
    within = {} if begin is None else {"query": _within(preset, begin, None)}
    return {"size": 0, "aggs": groups, "timeout": SERVER_WAITS, **within}


def _within(preset: Preset, begin: Nanos | None, end: Nanos | None) -> Document:
    """Both ends are included, to the nanosecond. The format is given, as a field may have another.

    Without bounds a shard with one time before 1970 or after 2262 could not sort any.
    """
    bounds = {"format": "strict_date_optional_time"}
    ends = max(begin or 0, NANOS_FROM), min(LATEST if end is None else end, LATEST)
    for word, at in zip(("gte", "lte"), ends, strict=True):
        whole_second = Nanos(at // SECOND * SECOND)
        bounds[word] = f"{to_rfc3339(whole_second).removesuffix('Z')}.{at % SECOND:09d}Z"
    return {"range": {preset.time: bounds}}


def _any_of(matches: Matches, preset: Preset) -> Document:
    """A clause that matches if any group does."""
    clauses: list[Document] = []
    for fields in engine.united(matches):
        paths = [(preset.fields.get(field, ()), values) for field, values in fields]
        each = [[one for path in some for one in equal(path, values)] for some, values in paths]
        clauses.append({"bool": {"filter": [*map(either_of, each)]}})
    return either_of(clauses)


def equal(path: str, values: list[str]) -> list[Document]:
    """Clauses for a whole value: of a text that has a part `.keyword` each word would count as one."""
    part = f"{path}.keyword"
    itself = {"filter": [{"terms": {path: values}}], "must_not": [{"exists": {"field": part}}]}
    return [{"terms": {part: values}}, {"bool": itself}]


def either_of(clauses: list[Document]) -> Document:
    if not clauses:
        return {"match_none": {}}
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def row_of(hit: Document) -> engine.EngineRow:
    """A hit as a row, with its index in the id. Raises ValueError without an id, a time or a document."""
    identity, order = hit.get("_id"), as_list(hit.get("sort"))
    source = hit.get("_source")
    at = whole_of(order[0]) if order else None
    if not isinstance(identity, str) or at is None or not isinstance(source, dict):
        raise ValueError("a hit has no id, no document, or no time that is mapped as a date")
    identity = f"{hit.get('_index')}/{identity}"
    return engine.EngineRow(Nanos(at if at >= NANOS_FROM else at * MILLISECOND), identity, source)


class ElasticEngine:
    """One index, read as a preset says. `since` bounds the search for values."""

    clock: Clock = SystemClock()

    def __init__(
        self, client: ElasticClient, preset: Preset, doubts: engine.Doubts, since: Nanos | None = None
    ) -> None:
        self.name = client.name
        self.doubts = doubts
        self._client = client
        self._preset = preset
        self.since = since
        self._cast: Mapping[str, str] = CAST
        self._keywords: set[str] = set()

    async def rows(self, asked: engine.RowQuery) -> engine.Rows:
        asked, found = await self._searched(asked)
        if found.missing:
            self.doubts.add(found.missing)
        rows = list(rows_of(found.hits, row_of, lambda _, why: self.doubts.add(why), ValueError))
        is_all = len(found.hits) < asked.most
        walk = asked.walk
        if walk is not None and found.missing:
            walk.point, walk.after = "", None  # what is missing is asked for again
        elif walk is not None and not is_all:
            order = as_list(found.hits[-1].get("sort"))
            point = found.point or walk.point or await self._client.open_point()
            walk.after = order if walk.point and len(order) > 1 else None  # else it may be one of several
            walk.point = point
        return engine.Rows(rows, is_all, bool(found.missing))

    async def _searched(self, asked: engine.RowQuery) -> tuple[engine.RowQuery, SearchAnswer]:
        """The answer, and the question, which is made smaller if its answer would be too large."""
        try:
            return asked, await self._client.search(search_of(asked, self._preset, self._cast))
        except SourceError as error:
            if self._cast and "unknown field [numeric_type]" in str(error):
                self._cast = {}
                self.doubts.add(NOT_CAST)
            elif isinstance(error.__cause__, TooLarge) and asked.most > LEAST_ROWS:
                asked = asked._replace(most=max(LEAST_ROWS, asked.most // 8))
            elif asked.walk is None or not asked.walk.point or isinstance(error, SourceUnreachable):
                raise
            else:
                asked.walk.point, asked.walk.after = "", None  # it has expired
        return await self._searched(asked)

    async def values(self, field: str) -> tuple[str, ...]:
        if field not in self._preset.fields:
            return ()
        search = partial(values_search, field, self._preset, self.since)
        try:
            found = await self._client.search(search(keyword=field in self._keywords))
        except TextFieldError:
            self._keywords.add(field)
            found = await self._client.search(search(keyword=True))
        if found.missing:
            self.doubts.add(found.missing)
        buckets = (one for group in found.groups.values() for one in as_list(as_dict(group).get("buckets")))
        keys = (as_dict(one).get("key") for one in buckets)
        values = tuple(dict.fromkeys(key for key in keys if isinstance(key, str)))
        is_known = bool(values) or not found.total
        if names := self.doubts.note_values(field, is_known=is_known, names=self._preset.fields):
            self.doubts.add(f"no document has {names}; is {self._preset.name} the right preset?")
        return values

    def fields(self, row: engine.EngineRow, wanted: Collection[str] | None = None) -> Mapping[str, str]:
        return fields_of(row.body, self._preset, wanted)

    async def aclose(self) -> None:
        await self._client.aclose()


def engine_of(spec: SourceSpec, doubts: engine.Doubts, since: Nanos | None = None) -> ElasticEngine:
    client = ElasticClient(spec.target, spec.access, variable=spec.setting.upper())
    return ElasticEngine(client, presets()[spec.options], doubts, since)


def open_source(spec: SourceSpec, window: ReadWindow) -> Journal:
    """The logs of an index as a journal, from two hours ago without a time."""
    make_engine = partial(engine_of, spec, engine.Doubts(), None if window.whole else window.since)
    return journal_of(spec, window, partial(engine.EngineJournal, make_engine, window), spec.setting)
