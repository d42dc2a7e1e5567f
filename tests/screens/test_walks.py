"""Walks through screens by keys, as `tests/fixtures/walks.toml` has them: what is shown after each step."""

import json
import os
import re
import shlex
import sys
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import msgspec
import pytest
from msgspec.structs import replace

from jobtui.app import JobtuiApp
from jobtui.backends.archive.source import ArchiveDirectory
from jobtui.backends.base import Batch
from jobtui.backends.condor.source import CondorFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.backends.traces.files import TraceFile
from jobtui.config import Config
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.jobs import JobStatus
from jobtui.model.ops import AgentState, HeldOp, OpStatus
from jobtui.model.specs import SourceSpec
from jobtui.recording.database import About, Item
from jobtui.recording.recorder import RecordingWriter
from jobtui.recording.replay import RecordingReplay
from jobtui.session import Session
from tests.backends.archive.captured import DAY, SUBMITTED, archive_in
from tests.balsam_server import RecordedBalsam
from tests.builders import a_cluster, a_job, a_step, ago, an_agent, an_op, job_id, some
from tests.commands.running import shown, sources_of
from tests.conftest import NOW
from tests.fakes import batch
from tests.memory import runs
from tests.rows import table
from tests.screens.captured import (
    CAPTURE,
    CAPTURED,
    FILES,
    GOOD,
    JID,
    JOB,
    LATER,
    ON_CLUSTER,
    REACH,
    RUN_DIR,
    TWELVE,
    WORDS,
    app_on,
    app_on_balsam,
    app_on_cluster,
    app_on_slurm,
    app_on_traces,
    copied,
    stamped,
)
from tests.screens.scene import FAILED, RUN, THREE, Scene, agents, with_runs
from tests.screens.tour import typed
from tests.slurm_stand_in import StandIn
from tests.terminals import Tmux
from tests.tracing import EXPECTED, capture_file
from tests.widgets.widget_app import press, text

WALKS = table("walks")
LOGS, TERMINAL = WALKS.pop("log"), WALKS.pop("terminal")
NAMED_KEYS = frozenset({"Enter", "Escape", "Space", "Tab", "C-c", "C-p", "C-y"})
OPENED = {":": "\n : ", "/": "\n / ", "C-p": "an action, a job"}
"""What is shown once a key has opened a line to type in."""
TRACES = ("jobsub-ok", "jobsub-fail-klist", "job-fail", "job-good")
BUSY = an_agent(
    "busy", state=AgentState.CONNECTED, ops=(RUN, HeldOp(OpPrefix("k2Wc"), "analysis", job_id(4)))
)
TIMES = {"queued_at": ago(9_000), "started_at": ago(8_000), "ended_at": ago(7_000)}
ENDED = a_job(2, status=JobStatus.COMPLETED, **TIMES)
SITES: dict[str, Callable[[Path], JobtuiApp]] = {
    "logs": lambda _: app_on(CAPTURED[0]),
    "traces": lambda _: app_on_traces(*(capture_file(name, "otlp.pb") for name in TRACES)),
    "trace": lambda _: app_on_traces(*FILES),
    "nothing": lambda _: app_on_traces(),
    "captured": lambda _: app_on(SirepoDb(CAPTURE), *CAPTURED, at=JOB),
    "rows": lambda _: app_on(SirepoDb(CAPTURE)),
    "job": lambda _: Scene(open_at=FAILED).app,
    "runs": lambda _: with_runs(Scene(open_at=FAILED), *THREE).app,
    "jobs": lambda _: Scene(agents=agents(), clusters=(a_cluster(),)).app,
    "a job that only spans name": lambda _: app_on_traces(*FILES),
    "history": lambda _: with_history(),
    "replay": lambda folder: replayed(recorded(folder)),
    "replay of days": lambda folder: replayed(recorded(folder, 200_000)),
    "commands": lambda _: app_on(SirepoDb(CAPTURE), *CAPTURED, at=GOOD, words=WORDS),
    "near": lambda folder: submitted(folder),
    "script": lambda folder: archived(folder, "2"),
    "output": lambda folder: archived(folder, "1"),
    "charts": lambda _: Scene([batch(a_job(1, started_at=ago(60), runs=2), ENDED)]).app,
    "agents": lambda _: Scene(agents=(BUSY, an_agent("idle"), agents()[0])).app,
    "cluster": lambda _: app_on_cluster(JID, reach=REACH),
    "agents of a cluster": lambda _: app_on_cluster(),
    "a cluster out of reach": lambda folder: app_on_cluster(
        JID, copytree(ON_CLUSTER, folder / "sbatch", ignore=ignore_patterns("scratch"))
    ),
    "other directory": lambda folder: app_on_slurm(twelve(folder, "/elsewhere"), JID, reach=REACH),
    "of sirepo": lambda folder: app_on_slurm(twelve(folder, RUN_DIR), "slurm/12"),
    "slurm": lambda folder: app_on_slurm(StandIn(folder).captured(), "slurm/8"),
    "own output": lambda folder: with_output(folder, "mine.out"),
    "gone output": lambda folder: with_output(folder, "gone.out"),
    "gone directory": lambda folder: with_output(folder, "/nowhere/gone.out"),
    "no events": lambda _: app_on_balsam(without_events(), JobId("balsam/99")),
    "events": lambda _: app_on_balsam(RecordedBalsam(), JobId("balsam/176")),
    "balsam": lambda _: app_on_balsam(RecordedBalsam()),
    "seen": lambda folder: remembering(folder),
}


