"""Serves a simulated Balsam site on loopback, as the REST API of Balsam 0.7.0a24 does what jobtui asks."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from jobtui.demo.balsam_site import BalsamSite, Row
from jobtui.model.clock import Clock

LOOPBACK = "127.0.0.1"
TOKEN = "demo"
MOST = 100_000
STOP_S = 0.05
"""How often the server looks whether it is to end."""
EQUAL = (
    "id",
    "job_id",
    "state",
    "app_id",
    "site_id",
    "batch_job_id",
    "scheduler_id",
    "from_state",
    "to_state",
)
"""Parameters that must be what the row has."""
BOUNDS: Mapping[str, tuple[str, bool]] = {
    "timestamp_after": ("timestamp", True), "timestamp_before": ("timestamp", False),
    "last_update_after": ("last_update", True), "last_update_before": ("last_update", False),
}  # fmt: skip
"""Parameters that bound a time of the row, from below or from above."""

Asked = Mapping[str, Sequence[str]]


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
            found = [_without_own(row) for row in rows if is_wanted(row, asked)]
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
        """Events; of what jobs have and events do not, the job decides."""
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
    """A time as text that sorts: UTC without saying so."""
    return text.replace("Z", "").replace("+00:00", "").replace(" ", "T")


def in_order(rows: list[Row], asked: Asked) -> list[Row]:
    """The rows as they are asked for; events the newest first."""
    usual = "-timestamp" if rows and "timestamp" in rows[0] else "id"
    wanted = _one(asked, "ordering", usual)
    key = wanted.lstrip("-")

    def place(row: Row) -> tuple[bool, object, object]:
        """Where what is not set stands as PostgreSQL has it: behind all others, before them in reverse."""
        return row.get(key) is None, row.get(key) or "", row["id"]

    return sorted(rows, key=place, reverse=wanted.startswith("-"))


def _one(asked: Asked, name: str, default: str) -> str:
    return asked[name][0] if name in asked else default


def _without_own(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "submitted_s"}


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
