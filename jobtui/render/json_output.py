"""Records in the form of the JSON contract: times in RFC 3339 UTC, durations in seconds, null if absent.

Every text that comes from outside is masked here. It is not made safe for a terminal: `dumps` escapes all but
ASCII, so that nothing raw is written and nothing is lost.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from jobtui.analysis.flags import flags_of
from jobtui.model.clock import SECOND, Nanos, clock_of, shown_seconds, to_rfc3339
from jobtui.model.health import FAULTS, SourceHealth
from jobtui.model.jobs import Job, JobDetail, Run
from jobtui.model.secrets import mask_document, mask_line, mask_text

if TYPE_CHECKING:
    from jobtui.analysis.timeline import JobLine
    from jobtui.model.ops import Op, Step

Document = dict[str, object]


def dumps(value: object, *, indent: int | None = None) -> str:
    """A value as ASCII JSON. Numbers that JSON cannot write, as a record may hold them, become null."""
    try:
        return json.dumps(value, ensure_ascii=True, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_writable(value), ensure_ascii=True, indent=indent)


def document_lines(document: Document) -> Iterator[str]:
    """A document as lines of ASCII JSON. Each object of an array has a line of its own, for `grep`."""
    last_key = next(reversed(document), None)
    yield "{"
    for key, value in document.items():
        comma = "" if key == last_key else ","
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"  {dumps(key)}: ["
            *others, last = value
            yield from (f"    {dumps(item)}," for item in others)
            yield f"    {dumps(last)}"
            yield f"  ]{comma}"
        else:
            text = dumps(value, indent=2).replace("\n", "\n  ")
            yield f"  {dumps(key)}: {text}{comma}"
    yield "}"


def _writable(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def document(
    command: str, body: Mapping[str, object], sources: Iterable[SourceHealth], now: Nanos, *, partial: bool
) -> Document:
    return {
        "schema": f"jobtui/{command}/1",
        **body,
        "partial": partial,
        "sources": [source_record(source, now) for source in sources],
    }


def time_or_null(at: Nanos | None) -> str | None:
    """RFC 3339 UTC with `Z`; null if absent or outside of the calendar."""
    return None if at is None or shown_seconds(at) != at // SECOND else to_rfc3339(at)


def fields_of(record: object, names: str) -> Document:
    """Fields of a record: enums by value, times (`TIMES`, `..._at`) and texts as the contract has them.

    `name=path` names the value at a dotted path; `name?` is null if the value is empty. Texts are masked,
    those of a tuple each; a `line` that is not counted is null.
    """
    found: Document = {}
    for name, get, may_be_empty in _getters(names):
        value = get(record)
        found[name] = None if may_be_empty and not value else _plain(name, value)
    return found


_masked_name = lru_cache(1_000)(mask_text)
"""For names, such as those of sources and users: many records repeat the same one."""
NAME_LENGTH = 24
TIMES = frozenset({"at", "since", "first", "last", "scheduler_estimate"})


@cache
def _getters(names: str) -> tuple[tuple[str, Callable[[object], object], bool], ...]:
    split = [(name.rstrip("?").partition("="), name.endswith("?")) for name in names.split()]
    return tuple((name, attrgetter(path or name), may_be_empty) for (name, _, path), may_be_empty in split)


def _plain(name: str, value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return _masked_name(value) if len(value) <= NAME_LENGTH else mask_text(value)
    if isinstance(value, tuple):
        return [_plain("", one) for one in value]
    if isinstance(value, int) and (name in TIMES or name.endswith("_at")):
        return time_or_null(Nanos(value))
    return None if name == "line" and isinstance(value, int) and value <= 0 else value


def source_record(source: SourceHealth, now: Nanos) -> Document:
    return {
        **fields_of(source, "name kind state"),
        **({"profile": source.profile} if source.profile else {}),
        "lag_s": source.lag_s(now),
        **fields_of(source, "records skipped error note"),
        "skips": [fields_of(skip, "where why") for skip in source.last_skips],
    }


def fault_records() -> list[Document]:
    """The faults of jobtui itself in this process: where they were, never what they said."""
    return [fields_of(fault, "place=location kind stage count first last") for fault in FAULTS.all()]


_FIRST_FIELDS = (
    "id system status native_status owner name app model mode queued_at started_at updated_at ended_at runs "
    "percent message error"
)


def job_record(job: Job, now: Nanos) -> Document:
    return {
        **fields_of(job, _FIRST_FIELDS),
        "flags": list(flags_of(job, now)),
        "source": _masked_name(job.source),
        "elapsed_s": job.elapsed_s(now),
        "waited_s": job.waited_s(now),
        "limit_s": job.limit_s,
        "tags": [mask_text(tag) for tag in job.tags.split()],
        "passed": job.passed.split(),
        "allocation": job.allocation.split(),
        **fields_of(job, "alert frames driver host plan trace? quasi=is_quasi reason exit"),
        "others": [job_record(other, now) for other in job.others],
    }


def stored_record(detail: JobDetail | None) -> Document:
    """What `show` adds to a job: its record as stored, secrets masked."""
    if detail is None:
        return {"native": None}
    return {"native": mask_document(detail.native), "path": detail.path}


def op_record(op: "Op") -> Document:
    return {
        **fields_of(op, "op op_id name api driver agent kind uid run_dir status created_at sent_at"),
        **fields_of(op, "arrived_at replied_at ended_at sends replies updates certainty candidates"),
        "steps": [step_record(step) for step in op.steps],
        **fields_of(op, "job_cmd assigned_agent error dropped_steps"),
    }


def step_record(step: "Step") -> Document:
    return fields_of(step, "step at component text source line certainty cursor")


def line_record(line: "JobLine") -> Document:
    """One line of a log. `line` is null if the lines before it are not counted; `offset` is in bytes."""
    op = line.op
    return {
        **fields_of(line, "at"),
        "source": (source := _masked_name(line.source)),
        "host": clock_of(source) if line.cursor is not None else None,
        "text": mask_line(line.text),
        "ids": {
            "job": line.job_id or None,
            "op": op.op if op else None,
            "op_id": op.op_id if op else None,
            "agent": op.any_agent if op else None,
        },
        **fields_of(line, "line? level certainty component offset continues cursor"),
    }


def history_records(runs: Sequence[Run]) -> list[Document]:
    names = (
        "status native_status mode queued_at started_at updated_at ended_at message error alert limit_s "
        "driver host"
    )
    return [{"run": run.number, **fields_of(run, names)} for run in runs]
