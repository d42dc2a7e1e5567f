"""One guest user of a Sirepo server: what a browser would send, without the browser."""

import http.client
import json
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

EXITS = frozenset({"completed", "canceled", "error", "missing", "job_run_purged"})
CALL_TIMEOUT_S = 240.0
JOB_TIMEOUT_S = 150.0

Reply = dict[str, Any]


class NoAnswer(Exception):
    """The server did not answer."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation as the server has it; `models` is what a user may change."""

    models: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.models["simulation"]["simulationId"])

    def request(self, report: str) -> Reply:
        return {"models": self.models, "report": report, "simulationType": "myapp", "simulationId": self.id}


class Browser:
    """Cookies, JSON, and polling as the web page does it. One call at a time."""

    def __init__(self, port: int) -> None:
        self.uid = ""
        self._port = port
        self._cookies = SimpleCookie()
        self._lock = threading.Lock()

    def call(self, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        """One request; a status of 400 and up becomes the state `http-<status>`. Raises NoAnswer."""
        with self._lock:
            try:
                status, text = self._exchange(path, body)
            except (OSError, http.client.HTTPException) as error:
                raise NoAnswer(f"{path}: {error}") from error
        if status >= 400:
            return {"state": f"http-{status}", "text": text}
        try:
            reply = json.loads(text)
        except ValueError:
            return {"state": "text", "text": text}
        return reply if isinstance(reply, dict) else {"state": "text", "text": text}

    def log_in(self) -> None:
        self.call("/auth-state")
        self.call("/auth-guest-login/myapp")
        text = self.call("/auth-state")["text"]
        self.uid = json.loads(text[text.index("{") : text.rindex("}") + 1])["uid"]
        self.call("/simulation-list", {"simulationType": "myapp"})

    def new_simulation(self, name: str) -> Simulation:
        reply = self.call("/new-simulation", {"simulationType": "myapp", "name": name, "folder": "/"})
        return Simulation(reply["models"])

    def jid(self, simulation: Simulation, report: str) -> str:
        return f"{self.uid}-{simulation.id}-{report}"

    def run(
        self, simulation: Simulation, report: str, until: Collection[str] = EXITS, **extra: object
    ) -> Reply:
        """Start a report and poll until it has one of these states."""
        return self.wait(self.call("/run-simulation", simulation.request(report) | extra), until)

    def ask(self, simulation: Simulation, report: str, until: Collection[str] = EXITS) -> Reply:
        """Ask for a report, without starting it, until it has one of these states."""
        return self.wait(self.call("/run-status", simulation.request(report)), until)

    def wait(self, reply: Reply, until: Collection[str] = EXITS, timeout_s: float = JOB_TIMEOUT_S) -> Reply:
        """Go on polling from a reply, for so long at most."""
        deadline = time.monotonic() + timeout_s
        request = reply.get("nextRequest")
        while reply.get("state") not in until and request and time.monotonic() < deadline:
            time.sleep(reply.get("nextRequestSeconds", 1))
            reply = self.call("/run-status", request)
            request = reply.get("nextRequest", request)
        return reply

    def _exchange(self, path: str, body: Mapping[str, Any] | None) -> tuple[int, str]:
        headers = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}
        if self._cookies:
            headers["Cookie"] = "; ".join(f"{name}={kept.value}" for name, kept in self._cookies.items())
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=CALL_TIMEOUT_S)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, sent, headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        finally:
            connection.close()
        for cookie in response.headers.get_all("Set-Cookie", []):
            self._cookies.load(cookie)
        return response.status, text
