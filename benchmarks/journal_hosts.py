"""Ten hosts at once: collected in one journal, and as ten journals beside the big one.

What each has written before is read by a session as the dashboard does it; then all go on writing, and an
entry counts as given when its record is delivered to the store.
"""

import asyncio
import hashlib
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from typing import IO

from benchmarks.journal_files import START_US, STEP_US, UNIT, remote_writer
from benchmarks.rows import Row, at_most
from jobtui.backends.base import Batch, Source
from jobtui.backends.journal.opening import maker_of
from jobtui.backends.journal.source import WINDOW_S, Journal
from jobtui.model.clock import Nanos
from jobtui.model.job_desk import JobDesk
from jobtui.session import Session

HOSTS = 10
BEFORE, QUICK_BEFORE = 20_000, 2_000
"""Entries that each host has written before: together they are more than a session holds."""
LIVE, QUICK_LIVE = 200, 40
"""Entries that each then writes, one every `PAUSE_S`."""
PAUSE_S = 0.05
LAG_LIMIT_MS = 450.0
CPU_LIMIT_PERCENT = 50.0
"""Of a core, while 200 entries come each second, each by itself."""
MEMORY_LIMIT_MB = 300.0
"""The ops that a session keeps are 128 MB at most; beside them are the lines that it can show at once."""
QUIET_S = 2.0
PATIENCE_S = 120.0

_Numbered = tuple[str, int]
"""A host, and which of its entries."""


class _Arrivals:
    """A `Witness` that counts records, and notes when those from the entry `first` of a host on came."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.at: dict[_Numbered, float] = {}
        self.count = 0

    def delivered(self, source: Source, batch: Batch) -> None:
        """Note the records among what a source delivered."""
        now = time.perf_counter()
        self.count += len(batch.records)
        for record in batch.records:
            number = round(((record.at or 0) // 1_000 - START_US) / STEP_US)
            if number >= self._first:
                self.at[record.source.rpartition("@")[2], number] = now

    def failed(self, source: Source, error: str) -> None:
        """A source that fails spoils the measurement."""
        raise OSError(f"{source.name}: {error}")

    def beside(self, desk: JobDesk) -> JobDesk:
        """The same desk."""
        return desk


class _Host:
    """A host whose entries go into a file of their own. `before` of them are written at once."""

    def __init__(self, name: str, file: Path, before: int, stack: ExitStack) -> None:
        self.name = name
        self._entries = _entries(name)
        self._before = before
        self._writer = stack.enter_context(remote_writer(file))
        self.written: dict[_Numbered, float] = {}

    @property
    def _pipe(self) -> IO[bytes]:
        assert self._writer.stdin is not None
        return self._writer.stdin

    def begin(self) -> None:
        """Write what was there before."""
        self._pipe.writelines(islice(self._entries, self._before))
        self._pipe.flush()

    def go_on(self, nth: int) -> None:
        """Write one more entry."""
        number = self._before + nth
        self.written[self.name, number] = time.perf_counter()
        self._pipe.write(next(self._entries))
        self._pipe.flush()

    def end(self) -> None:
        """Write no more."""
        self._pipe.close()


_REQUEST = (
    "job_supervisor.py:254:receive ServerReq(api_runSimulation, {jid})",
    "job_supervisor.py:1276:__init__ _Op(run, {op}) runDir={directory}",
    "job_supervisor.py:1332:prepare_send assigned driver={driver} to op=_Op(run, {op})",
    "job_driver.py:185:send {driver} _Op(run, {op}) runDir={directory}",
    "job_driver.py:337:_log {driver} opName=ok o={op}",
)
"""What a supervisor tells of one request, in Sirepo's own form."""


def _messages(host: str) -> Iterator[str]:
    """What its supervisor tells of one request after the other."""
    for number in count():
        uid, simulation = f"{host:u>8}", f"{number:08}"
        names = {
            "jid": f"{uid}-{simulation}-heightWeightReport",
            "op": f"{number % 10_000:04}",
            "directory": f"/srv/sirepo/db/user/{uid}/myapp/{simulation}/heightWeightReport",
            "driver": f"LocalDriver(a={host[-4:]} k=sequential u={uid[:4]} [])",
        }
        for line in _REQUEST:
            yield f"sirepo/{line.format(**names)}"


