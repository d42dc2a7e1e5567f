"""Damaged worlds through the whole of jobtui: correlation, verdicts, every command, the dashboard.

A run is a world's kind, a list of edits and a step: a command, or one of the checks below. It is fine when it
ends within its time and memory with an exit code that is documented, no traceback and no fault of jobtui.

    dashboard ID WALK   opens at a job and lives through the keys of a walk
    replayed ID         the same on a bundle of the job
    bundle ID           what a bundle of the job holds can be replayed
    torn ID SEED        the same with bytes of the bundle changed
    record ID           what is recorded can be replayed
    losses ID           the edits only take away: a verdict that the undamaged world contradicts is not sure
    garbage ID          the edits put garbage among lines and in their place: ops are those of what is left
"""

import asyncio
import gzip
import hashlib
import io
import json
import random
import re
import resource
import shlex
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache, lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

import httpx
import pytest

from jobtui.cli import main
from jobtui.model.health import FAULTS
from jobtui.session import Session
from tests.backends.journal.make import make_journal
from tests.balsam_server import FOLDER as BALSAM
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import AT, Ran
from tests.fuzz import damage
from tests.fuzz.damage import INSTEAD, TO_BYTES, Edit, applied, drawn, without_garbage
from tests.journal_memory import Row, container_rows, exported, supervisor_rows
from tests.loopback import CUT_AT, response, served
from tests.rows import FIXTURES, table
from tests.slurm_stand_in import StandIn
from tests.tracing import EXPECTED

Files = Mapping[str, bytes]


class World(NamedTuple):
    """One kind of source. `files` are what may be damaged, by path below a directory.

    `start` makes the world of files that are there, gives the flags that name it and how it is ended.
    `commands` are said with each of some ids in place of ID, `words` are things to look for.
    `checks` are what is done where the damage is only of such kinds, and only to files that end so.
    `mishap` befalls whoever answers. The files that end as one of `same` tell the same: one kind is there.
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
    """The journal file of such lines. What has no number is one more message after the one before it."""
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


SLURM_FAULTS = (
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
        "fault": draw.choice(SLURM_FAULTS).encode(),
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
    stack.enter_context(pytest.MonkeyPatch.context()).setenv("PATH", cluster.search_path)
    return ["--slurm", "local"]


def _condor() -> Files:
    """Event logs, and a job ad that is made to agree with them."""
    files = _read(FIXTURES / "tracing" / "condor", "*.log", "job.ad")
    ad = files["job.ad"].replace(b"ExitCode = 2", b"ExitBySignal = true\nExitSignal = 9")
    return {**files, "job.ad": ad}


def _each_as(flag: str) -> Callable[[Path, ExitStack], Sequence[str]]:
    return lambda place, _: [word for path in sorted(place.iterdir()) for word in (flag, str(path))]


def _traces() -> Files:
    kinds = ("job-fail.*", "jobsub-*.otlp.json", "cluster-4.jaeger.json", "broken.*", "*.out")
    files = _read(FIXTURES / "tracing", *kinds)
    return {**files, "job-good.otlp.json.gz": gzip.compress(_read(FIXTURES / "tracing", GOOD)[GOOD], mtime=0)}


GOOD = "job-good.otlp.json"


def _archive() -> Files:
    """An archive of scripts, and the cluster whose jobs they are of."""
    files = _read(FIXTURES / "sarchive", "slurm-daily/**/*", "torque-yearly/**/*")
    return {**files, **{f"slurm/{name}": data for name, data in _slurm().items() if name.endswith(".rows")}}


def _start_archive(place: Path, stack: ExitStack) -> Sequence[str]:
    (place / "slurm").mkdir(exist_ok=True)
    archives = (f"huppel={place / 'slurm-daily'}", f"tq={place / 'torque-yearly'}")
    slurm = _start_slurm(place / "slurm", stack)
    return [*slurm, *(word for archive in archives for word in ("--archive", archive))]


COMMANDS, WALKS, _ = table("fuzz").values()
"""Commands and checks by what they are of; keys that are pressed, each of which is answered in time."""
JOB, ALL, SCRIPT, TRACES, REPORTS = COMMANDS.values()

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
        _condor, _each_as("--condor-log"), (*JOB, *ALL), OF_EVENTS, same=(".json.log", ".xml.log", ".log")
    ),
    "world-traces": World(
        _traces,
        _each_as("--trace-file"),
        TRACES,
        {"garbage": (damage.ROW_GARBAGE, ".otlp.json")},
        same=("job-fail.otlp.json", "job-fail.jaeger.json", "job-fail.otlp.pb"),
    ),
    "world-archive": World(_archive, _start_archive, (*SCRIPT, *JOB, *ALL)),
}
TRACE = str(EXPECTED["job-fail"]["traceID"])

CORPUS = Path(__file__).with_name("corpus") / "whole"
HANG_S = 10.0
MOST_BYTES = 1 << 30
SURE = 0.5
STEPS = 4
MISHAPS = 0.3
"""The share of worlds in which the server has a mishap."""


class Wrong(Exception):
    """What a damaged world brought to light: the command and what it did."""


class Said(Ran):
    @property
    def document(self) -> dict[str, Any]:
        return self.json if self.out else {}


class _Hangs(BaseException):
    """A command did not end in time; not an Exception, so that nothing contains it."""


def _starved_s() -> float:
    """For how long threads of this process waited for a processor that others had, so far."""
    waits = [0.0]
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError, IndexError):
            waits.append(int((task / "schedstat").read_text().split()[1]) / 1e9)
    return max(waits)


@contextmanager
def _limit(seconds: float) -> Iterator[Callable[[], None]]:
    """Raises _Hangs in what takes longer, waits for a processor not counted; what it gives begins anew."""
    starved = until = 0.0

    def begin() -> None:
        nonlocal starved, until
        starved, until = _starved_s(), time.monotonic() + seconds
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def ring(number: int, frame: FrameType | None) -> None:
        left = until + _starved_s() - starved - time.monotonic()
        if left <= 0.05:
            raise _Hangs(f"{number} in {frame.f_code.co_qualname if frame else ''}")
        signal.setitimer(signal.ITIMER_REAL, left)

    before = signal.signal(signal.SIGALRM, ring)
    begin()
    try:
        yield begin
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def forget_peak() -> int:
    """Count the most memory that is taken from here; gives what is taken now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _own_peak()


