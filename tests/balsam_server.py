"""A Balsam server as recorded: answers from the captured lists by the real one's rules, faults included.

Rules seen with Balsam 0.7.0a24: unknown parameters are ignored, `limit` up to 100000, events newest first,
`scheduler_id` does not narrow, events by `batch_job_id` take a place of a page for each batch job there.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import ge, le
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from jobtui.model.clock import SECOND, Nanos
from tests.rows import FIXTURES, table

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
FORM = "application/x-www-form-urlencoded"
INTERVAL_S, EXPIRES_S = 3.0, 300.0
PAGE = "http://127.0.0.1:28001/auth/oauth/ALCF/login/device"
USER_CODE = "CPCB-TSTJ"
NO_UUID = {"loc": ["body", "client_id"], "msg": "value is not a valid uuid", "type": "type_error.uuid"}


class DeviceLogin:
    """The device flow, as strict as the real one: `fixtures/balsam/auth_device_flow.json`.

    One attempt at a time. A person in the browser may `approve` or `deny`. `clock` gives seconds.
    """

    def __init__(self, token: str, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.clock = clock
        self.pending: list[tuple[int, Record]] = []
        """Answers given instead of its own, one after the other."""
        self._token = token
        self._attempts: dict[tuple[str, str], float] = {}
        self._answer: str | None = None

    def approve(self) -> None:
        self._answer = "approved"

    def deny(self) -> None:
        self._answer = "denied"

    def begin(self, request: httpx.Request) -> httpx.Response:
        form = _form(request)
        try:
            UUID(form["client_id"])
        except (KeyError, ValueError):
            return httpx.Response(422, json={"detail": [NO_UUID]})
        code = f"code of {form['client_id']}"
        self._attempts = {(code, form["client_id"]): self.clock()}
        told = {
            "device_code": code, "user_code": USER_CODE, "verification_uri": PAGE, "expires_in": EXPIRES_S,
            "verification_uri_complete": f"{PAGE}?user_code={USER_CODE}", "interval": INTERVAL_S,
        }  # fmt: skip
        return httpx.Response(200, json=told)

    def token(self, request: httpx.Request) -> httpx.Response:
        form, now = _form(request), self.clock()
        if form.get("grant_type") != GRANT:
            return _refused(400, "unsupported_grant_type")
        attempt = (form.get("device_code", ""), form.get("client_id", ""))
        if attempt not in self._attempts:
            return _refused(400, "invalid_client")
        if self.pending:
            status, body = self.pending.pop(0)
            return httpx.Response(status, json=body)
        if now - self._attempts[attempt] > EXPIRES_S:
            return _refused(400, "expired_token")
        return self._decide(attempt)

    def _decide(self, attempt: tuple[str, str]) -> httpx.Response:
        match self._answer:
            case "approved":
                del self._attempts[attempt]  # a code is good for one login
                granted = {"access_token": self._token, "token_type": "bearer", "expiration": EXPIRATION}
                return httpx.Response(200, json=granted)
            case "denied":
                return _refused(403, "access_denied")
        return _refused(400, "authorization_pending")


def _form(request: httpx.Request) -> dict[str, str]:
    is_form = request.headers.get("content-type", "").partition(";")[0] == FORM
    return dict(httpx.QueryParams(request.content.decode())) if is_form else {}


def _refused(status: int, detail: str) -> httpx.Response:
    return httpx.Response(status, json={"detail": detail})


FOLDER = FIXTURES / "balsam"
TOKEN = "recorded"
MOST = 100_000

Record = dict[str, Any]

EXPIRATION = "2026-11-22T19:31:25.715129"
UNAUTHORIZED: Record = {"detail": "Unauthorized"}


def recorded(name: str) -> list[Record]:
    rows: list[Record] = json.loads((FOLDER / f"dump_{name}.json").read_text())["results"]
    return rows


@cache
def moment(text: str) -> datetime:
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def nanos(text: str) -> Nanos:
    return Nanos(int(moment(text).timestamp()) * SECOND + moment(text).microsecond * 1_000)


PARAMETERS: Mapping[str, Sequence[str]] = table("balsam/parameters")
"""What may be asked of each list. The real server ignores others, and all rows come back."""


class RecordedBalsam:
    """Answers requests; its rows may be changed while it is asked. `requests` are the targets so far."""

    def __init__(self) -> None:
        self.events = recorded("events")
        self.jobs = recorded("jobs")
        self.batch_jobs = recorded("batch_jobs")
        self.sites = recorded("sites")
        self.apps = recorded("apps")
        self.sessions = recorded("sessions")
        self.transfers: list[Record] = []
        self.token = TOKEN
        self.requests: list[str] = []
        self.tokens: list[str | None] = []
        """What each request was allowed by."""
        self.methods = ["LoginMethod.password", "LoginMethod.oauth_authcode"]
        self.password = "right-password"
        self.device = DeviceLogin(self.token)
        self.headers: dict[str, str] = {}
        """Sent with each answer."""
        self.broken = ""
        """The path of a list that is not answered."""
        self.faults: list[Callable[[httpx.Request], httpx.Response]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        answer = self._answer(request)
        answer.headers.update(self.headers)
        return answer

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request.url.raw_path.decode())
        self.tokens.append(request.headers.get("authorization"))
        if self.faults:
            return self.faults.pop(0)(request)
        if request.url.path == self.broken:
            return httpx.Response(500, text="Internal Server Error")
        if request.url.path.startswith("/auth/"):
            return self._log_in(request)
        if request.method != "GET":
            return httpx.Response(405, json={"detail": "Method Not Allowed"})
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return httpx.Response(401, json={"detail": "Could not validate credentials"})
        if request.url.path not in PARAMETERS:
            return httpx.Response(404, json={"detail": "Not Found"})
        asked = request.url.params
        assert asked.keys() <= {*PARAMETERS[request.url.path]}, request.url
        return self._page(asked, self._found(request.url.path.strip("/").replace("-", "_"), asked))

    def move_on(self, number: int, at: str = "19:29:58", seen: str = "19:29:59") -> Record:
        """Let a job that runs have run, as the event with this number tells; the job."""
        job = next(row for row in self.jobs if row["state"] == "RUNNING")
        job.update(state="RUN_DONE", last_update=f"2026-11-20T{seen}+00:00")
        self.tell(number, job["id"], at, "RUNNING", "RUN_DONE")
        return job

    def tell(self, number: int, job: int, at: str, before: str, after: str) -> None:
        """Have one more event, at a time of the day or another one."""
        moment = at if "T" in at else f"2026-11-20T{at}"
        states = {"from_state": before, "to_state": after}
        self.events.append({"id": number, "job_id": job, "timestamp": moment, **states, "data": {}})

    def _log_in(self, request: httpx.Request) -> httpx.Response:
        form = _form(request)
        granted = {"access_token": self.token, "token_type": "bearer", "expiration": EXPIRATION}
        match request.method, request.url.path:
            case "GET", "/auth/how":
                return httpx.Response(200, json=self.methods)
            case "POST", "/auth/password/login":
                is_right = form.get("password") == self.password and form.get("username") == "operator"
                return httpx.Response(200 if is_right else 401, json=granted if is_right else UNAUTHORIZED)
            case "POST", "/auth/device/login" if "LoginMethod.oauth_device" in self.methods:
                return self.device.begin(request)
            case "POST", "/auth/device/token" if "LoginMethod.oauth_device" in self.methods:
                return self.device.token(request)
        return httpx.Response(404, json={"detail": "Not Found"})

    def _page(self, asked: httpx.QueryParams, rows: list[Record]) -> httpx.Response:
        limit, offset = int(asked.get("limit", MOST)), int(asked.get("offset", 0))
        if limit > MOST or offset < 0:
            return httpx.Response(422, json={"detail": [{"loc": ["query", "limit"], "msg": "too large"}]})
        places = rows
        if "batch_job_id" in asked and rows and "timestamp" in rows[0]:
            places = [row for row in rows for _ in self.batch_jobs]
        unique = {row["id"]: row for row in places[offset : offset + limit]}
        text = json.dumps({"count": len(rows), "results": list(unique.values())})  # also NaN
        return httpx.Response(200, content=text.encode(), headers={"content-type": "application/json"})

    def _found(self, name: str, asked: httpx.QueryParams) -> list[Record]:
        """The rows of a list that are as asked for, in order. A job's tags and allocation are its events'."""
        jobs = {job["id"]: job for job in self.jobs}
        rows: list[Record] = getattr(self, name)
        for key in asked.keys() - {"limit", "offset", "ordering"}:
            wanted, column = asked.get_list(key), key.removesuffix("_after").removesuffix("_before")
            of_job = {row["id"]: jobs.get(row.get("job_id", row["id"]), {}) for row in rows}
            if key == "tags":
                pairs = {tuple(tag.split(":", 1)) for tag in wanted if ":" in tag}
                rows = [row for row in rows if pairs <= of_job[row["id"]].get("tags", {}).items()]
            elif key in ("job_state", "batch_job_id"):
                rows = [row for row in rows if str(of_job[row["id"]].get(key.removeprefix("job_"))) in wanted]
            elif column != key:
                is_kept = ge if key.endswith("_after") else le
                rows = [row for row in rows if is_kept(moment(row[column]), moment(wanted[0]))]
            elif (name, key) != ("events", "scheduler_id"):  # which does not narrow
                rows = [row for row in rows if str(row[key]) in wanted]
        order = asked.get("ordering", "-timestamp" if name == "events" else "id")
        by_id = sorted(rows, key=lambda row: row["id"])
        column, is_reverse = order.lstrip("-"), order.startswith("-")
        return sorted(by_id, key=lambda row: (row[column] is None, row[column] or ""), reverse=is_reverse)


def write_login(
    path: Path, url: str, token: str, expiry: str = "2036-11-22 19:31:57.715415", mode: int = 0o600
) -> Path:
    """A login as `balsam login` writes it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(
        f"api_root: {url}\nclient_class: balsam.client.requests_password.BasicAuthRequestsClient\n"
        f"connect_timeout: 6.2\nread_timeout: 120.0\nretry_count: 10\ntoken: {token}\n"
        f"token_expiry: {expiry}\n"
    )
    os.chmod(path, mode)
    return path
