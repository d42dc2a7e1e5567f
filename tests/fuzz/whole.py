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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

from jobtui.cli import main
from jobtui.model.health import FAULTS
from jobtui.session import Session
from tests.fuzz.damage import INSTEAD, TO_BYTES, Edit, applied, drawn, without_garbage
from tests.fuzz.worlds import NOW, TRACE, WALKS, WORLDS, Files

CORPUS = Path(__file__).with_name("corpus") / "whole"
HANG_S = 10.0
MOST_BYTES = 1 << 30
SURE = 0.5
STEPS = 4
MISHAPS = 0.3
"""In so many of the worlds whoever answers has a mishap."""


class Wrong(Exception):
    """What a damaged world brought to light: the command and what it did."""


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found = json.loads(self.out) if self.out else {}
        assert isinstance(found, dict)
        return found


class _Hangs(BaseException):
    """A command did not end in time; not an Exception, so that nothing contains it."""


def _starved_s() -> float:
    """For how long threads of this process waited for a processor that others had, so far."""
    waits = [0.0]
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError, IndexError):
            waits.append(int((task / "schedstat").read_text().split()[1]) / 1e9)
    return max(waits)


class _Limit:
    """Raises _Hangs in what takes longer within it; waiting for a processor does not count."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._starved = self._until = 0.0

    def again(self) -> None:
        self._starved, self._until = _starved_s(), time.monotonic() + self._seconds
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __enter__(self) -> "_Limit":
        self._before = signal.signal(signal.SIGALRM, self._ring)
        self.again()
        return self

    def __exit__(self, *raised: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        left = self._until + _starved_s() - self._starved - time.monotonic()
        if left <= 0.05:
            raise _Hangs(f"{number} in {frame.f_code.co_qualname if frame else ''}")
        signal.setitimer(signal.ITIMER_REAL, left)


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


def said(words: Sequence[str], run: Callable[[_Limit], Any] | None = None) -> Said:
    """Run a command line in this process. Raises Wrong when it fails in a way that is not documented."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
    named = shlex.join(words)
    FAULTS._known.clear()
    before = forget_peak()
    try:
        with redirect_stdout(out), redirect_stderr(err), _Limit(HANG_S) as limit:
            code = main(words) if run is None else run(limit)
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
        yield ["--at", NOW, *WORLDS[kind].start(place, stack)]


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

    def live(limit: _Limit) -> int:
        def run_app(session: Session, open_at: Any, **more: Any) -> int:
            asyncio.run(walked(session, module.JobtuiApp(session, open_at, looks=more["looks"])))
            return 0

        async def walked(session: Session, dashboard: Any) -> None:
            async with session, dashboard.run_test(size=(100, 30)) as pilot:
                for key in WALKS[walk].split():
                    limit.again()
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
    """Try a kind of world from a seed on for so long, and say how it went; whether nothing was wrong."""
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