def _own_peak() -> int:
    try:
        found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    return (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) << 10


def taken(before: int) -> int:
    """The most memory that this process took beside what it had before, or one of its children."""
    return max(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, _own_peak() - before)


def said(words: Sequence[str], run: Callable[[Callable[[], None]], Any] | None = None) -> Said:
    """Run a command line in this process. Raises Wrong when it fails in a way that is not documented."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
    named = shlex.join(words)
    FAULTS._known.clear()
    before = forget_peak()
    try:
        with redirect_stdout(out), redirect_stderr(err), _limit(HANG_S) as begin_again:
            code = main(words) if run is None else run(begin_again)
    except _Hangs as error:
        raise Wrong(f"{named}: did not end within {HANG_S} s") from error
    except Exception as error:
        raise Wrong(f"{named}: raised {type(error).__name__}") from error
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "replace"))
    result = Said(code, *texts)
    _judge(named, words, result)
    if (peak := taken(before)) > MOST_BYTES:
        raise Wrong(f"{named}: took {peak:,} bytes of memory")
    return result


def _judge(named: str, words: Sequence[str], result: Said) -> None:
    if result.code not in range(6):
        raise Wrong(f"{named}: exit code {result.code}: {result.err[-300:]}")
    if faults := FAULTS.all():
        raise Wrong(f"{named}: {'; '.join(fault.line for fault in faults)}")
    for text in (result.out, result.err):
        if "Traceback (most recent call last):\n" in result.err or "fault of jobtui" in text:
            raise Wrong(f"{named}: {result.err[-3000:]}{result.out[-2000:]}")
        if odd := re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text):
            raise Wrong(f"{named}: prints {odd[0]!r} raw")
    if "--json" in words:
        try:
            told = result.document.get("faults")
        except (ValueError, AssertionError) as error:
            raise Wrong(f"{named}: prints no JSON: {error}") from None
        if told:
            raise Wrong(f"{named}: faults of jobtui: {told}")


@contextmanager
def world(kind: str, files: Files, edits: Sequence[Edit] = ()) -> Iterator[list[str]]:
    """A world of these files, damaged; gives the flags that name it."""
    instead = {edit.file: edit.instead for edit in edits if edit.instead}
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        place = Path(text) / "world"
        for name, data in applied(files, [edit for edit in edits if not edit.instead]).items():
            (path := place / name).parent.mkdir(parents=True, exist_ok=True)
            if name in instead:
                INSTEAD[instead[name]](path)
            else:
                path.write_bytes(data)
        yield ["--at", AT, *WORLDS[kind].start(place, stack)]


IDS = {"world-traces": (TRACE,), "world-archive": ("1", "4_2", "10_2", "77", "slurm/2", "slurm/10_3")}
"""What is asked about where it is not, or not only, the jobs that are known."""


@cache
def ids_of(kind: str) -> tuple[str, ...]:
    if kind in IDS:
        return IDS[kind]
    with world(kind, WORLDS[kind].files()) as flags:
        return tuple(sorted(job["id"] for job in said([*flags, "jobs", "--json"]).document["jobs"]))


@cache
def verdict_of(kind: str, job_id: str, absent: tuple[Edit, ...]) -> str:
    """The verdict on a job of an undamaged world, "" where there is none. Raises Wrong."""
    with world(kind, WORLDS[kind].files(), absent) as flags:
        return str(said([*flags, "explain", job_id, "--json"]).document.get("verdict") or "")


def take(kind: str, edits: Sequence[Edit], step: str) -> None:
    files = WORLDS[kind].files()
    name, *words = shlex.split(step)
    with world(kind, files, edits) as flags:
        match name:
            case "garbage":
                left = _ops(kind, flags, words[0])
                with world(kind, files, without_garbage(edits)) as clean:
                    if left != (wanted := _ops(kind, clean, words[0])):
                        raise Wrong(f"{step}: ops {left} in place of {wanted}")
            case "losses":
                absent = tuple(edit for edit in edits if edit.instead == "absent")
                _lose(flags, words[0], verdict_of(kind, words[0], absent))
            case "bundle" | "torn" | "replayed":
                _bundle(flags, words[0], name, *words[1:])
            case "record":
                _record(flags, words[0])
            case "dashboard":
                _dashboard([*flags, *words[:1]], *words[1:])
            case _:
                said([*flags, name, *words])


def _ops(kind: str, flags: Sequence[str], job_id: str) -> dict[str, Any]:
    """The ops of a job by what names them, each with the texts of its steps; what is said of a trace."""
    if kind == "world-traces":
        told = said([*flags, "trace", job_id, "--json"]).document
        return {key: value for key, value in told.items() if key not in ("sources", "partial", "notes")}
    told = said([*flags, "timeline", job_id, "--json"]).document
    found: dict[str, list[str]] = {}
    for op in told.get("ops", ()):
        for step in op["steps"]:  # lines without times are in an order within their own log only
            log = "" if step.get("at") else Path(step.get("source") or "").name
            name = f"{op['op']} {op['name']} {op['created_at']} {log}"
            found.setdefault(name, []).append(step["text"])
    return found


def _lose(flags: Sequence[str], job_id: str, was: str) -> None:
    told = said([*flags, "explain", job_id, "--json"]).document
    if told.get("job") and not job_id.startswith(told["job"]["id"]):  # its schedd may be lost
        raise Wrong(f"{job_id}: the verdict is on {told['job']['id']}")
    if told.get("verdict") not in (None, was) and told["confidence"] >= SURE:
        raise Wrong(
            f"{job_id}: {was} is told as {told['verdict']}, sure at {told['confidence']}: {told['sentence']}"
        )


def _bundle(flags: Sequence[str], job_id: str, check: str, seed: str = "") -> None:
    with tempfile.TemporaryDirectory() as text:
        path = Path(text) / "b.jobtui"
        said([*flags, "bundle", job_id, "-o", str(path)])
        if not path.exists():
            return
        if check == "replayed":
            return _dashboard(["replay", str(path)])
        draw = random.Random(seed)
        for _ in range(draw.randint(1, 5) if check == "torn" else 0):
            edit = draw.choice(TO_BYTES)(draw, "", path.read_bytes() or b"x")
            path.write_bytes(applied({"": path.read_bytes()}, [edit])[""])
        for words in (["explain", job_id, "--json"], ["jobs", "--json"], ["timeline", job_id], ["doctor"]):
            said(["replay", str(path), *words])


def _record(flags: Sequence[str], job_id: str) -> None:
    with tempfile.TemporaryDirectory() as text:
        live = flags[2:]  # without --at: a recording has the times at which things came
        said([*live, "record", text + "/r", "--for", "1s"])
        if Path(text + "/r").exists():
            said(["replay", text + "/r", "explain", job_id, "--json"])
            said(["replay", text + "/r", "jobs"])


def _dashboard(words: Sequence[str], walk: str = "all") -> None:
    from jobtui import app as module
    from jobtui.commands import open as opening

    def live(begin_again: Callable[[], None]) -> int:
        def run_app(session: Session, open_at: Any, **more: Any) -> int:
            asyncio.run(walked(session, module.JobtuiApp(session, open_at, looks=more["looks"])))
            return 0

        async def walked(session: Session, dashboard: Any) -> None:
            async with session, dashboard.run_test(size=(100, 30)) as pilot:
                for key in WALKS[walk].split():
                    begin_again()
                    await pilot.press(key)
                    if not dashboard.is_running:
                        raise Wrong(f"{shlex.join(words)}: the dashboard ended at {key}")

        with patch.object(module, "run_app", run_app), patch.object(opening, "has_terminal", lambda: True):
            return main(words)

    said(words, live)


def drawn_steps(kind: str, draw: random.Random, files: Files, special: str) -> Iterator[str]:
    ids = ids_of(kind)
    for template in draw.sample(WORLDS[kind].commands, min(STEPS, len(WORLDS[kind].commands))):
        given = {"ID": draw.choice(ids), "OTHER": draw.choice(ids), "WORD": _word(draw, files)}
        given["SEED"] = str(draw.getrandbits(32))
        yield shlex.join(given.get(word, word) for word in template.split())
    if special:
        yield from (f"{special} {shlex.quote(one)}" for one in draw.sample(ids, min(STEPS, len(ids))))


def _word(draw: random.Random, files: Files) -> str:
    """A piece of the world as somebody would paste it."""
    lines = files[draw.choice(sorted(files))][: 1 << 16].splitlines()
    return (
        draw.choice(lines or [b"x"])[:2_000].decode("utf-8", "replace").replace("\0", "").strip("- ") or "x"
    )


def drawn_run(kind: str, seed: int) -> tuple[list[Edit], list[str]]:
    draw = random.Random(f"{kind}/{seed}")
    made, files = WORLDS[kind], WORLDS[kind].files()
    special = draw.choice(("", "", *made.checks))
    absent = []
    if made.same:
        kept = draw.choice(made.same)
        forms = {name: next((end for end in made.same if name.endswith(end)), kept) for name in files}
        absent = [Edit(name, 0, 0, b"", "absent") for name, end in forms.items() if end != kept]
    left = {name: data for name, data in files.items() if name not in {edit.file for edit in absent}}
    edits = [*absent, *drawn(draw, left, *made.checks.get(special, ()))]
    if made.mishap and special != "garbage" and draw.random() < MISHAPS:
        edits.append(made.mishap(draw))
    damaged = applied(left, [edit for edit in edits if not edit.instead])
    return edits, [*drawn_steps(kind, draw, damaged, special)]


def smallest(kind: str, edits: Sequence[Edit], step: str) -> list[Edit]:
    """As few of these edits as still make a step go wrong."""
    left = list(edits)
    for edit in edits:
        if edit.instead == "absent":
            continue
        fewer = [one for one in left if one != edit]
        try:
            take(kind, fewer, step)
        except Wrong:
            left = fewer
    return left


def keep(kind: str, edits: Sequence[Edit], step: str) -> Path:
    text = json.dumps(
        {"kind": kind, "step": step, "edits": edits}, default=lambda data: data.decode("latin-1"), indent=1
    )
    path = CORPUS / f"{kind.removeprefix('world-')}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    return path


def kept(path: Path) -> tuple[str, list[Edit], str]:
    run = json.loads(path.read_text())
    edits = [
        Edit(file, at, length, text.encode("latin-1"), *more)
        for file, at, length, text, *more in run["edits"]
    ]
    return run["kind"], edits, run["step"]


def fuzz_world(kind: str, seconds: float, seed: int) -> bool:
    """Try a kind of world from a seed on for some seconds, and report; whether nothing was wrong."""
    until, worlds, steps, wrong = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < until:
        edits, doing = drawn_run(kind, seed + worlds)
        for step in doing:
            steps += 1
            try:
                take(kind, edits, step)
            except Wrong as error:
                wrong += 1
                print(f"{kind}, seed {seed + worlds}: {error}", flush=True)
                if error.__cause__ is not None:
                    traceback.print_exception(error.__cause__, limit=-5, file=sys.stdout)
                print(f"  kept as {keep(kind, smallest(kind, edits, step), step)}", flush=True)
        worlds += 1
    print(
        f"{kind}: {worlds:,} worlds, {steps:,} steps{f', {wrong} wrong' if wrong else ', nothing found'}",
        flush=True,
    )
    return not wrong
