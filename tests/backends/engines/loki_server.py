"""A strict stand-in for Grafana Loki over HTTP: it refuses what it does not know, as Loki does.

It knows `query_range`, `tail` and `label/NAME/values` as the documentation of Loki 2.9 and 3 has them, and of
LogQL what is asked of it. It gives the metadata of a line with `query_range` only, apart from its labels as
Loki 3 or among them (`is_apart`), and by `tail` the last lines again. It was not compared with a running one.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import httpx
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Event, Ping, TextMessage
from wsproto.utilities import generate_accept_token

from tests.loopback import response

HOUR_NS = 3600 * 1_000_000_000
TEST = re.compile(r'(\w+)=~("(?:[^"\\]|\\.)*")')
HAS = re.compile(r' \|~ ("(?:[^"\\]|\\.)*")')
QUERY = re.compile(
    rf"(?P<selector>\{{[^}}]*\}})(?P<has>(?:{HAS.pattern})*)(?P<json> \| json)?(?: \| (?P<filter>.+))?",
    re.DOTALL,
)
METADATA = {"detected_level": "info"}


class Wire:
    """A WebSocket at the side of the server: `heard` is what came in it."""

    def __init__(self) -> None:
        self.heard: list[Event] = []
        self._socket = Connection(ConnectionType.SERVER)
        self.sent = asyncio.Queue[bytes]()

    def send(self, event: Event) -> None:
        data = self._socket.send(event)
        self.sent.put_nowait(data[:1])
        self.sent.put_nowait(data[1:])

    async def read(self, most_bytes: int, timeout_s: float) -> bytes:
        return await self.sent.get()

    async def write(self, data: bytes, timeout_s: float) -> None:
        self._socket.receive_data(data)
        self.heard += self._socket.events()


class StrictLoki:
    """Lines: time in nanoseconds, labels, text. `fault` answers instead; `sent` are the requests it got."""

    def __init__(self, lines: list[tuple[int, dict[str, str], str]]) -> None:
        self.lines = lines
        self.most, self.longest_h = 5_000, 721
        self.is_apart = True
        self.wires: list[Wire] = []
        self.refusal: httpx.Response | None = None
        self.sent: list[dict[str, str]] = []
        self.warnings: list[str] = []
        self.fault: Callable[[], httpx.Response] | None = None

    def answer(self, request: httpx.Request) -> httpx.Response:
        assert request.method == "GET"
        if self.fault is not None:
            return self.fault()
        text = {"content-type": "text/plain"}
        path, pairs = request.url.path, parse_qsl(request.url.query.decode(), strict_parsing=True)
        params = dict(pairs)
        assert len(params) == len(pairs)
        self.sent.append({"path": path, **params})
        values = re.fullmatch(r"/loki/api/v1/label/(\w+)/values", path)
        try:
            if path == "/loki/api/v1/query_range":
                found = self._range(params)
            elif path == "/loki/api/v1/tail":
                return self.refusal or self._tail(request, params)
            elif values:
                found = self._values(values[1], params)
            else:
                return response(404, b"404 page not found\n", text)
        except ValueError as error:
            return response(400, str(error).encode(), text)
        document = {"status": "success", "data": found}
        if self.warnings:
            document["warnings"] = self.warnings
        return response(200, json.dumps(document).encode(), {"content-type": "application/json"})

    def _range(self, params: dict[str, str]) -> Any:
        if params.keys() != {"query", "start", "end", "limit", "direction"}:
            raise ValueError("parse error : unknown parameter")
        limit = int(params["limit"])
        if limit > self.most:
            raise ValueError(f"limit exceeded, limit > max_entries_limit_per_query ({limit} > {self.most})")
        fits = self._fitting(params)
        lines = sorted(filter(fits, self.lines), key=lambda line: line[0])
        if params["direction"] == "backward":
            lines.reverse()
        streams: dict[str, dict[str, Any]] = {}
        for at, labels, text in lines[:limit]:
            key = json.dumps(labels, sort_keys=True)
            stream = streams.setdefault(
                key, {"stream": labels if self.is_apart else labels | METADATA, "values": []}
            )
            stream["values"].append(
                [str(at), text, *([{"structuredMetadata": METADATA}] if self.is_apart else ())]
            )
        return {"resultType": "streams", "result": [*streams.values()][::-1], "stats": {}}

    def _tail(self, request: httpx.Request, params: dict[str, str]) -> httpx.Response:
        assert params.keys() == {"query", "start", "limit"}
        assert request.headers["x-loki-response-encoding-flags"] == "categorize-labels"
        wire = Wire()
        self.wires.append(wire)
        last = [line for line in self.lines if line[0] >= int(params["start"])][-int(params["limit"]) :]
        wire.send(Ping())
        self.tell(*last, *last[-1:])
        accept = generate_accept_token(request.headers["sec-websocket-key"].encode()).decode()
        headers = {"sec-websocket-accept": accept}
        return httpx.Response(101, headers=headers, extensions={"network_stream": wire})

    def put(self, line: tuple[int, dict[str, str], str], *, is_dropped: bool = False) -> None:
        self.lines.append(line)
        self.tell(*() if is_dropped else (line,), dropped=[line] if is_dropped else [])

    def tell(self, *lines: tuple[int, dict[str, str], str], dropped: Any = ()) -> None:
        found: Any = {"streams": [{"stream": one[1], "values": [[str(one[0]), one[2], {}]]} for one in lines]}
        if dropped:
            found["dropped_entries"] = [{"timestamp": str(one[0]), "labels": one[1]} for one in dropped]
        for wire in self.wires:
            wire.send(TextMessage(data=json.dumps(found)))

    def end_tails(self, *, is_said: bool = True) -> None:
        wires, self.wires = self.wires, []
        for wire in wires:
            if is_said:
                wire.send(CloseConnection(code=1011, reason="reached tail max duration limit"))
            wire.sent.put_nowait(b"")

    def _values(self, label: str, params: dict[str, str]) -> Any:
        assert params.keys() == {"query", "start", "end"}
        fits = self._fitting(params)
        return sorted({line[1][label] for line in self.lines if label in line[1] and fits(line)})

    def _fitting(self, params: dict[str, str]) -> Callable[[tuple[int, dict[str, str], str]], bool]:
        start, end = int(params["start"]), int(params["end"])
        if end - start > self.longest_h * HOUR_NS:
            limit = f"{self.longest_h // 24}d{self.longest_h % 24}h"
            raise ValueError(f"the query time range exceeds the limit (query length: 2000h, limit: {limit})")
        query = QUERY.fullmatch(params["query"])
        if query is None or (params["query"].count("(") != params["query"].count(")")):
            raise ValueError("parse error : syntax error: unexpected IDENTIFIER")
        selector = TEST.findall(query["selector"].replace('="', '=~"'))
        assert selector, "Loki wants at least one matcher that is not empty"
        has = [json.loads(one) for one in HAS.findall(query["has"])]

        def fits(line: tuple[int, dict[str, str], str]) -> bool:
            at, labels, text = line
            if not start <= at < end or not all(_has(labels, *one) for one in selector):
                return False
            if not all(re.search(one, text) for one in has):
                return False
            found = {**labels, **json.loads(text)} if query["json"] and text[:1] == "{" else labels
            return not query["filter"] or _holds(found, query["filter"])

        return fits


def _has(labels: Mapping[str, str], name: str, quoted: str) -> bool:
    return re.fullmatch(json.loads(quoted), labels.get(name, "")) is not None


def _holds(labels: Mapping[str, str], expression: str) -> bool:
    told = TEST.sub(lambda one: f" {_has(labels, one[1], one[2])} ", expression)
    if re.sub(r"True|False|and|or|[() ]", "", told):
        raise ValueError("parse error : syntax error in a label filter")
    return bool(eval(told))