def remembering(path: Path) -> JobtuiApp:
    """A memory of 41 runs that failed alike, 3 others and 400 good ones, five days ago."""
    begin = NOW // SECOND - 20_758 * 86_400 - 5 * 86_400
    bad = [runs.a_run(begin + at, "no such element: crystal3", host="v7") for at in range(41)]
    other = [runs.a_run(begin + 50 + at, "out of coffee") for at in range(3)]
    good = [runs.a_run(begin + 100 + at) for at in range(400)]
    app = Scene().app
    app._shared.overview = runs.written(path / "memory.jobtui", *bad, *other, *good).overview
    return app


def twelve(folder: Path, directory: str) -> StandIn:
    """A cluster that has a job in this directory."""
    (cluster := StandIn(folder)).queue({**TWELVE, "%Z": directory})
    return cluster


def with_output(folder: Path, out: str) -> JobtuiApp:
    """A job of Slurm that was to write there, in a directory with the output of another one, too."""
    (folder / "mine.out").write_text("of mine\n")
    (folder / "other.out").write_text("of another\n")
    (cluster := StandIn(folder).captured()).show("31", shown(31, folder, out))
    return app_on_slurm(cluster, "slurm/31")


def without_events() -> RecordedBalsam:
    (balsam := RecordedBalsam()).events.clear()
    return balsam


def submitted(folder: Path) -> JobtuiApp:
    """A job that was queued two seconds after its submission began, and names no trace; two submissions."""
    queued = EXPECTED["jobsub-ok"]["start_unix_nano"] // SECOND + 2
    ids = 'ClusterId = 5\nProcId = 0\nJobsubJobId = "5.0@jobsub02.fnal.gov"\n'
    (folder / "q.ad").write_text(f"{ids}QDate = {queued}\nJobStatus = 1\n")
    spans = [TraceFile(capture_file(name, "otlp.pb")) for name in TRACES[:2]]
    return app_on(CondorFile(folder / "q.ad"), *spans, at=JobId("5.0@jobsub02.fnal.gov"), now=LATER)


