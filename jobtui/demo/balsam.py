"""A simulated Balsam site, served on loopback as the REST API of Balsam 0.7.0a24 serves what jobtui asks.

Jobs come in waves and run in allocations; rows are those of that API. Time goes on when it is asked for, in
steps; one seed makes one site. What is long over is let go of.
"""

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jobtui.model.clock import SECOND, Clock, Nanos

Row = dict[str, Any]

STEP_S = 5
HISTORY_S = 3 * 3600
"""How long the site has been at work when the demo begins."""
KEPT_S = 12 * 3600
"""Jobs and allocations that ended longer ago are let go of."""
WAVE_EVERY_S, WAVE_JOBS = 300, (3, 7)
ALLOCATION_EVERY_S, ALLOCATION_NODES, WALL_MIN = 1_800, (4, 8, 16), 40
QUEUED_S = 240
"""How long an allocation waits in the scheduler's queue."""
NODES_OF_JOBS = (1, 1, 1, 1, 2, 4)
DURATIONS_S = (60, 720)
ERROR_SHARE, RESTART_SHARE = 0.07, 0.5
ERRORS = (
    ({"error": "Segmentation fault (core dumped)", "returncode": 139}),
    ({"error": "OSError: [Errno 28] No space left on device: 'trajectory.h5'", "returncode": 1}),
    ({"error": 'ValueError: lattice has no element "QD7"', "returncode": 1}),
)
APPS = ("lammps.Equilibrate", "elegant.Track", "warpx.Stage")
EXPERIMENTS = ("ffn-1", "lattice-scan", "beam-loss")
ENDED = frozenset({"JOB_FINISHED", "FAILED"})
LOOPBACK = "127.0.0.1"
TOKEN = "demo"
MOST = 100_000
STOP_S = 0.05
"""How often the server looks whether it is to end."""
EQUAL = (
    "id", "job_id", "state", "app_id", "site_id", "batch_job_id", "scheduler_id", "from_state", "to_state",
)  # fmt: skip
"""Parameters that must be what the row has."""
BOUNDS: Mapping[str, tuple[str, bool]] = {
    "timestamp_after": ("timestamp", True), "timestamp_before": ("timestamp", False),
    "last_update_after": ("last_update", True), "last_update_before": ("last_update", False),
}  # fmt: skip
"""Parameters that bound a time of the row, from below or from above."""

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
        self.jobs: dict[int, Row] = {}
        self.events: list[Row] = []
        self.batch_jobs: dict[int, Row] = {}
        self.apps = [{"id": nth, "site_id": 1, "name": name} for nth, name in enumerate(APPS, start=1)]

    def advance(self, now: Nanos) -> None:
        while self._now_s + STEP_S <= now // SECOND:
            self._now_s += STEP_S
            self._step()

    @property
    def sites(self) -> list[Row]:
        refreshed = _naive(self._now_s)
        site = {"id": 1, "name": "demo-site", "path": "/projects/demo/demo-site", "last_refresh": refreshed}
        return [{**site, "queued_jobs": {}}]

    @property
    def sessions(self) -> list[Row]:
        running = (one["id"] for one in self.batch_jobs.values() if one["state"] == "running")
        heard = _naive(self._now_s - self._now_s % 60)
        return [{"id": nth, "site_id": 1, "batch_job_id": nth, "heartbeat": heard} for nth in running]

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
            self._prepare(job)
        self._start_runs()
        if passed % WAVE_EVERY_S == 0:
            self._forget()

    def _wave(self) -> None:
        experiment = self._rng.choice(EXPERIMENTS)
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
        self.batch_jobs[number] = {
            "id": number, "site_id": 1, "state": "queued", "num_nodes": self._rng.choice(ALLOCATION_NODES),
            "wall_time_min": WALL_MIN, "scheduler_id": next(self._scheduler_ids), "project": "beams",
            "queue": "default", "job_mode": "mpi", "filter_tags": {}, "start_time": None, "end_time": None,
            "status_info": {"submit_time": _naive(self._now_s).replace("T", " ")}, "submitted_s": self._now_s,
        }  # fmt: skip

    def _go_on(self, allocation: Row) -> None:
        start_s = allocation["submitted_s"] + QUEUED_S
        end_s = start_s + WALL_MIN * 60
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

    def _prepare(self, job: Row) -> None:
        following = {"CREATED": "STAGED_IN", "STAGED_IN": "PREPROCESSED"}.get(job["state"])
        if following is not None:
            self._change(job, following)

    def _start_runs(self) -> None:
        waiting = [job for job in self.jobs.values() if job["state"] in ("PREPROCESSED", "RESTART_READY")]
        for allocation in self.batch_jobs.values():
            if allocation["state"] != "running":
                continue
            free = allocation["num_nodes"] - sum(
                job["num_nodes"] for job in self._running_in(allocation["id"])
            )
            for job in waiting:
                if job["state"] != "RUNNING" and job["num_nodes"] <= free:
                    free -= job["num_nodes"]
                    self._run(job, allocation["id"])

    def _run(self, job: Row, allocation: int) -> None:
        job["batch_job_id"] = allocation
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
        gone = {n for n, job in self.jobs.items() if job["state"] in ENDED and job["last_update"] < old}
        if gone:
            self.jobs = {number: job for number, job in self.jobs.items() if number not in gone}
            self.events = [event for event in self.events if event["job_id"] not in gone]
        self.batch_jobs = {
            number: one
            for number, one in self.batch_jobs.items()
            if one["end_time"] is None or one["end_time"] > _naive(self._now_s - KEPT_S)
        }


