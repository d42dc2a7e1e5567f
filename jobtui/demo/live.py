"""The live demo: a simulated site that runs in real time in a directory, with some hours of history.

    demo = LiveDemo(directory, seed=1, incident="agent-death")
    demo.prepare()                      # writes the history
    demo.step()                         # again and again: what is due by now

Layout: `<directory>/db` (as `SIREPO_SRDB_ROOT`), `<directory>/supervisor.log`, `<directory>/server.log`,
`<directory>/spans.jsonl` with the traces of its jobs.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from jobtui.demo.balsam import HISTORY_S
from jobtui.demo.incidents import INCIDENTS, Arrivals, play
from jobtui.demo.messages import LIVE, TABLES, Record
from jobtui.demo.programs import ARCHIVE, RealDisk
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG, Settings
from jobtui.demo.world import World
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock
from jobtui.model.specs import LogRole, SourceSpec

SPANS = "spans.jsonl"
TICK_S = 0.1
EARLY_S = 110.0
"""Seconds between arrivals in the history."""
BUSY_S = 4.0
"""Seconds between arrivals after the start."""
WARM_UP_S = 240.0
"""How long before the start it is busy, so that the first screen has live jobs."""

SETTINGS = msgspec.convert(TABLES["settings"], Settings)
MOST_STEPS = 300
"""How many steps of a run are sent as spans."""
SERVER, SUPERVISOR, AGENT = "sirepo-server", "sirepo-supervisor", "sirepo-agent"
ERROR: Mapping[str, Any] = {"code": 2}

Span = dict[str, Any]
"""A span, or another object of OTLP, as the JSON it becomes."""


class LiveDemo:
    """A site that lives in a directory. The caller makes the directory and removes it."""

    def __init__(
        self, directory: Path, *, seed: int = 1, incident: str | None = None, clock: Clock | None = None
    ) -> None:
        """Raises KeyError for an unknown incident."""
        self.directory = directory.resolve()
        self._clock = clock or SystemClock()
        self._began = self._clock.now()
        self._lead_s = INCIDENTS[incident].lead_s if incident else 0.0
        self._incident = incident
        start = Nanos(self._began - HISTORY_S * SECOND)
        settings = msgspec.structs.replace(
            SETTINGS,
            root=str(self.directory / "db"),
            cluster_root=str(self.directory / "scratch" / "{user}" / "sirepo-prod"),
            start=start,
        )
        self.world = World(seed, settings, keep_run_dirs=True)
        self._sent: dict[str, set[str] | None] = {}
        """The numbers of the spans of a run that were sent."""

    @property
    def specs(self) -> tuple[SourceSpec, ...]:
        return (
            SourceSpec("srdb", str(self.directory / "db")),
            SourceSpec("log", str(self.directory / SUPERVISOR_LOG), LogRole.SUPERVISOR),
            SourceSpec("log", str(self.directory / SERVER_LOG), LogRole.SERVER),
            SourceSpec("archive", str(self.directory / ARCHIVE)),
            SourceSpec("trace_file", str(self.directory / SPANS)),
        )

    def prepare(self) -> None:
        """Write the history. Raises OSError if the directory cannot be written."""
        world = self.world
        busy_from = Nanos(self._began - round(WARM_UP_S * SECOND))
        world.start()
        world.play(Arrivals(world, busy_from=busy_from, early_s=EARLY_S, busy_s=BUSY_S).arrivals)
        if self._incident is not None:
            world.advance(Nanos(self._began - round(self._lead_s * SECOND)))
            play(world, self._incident)
        world.advance(self._began)
        for name in ("db/supervisor-job", ARCHIVE):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        disk = RealDisk(self.directory)
        world.disk.move_to(disk)
        world.disk = world.run_dirs.disk = disk
        self._write_logs()

    def step(self) -> None:
        """Simulate until now. Raises OSError."""
        self.world.advance(self._clock.now())
        self._write_logs()

    def _write_logs(self) -> None:
        for name in self.world.logs():
            data = self.world.take(name)
            if data and name in (SUPERVISOR_LOG, SERVER_LOG):
                with (self.directory / name).open("ab") as file:
                    file.write(data)
        with (self.directory / SPANS).open("ab") as file:
            file.writelines(self._posts(self.world.take_saved()))

    def _posts(self, records: Iterable[Record]) -> Iterator[bytes]:
        """Traces of jobs, made from saved records: spans that have ended and were not sent yet.

        They are sent as by a program with OpenTelemetry: OTLP's JSON, one post per line, children first. The
        root of a run ends with the run, so the traces of running jobs grow.
        """
        for record in records:
            if not record["computeJobQueued"] or record["computeModel"].startswith("_"):
                continue
            run = f"{record['computeJid']} {record['computeJobQueued']}"
            about = {
                "job.id": record["computeJid"],
                "sirepo.app": record["simulationType"],
                "sirepo.model": record["computeModel"],
            }
            sent, fresh = self._sent.setdefault(run, set()), dict[str, list[Span]]()
            if sent is None:
                continue
            if record["status"] not in LIVE:
                self._sent[run] = None
            for service, span in _spans(run, record):
                if span["spanId"] not in sent:
                    sent.add(span["spanId"])
                    fresh.setdefault(service, []).append(span)
            for service, spans in fresh.items():
                resource = {"attributes": _attributes({"service.name": service, **about})}
                scopes = [{"scope": {"name": "sirepo"}, "spans": spans}]
                post = {"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}
                yield json.dumps(post, separators=(",", ":")).encode() + b"\n"


def _spans(run: str, record: Record) -> Iterator[tuple[str, Span]]:
    """The spans of a run that have ended by its record as it is now, each with its service.

    All steps of a run take the same time; one that fails does so in its last step.
    """
    digest = hashlib.sha256(run.encode()).hexdigest()
    has_begun, has_failed = bool(record["computeJobStart"]), record["status"] == "error"
    queued = int(record["computeJobQueued"]) * SECOND + int(digest[44:50], 16) * 10
    start = max(int(record["computeJobStart"] or 0) * SECOND, queued + SECOND // 10)
    now = max(int(record["lastUpdateTime"] or 0) * SECOND, start + SECOND // 5)
    begin, step = start + SECOND // 10, SECOND + int(digest[50:56], 16) * 80
    status = ERROR if has_failed else {}
    span = partial(_span, digest)
    taken = queued + SECOND // 50
    yield SUPERVISOR, span(3, 2, "op created", queued + SECOND // 200, taken)
    yield SUPERVISOR, span(2, 1, "api_runSimulation", queued + SECOND // 500, taken + SECOND // 100)
    over = min(MOST_STEPS, (now - begin) // step) if has_begun else 0
    ends = [begin + step * nth for nth in range(over + 1)]
    for nth in range(over):
        yield AGENT, span(100 + nth, 10, "step", *ends[nth : nth + 2], attributes=_attributes({"step": nth}))
    if record["status"] in LIVE:
        return
    if has_begun:
        yield AGENT, span(11, 10, "prepare", start + SECOND // 50, begin)
        if has_failed:
            failure = _failure(str(record["error"] or "the program failed"), now)
            failure["attributes"] = _attributes({"step": over})
            yield AGENT, span(100 + over, 10, "step", ends[-1], now, **failure)
        elif ends[-1] < now:
            yield AGENT, span(12, 10, "write results", ends[-1], now)
        yield AGENT, span(10, 9, "job_cmd", start + SECOND // 100, now, status=status)
        yield AGENT, span(9, 1, "run", start, now, status=status)
    ended = now if has_begun else queued + SECOND // 10
    yield SERVER, span(1, 0, "runSimulation", queued, ended, status=status)


def _span(digest: str, number: int, parent: int, name: str, *ends: int, **more: Any) -> Span:
    """A span as OTLP writes it: a digest of its run gives the ids, `ends` are when it began and ended."""
    made = {
        "traceId": digest[:32],
        "spanId": f"{digest[32:44]}{number:04x}",
        "parentSpanId": f"{digest[32:44]}{parent:04x}" if parent else "",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(ends[0]),
        "endTimeUnixNano": str(ends[1]),
        "attributes": [],
        "status": {},
    }
    return made | more


def _failure(said: str, at: int) -> Span:
    """The status and the exception of a step that fails."""
    exception = {
        "exception.type": "RuntimeError",
        "exception.message": said,
        "exception.stacktrace": f'  File "parameters.py", line 88, in main\nRuntimeError: {said}',
    }
    attributes = _attributes(exception)
    event = {"timeUnixNano": str(at - SECOND // 1000), "name": "exception", "attributes": attributes}
    return {"status": {**ERROR, "message": f"RuntimeError: {said}"}, "events": [event]}


def _attributes(given: Mapping[str, object]) -> list[Span]:
    kinds = {key: "intValue" if isinstance(value, int) else "stringValue" for key, value in given.items()}
    return [{"key": key, "value": {kinds[key]: str(value)}} for key, value in given.items()]
