"""Each fault of an engine is one line in `doctor`, `logs` and on the screen of sources; no login is in it."""

import asyncio
import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
import pytest

from jobtui.backends.registry import announce
from jobtui.config import load
from jobtui.model.clock import SECOND, SystemClock
from jobtui.screens.sources import about
from jobtui.session import Session
from tests.backends.archive.elastic_server import StrictElastic
from tests.backends.engines.loki_server import StrictLoki
from tests.backends.engines.rigs import FILES, T0, journal_line, journald_document
from tests.backends.journal.readers import LINE
from tests.commands.running import Runner
from tests.condor import JOB, event, executing, submitted
from tests.loopback import response, served
from tests.rows import ROWS

SECRET = "s3cr3t-t0k3n-of-an-operator"
NOW_S = (SystemClock().now() - T0) / SECOND
"""Seconds from the time of the first line of the rigs to now: a server goes by the clock of this machine."""
ARCHIVES = {
    "whole": FILES, "none": b"", "text": b"no archive", "bomb": gzip.compress(bytes(200 << 20)),
    "cut": gzip.compress(gzip.decompress(FILES)[:1_000]),
}  # fmt: skip


def elastic(late_s: float = 60, bare: bool = False, **more: Any) -> StrictElastic:
    documents = {f"d{n}": journald_document(NOW_S - late_s + n, LINE.format(n)) for n in range(5)}
    if bare:
        documents = {name: {"@timestamp": one["@timestamp"]} for name, one in documents.items()}
    return StrictElastic(**{"documents": documents, "index": "logs", "keywords": True, **more})


def loki(late_s: float = 60, warnings: Any = (), **labels: str) -> StrictLoki:
    lines = [journal_line(NOW_S - late_s + n, LINE.format(n), **labels) for n in range(5)]
    server = StrictLoki([(at, {key: one for key, one in of.items() if one}, text) for at, of, text in lines])
    server.warnings = [*warnings]
    return server


def fetchlog(archive: str = "whole") -> Any:
    def answer(asked: httpx.Request) -> httpx.Response:
        body = ARCHIVES[archive] if asked.url.path == f"/job/{JOB}.tar.gz" else b""
        return response(200 if body else 404, body, {"content-type": "application/gzip"})

    return SimpleNamespace(answer=answer)


class Fault(NamedTuple):
    """How an answer is changed: to other ones, packed as gzip, or cut to a share or a number of bytes."""

    status: int = 0
    headers: Mapping[str, str] = {}
    body: str | None = None
    packed: float = 0.0

    def of(self, answer: httpx.Response) -> httpx.Response:
        assert isinstance(answer.stream, httpx.ByteStream)
        data = b"".join(answer.stream) if self.body is None else self.body.encode()
        known = {} if self.status else answer.headers
        if self.packed:
            data = (whole := gzip.compress(data))[: int(len(whole) * self.packed)]
        return response(self.status or answer.status_code, data, {**known, **self.headers})


ENGINES: dict[str, Callable[..., Any]] = {"elastic-logs": elastic, "loki": loki, "fetchlog": fetchlog}
CASES = [
    (one, ENGINES[one](**server), Fault(**fault), words)
    for of, server, fault, words in ROWS["faults, of any engine or of one"]
    for one in ENGINES
    if of in ("", one)
]
ENDED = event(5, "2026-11-20 10:02:00Z", "Job terminated.", "\t(1) Normal termination (return value 1)")


async def on_screen(settings: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What the screen of sources says of the last one."""
    async with Session([announce(spec) for spec in load(settings, {}).sources]) as session:
        await session.catch_up()
        return [paragraph.text for paragraph in about(session.store.sources()[-1])]


@pytest.mark.parametrize(("setting", "server", "fault", "words"), CASES)
def test_each_is_one_line_wherever_it_is_looked_for(
    setting: str, server: Any, fault: Fault, words: str, run: Runner, tmp_path: Path
) -> None:
    (tmp_path / "job.log").write_text(submitted() + executing() + ENDED)
    (tmp_path / "token").write_text(SECRET)
    base = getattr(server, "base", "")
    with served(SimpleNamespace(base=base, answer=lambda asked: fault.of(server.answer(asked)))) as url:
        config = tmp_path / "config.toml"
        config.write_text(f'[servers."{url}"]\nbearer_file = "{tmp_path}/token"\n')
        flags = ["--config", str(config), f"--{setting}", url]
        flags += ["--condor-log", str(tmp_path / "job.log")] if setting == "fetchlog" else []
        doctor = run("doctor", "--json", *flags)
        logs = run("logs", JOB if setting == "fetchlog" else "sirepo_job_supervisor", *flags)
        screen = asyncio.run(on_screen({"config": (str(config),), setting.replace("-", "_"): (url,)}))
    says = [one for check in doctor.json["checks"] for one in check["says"]]
    told = {"doctor": says, "logs": logs.err.splitlines()}
    told |= {"the screen": screen} if setting != "fetchlog" or fault.status else {}  # it asks for no archive
    for place, lines in told.items():
        assert sum(words in one for one in lines if words) == bool(words), (place, lines)
    assert bool(logs.out) or words
    assert SECRET not in f"{doctor}{logs}{screen}"
