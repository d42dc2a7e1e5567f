"""The live demo: a simulated site that goes on in real time in a directory, with some hours of history.

    demo = LiveDemo(directory, seed=1, incident="agent-death")
    demo.prepare()                      # writes the history
    demo.step()                         # again and again: what is due by now

Layout: `<directory>/db` (as `SIREPO_SRDB_ROOT`), `<directory>/supervisor.log`, `<directory>/server.log`,
`<directory>/spans.jsonl` with the traces of its jobs.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jobtui.demo.incidents import INCIDENTS, Arrivals, Scenario, play
from jobtui.demo.messages import LIVE, Record
from jobtui.demo.programs import ARCHIVE, RealDisk
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG, Settings
from jobtui.demo.world import World
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock
from jobtui.model.specs import LogRole, SourceSpec

SPANS = "spans.jsonl"
HISTORY_S = 3 * 3600
TICK_S = 0.1
EARLY_S = 110.0
"""Seconds between arrivals in the history."""
BUSY_S = 4.0
"""Seconds between arrivals from the start on."""
WARM_UP_S = 240.0
"""How long before the start it begins to be busy, so that the first screen has something under way."""

SETTINGS = Settings(
    users=8,
    sbatch_users=2,
    hosts=tuple(f"v{number}.sirepo.example" for number in range(1, 7)),
    slots_parallel=1,
    slots_sequential=2,
    dev=False,
)
MOST_STEPS = 300
"""Steps of a run that are sent, one after the other."""
SERVER, SUPERVISOR, AGENT = "sirepo-server", "sirepo-supervisor", "sirepo-agent"
ERROR: Mapping[str, Any] = {"code": 2}

Span = dict[str, Any]
"""A span, or another object of OTLP, as the JSON it becomes."""


class LiveDemo:
    """A site that lives in a directory. The caller makes the directory and removes it."""

    def __init__(
        self, directory: Path, *, seed: int = 1, incident: str | None = None, clock: Clock | None = None
    ) -> None:
        """Raises KeyError when there is no such incident."""
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
        self._traces = JobTraces()
        self.scenario: Scenario | None = None

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
        """Write the history. Raises OSError when the directory cannot be written to."""
        world = self.world
        busy_from = Nanos(self._began - round(WARM_UP_S * SECOND))
        world.start()
        world.play(Arrivals(world, busy_from=busy_from, early_s=EARLY_S, busy_s=BUSY_S).arrivals)
        if self._incident is not None:
            world.advance(Nanos(self._began - round(self._lead_s * SECOND)))
            self.scenario = play(world, self._incident)
        world.advance(self._began)
        for name in ("db/supervisor-job", ARCHIVE):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        disk = RealDisk(self.directory)
        world.disk.move_to(disk)
        world.disk = world.run_dirs.disk = disk
        self._write_logs()

    def step(self) -> None:
        """Do all that is due by now. Raises OSError."""
        self.world.advance(self._clock.now())
        self._write_logs()

    def _write_logs(self) -> None:
        for name in self.world.logs():
            data = self.world.take(name)
            if data and name in (SUPERVISOR_LOG, SERVER_LOG):
                with (self.directory / name).open("ab") as file:
                    file.write(data)
        with (self.directory / SPANS).open("ab") as file:
            file.writelines(self._traces.posts(self.world.take_saved()))


class JobTraces:
    """Traces of jobs, made from their records as they are saved: what was sent of each run so far.

    They are sent as a program with OpenTelemetry sends them: OTLP's JSON, one post a line. What has ended is
    sent, children first; the root of a run is sent when the run is over, so that the traces of what goes on
    grow.
    """

    def __init__(self) -> None:
        self._steps: dict[str, int] = {}
        """How many steps of a run were sent."""
        self._over: set[str] = set()

    def posts(self, records: Iterable[Record]) -> Iterator[bytes]:
        for record in records:
            run = f"{record['computeJid']} {record['computeJobQueued']}"
            if not record["computeJobQueued"] or run in self._over or record["computeModel"].startswith("_"):
                continue
            about = {
                "job.id": record["computeJid"],
                "sirepo.app": record["simulationType"],
                "sirepo.model": record["computeModel"],
            }
            for service, spans in self._sent(run, record):
                resource = {"attributes": _attributes({"service.name": service, **about})}
                scopes = [{"scope": {"name": "sirepo"}, "spans": spans}]
                post = {"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}
                yield json.dumps(post, separators=(",", ":")).encode() + b"\n"

    def _sent(self, run: str, record: Record) -> Iterator[tuple[str, list[Span]]]:
        maker = RunSpans(run, record)
        if run not in self._steps:
            self._steps[run] = 0
            yield SUPERVISOR, maker.accepted()
        if maker.has_begun and (steps := maker.steps(self._steps[run])):
            self._steps[run] += len(steps)
            yield AGENT, steps
        if record["status"] not in LIVE:
            self._over.add(run)
            if maker.has_begun:
                yield AGENT, maker.ended(self._steps[run])
            yield SERVER, [maker.root()]


class RunSpans:
    """Makes the spans of one run, out of its record as it is now."""

    def __init__(self, run: str, record: Record) -> None:
        digest = hashlib.sha256(run.encode()).hexdigest()
        self.has_begun = bool(record["computeJobStart"])
        self._said = str(record["error"] or "the program failed")
        self._has_failed = record["status"] == "error"
        self._status = ERROR if self._has_failed else {}
        self._trace, self._base = digest[:32], digest[32:44]
        self._queued = int(record["computeJobQueued"]) * SECOND + int(digest[44:50], 16) * 10
        self._start: int = max(int(record["computeJobStart"] or 0) * SECOND, self._queued + SECOND // 10)
        self._now: int = max(int(record["lastUpdateTime"] or 0) * SECOND, self._start + SECOND // 5)
        self._begin = self._start + SECOND // 10
        """When its first step begins. All steps take the same time."""
        self._step = SECOND + int(digest[50:56], 16) * 80

    def accepted(self) -> list[Span]:
        taken = self._queued + SECOND // 50
        return [
            self._span(3, 2, "op created", self._queued + SECOND // 200, taken),
            self._span(2, 1, "api_runSimulation", self._queued + SECOND // 500, taken + SECOND // 100),
        ]

    def root(self) -> Span:
        end = self._now + SECOND // 100 if self.has_begun else self._queued + SECOND // 10
        return self._span(1, 0, "runSimulation", self._queued, end) | {"status": self._status}

    def steps(self, sent: int) -> list[Span]:
        passed = self._now - self._begin
        over = min(MOST_STEPS, passed // self._step)
        if self._has_failed:  # the last one is that which fails
            over = min(over, max(0, (passed - self._step // 3) // self._step))
        return [
            self._span(100 + nth, 10, "step", self._nth(nth), self._nth(nth + 1), step=nth)
            for nth in range(sent, over)
        ]

    def ended(self, sent: int) -> list[Span]:
        last = min(self._nth(sent), self._now)
        spans = [self._span(11, 10, "prepare", self._start + SECOND // 50, self._begin)]
        if self._has_failed:
            stack = f'  File "parameters.py", line 88, in main\nRuntimeError: {self._said}'
            exception = {
                "exception.type": "RuntimeError",
                "exception.message": self._said,
                "exception.stacktrace": stack,
            }
            at, attributes = str(self._now - SECOND // 1000), _attributes(exception)
            spans.append(
                self._span(100 + sent, 10, "step", last, self._now, step=sent)
                | {
                    "status": {**ERROR, "message": f"RuntimeError: {self._said}"},
                    "events": [{"timeUnixNano": at, "name": "exception", "attributes": attributes}],
                }
            )
        elif last < self._now:
            spans.append(self._span(12, 10, "write results", last, self._now))
        job_cmd = self._span(10, 9, "job_cmd", self._start + SECOND // 100, self._now)
        run = self._span(9, 1, "run", self._start, self._now)
        return [*spans, job_cmd | {"status": self._status}, run | {"status": self._status}]

    def _nth(self, step: int) -> int:
        return self._begin + step * self._step

    def _span(self, number: int, parent: int, name: str, start: int, end: int, **given: object) -> Span:
        return {
            "traceId": self._trace,
            "spanId": f"{self._base}{number:04x}",
            "parentSpanId": f"{self._base}{parent:04x}" if parent else "",
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(end),
            "attributes": _attributes(given),
            "status": {},
        }


def _attributes(given: Mapping[str, object]) -> list[Span]:
    kinds = {key: "intValue" if isinstance(value, int) else "stringValue" for key, value in given.items()}
    return [{"key": key, "value": {kinds[key]: str(value)}} for key, value in given.items()]
