"""What is secret gets out nowhere, wherever it is planted: the rows are in `tests/fixtures/secrets.toml`."""

import base64
import json
import re
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from jobtui.backends.archive.source import ArchiveDirectory
from jobtui.backends.condor.source import CondorFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.backends.traces.files import TraceFile
from jobtui.commands.streams import Exit
from jobtui.model.clock import SECOND, SystemClock
from jobtui.model.ids import TraceId
from tests.backends.archive.elastic_server import StrictElastic
from tests.backends.engines.loki_server import StrictLoki
from tests.backends.engines.rigs import T0, archive, journal_line, journald_document
from tests.commands.running import Runner, a_db, contents
from tests.condor import JOB as CONDOR
from tests.condor import event, executing, submitted
from tests.loopback import response, served
from tests.rows import table
from tests.screens.captured import app_on, copied, shown
from tests.screens.tour import settled, typed
from tests.waiting import wait_until
from tests.widgets.widget_app import text

ROWS: dict[str, Any] = table("secrets")["planted"]
LINES, PASSWORD = ROWS["lines"], ROWS["password"]
JOB, TRACE = "VUlhaMO1-QJEiWbjL-heightWeightReport", "1" * 32
NOW = SystemClock().now() // SECOND
OP = "Nov 27 00:00:01 7 0 sirepo/job_driver/__init__.py:337:_log DockerDriver(a=9mgt k=parallel u=VUlh [])"