def archived(folder: Path, native: str) -> JobtuiApp:
    place, work = archive_in(folder / "archive", DAY), folder / "work"
    work.mkdir()
    (work / "beam-1.out").write_text("step 3/3\n[bold]done\x1b[31m\n")
    script = place / DAY / "job.1_script"
    script.write_text(f"#!/bin/sh\n#SBATCH -D {work}\n#SBATCH -o beam-%j.out\n")
    os.utime(script, ns=(SUBMITTED, SUBMITTED))
    times = {"queued_at": SUBMITTED, "started_at": SUBMITTED, "mode": ""}
    job = a_job(id=f"slurm/{native}", system="slurm", status=JobStatus.FAILED, **times)
    scene = Scene([batch(job)], open_at=job.id)
    scene.session.add(ArchiveDirectory(str(place), "huppel"))
    return scene.app


def with_history() -> JobtuiApp:
    scene = with_runs(Scene(open_at=FAILED), *THREE, simDbToken="hunter2hunter2", note="[bold]x[/nope]")
    steps = [
        a_step("request", -300_000), a_step("op created", -299_999), a_step("status completed", -299_990)
    ]  # fmt: skip
    begin, end = ago(300_000), ago(299_990)
    good = an_op("run", steps, jid=FAILED, created_at=begin, ended_at=end, status=OpStatus.ENDED)
    bad = an_op("run", op="old1", jid=FAILED, created_at=ago(90_000), status=OpStatus.ENDED)
    scene.correlation.put(FAILED, bad, good)
    return scene.app


def recorded(folder: Path, lasts_s: int = 600, updates: range = range(0)) -> Path:
    """A recording of a job that waits, runs, fails; another that runs, and is updated at these seconds."""
    begin, end = (Nanos((1_795_206_870 + second) * SECOND) for second in (0, lasts_s))  # from 20:34:30 UTC on
    config = msgspec.to_builtins(Config({}, sources=(SourceSpec("srdb", "/srv/db"),)))
    about = About(version="0", made_at=end, at=end, config=config, job_id=job_id(1))
    writer = RecordingWriter(folder / "r", about, 1 << 20)
    told = [(0, a_job(2, name="other"))]
    for second, status in (60, JobStatus.PENDING), (180, JobStatus.RUNNING), (480, JobStatus.FAILED):
        told.append((second, a_job(1, name="the one", status=status)))
    with writer.together():
        for second, job in [*told, *((second, a_job(2, name="other")) for second in updates)]:
            at = Nanos(begin + second * SECOND)
            one = Batch(jobs=(replace(job, updated_at=at),), count=1)
            writer.put("sirepo_db", "/srv/db", Item.BATCH, one, at)
    writer.close()
    return folder / "r"


def replayed(path: Path) -> JobtuiApp:
    replay = RecordingReplay(path)
    app = JobtuiApp(Session([SirepoDb(Path("/srv/db"))], replay.clock, replay=replay))
    weakref.finalize(app, replay.close)
    return app


