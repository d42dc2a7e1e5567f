"""Journals in Grafana Loki, by its calls `query_range`, `tail` and `label/NAME/values` (Loki 2.0 and later).

Loki orders lines by time only, so the id of a line is made of its time, its text and the labels of its
stream; it keeps no two equal ones. Metadata of single lines is not part of it. `tail` may drop lines, so it
is used only as a sign that there are new ones.
"""

import json
import re
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing, suppress
from functools import partial
from hashlib import blake2b
from urllib.parse import quote

import msgspec

from jobtui.backends import engine
from jobtui.backends.journal.source import Journal, journal_of
from jobtui.formats.json_values import Document, as_dict, as_list, as_text, decoded
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock
from jobtui.model.health import SourceError, rows_of
from jobtui.model.journal import Matches
from jobtui.model.numbers import whole
from jobtui.model.specs import NO_ACCESS, ReadWindow, SourceSpec, parse_server
from jobtui.model.tables import tables_of
from jobtui.transport.http import HttpClient, HttpLimits, ServerKind

LIMITS = HttpLimits(connections=3, pauses_s=(0.5, 1.0, 2.0, 4.0))
"""One connection is for `tail`, one for following, one for pages."""
LABELS_APART = {"X-Loki-Response-Encoding-Flags": "categorize-labels"}
"""Asks for the labels of single lines separately from those of their stream (Loki 3)."""
LONGEST_S = 29 * 24 * 3600
"""Loki refuses a question for more than 30 days, unless it is configured otherwise."""
_TIME_ALLOWED = re.compile(r"time range exceeds the limit \([^()]*limit: ([\d.a-z]+)\)")
_ROWS_ALLOWED = re.compile(r"max_entries_limit\w* \(\d+ > (\d+)\)")
_DURATION = re.compile(r"(\d+)(?:\.\d+)?(ms|[ywdhms])")
_UNITS_S = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0}
"""What a Loki says that is configured to give less."""
AHEAD_S = 3600
LOKI = ServerKind(**tables_of("jobtui.backends.loki", "server"))
_SELECTOR = re.compile(r'\{(?:[^"`}]|"(?:[^"\\]|\\.)*"|`[^`]*`)*\}')


class LokiPreset(msgspec.Struct, frozen=True):
    """How journals are written. `fields` are the labels that may hold each of their fields."""

    name: str
    selector: str
    stage: str
    is_json: bool
    fields: dict[str, tuple[str, ...]]


def parse(text: str) -> SourceSpec:
    """The source that `URL[?preset=NAME&query=SELECTOR]` names. Raises ValueError for what is none."""
    address, given, query = text.strip().partition("?")
    spec = parse_server("loki", address)
    preset_of(query)
    return spec._replace(target=f"{spec.target}?{query}" if given else spec.target, options=query)


def preset_of(options: str) -> LokiPreset:
    """The query of the address: `preset=NAME`, `query=SELECTOR`, or both. Raises ValueError."""
    tables = tables_of("jobtui.backends.loki", "presets")
    found = re.fullmatch(r"(?:preset=(?P<preset>\w+))?(?:(?:^|&)query=(?P<query>\{.+))?", options, re.DOTALL)
    name = (found["preset"] or "journald") if found else ""
    if found is None or name not in tables:
        raise ValueError(f'expected ?query={{job="..."}}, perhaps after ?preset={"|".join(tables)}&')
    selector = found["query"] or tables[name]["selector"]
    return msgspec.convert({**tables[name], "name": name, "selector": selector}, LokiPreset)


def query_of(preset: LokiPreset, matches: Matches, words: Collection[Collection[str]] = ()) -> str:
    """The question in LogQL: the selector, a word of each group and the labels that lines must have."""
    patterns = [rf"\b({'|'.join(some)})\b" for some in words]
    query = preset.selector + "".join(f" |~ {json.dumps(one)}" for one in patterns)
    if not matches:
        return query
    each = (" and ".join(_fits(preset, *one) for one in fields) for fields in engine.united(matches))
    return f"{query}{preset.stage} | {' or '.join(f'({one})' for one in each)}"


def _fits(preset: LokiPreset, field: str, values: list[str]) -> str:
    """The condition that a label of a field has one of these values; without a label nothing matches."""
    pattern = json.dumps("|".join(map(re.escape, values)), ensure_ascii=False)
    labels = preset.fields.get(field, ())
    return "(" + " or ".join(f"{label}=~{pattern}" for label in labels or ("no_such_label",)) + ")"


