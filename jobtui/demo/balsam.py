"""A simulated Balsam site on loopback, with the part of the REST API of Balsam 0.7.0a24 that jobtui uses.

Jobs come in waves and run in allocations; rows are those of that API. Time moves in steps, at each request;
the same seed gives the same site. Old jobs are dropped.
"""

import json
import random
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jobtui.model.clock import SECOND, Clock, Nanos
from jobtui.model.specs import LOOPBACK

Row = dict[str, Any]

STEP_S = 5
HISTORY_S = 3 * 3600
"""How long the site has been running when the demo begins."""
KEPT_S = 12 * 3600
"""Jobs and allocations that ended longer ago are dropped."""
WAVE_EVERY_S, WAVE_JOBS = 300, (3, 7)
ALLOCATION_EVERY_S, ALLOCATION_NODES, WALL_MIN = 1_800, (4, 8, 16), 40
NODES_OF_JOBS = (1, 1, 1, 1, 2, 4)
DURATIONS_S = (60, 720)
ERROR_SHARE, RESTART_SHARE = 0.07, 0.5
ERRORS = (
    ({"error": "Segmentation fault (core dumped)", "returncode": 139}),
    ({"error": "OSError: [Errno 28] No space left on device: 'trajectory.h5'", "returncode": 1}),
    ({"error": 'ValueError: lattice has no element "QD7"', "returncode": 1}),
)
APPS = ("lammps.Equilibrate", "elegant.Track", "warpx.Stage")
ENDED = frozenset({"JOB_FINISHED", "FAILED"})
TOKEN = "demo"
MOST = 100_000
"""The most rows of a page."""
HIDDEN = ("tags", "batch_job_id")
"""Parameters of events that events do not have themselves, but their jobs do."""

Asked = Mapping[str, Sequence[str]]


