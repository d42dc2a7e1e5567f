"""Traces of simulated jobs, as a program with OpenTelemetry sends them: OTLP's JSON, one post a line.

Made from the records of jobs as they are saved. What has ended is sent, children first; the root of a run is
sent when the run is over, so that the traces of what goes on grow.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from jobtui.demo.records import Record

SECOND = 10**9
LIVE = frozenset({"pending", "running"})
MOST_STEPS = 300
"""Steps of a run that are sent, one after the other."""
SERVER, SUPERVISOR, AGENT = "sirepo-server", "sirepo-supervisor", "sirepo-agent"
ERROR = {"code": 2}


class Run(NamedTuple):
    """One run of a job: by its start it is told from the others."""

    jid: str
    queued_s: int


class JobTraces:
    """What was sent of each run so far."""

    def __init__(self) -> None:
        self._steps: dict[Run, int] = {}
        self._over: set[Run] = set()

    def posts(self, records: Iterable[Record]) -> Iterator[bytes]:
        """The posts that follow from the records as they are now, each a line."""
        for record in records:
            run = Run(str(record["computeJid"]), int(record["computeJobQueued"] or 0))
            if not run.queued_s or run in self._over or str(record["computeModel"]).startswith("_"):
                continue
            for service, spans in self._sent(run, record):
                yield json.dumps(_post(service, run, record, spans), separators=(",", ":")).encode() + b"\n"

    def _sent(self, run: Run, record: Record) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        is_new = run not in self._steps
        maker = _Maker(run, record)
        if is_new:
            self._steps[run] = 0
            yield SUPERVISOR, maker.accepted()
        if record["computeJobStart"]:
            steps = maker.steps(self._steps[run])
            self._steps[run] += len(steps)
            if steps:
                yield AGENT, steps
        if record["status"] not in LIVE:
            self._over.add(run)
            if record["computeJobStart"]:
                yield AGENT, maker.ended(self._steps[run])
            yield SERVER, [maker.root()]


class _Maker:
    """Makes the spans of one run."""

    def __init__(self, run: Run, record: Record) -> None:
        self._record = record
        digest = hashlib.sha256(f"{run.jid} {run.queued_s}".encode()).hexdigest()
        self._trace, self._base = digest[:32], digest[32:44]
        self._queued = run.queued_s * SECOND + int(digest[44:50], 16) * 10
        self._start = max(int(record["computeJobStart"] or 0) * SECOND, self._queued + SECOND // 10)
        self._now = max(int(record["lastUpdateTime"] or 0) * SECOND, self._start + SECOND // 5)
        self._step = SECOND + int(digest[50:56], 16) * 80
        self._failed = record["status"] == "error"
        self._is_run = bool(record["computeJobStart"])

    def accepted(self) -> list[dict[str, Any]]:
        """The request, as the supervisor took it."""
        taken = self._queued + SECOND // 50
        return [
            self._span(3, 2, "op created", self._queued + SECOND // 200, taken),
            self._span(2, 1, "api_runSimulation", self._queued + SECOND // 500, taken + SECOND // 100),
        ]

    def steps(self, sent: int) -> list[dict[str, Any]]:
        """The steps that are over by now and were not sent."""
        begin = self._start + SECOND // 10
        over = min(MOST_STEPS, (self._now - begin) // self._step)
        if self._failed:
            over = min(over, max(0, (self._now - begin - self._step // 3) // self._step))
        return [
            self._span(
                100 + nth, 10, "step", begin + nth * self._step, begin + (nth + 1) * self._step, step=nth
            )
            for nth in range(sent, over)
        ]

    def ended(self, sent: int) -> list[dict[str, Any]]:
        """What ends with the run: its last step, the program, the agent's part."""
        begin = self._start + SECOND // 10
        last = min(begin + sent * self._step, self._now)
        spans = [self._span(11, 10, "prepare", self._start + SECOND // 50, begin)]
        if self._failed:
            spans.append(self._failure(100 + sent, last, sent))
        elif last < self._now:
            spans.append(self._span(12, 10, "write results", last, self._now))
        status = ERROR if self._failed else {}
        spans.append(self._span(10, 9, "job_cmd", self._start + SECOND // 100, self._now, status))
        spans.append(self._span(9, 1, "run", self._start, self._now, status))
        return spans

    def _failure(self, number: int, start: int, step: int) -> dict[str, Any]:
        said = str(self._record["error"] or "the program failed")
        event = {
            "timeUnixNano": str(self._now - SECOND // 1000),
            "name": "exception",
            "attributes": _attributes(
                {
                    "exception.type": "RuntimeError",
                    "exception.message": said,
                    "exception.stacktrace": f'  File "parameters.py", line 88, in main\nRuntimeError: {said}',
                }
            ),
        }
        status = {**ERROR, "message": f"RuntimeError: {said}"}
        return {**self._span(number, 10, "step", start, self._now, status, step=step), "events": [event]}

    def root(self) -> dict[str, Any]:
        """What the user asked for."""
        end = self._now + SECOND // 100 if self._is_run else self._queued + SECOND // 10
        return self._span(1, 0, "runSimulation", self._queued, end, ERROR if self._failed else {})

    def _span(
        self, number: int, parent: int, name: str, start: int, end: int, status: Any = None, **given: object
    ) -> dict[str, Any]:
        return {
            "traceId": self._trace,
            "spanId": self._id(number),
            "parentSpanId": self._id(parent) if parent else "",
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(end),
            "attributes": _attributes(given),
            "status": status or {},
        }

    def _id(self, number: int) -> str:
        return f"{self._base}{number:04x}"


def _attributes(given: dict[str, object]) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)},
        }
        for key, value in given.items()
    ]


def _post(service: str, run: Run, record: Record, spans: list[dict[str, Any]]) -> dict[str, Any]:
    given: dict[str, object] = {
        "service.name": service,
        "job.id": run.jid,
        "sirepo.app": record["simulationType"],
        "sirepo.model": record["computeModel"],
    }
    scope = {"scope": {"name": "sirepo"}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": _attributes(given)}, "scopeSpans": [scope]}]}