class LokiEngine:
    clock: Clock = SystemClock()

    def __init__(self, spec: SourceSpec, doubts: engine.Doubts) -> None:
        self.name = spec.target
        self.doubts = doubts
        self._preset = preset_of(spec.options)
        self._longest_s, self._most_rows = LONGEST_S, engine.INSTANT_ROWS
        url, access = spec.target.partition("?")[0], spec.access or NO_ACCESS
        self._http = HttpClient(url, LOKI, name=spec.target, access=access, limits=LIMITS)

    async def rows(self, asked: engine.RowQuery) -> engine.Rows:
        begin, end = self._span(asked.begin, asked.end)
        query = query_of(self._preset, asked.matches, asked.words)
        params = {
            "query": query, "start": str(begin), "end": str(end + 1),
            "limit": str(asked.most), "direction": "backward" if asked.back else "forward",
        }  # fmt: skip
        document = await self._ask("/loki/api/v1/query_range", params)
        data = as_dict(document.get("data"))
        if data.get("resultType") != "streams":
            raise SourceError(f"{self.name}: the query gives no lines; give a selector of streams")
        streams = [(as_dict(one.get("stream")), one) for one in map(as_dict, as_list(data.get("result")))]
        lines = [(labels, value) for labels, one in streams for value in as_list(one.get("values"))]
        rows = [*rows_of(lines, _row_of, lambda _, why: self.doubts.add(why), ValueError)]
        rows.sort(key=lambda row: (row.at, row.id), reverse=asked.back)
        return engine.Rows(rows, len(lines) < min(asked.most, self._most_rows))

    async def tail(self, matches: Matches) -> AsyncGenerator[bool, None]:
        begin = max(0, self.clock.now() - engine.LATE_S * SECOND)
        query, most = query_of(self._preset, matches), str(engine.PAGE_ROWS)
        params = [("query", query), ("start", str(begin)), ("limit", most)]
        async with aclosing(self._http.messages("/loki/api/v1/tail", params, LABELS_APART)) as messages:
            async for message in messages:
                document = await engine.document_of(message) if message else {}
                yield bool(document.get("streams") or document.get("dropped_entries"))

    def _span(self, begin: Nanos | None, end: Nanos | None) -> tuple[Nanos, Nanos]:
        last = Nanos(self.clock.now() + AHEAD_S * SECOND) if end is None else end
        first = Nanos(last - LONGEST_S * SECOND)
        if begin is not None and begin < first:
            self.doubts.add(f"only the last {LONGEST_S // 86_400} days are asked for")
        return max(first, begin or first, Nanos(0)), max(last, Nanos(0))

    async def values(self, field: str) -> tuple[str, ...]:
        if self._preset.is_json:
            return ()  # they are no labels
        found: list[str] = []
        begin, end = self._span(None, None)
        for label in self._preset.fields.get(field, ()):
            selector = _SELECTOR.match(self._preset.selector)
            streams = selector[0] if selector else self._preset.selector
            params = {"query": streams, "start": str(begin), "end": str(end)}
            document = await self._ask(f"/loki/api/v1/label/{quote(label)}/values", params)
            found += [one for one in as_list(document.get("data")) if isinstance(one, str)]
        if names := self.doubts.note_values(field, is_known=bool(found), names=self._preset.fields):
            self.doubts.add(f"no stream has a label {names}; is {self._preset.name} the right preset?")
        return tuple(dict.fromkeys(found))

    def fields(self, row: engine.EngineRow, wanted: Collection[str] | None = None) -> Mapping[str, str]:
        labels, line = as_dict(row.body["labels"]), as_text(row.body["line"])
        if self._preset.is_json:
            with suppress(ValueError):
                labels = {**labels, **as_dict(decoded(line.encode("utf-8", "replace")))}
        texts = ((field, _first(labels, names)) for field, names in self._preset.fields.items())
        found = {field: text for field, text in texts if text}
        return found if self._preset.is_json and "MESSAGE" in found else {**found, "MESSAGE": line}

    async def _ask(self, path: str, params: Mapping[str, str]) -> Document:
        """The answer for the newest time and as many rows as the server allows, as far as that is known."""
        begin = max(whole(params["start"], 0), whole(params["end"], 0) - self._longest_s * SECOND)
        rows = {"limit": str(min(whole(params["limit"], 0), self._most_rows))} if "limit" in params else {}
        asked = {**params, "start": str(begin), **rows}
        try:
            answer = await self._http.ask(path, [*asked.items()], headers=LABELS_APART)
        except SourceError as error:
            if not self._allows_less(str(error)):
                raise
            return await self._ask(path, params)
        document = await engine.document_of(answer.body)
        if document.get("status") != "success":
            raise self._http.refusal(answer)
        for warning in as_list(document.get("warnings")):
            self.doubts.add(f"Loki warns: {self._http.in_words(as_text(warning).encode())}")
        return document

    def _allows_less(self, refusal: str) -> bool:
        time, rows = _TIME_ALLOWED.search(refusal), _ROWS_ALLOWED.search(refusal)
        parts = _DURATION.findall(time[1]) if time else []
        allowed_s = sum(whole(one, 0) * _UNITS_S[unit] for one, unit in parts) - 1
        allowed = whole(rows[1], 0) if rows else 0
        if is_less := 0 < allowed_s < self._longest_s:
            self._longest_s = allowed_s
            self.doubts.add(f"only the last {time[1] if time else ''} are asked for, as Loki allows no more")
        if 0 < allowed < self._most_rows:
            self._most_rows, is_less = allowed, True
        return is_less

    async def aclose(self) -> None:
        await self._http.aclose()


def _row_of(line: tuple[Document, object]) -> engine.EngineRow:
    """The labels of a stream and a value in it as a row. Raises ValueError for what is no line."""
    of_stream, value = line
    parts = as_list(value)
    at = whole(as_text(parts[0])) if len(parts) > 1 else None
    if at is None or not isinstance(parts[1], str):
        raise ValueError("a line has no time or no text")
    more = as_dict(parts[2]) if len(parts) > 2 else {}
    labels = {**of_stream, **as_dict(more.get("structuredMetadata")), **as_dict(more.get("parsed"))}
    own = {name: value for name, value in of_stream.items() if not name.startswith("__")}
    content = json.dumps([at, own, parts[1]], sort_keys=True, default=str).encode("utf-8", "replace")
    identity = blake2b(content, digest_size=8).hexdigest()
    return engine.EngineRow(Nanos(at), identity, {"labels": labels, "line": parts[1]})


def _first(labels: Document, names: tuple[str, ...]) -> str:
    values = (labels.get(name) for name in names)
    return next((str(value) for value in values if isinstance(value, str | int) and value != ""), "")


def open_source(spec: SourceSpec, window: ReadWindow) -> Journal:
    """The journals of a query, from a time on; without one from two hours ago."""
    make_engine = partial(LokiEngine, spec, engine.Doubts())
    return journal_of(spec, window, partial(engine.EngineJournal, make_engine, window), spec.setting)