def _entries(host: str) -> Iterator[bytes]:
    """The same in the export format."""
    boot, machine = (hashlib.md5(f"{host} {of}".encode()).hexdigest() for of in ("boot", "machine"))
    for number, message in enumerate(_messages(host)):
        at_us = START_US + number * STEP_US
        yield (
            f"__REALTIME_TIMESTAMP={at_us}\n__MONOTONIC_TIMESTAMP={number * STEP_US}\n"
            f"_BOOT_ID={boot}\n_MACHINE_ID={machine}\n_HOSTNAME={host}\n_SYSTEMD_UNIT={UNIT}\n"
            f"SYSLOG_IDENTIFIER=sirepo_job_supervisor\n_PID=14458\nPRIORITY=6\n_TRANSPORT=stdout\n"
            f"MESSAGE={message}\n\n"
        ).encode()


def ten_hosts(big: Path, entries: int, quick: bool) -> Iterator[Row]:
    """Ten hosts in one journal, and in ten beside a big one of so many entries."""
    began_mb = _own_mb()
    big_source = str(big), Nanos((START_US + entries * STEP_US) * 1_000 - WINDOW_S * 1_000_000_000)
    for what, is_one, beside in (
        ("ten hosts in one journal", True, ()),
        (f"ten journals and one of {entries:,}", False, (big_source,)),
    ):
        with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
            yield from asyncio.run(_measured(what, Path(text), is_one, beside, quick, stack, began_mb))


async def _measured(
    what: str,
    root: Path,
    is_one: bool,
    beside: Sequence[tuple[str, Nanos]],
    quick: bool,
    stack: ExitStack,
    began_mb: float,
) -> list[Row]:
    before, live = (QUICK_BEFORE, QUICK_LIVE) if quick else (BEFORE, LIVE)
    hosts, directories = [], []
    for nth in range(HOSTS):
        directory = root if is_one else root / f"{nth}"
        directory.mkdir(exist_ok=True)
        directories += [directory] if directory not in directories else []
        hosts.append(_Host(f"host{nth}", directory / f"remote-host{nth}.journal", before, stack))
    await asyncio.to_thread(_all, [host.begin for host in hosts])
    arrivals = _Arrivals(before)
    places = [*((str(directory), Nanos(0)) for directory in directories), *beside]
    sources = [Journal(place, maker_of(place), since=since) for place, since in places]
    async with Session(sources, strict=True, witness=arrivals) as session:
        running = asyncio.create_task(session.run())
        await _settled(arrivals, running, HOSTS * before)
        memory_mb = _own_mb() - began_mb
        percent = await _gone_on(hosts, live)
        await _settled(arrivals, running, HOSTS * (before + live))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    for host in hosts:
        host.end()
    written = {key: at for host in hosts for key, at in host.written.items()}
    lags = [1_000 * (arrivals.at[key] - at) for key, at in written.items() if key in arrivals.at]
    return [
        at_most(f"{what}: written to given, p95", statistics.quantiles(lags, n=20)[-1], "ms", LAG_LIMIT_MS),
        at_most(f"{what}: 200 entries/s, of a core", percent, "%", CPU_LIMIT_PERCENT),
        at_most(f"{what}: memory for {arrivals.count:,} records", memory_mb, "MB", MEMORY_LIMIT_MB),
    ]


async def _gone_on(hosts: Sequence[_Host], live: int) -> float:
    """Let all write side by side; what following that takes of a core, in percent."""

    def write() -> None:
        for nth in range(live):
            for host in hosts:
                host.go_on(nth)
                time.sleep(PAUSE_S / HOSTS)

    began, cpu = time.perf_counter(), time.process_time()
    writing = threading.Thread(target=write)
    writing.start()
    while writing.is_alive():  # noqa: ASYNC110 - a thread tells nobody
        await asyncio.sleep(PAUSE_S)
    return 100 * (time.process_time() - cpu) / (time.perf_counter() - began)


async def _settled(arrivals: _Arrivals, running: asyncio.Task[None], wanted: int) -> None:
    """Return when so many records have come, and no more for some time."""
    known, began = -1, time.perf_counter()
    since = began
    while arrivals.count < wanted or time.perf_counter() - since < QUIET_S:
        now = time.perf_counter()
        if running.done():
            running.result()
        if now - began > PATIENCE_S:
            raise OSError(f"only {arrivals.count:,} of {wanted:,} entries were given within two minutes")
        if arrivals.count != known:
            known, since = arrivals.count, now
        await asyncio.sleep(0.1)


def _all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _own_mb() -> float:
    """Memory of this process that is not of files, in megabytes."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1_024
