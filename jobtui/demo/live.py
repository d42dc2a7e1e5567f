"""The live demo: a simulated site that goes on in real time in a directory, with some hours of history.

    demo = LiveDemo(directory, seed=1, incident="agent-death")
    demo.prepare()                      # writes the history
    demo.step()                         # again and again: what is due by now

Layout: `<directory>/db` (as `SIREPO_SRDB_ROOT`), `<directory>/supervisor.log`, `<directory>/server.log`,
`<directory>/spans.jsonl` with the traces of its jobs.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from jobtui.demo.incidents import INCIDENTS, Arrivals, Scenario, play
from jobtui.demo.messages import Record
from jobtui.demo.programs import ARCHIVE, Disk, RealDisk
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG, DriverName, Settings
from jobtui.demo.world import World
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock, to_seconds

SPANS = "spans.jsonl"
HISTORY_S = 3 * 3600
TICK_S = 0.1
EARLY_S = 110.0
"""Seconds between arrivals in the history."""
BUSY_S = 4.0
"""Seconds between arrivals from the start on."""
WARM_UP_S = 240.0
"""How long before the start it begins to be busy, so that the first screen has something under way."""

LIVE = Settings(
    users=8,
    sbatch_users=2,
    driver=DriverName.DOCKER,
    hosts=tuple(f"v{number}.sirepo.example" for number in range(1, 7)),
    slots_parallel=1,
    slots_sequential=2,
    dev=False,
)
LIVE_STATES = frozenset({"pending", "running"})
MOST_STEPS = 300
"""Steps of a run that are sent, one after the other."""
SERVER, SUPERVISOR, AGENT = "sirepo-server", "sirepo-supervisor", "sirepo-agent"
ERROR = {"code": 2}


class Sources(NamedTuple):
    """What to point jobtui at."""

    srdb: Path
    logs: tuple[tuple[str, Path], ...]
    """Role and file."""
    spans: Path
    """Traces, as OTLP's JSON."""
    archive: Path
    """The scripts of runs on the cluster."""


class LiveDemo:
    """A site that lives in a directory. The caller makes the directory and removes it."""

    def __init__(
        self, directory: Path, *, seed: int = 1, incident: str | None = None, clock: Clock | None = None
    ) -> None:
        """Raises KeyError when there is no such incident."""
        self._directory = directory.resolve()
        self._clock = clock or SystemClock()
        self._began = self._clock.now()
        self._lead_s = INCIDENTS[incident].lead_s if incident else 0.0
        self._incident = incident
        self._past = _PastDisk()
        start = Nanos(self._began - HISTORY_S * SECOND)
        settings = msgspec.structs.replace(
            LIVE,
            root=str(self._directory / "db"),
            cluster_root=str(self._directory / "scratch" / "{user}" / "sirepo-prod"),
            start=start,
        )
        self.world = World(seed, settings, disk=self._past, keep_run_dirs=True)
        self._past.world = self.world
        self._traces = JobTraces()
        self.scenario: Scenario | None = None

    @property
    def sources(self) -> Sources:
        return Sources(
            self._directory / "db",
            (("supervisor", self._directory / SUPERVISOR_LOG), ("server", self._directory / SERVER_LOG)),
            self._directory / SPANS,
            self._directory / ARCHIVE,
        )

    def prepare(self) -> None:
        """Write the history. Raises OSError when the directory cannot be written to."""
        world = self.world
        busy_from = Nanos(self._began - round(WARM_UP_S * SECOND))
        world.start()
        Arrivals(world, busy_from=busy_from, early_s=EARLY_S, busy_s=BUSY_S).start()
        if self._incident is not None:
            world.advance(Nanos(self._began - round(self._lead_s * SECOND)))
            self.scenario = play(world, self._incident)
        world.advance(self._began)
        disk = RealDisk(self._directory)
        (self._directory / "db" / "supervisor-job").mkdir(parents=True, exist_ok=True)
        self.sources.archive.mkdir(parents=True, exist_ok=True)
        self._past.flush(disk)
        world.use_disk(disk)
        self._write_logs()

    def step(self) -> None:
        """Do all that is due by now. Raises OSError."""
        self.world.advance(self._clock.now())
        self._write_logs()

    def _write_logs(self) -> None:
        for _, path in self.sources.logs:
            if data := self.world.take(path.name):
                with path.open("ab") as file:
                    file.write(data)
        for name in self.world.logs():
            self.world.take(name)
        with self.sources.spans.open("ab") as file:
            file.writelines(self._traces.posts(self.world.take_saved()))


class _PastDisk(Disk):
    """Files of the history, with the times at which they were written last."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World | None = None
        self._times: dict[str, float] = {}

    def write(self, path: str, data: bytes) -> None:
        super().write(path, data)
        if self.world is not None:
            self._times[path] = to_seconds(self.world.kernel.now)

    def flush(self, disk: RealDisk) -> None:
        for path, data in self.files.items():
            disk.write(path, data)
            os.utime(path, (self._times[path], self._times[path]))


class RunKey(NamedTuple):
    """One run of a job: by its start it is told from the others."""

    jid: str
    queued_s: int


class JobTraces:
    """Traces of jobs, made from their records as they are saved: what was sent of each run so far.

    They are sent as a program with OpenTelemetry sends them: OTLP's JSON, one post a line. What has ended is
    sent, children first; the root of a run is sent when the run is over, so that the traces of what goes on
    grow.
    """

    def __init__(self) -> None:
        self._steps: dict[RunKey, int] = {}
        self._over: set[RunKey] = set()

    def posts(self, records: Iterable[Record]) -> Iterator[bytes]:
        for record in records:
            run = RunKey(str(record["computeJid"]), int(record["computeJobQueued"] or 0))
            if not run.queued_s or run in self._over or str(record["computeModel"]).startswith("_"):
                continue
            for service, spans in self._sent(run, record):
                yield json.dumps(_post(service, run, record, spans), separators=(",", ":")).encode() + b"\n"

    def _sent(self, run: RunKey, record: Record) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        is_new = run not in self._steps
        maker = _Spans(run, record)
        if is_new:
            self._steps[run] = 0
            yield SUPERVISOR, maker.accepted()
        if record["computeJobStart"]:
            steps = maker.steps(self._steps[run])
            self._steps[run] += len(steps)
            if steps:
                yield AGENT, steps
        if record["status"] not in LIVE_STATES:
            self._over.add(run)
            if record["computeJobStart"]:
                yield AGENT, maker.ended(self._steps[run])
            yield SERVER, [maker.root()]


class _Spans:
    """Makes the spans of one run."""

    def __init__(self, run: RunKey, record: Record) -> None:
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
        taken = self._queued + SECOND // 50
        return [
            self._span(3, 2, "op created", self._queued + SECOND // 200, taken),
            self._span(2, 1, "api_runSimulation", self._queued + SECOND // 500, taken + SECOND // 100),
        ]

    def steps(self, sent: int) -> list[dict[str, Any]]:
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


def _post(service: str, run: RunKey, record: Record, spans: list[dict[str, Any]]) -> dict[str, Any]:
    given: dict[str, object] = {
        "service.name": service,
        "job.id": run.jid,
        "sirepo.app": record["simulationType"],
        "sirepo.model": record["computeModel"],
    }
    scope = {"scope": {"name": "sirepo"}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": _attributes(given)}, "scopeSpans": [scope]}]}
