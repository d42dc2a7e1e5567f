"""The JSON contract of the commands, as a checker. Keys may be added to what it names, never renamed."""

from collections.abc import Mapping, Sequence
from types import GenericAlias
from typing import Annotated, Any, Literal, Optional

from msgspec import Meta, convert, defstruct

text: Any = str
number: Any = float
share: Any = Annotated[float, Meta(ge=0, le=1)]
whole: Any = Annotated[int, Meta(ge=0)]
time: Any = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")]
"""RFC 3339 in UTC, with `Z`."""
mapping: Any = dict
texts: Any = list[str]


def or_null(kind: Any) -> Any:
    return Optional[kind]  # noqa: UP045 - it is no type for mypy


def one_of(*words: str) -> Any:
    return Literal[tuple(map(str, words))]


def an(keys: Mapping[str, Any]) -> Any:
    return defstruct("Record", list(keys.items()))


def each(keys: Mapping[str, Any]) -> Any:
    return GenericAlias(list, (an(keys),))


def has(document: object, keys: Mapping[str, Any]) -> None:
    """Raises msgspec.ValidationError unless all of these are in it, of these kinds; others may be."""
    convert(document, an(keys))


STATUS = one_of("pending", "running", "completed", "failed", "canceled", "missing", "purged", "unknown")
CERTAINTY = one_of("full_id", "jid", "prefix", "adjacent")

SOURCE: Mapping[str, Any] = {
    "name": text, "kind": text, "state": one_of("starting", "ok", "partial", "down"),
    "lag_s": or_null(number), "records": whole, "skipped": whole, "error": or_null(text),
}  # fmt: skip

JOB: Mapping[str, Any] = {
    "id": text, "system": text, "status": STATUS, "native_status": text, "owner": text, "name": or_null(text),
    "app": text, "model": text, "mode": text, "queued_at": or_null(time), "started_at": or_null(time),
    "updated_at": or_null(time), "ended_at": or_null(time), "runs": whole, "percent": or_null(number),
    "message": or_null(text), "error": or_null(text), "flags": texts, "source": text,
}  # fmt: skip

STEP: Mapping[str, Any] = {
    "step": text, "at": or_null(time), "component": text, "text": text, "source": text,
    "line": or_null(whole), "certainty": CERTAINTY,
}  # fmt: skip

OP: Mapping[str, Any] = {
    "op": text, "op_id": or_null(text), "name": text, "api": or_null(text), "driver": or_null(text),
    "agent": or_null(text), "kind": or_null(text), "uid": or_null(text), "run_dir": or_null(text),
    "status": text, "created_at": or_null(time), "sent_at": or_null(time), "arrived_at": or_null(time),
    "replied_at": or_null(time), "ended_at": or_null(time), "sends": whole, "replies": whole,
    "updates": whole, "certainty": CERTAINTY, "candidates": texts, "steps": each(STEP),
}  # fmt: skip

LINE: Mapping[str, Any] = {
    "at": or_null(time), "source": text, "host": or_null(text), "line": or_null(whole),
    "level": or_null(text), "text": text, "ids": mapping, "certainty": CERTAINTY,
}  # fmt: skip

AGENT: Mapping[str, Any] = {
    "agent": text, "driver": text, "kind": text, "uid": text, "host": or_null(text),
    "container": or_null(text),
    "state": one_of("starting", "connected", "idle", "lost", "killed", "never_connected", "unknown"),
    "connected_at": or_null(time), "last_message_at": or_null(time), "messages": whole,
    "ops": each({"op": text, "name": text, "job": or_null(text)}), "log": or_null(text),
}  # fmt: skip

SEGMENTS = each({"span_id": text, "name": text, "from_s": number, "to_s": number})

TRACE: Mapping[str, Any] = {
    "trace_id": text, "spans": whole, "services": texts, "started_at": time, "duration_s": number,
    "roots": texts, "missing_parents": texts, "error_spans": texts,
    "root_causes": each(
        {"span_id": text, "name": text, "service": text, "message": text,
         "events": each({"at": time, "name": text}), "logs": each({"at": time, "level": text, "text": text})}
    ),
    "critical_path": an({"jaeger": SEGMENTS, "whole": SEGMENTS}),
}  # fmt: skip

BODIES: Mapping[str, Mapping[str, Any]] = {
    "nodes": {
        "clusters": each({"source": text, "at": time, "controller": or_null(mapping)}),
        "nodes": each(
            {"node": text, "standing": text, "states": texts, "reason": text, "since": or_null(time)}
        ),
    },
    "agents": {"agents": each(AGENT)},
    "jobs": {"jobs": each(JOB)},
    "show": {"job": an({**JOB, "native": or_null(mapping)}), "history": each({"status": STATUS})},
    "timeline": {"job": an(JOB), "ops": each(OP), "unlinked": each(STEP)},
    "logs": {"lines": each(LINE)},
    "find": {"candidates": each({"kind": text, "id": text, "score": number, "why": text})},
    "doctor": {},
    "trace": TRACE,
    "config": {},
}


def check_document(document: dict[str, Any], command: str, keys: Sequence[str] = ()) -> None:
    names = list(document)
    assert names[0] == "schema"
    assert names[-1] == "sources"
    assert document["schema"] == f"jobtui/{command}/1"
    has(document, {"sources": each(SOURCE)})
    has(document, BODIES[command])
    assert set(keys) <= set(names)