@pytest.mark.parametrize("site", WALKS)
async def test_every_step_shows_what_it_leads_to(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await walk(SITES[site](tmp_path), WALKS[site], (120, 40), monkeypatch)


@pytest.mark.parametrize("told", LOGS, ids=lambda told: told["about"])
async def test_a_log_that_is_written_to_is_shown(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [tmp_path / name for name in told["files"]]
    for log, lines in told["files"].items():
        (tmp_path / log).write_text("".join(map(written, lines)))
    await walk(app_on(*logs), told["steps"], told.get("size", (100, 24)), monkeypatch, *logs[:1])


async def walk(
    app: JobtuiApp, steps: list[list[str]], size: tuple[int, int], monkeypatch: pytest.MonkeyPatch,
    log: Path | None = None,
) -> None:  # fmt: skip
    def is_there(words: list[str]) -> bool:
        toasts = (toast.message for toast in app._notifications)
        return shows(words, "\n".join((text(app), *toasts, *(f"[copied]{one}[end]" for one in clipboard))))

    async with app.run_test(size=size) as pilot:
        clipboard = copied(app, monkeypatch)
        for keys, *words in steps:
            if keys.startswith("$ size "):
                await pilot.resize_terminal(*map(int, keys.split()[2:]))
            elif log is not None and keys.startswith("$ "):
                happens(log, *keys.split(" ", 2)[1:])
            clipboard.clear()
            try:
                await press(pilot, *typed(keys.partition("$")[0]), until=partial(is_there, words))
            except AssertionError as error:
                raise AssertionError(f"{keys}: {words}\n{text(app)}") from error


def shows(words: list[str], seen: str) -> bool:
    return all((one.lstrip("!") in seen) is not one.startswith("!") for one in words)


@pytest.mark.parametrize("about", TERMINAL)
def test_every_question_is_answered_by_keys(about: str, tmp_path: Path) -> None:
    sources, waits = sources_of("docker"), sources_of("docker-agents-never-start")
    if count := TERMINAL[about].get("done", 0):
        many_jobs(tmp_path / "supervisor-job", Path(waits[1]) / "supervisor-job", count)
    if seconds := TERMINAL[about].get("updates"):
        recorded(tmp_path, seconds[-1], range(*seconds[:-1]))
    given = {
        "docker": sources, "records": sources[:2], "waits": waits, "local": sources_of("local"),
        "live": ("--srdb", str(tmp_path)), "recording": (str(tmp_path / "r"),),
    }  # fmt: skip
    run = TERMINAL[about]["run"].format(**{name: shlex.join(words) for name, words in given.items()})
    with Tmux([sys.executable, "-m", "jobtui", *shlex.split(run)], 120, 40) as window:
        for wanted, keys, *words in TERMINAL[about]["steps"]:
            if keys.startswith("$ fails "):
                fails(tmp_path / "supervisor-job" / f"{keys.split()[-1]}.json")
            elif keys.startswith("$ opens "):
                assert shows(words, opened(window.text(), keys.split()[-1]))
                continue
            before, _, pasted = keys.partition("$")[0].partition("paste ")
            for key in before.split():
                is_named = key in NAMED_KEYS or len(key) == 1
                window.keys(key) if is_named else window.type(key)
                if key in OPENED:
                    window.wait_text(OPENED[key])
            if pasted:
                window.paste(pasted)
            try:
                window.wait_text(partial(shows, words))
            except AssertionError as error:
                raise AssertionError(f"{wanted}: {keys}\n{error}") from error


def many_jobs(folder: Path, like: Path, done: int) -> None:
    """A copy of a directory of records, with so many more of jobs that are over."""
    copytree(like, folder)
    for number in range(done):
        record = {"computeJid": job_id(number), "status": "completed", "lastUpdateTime": 1_795_000_000}
        (folder / f"{record['computeJid']}.json").write_text(json.dumps(record))


def opened(shown: str, path: str) -> str:
    """The page below the address that `serve` printed, as a browser gets it."""
    host, token = some(re.search(r"(http://\S+)/\?token=(\S+)", shown)).groups()
    with build_opener(HTTPCookieProcessor()).open(f"{host}{path}?token={token}") as answer:
        return str(answer.read().decode())


def fails(record: Path) -> None:
    now = int(time.time())
    ended = {"status": "error", "error": "out of coffee", "computeJobStart": now, "dbUpdateTime": now}
    record.write_text(json.dumps(json.loads(record.read_text()) | ended))


def written(line: str) -> str:
    """Lines of a log: from `01-09 GET /{}` those of nine seconds, as the supervisor stamps them."""
    if found := re.fullmatch(r"(.*)\{(\d+)-(\d+)\}", line):
        return "".join(f"{found[1]}{nth}\n" for nth in range(int(found[2]), int(found[3]) + 1))
    if not (found := re.fullmatch(r"(\d\d)(?:-(\d\d))?(?:/(\d))? (.*)", line, re.DOTALL)):
        return f"{line}\n"
    first, last, step, words = found.groups()
    seconds = range(int(first), int(last or first) + 1, int(step or 1))
    return "".join(stamped(second, words.replace("{}", str(second))) for second in seconds)


def happens(log: Path, what: str, line: str = "") -> None:
    if what == "write":
        with log.open("a") as file:
            file.write(written(line))
    elif what == "rotate":
        log.rename(f"{log}.1")
    else:
        log.unlink()
