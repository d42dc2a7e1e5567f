"""Small worlds of every kind of source, made of captured files that may be damaged."""

import gzip
import json
import os
import random
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.backends.journal.make import make_journal
from tests.balsam_server import FOLDER as BALSAM
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import AT
from tests.fuzz import damage
from tests.journal_memory import Row, container_rows, exported, supervisor_rows
from tests.loopback import CUT_AT, response, served
from tests.slurm_stand_in import StandIn
from tests.tracing import EXPECTED

FIXTURES = Path(__file__).parents[1] / "fixtures"
Files = Mapping[str, bytes]


class World(NamedTuple):
    """One kind of source. `files` are what may be damaged, by path below a directory.

    `start` makes the world of files that are there, gives the flags that name it and how it is ended.
    `commands` are said with each of some ids in place of ID, `words` are things to look for.
    `checks` are what is done where the damage is only of such kinds, and only to files that end so.
    `mishap` is what befalls whoever answers. Of the files that end as one of `same` only those of one are
    there, as they tell the same.
    """

    files: Callable[[], Files]
    start: Callable[[Path, ExitStack], Sequence[str]]
    commands: Sequence[str]
    checks: Mapping[str, tuple[Sequence[damage.Draw], str]] = {}
    mishap: Callable[[random.Random], damage.Edit] | None = None
    same: Sequence[str] = ()


def _read(place: Path, *patterns: str) -> dict[str, bytes]:
    paths = (path for pattern in patterns for path in sorted(place.glob(pattern)) if path.is_file())
    return {str(path.relative_to(place)): path.read_bytes() for path in paths}


def _sirepo(capture: str) -> Callable[[], Files]:
    return lambda: _read(FIXTURES / "sirepo" / capture, "supervisor-job/*.json", "*.log", "user/**/run.log")


def _rotated(capture: str) -> Files:
    """The same, the supervisor's log in three files, as logrotate leaves them."""
    files = dict(_sirepo(capture)())
    lines = files["supervisor.log"].splitlines(keepends=True)
    third = len(lines) // 3
    return {
        **files,
        "supervisor.log.2.gz": gzip.compress(b"".join(lines[:third]), mtime=0),
        "supervisor.log.1": b"".join(lines[third : 2 * third]),
        "supervisor.log": b"".join(lines[2 * third :]),
    }


def _start_sirepo(place: Path, stack: ExitStack) -> Sequence[str]:
    roles = {"supervisor.log": "supervisor", "server.log": "server"}
    logs = [f"{roles.get(path.name, 'auto')}={path}" for path in sorted(place.glob("*.log"))]
    return ["--srdb", str(place), *(word for log in logs for word in ("--log", log))]


@cache
def _journal_rows() -> Mapping[str, Sequence[Row]]:
    return {"remote-v3": supervisor_rows("docker"), "remote-d7": container_rows("docker")}


def _journal() -> Files:
    """Records, the messages of each journal as numbered lines, and journal files made of them."""
    files = _read(FIXTURES / "sirepo" / "docker", "supervisor-job/*.json")
    for name, rows in _journal_rows().items():
        messages = (fields["MESSAGE"][0].replace(b"\n", RETURN) for _, fields in rows)
        files[f"{name}.lines"] = b"".join(b"%d %s\n" % numbered for numbered in enumerate(messages))
        files[f"journals/{name}.journal"] = _made(files[f"{name}.lines"], name)
    return files


RETURN = "\u2028".encode()
"""In place of a newline within a message."""


@lru_cache(4)  # each is 8 MB
def _made(lines: bytes, name: str) -> bytes:
    """The journal file of such lines. What has no number is a message beside the one before it."""
    rows, made, number = _journal_rows()[name], [], 0
    for line in lines.removesuffix(b"\n").split(b"\n"):
        head, is_numbered, message = line.partition(b" ")
        if is_numbered and head.isdigit() and len(head) < 9:
            number = int(head) % len(rows)
        else:
            message = line
        entry, fields = rows[number]
        made.append((entry, {**fields, "MESSAGE": (message.replace(RETURN, b"\n"),)}))
    with tempfile.TemporaryDirectory() as text:
        return make_journal(Path(text), [exported(made)], f"{name}.journal").read_bytes()


def bytes_of(path: Path) -> bytes:
    """What a file of a world holds; nothing where it was made one that is no file or has no end."""
    with suppress(OSError):
        return path.read_bytes() if path.is_file() else b""
    return b""


def _start_journal(place: Path, stack: ExitStack) -> Sequence[str]:
    whole = _journal()
    for path in place.glob("*.lines"):
        if path.is_file() and (lines := bytes_of(path)) != whole[path.name]:
            (place / "journals" / f"{path.stem}.journal").unlink(missing_ok=True)
            (place / "journals" / f"{path.stem}.journal").write_bytes(_made(lines, path.stem))
    return ["--srdb", str(place), "--journal", str(place / "journals")]