class BalsamSite:
    """One site with one user's jobs. `began` is when the demo began; all times are UTC."""

    def __init__(self, seed: int, began: Nanos) -> None:
        self._rng = random.Random(f"balsam {seed}")
        self._now_s = self._begun_s = began // SECOND - HISTORY_S
        self._ids = count(1)
        self._batch_ids = count(1)
        self._event_ids = count(1)
        self._scheduler_ids = count(70_451)
        self._ends: dict[int, tuple[int, str]] = {}
        """By job: when its run ends, and in which state."""
        self._times: dict[int, tuple[int, int]] = {}
        """By allocation: when it starts and ends."""
        self.jobs: dict[int, Row] = {}
        self.events: list[Row] = []
        self.batch_jobs: dict[int, Row] = {}

    def advance(self, now: Nanos) -> None:
        while self._now_s + STEP_S <= now // SECOND:
            self._now_s += STEP_S
            self._step()

    def page(self, path: str, asked: Asked) -> Row | None:
        """A page of the list at a path, None if there is none."""
        rows = self._rows(path)
        if rows is None:
            return None
        found = [row for row in rows if all(_fits(row, name, wanted) for name, wanted in asked.items())]
        wanted = asked.get("ordering", ("-timestamp" if path == "/events/" else "id",))[0]
        key = wanted.lstrip("-")

        # NULLs sort as in PostgreSQL: last, first in reverse
        places = {row["id"]: (row.get(key) is None, row.get(key) or "", row["id"]) for row in found}
        found.sort(key=lambda row: places[row["id"]], reverse=wanted.startswith("-"))
        offset, limit = int(asked.get("offset", ["0"])[0]), int(asked.get("limit", [str(MOST)])[0])
        shown = found[offset : offset + min(MOST, limit)]
        if path == "/events/":
            shown = [{name: value for name, value in row.items() if name not in HIDDEN} for row in shown]
        return {"count": len(found), "results": shown}

    def _rows(self, path: str) -> list[Row] | None:
        jobs, here = self.jobs, {"site_id": 1}
        beat = _naive(self._now_s - self._now_s % 60)
        running = (number for number, one in self.batch_jobs.items() if one["state"] == "running")
        site = {"id": 1, "name": "demo-site", "path": "/projects/demo/demo-site", "queued_jobs": {}}
        lists: dict[str, Iterable[Row]] = {
            # Events can be selected by fields of their jobs, too
            "/events/": ({name: jobs[one["job_id"]][name] for name in HIDDEN} | one for one in self.events),
            "/jobs/": jobs.values(),
            "/batch-jobs/": self.batch_jobs.values(),
            "/sites/": [site | {"last_refresh": _naive(self._now_s)}],
            "/apps/": ({**here, "id": nth, "name": name} for nth, name in enumerate(APPS, start=1)),
            "/sessions/": ({**here, "id": n, "batch_job_id": n, "heartbeat": beat} for n in running),
        }
        return list(lists[path]) if path in lists else None

    def _step(self) -> None:
        passed = self._now_s - self._begun_s
        if passed % WAVE_EVERY_S == 0:
            self._wave()
        if passed % ALLOCATION_EVERY_S == 0:
            self._submit()
        for allocation in self.batch_jobs.values():
            self._go_on(allocation)
        self._end_runs()
        for job in self.jobs.values():
            following = {"CREATED": "STAGED_IN", "STAGED_IN": "PREPROCESSED"}.get(job["state"])
            if following is not None:
                self._change(job, following)
        self._start_runs()
        if passed % WAVE_EVERY_S == 0:
            self._forget()

    def _wave(self) -> None:
        experiment = self._rng.choice(("ffn-1", "lattice-scan", "beam-loss"))
        for nth in range(self._rng.randint(*WAVE_JOBS)):
            number = next(self._ids)
            self.jobs[number] = {
                "id": number, "workdir": f"{experiment}/{number:05d}", "state": "CREATED",
                "app_id": nth % len(APPS) + 1,
                "tags": {"experiment": experiment, "wave": str(self._now_s // WAVE_EVERY_S % 1000)},
                "batch_job_id": None, "parent_ids": [], "num_nodes": self._rng.choice(NODES_OF_JOBS),
                "node_packing_count": 1, "wall_time_min": 20, "last_update": _aware(self._now_s),
            }  # fmt: skip

    def _submit(self) -> None:
        number = next(self._batch_ids)
        start_s = self._now_s + 240  # while it waits in the scheduler's queue
        self._times[number] = (start_s, start_s + WALL_MIN * 60)
        self.batch_jobs[number] = {
            "id": number, "site_id": 1, "state": "queued", "num_nodes": self._rng.choice(ALLOCATION_NODES),
            "wall_time_min": WALL_MIN, "scheduler_id": next(self._scheduler_ids), "project": "beams",
            "queue": "default", "job_mode": "mpi", "filter_tags": {}, "start_time": None, "end_time": None,
            "status_info": {"submit_time": _naive(self._now_s).replace("T", " ")},
        }  # fmt: skip

    def _go_on(self, allocation: Row) -> None:
        start_s, end_s = self._times[allocation["id"]]
        if allocation["state"] == "queued" and self._now_s >= start_s:
            allocation.update(state="running", start_time=_naive(start_s))
        elif allocation["state"] == "running" and self._now_s >= end_s:
            allocation.update(state="finished", end_time=_naive(end_s))
            for job in self._running_in(allocation["id"]):
                del self._ends[job["id"]]
                self._change(job, "RUN_TIMEOUT")
                self._change(job, "RESTART_READY")

    def _end_runs(self) -> None:
        for number, (end_s, state) in list(self._ends.items()):
            if self._now_s < end_s:
                continue
            del self._ends[number]
            job = self.jobs[number]
            if state == "RUN_DONE":
                self._change(job, state)
                self._change(job, "JOB_FINISHED", {"message": "Skipped stage out"})
            else:
                self._change(job, state, self._rng.choice(ERRORS))
                again = self._rng.random() < RESTART_SHARE
                self._change(job, "RESTART_READY" if again else "FAILED")

    def _start_runs(self) -> None:
        waiting = [job for job in self.jobs.values() if job["state"] in ("PREPROCESSED", "RESTART_READY")]
        for batch in self.batch_jobs.values():
            if batch["state"] != "running":
                continue
            free = batch["num_nodes"] - sum(one["num_nodes"] for one in self._running_in(batch["id"]))
            for job in waiting:
                if job["state"] != "RUNNING" and job["num_nodes"] <= free:
                    free -= job["num_nodes"]
                    job["batch_job_id"] = batch["id"]
                    self._change(job, "RUNNING", {"num_nodes": float(job["num_nodes"])})
                    fails = self._rng.random() < ERROR_SHARE
                    end_s = self._now_s + self._rng.randint(*DURATIONS_S)
                    self._ends[job["id"]] = (end_s, "RUN_ERROR" if fails else "RUN_DONE")

    def _running_in(self, allocation: int) -> Iterator[Row]:
        running = [self.jobs[number] for number in self._ends]
        return (job for job in running if job["batch_job_id"] == allocation)

    def _change(self, job: Row, state: str, data: Row | None = None) -> None:
        self.events.append(
            {
                "id": next(self._event_ids), "job_id": job["id"], "timestamp": _naive(self._now_s),
                "from_state": job["state"], "to_state": state, "data": data or {},
            }
        )  # fmt: skip
        job.update(state=state, last_update=_aware(self._now_s))

    def _forget(self) -> None:
        old = _aware(self._now_s - KEPT_S)
        kept = (job for job in self.jobs.values() if job["state"] not in ENDED or job["last_update"] >= old)
        self.jobs = {job["id"]: job for job in kept}
        self.events = [event for event in self.events if event["job_id"] in self.jobs]
        self.batch_jobs = {
            number: one
            for number, one in self.batch_jobs.items()
            if one["end_time"] is None or one["end_time"] > _naive(self._now_s - KEPT_S)
        }


def _naive(seconds: int) -> str:
    """A time in the form of events and allocations: UTC without a zone."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def _aware(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _fits(row: Row, name: str, wanted: Sequence[str]) -> bool:
    """Whether a row matches the parameters. Those of other lists are ignored, as the server does."""
    key = name.removesuffix("_after").removesuffix("_before")
    if key not in row:
        return True
    if key == "tags":
        pairs = (tag.partition(":") for tag in wanted)
        return all(row["tags"].get(tag) == value for tag, _, value in pairs)
    if key == name:
        return str(row[key]) in wanted
    at, bound = _plain(row[key]), _plain(wanted[0])
    return at >= bound if name.endswith("_after") else at <= bound


def _plain(text: str) -> str:
    return text.replace("Z", "").replace("+00:00", "").replace(" ", "T")


@contextmanager
def serving(directory: Path, seed: int, clock: Clock) -> Iterator[tuple[str, Path]]:
    """A block with a site on a free port of loopback: its address, and a login file for it."""
    site, lock = BalsamSite(seed, clock.now()), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client may be gone, such as a command that has its answer
                super().handle()

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            with lock:
                site.advance(clock.now())
                page = site.page(parts.path, parse_qs(parts.query)) if allowed else None
            body = json.dumps(page if page is not None else {"detail": "Not Found"}).encode()
            self.send_response(401 if not allowed else 404 if page is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing on the terminal of the dashboard."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), name="demo balsam", daemon=True).start()
        url = f"http://{LOOPBACK}:{server.server_port}"
        login = directory / "balsam-client.yml"
        login.touch(mode=0o600)
        login.write_text(f"api_root: {url}\ntoken: {TOKEN}\n")
        try:
            yield url, login
        finally:
            server.shutdown()