def _naive(seconds: int) -> str:
    """A time as events and allocations have it: UTC without saying so."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def _aware(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


class SiteServer:
    """Answers for a site, whose time goes on with the clock."""

    def __init__(self, site: BalsamSite, clock: Clock) -> None:
        self._site = site
        self._clock = clock
        self._lock = threading.Lock()

    def answer(self, path: str, asked: Asked) -> Row | None:
        """A page of the list at a path, None when there is none."""
        with self._lock:
            self._site.advance(self._clock.now())
            rows = self._rows(path, asked)
            if rows is None:
                return None
            found = [
                {name: value for name, value in row.items() if name != "submitted_s"}
                for row in rows
                if is_wanted(row, asked)
            ]
        ordered = in_order(found, asked)
        offset, limit = int(_one(asked, "offset", "0")), min(MOST, int(_one(asked, "limit", str(MOST))))
        return {"count": len(ordered), "results": ordered[offset : offset + limit]}

    def _rows(self, path: str, asked: Asked) -> Sequence[Row] | None:
        site = self._site
        lists: Mapping[str, Callable[[], Sequence[Row]]] = {
            "/events/": lambda: self._events(asked), "/jobs/": lambda: list(site.jobs.values()),
            "/batch-jobs/": lambda: list(site.batch_jobs.values()), "/sites/": lambda: site.sites,
            "/apps/": lambda: site.apps, "/sessions/": lambda: site.sessions,
        }  # fmt: skip
        found = lists.get(path)
        return None if found is None else found()

    def _events(self, asked: Asked) -> list[Row]:
        jobs = self._site.jobs
        return [
            event
            for event in self._site.events
            if _has_tags(jobs[event["job_id"]], asked)
            and _one(asked, "batch_job_id", "") in ("", str(jobs[event["job_id"]]["batch_job_id"]))
        ]


def is_wanted(row: Row, asked: Asked) -> bool:
    """Whether a row is as it is asked for. Parameters of other lists are ignored, as the server does."""
    equal = all(str(row[name]) in asked[name] for name in EQUAL if name in asked and name in row)
    return equal and all(_is_within(row, name, asked) for name in BOUNDS) and _has_tags(row, asked)


def _is_within(row: Row, name: str, asked: Asked) -> bool:
    key, from_below = BOUNDS[name]
    if name not in asked or key not in row:
        return True
    bound, at = _plain(asked[name][0]), _plain(row[key])
    return at >= bound if from_below else at <= bound


def _has_tags(row: Row, asked: Asked) -> bool:
    pairs = [tag.partition(":") for tag in asked.get("tags", ())]
    return "tags" not in row or all(row["tags"].get(name) == value for name, _, value in pairs)


def _plain(text: str) -> str:
    return text.replace("Z", "").replace("+00:00", "").replace(" ", "T")


def in_order(rows: list[Row], asked: Asked) -> list[Row]:
    """The rows as they are asked for; events the newest first."""
    usual = "-timestamp" if rows and "timestamp" in rows[0] else "id"
    wanted = _one(asked, "ordering", usual)
    key = wanted.lstrip("-")

    def place(row: Row) -> tuple[bool, object, object]:
        """NULLs sort as in PostgreSQL: last, first in reverse."""
        return row.get(key) is None, row.get(key) or "", row["id"]

    return sorted(rows, key=place, reverse=wanted.startswith("-"))


def _one(asked: Asked, name: str, default: str) -> str:
    return asked[name][0] if name in asked else default


@contextmanager
def serving(directory: Path, seed: int, clock: Clock) -> Iterator[tuple[str, Path]]:
    """A site on a free port of loopback as long as this lasts: its address, and a login file for it."""
    answers = SiteServer(BalsamSite(seed, clock.now()), clock)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            page = answers.answer(parts.path, parse_qs(parts.query)) if allowed else None
            body = json.dumps(page if page is not None else {"detail": "Not Found"}).encode()
            self.send_response(401 if not allowed else 404 if page is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on the terminal of the dashboard."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(STOP_S,), name="demo balsam", daemon=True).start()
        url = f"http://{LOOPBACK}:{server.server_port}"
        login = directory / "balsam-client.yml"
        login.touch(mode=0o600)
        login.write_text(f"api_root: {url}\ntoken: {TOKEN}\n")
        try:
            yield url, login
        finally:
            server.shutdown()