def _balsam() -> Files:
    return {**_read(BALSAM, "dump_*.json"), "fates": b"whole"}


FIRST_ROW = re.compile(rb'(?<="results": )\[(\]?)')


def _after_junk(begin: re.Match[bytes]) -> bytes:
    return b"[" + b",".join(damage.JUNK) + (begin[1] or b",")


FATES: Mapping[str, Callable[[httpx.Response], httpx.Response]] = {
    "whole": lambda answer: answer,
    "junk": lambda answer: _answer(FIRST_ROW.sub(_after_junk, answer.content, count=1)),
    "half": lambda answer: _answer(answer.content[: len(answer.content) // 2]),
    "cut": lambda answer: _answer(answer.content, {CUT_AT: str(len(answer.content) // 3)}),
    "nothing": lambda answer: _answer(answer.content, {CUT_AT: "0"}),
    "empty": lambda answer: _answer(b""),
    "null": lambda answer: _answer(b"null"),
    "list": lambda answer: _answer(b"[[[]]]"),
    "no rows": lambda answer: _answer(b'{"count": 1e999, "results": null}'),
    "deep": lambda answer: _answer(b'{"results": ' + b"[" * 100_000),
    "page": lambda answer: _answer(b"<html>Log in</html>", {"content-type": "text/html"}),
    "latin": lambda answer: _answer(answer.content.replace(b"o", b"\xe9")),
    "wide": lambda answer: _answer(answer.content.decode().encode("utf-16")),
    "not packed": lambda answer: _answer(answer.content, {"content-encoding": "gzip"}),
    "packed twice": lambda answer: _answer(answer.content, {"content-encoding": "gzip, gzip"}),
    "elsewhere": lambda answer: httpx.Response(302, headers={"location": "http://127.0.0.1:1/"}),
    "broken": lambda answer: httpx.Response(500, content=b"Traceback"),
    "busy": lambda answer: httpx.Response(429, headers={"retry-after": "9" * 30}),
    "refused": lambda answer: httpx.Response(401, content=b"{}"),
}


def _answer(content: bytes, headers: Mapping[str, str] | None = None) -> httpx.Response:
    return response(200, content, {"content-type": "application/json", **(headers or {})})


class _Fated(RecordedBalsam):
    """One whose answers have a fate each, the last one for all that follow."""

    fates: Sequence[str] = ("whole",)

    def answer(self, request: httpx.Request) -> httpx.Response:
        fate, *left = self.fates
        self.fates = left or [fate]
        return FATES.get(fate, FATES["whole"])(super().answer(request))


def _fate(draw: random.Random) -> damage.Edit:
    fates = [draw.choice((*FATES, "whole", "whole", "whole")) for _ in range(draw.randint(1, 12))]
    return damage.Edit("fates", 0, 0, "\n".join((*fates, draw.choice(("whole", *FATES)), "")).encode())


def _junk_answers(draw: random.Random, file: str, data: bytes) -> damage.Edit:
    return damage.Edit("fates", 0, 0, b"junk\n" * draw.choice((1, 5, 500)))


def _start_balsam(place: Path, stack: ExitStack) -> Sequence[str]:
    balsam = _Fated()
    if fates := bytes_of(place / "fates"):
        balsam.fates = fates.decode("latin-1").split("\n")
    for name in ("events", "jobs", "batch_jobs", "sites", "apps", "sessions"):
        try:
            rows = json.loads(bytes_of(place / f"dump_{name}.json"))["results"]
            setattr(balsam, name, [row for row in rows if isinstance(row, dict)])
        except (ValueError, KeyError, TypeError, RecursionError):
            setattr(balsam, name, [])
    url = stack.enter_context(served(balsam))
    write_login(Path.home() / ".balsam" / "client.yml", url, TOKEN)
    return ["--since", "2026-11-20T12:00:00Z", "--balsam", url]


def _slurm() -> Files:
    with tempfile.TemporaryDirectory() as text:
        return _read(StandIn(Path(text)).captured().folder, "*")


FAULTS = (
    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
    "sacct: error: Problem talking to the database: Connection refused",
    'error: Munge encode failed: Failed to access "/run/munge/munge.socket.2"',
    "\x1b[31mbash: fork: retry: Resource temporarily unavailable" + "x" * 9_000,
)


def _lost_answer(draw: random.Random) -> damage.Edit:
    """A command of Slurm that fails, is cut off, or whose answer has something else before it."""
    name = draw.choice(("squeue", "sacct", "scontrol"))
    how = draw.choice(("fault", "cut", "cut", "banner"))
    text = {
        "fault": draw.choice(FAULTS).encode(),
        "cut": str(draw.choice((0, 1, 50, draw.randrange(9_000)))).encode(),
        "banner": draw.choice((*damage.NOISE, b"Welcome to huppel\nUnauthorized use is prohibited\n")),
    }
    return damage.Edit(f"{name}.{how}", 0, 0, text[how])


def _start_slurm(place: Path, stack: ExitStack) -> Sequence[str]:
    (place / "made").mkdir()
    cluster = StandIn(place / "made")
    for path in place.iterdir():
        if path.name != "made":
            path.replace(cluster.folder / path.name)
    stack.enter_context(_changed("PATH", cluster.search_path))
    return ["--slurm", "local"]


@contextmanager
def _changed(name: str, value: str) -> Iterator[None]:
    before = os.environ[name]
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ[name] = before


def _condor() -> Files:
    """Event logs, and a job ad that is made to agree with them."""
    files = _read(FIXTURES / "tracing" / "condor", "*.log", "job.ad")
    ad = files["job.ad"].replace(b"ExitCode = 2", b"ExitBySignal = true\nExitSignal = 9")
    return {**files, "job.ad": ad}


def _start_condor(place: Path, stack: ExitStack) -> Sequence[str]:
    return [word for path in sorted(place.iterdir()) for word in ("--condor-log", str(path))]


def _traces() -> Files:
    kinds = ("job-fail.*", "jobsub-*.otlp.json", "cluster-4.jaeger.json", "broken.*", "*.out")
    files = _read(FIXTURES / "tracing", *kinds)
    return {**files, "job-good.otlp.json.gz": gzip.compress(_read(FIXTURES / "tracing", GOOD)[GOOD], mtime=0)}


GOOD = "job-good.otlp.json"


def _start_traces(place: Path, stack: ExitStack) -> Sequence[str]:
    return [word for path in sorted(place.iterdir()) for word in ("--trace-file", str(path))]


def _archive() -> Files:
    """An archive of scripts, and the cluster whose jobs they are of."""
    files = _read(FIXTURES / "sarchive", "slurm-daily/**/*", "torque-yearly/**/*")
    return {**files, **{f"slurm/{name}": data for name, data in _slurm().items() if name.endswith(".rows")}}


def _start_archive(place: Path, stack: ExitStack) -> Sequence[str]:
    (place / "slurm").mkdir(exist_ok=True)
    archives = (f"huppel={place / 'slurm-daily'}", f"tq={place / 'torque-yearly'}")
    slurm = _start_slurm(place / "slurm", stack)
    return [*slurm, *(word for archive in archives for word in ("--archive", archive))]


STEPS, WALKS, _ = tomllib.loads((FIXTURES / "fuzz.toml").read_text()).values()
"""Commands and checks by what they are of; keys that are pressed, each of which is answered in time."""
JOB, ALL, SCRIPT, TRACES, REPORTS = STEPS.values()

OF_LOGS = {"losses": (damage.LOSSES, ".log"), "garbage": (damage.GARBAGE, ".log")}
OF_EVENTS = {"losses": (damage.LOSSES, ".log"), "garbage": (damage.BETWEEN_EVENTS, ".log")}
OF_LINES = {"losses": (damage.LOSSES, ".lines"), "garbage": (damage.GARBAGE, ".lines")}
OF_ROWS = {"losses": (damage.ROW_LOSSES, ".json"), "garbage": ((_junk_answers,), "fates")}

WORLDS: Mapping[str, World] = {
    "world-sirepo": World(lambda: _rotated("local"), _start_sirepo, (*JOB, *ALL), OF_LOGS),
    "world-sirepo-docker": World(_sirepo("docker"), _start_sirepo, (*JOB, *ALL), OF_LOGS),
    "world-sirepo-sbatch": World(_sirepo("sbatch"), _start_sirepo, (*JOB, *ALL), OF_LOGS),
    "world-journal": World(_journal, _start_journal, (*JOB, *ALL), OF_LINES),
    "world-balsam": World(_balsam, _start_balsam, (*JOB, *ALL, *REPORTS), OF_ROWS, _fate),
    "world-slurm": World(
        _slurm, _start_slurm, (*JOB, *ALL, *REPORTS), {"losses": (damage.ROW_LOSSES, ".rows")}, _lost_answer
    ),
    "world-condor": World(
        _condor, _start_condor, (*JOB, *ALL), OF_EVENTS, same=(".json.log", ".xml.log", ".log")
    ),
    "world-traces": World(
        _traces,
        _start_traces,
        TRACES,
        {"garbage": (damage.ROW_GARBAGE, ".otlp.json")},
        same=("job-fail.otlp.json", "job-fail.jaeger.json", "job-fail.otlp.pb"),
    ),
    "world-archive": World(_archive, _start_archive, (*SCRIPT, *JOB, *ALL)),
}
NOW = AT
TRACE = str(EXPECTED["job-fail"]["traceID"])
