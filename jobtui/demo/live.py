"""The live demo: a simulated site that goes on in real time in a directory, with some hours of history.

    demo = LiveDemo(directory, seed=1, incident="agent-death")
    demo.prepare()                      # writes the history
    task = asyncio.create_task(demo.run())

Layout: `<directory>/db` (as `SIREPO_SRDB_ROOT`), `<directory>/supervisor.log`, `<directory>/server.log`,
`<directory>/spans.jsonl` with the traces of its jobs.
"""

import asyncio
import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.demo.batch_files import ARCHIVE
from jobtui.demo.disk import MemoryDisk, RealDisk
from jobtui.demo.incidents import INCIDENTS, Stage, play
from jobtui.demo.life import Life
from jobtui.demo.settings import DriverName, Settings
from jobtui.demo.traces import JobTraces
from jobtui.demo.world import SERVER_LOG, SUPERVISOR_LOG, World
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
    ops=None,
    driver=DriverName.DOCKER,
    hosts=tuple(f"v{number}.sirepo.example" for number in range(1, 7)),
    slots_parallel=1,
    slots_sequential=2,
    dev=False,
)


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
        self,
        directory: Path,
        *,
        seed: int = 1,
        incident: str | None = None,
        clock: Clock | None = None,
        speed: float = 1.0,
    ) -> None:
        """Raises KeyError when there is no such incident."""
        self._directory = directory.resolve()
        self._clock = clock or SystemClock()
        self._speed = speed
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
        self._world = World(seed, settings, disk=self._past, keep_run_dirs=True)
        self._past.world = self._world
        self._traces = JobTraces()
        self.stage: Stage | None = None

    @property
    def sources(self) -> Sources:
        """The db directory and the log files."""
        return Sources(
            self._directory / "db",
            (("supervisor", self._directory / SUPERVISOR_LOG), ("server", self._directory / SERVER_LOG)),
            self._directory / SPANS,
            self._directory / ARCHIVE,
        )

    @property
    def world(self) -> World:
        """The site, with its truth."""
        return self._world

    def prepare(self) -> None:
        """Write the history. Raises OSError when the directory cannot be written to."""
        world = self._world
        busy_from = Nanos(self._began - round(WARM_UP_S * SECOND))
        world.start()
        Life(world, busy_from=busy_from, early_s=EARLY_S, busy_s=BUSY_S).start()
        if self._incident is not None:
            world.advance(Nanos(self._began - round(self._lead_s * SECOND)))
            self.stage = play(world, self._incident)
        world.advance(self._began)
        disk = RealDisk(self._directory)
        (self._directory / "db" / "supervisor-job").mkdir(parents=True, exist_ok=True)
        self.sources.archive.mkdir(parents=True, exist_ok=True)
        self._past.flush(disk)
        world.use_disk(disk)
        self._write_logs()

    def step(self) -> None:
        """Do all that is due by now. Raises OSError."""
        elapsed = (self._clock.now() - self._began) * self._speed
        self._world.advance(Nanos(self._began + round(elapsed)))
        self._write_logs()

    async def run(self) -> None:
        """Go on until cancelled. Raises OSError when the directory cannot be written to any more."""
        while True:
            self.step()
            await asyncio.sleep(TICK_S)

    def _write_logs(self) -> None:
        for _, path in self.sources.logs:
            if data := self._world.take(path.name):
                with path.open("ab") as file:
                    file.write(data)
        for name in self._world.logs():
            self._world.take(name)
        with self.sources.spans.open("ab") as file:
            file.writelines(self._traces.posts(self._world.take_saved()))


class _PastDisk(MemoryDisk):
    """Files of the history, with the times at which they were written last."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World | None = None
        self._times: dict[str, float] = {}

    def write(self, path: str, data: bytes) -> None:
        """Write a file."""
        super().write(path, data)
        self._note(path)

    def append(self, path: str, data: bytes) -> None:
        """Add to a file."""
        super().append(path, data)
        self._note(path)

    def flush(self, disk: RealDisk) -> None:
        """Write everything to a real disk."""
        for path, data in self.files.items():
            disk.write(path, data)
            os.utime(path, (self._times[path], self._times[path]))

    def _note(self, path: str) -> None:
        if self.world is not None:
            self._times[path] = to_seconds(self.world.kernel.now)