def a_world(place: Path) -> None:
    """Files in which the lines are wherever they can be."""
    text = "\n".join((*ROWS["block"], *LINES))
    record = {"status": "error", "error": text, "alert": LINES[0], "simName": LINES[3],
              "computeJobQueued": NOW - 600, "uid": "VUlhaMO1", "simulationType": "myapp"}  # fmt: skip
    root = a_db(place, **{JOB.replace("-", "__"): record})
    run_dir = root / "user/VUlhaMO1/myapp/QJEiWbjL/heightWeightReport"
    run_dir.mkdir(parents=True)
    (run_dir / "run.log").write_text(text)
    (place / "log").write_text("".join(f"{OP} {JOB} runDir={run_dir} o={one}\n" for one in LINES))
    held = event(12, "2026-11-20 10:02:00Z", "Job was held.", LINES[0], "Code 13 Subcode 2")
    (place / "events").write_text(submitted() + executing() + held)
    ad = {"ClusterId": 7, "ProcId": 0, "JobStatus": 5, "GlobalJobId": "jobsub02.fnal.gov#7.0#1795000000",
          "HoldReason": LINES[0], "Environment": " ".join(LINES[1:4]), "Args": LINES[4]}  # fmt: skip
    (place / "ads").write_text("".join(f"{name}={json.dumps(one)}\n" for name, one in ad.items()) + "\n")
    (place / "job.77_script").write_text("#!/bin/sh\n#SBATCH -o x\n" + text)
    variables = "".join(f"{name}\0" for name in (LINES[1], LINES[3], "X_TOKEN=hunter2"))
    (place / "job.77_environment").write_bytes((3).to_bytes(4, "little") + variables.encode())
    told = {"process.command_line": LINES[4], "http.url": LINES[-1], "exception.stacktrace": text}
    told["password"] = "hunter2"
    attributes = [{"key": key, "value": {"stringValue": one}} for key, one in told.items()]
    error = {"timeUnixNano": NOW * SECOND, "name": "exception", "attributes": attributes}
    span = {"traceId": TRACE, "spanId": "2" * 16, "name": LINES[0], "startTimeUnixNano": NOW * SECOND,
            "status": {"code": 2, "message": LINES[9]}, "attributes": attributes,
            "events": [error]}  # fmt: skip
    (place / "spans.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    (place / "token").write_text(PASSWORD)


class Refusing:
    """A server that answers, or refuses and quotes the login as one may."""

    status = 0

    def __init__(self, server: Any) -> None:
        self._server, self.base = server, getattr(server, "base", "")

    def answer(self, asked: httpx.Request) -> httpx.Response:
        if not self.status:
            return self._server.answer(asked)  # type: ignore[no-any-return]
        sent = [asked.headers.get(name, "") for name in ("authorization", "x-key")]
        login = base64.b64decode(sent[0][6:]).decode() if sent[0].startswith("Basic ") else ""
        words = [*sent, login, login.partition(":")[2], PASSWORD]
        told = " ".join(f"{one} {quote(one, '')} {one!r}" for one in words)
        return response(self.status, json.dumps({"error": {"reason": told}}).encode())


def servers() -> list[Refusing]:
    off = NOW - T0 / SECOND - 60
    documents = {f"d{n}": journald_document(off + n, f"{JOB} {one}") for n, one in enumerate(LINES)}
    loki = StrictLoki([journal_line(off + n, f"{JOB} {one}") for n, one in enumerate(LINES)])
    loki.warnings = [LINES[0]]
    files = archive({f"{CONDOR}/beam.out": "\n".join(LINES)})
    kept = SimpleNamespace(answer=lambda asked: response(200 if "tar" in asked.url.path else 404, files))
    jaeger = SimpleNamespace(answer=lambda asked: response(500, LINES[0].encode()))
    return [Refusing(one) for one in (StrictElastic(documents, index="logs"), loki, kept, jaeger)]


def test_no_planted_secret_is_printed(
    run: Runner, tmp_path: Path, plain_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_world(place := tmp_path / "world")
    monkeypatch.chdir(plain_environment)
    masked: dict[str, bool] = {}
    known = {"JOB": JOB, "CONDOR": CONDOR, "TRACE": TRACE, "LINE": LINES[0]}
    flags = [f"--{one.format(place=place)}" for one in ROWS["settings"]] + ["--config", place / "config.toml"]
    with ExitStack() as stack:
        urls = [stack.enter_context(served(one)) for one in servers()]
        flags += [f"--{name}={url}" for name, url in zip(ROWS["servers"], urls, strict=True)]

        def check(login: str, asked: list[str], number: int = 0) -> None:
            said = login.format(token=place / "token", password=PASSWORD)
            (place / "config.toml").write_text("".join(f'[servers."{url}"]\n{said}\n' for url in urls))
            for words in asked:
                given = [known.get(one, one.replace("NUMBER", str(number))) for one in words.split()]
                ran = run(*(flags if given[0] not in ("replay", "completion") else ()), *given)
                assert "hunter2" not in ran.out + ran.err, (login, words)
                assert ran.code != Exit.FAULT
                masked.update({words: "***" in ran.out + ran.err})

        check(ROWS["logins"][0], ROWS["asked"])
        for number, login in enumerate(ROWS["logins"]):
            Refusing.status = (500, 401)[number % 2]
            check(login, ROWS["refused"], number)
    assert sum(masked.values()) > len(masked) / 2
    every = plain_environment.rglob("*")
    written = [path for path in every if path.is_file() and path.suffix[-4:] not in ("-shm", "-wal")]
    assert len(written) > len(ROWS["logins"])
    assert not [path for path in written if path.stat().st_mode & 0o77]
    assert not [path for path in written for one in contents(path) if b"hunter2" in one]


async def test_no_planted_secret_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_world(place := tmp_path)
    jobs = SirepoDb(place / "db"), CondorFile(place / "ads"), CondorFile(place / "events")
    more = TraceFile(place / "spans.json"), ArchiveDirectory(str(place)), place / "log"
    leaks, masked = [], 0
    async with shown(app_on(*jobs, *more, now=SystemClock().now()), (200, 60)) as (app, pilot):
        store = app._session.store
        await wait_until(lambda: all(one.read_at for one in store.sources()) and JOB[:8] in text(app), pilot)
        await wait_until(lambda: store.traces.size(TraceId(TRACE)), pilot)
        taken = copied(app, monkeypatch)
        for keys in ROWS["walked"]:
            await pilot.press("escape", "escape", "1")
            for key in typed(keys):
                await pilot.press(key)
                await settled(app, pilot)
                await wait_until(lambda: not re.search(ROWS["awaited"], text(app)), pilot)
            await pilot.press(*("y", "Y", "ctrl+y") * ("=" not in keys))
            notes = (note.message for note in app._notifications)
            said = [text(app), app.export_screenshot(), *notes, *taken]
            masked += "***" in "".join(said)
            leaks += [(keys, line) for one in said for line in one.split("\n") if "hunter2" in line]
            taken.clear()
    assert not leaks
    assert masked > len(ROWS["walked"]) / 2
