"""A served Balsam: its jobs, events, sites, logs and reports; two roots, and two servers, at once."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from jobtui.analysis.explain.case import GUESS
from jobtui.backends.base import Batch
from jobtui.backends.registry import SITE_LOGS
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.commands import reader
from jobtui.commands.reader import watch_sites
from jobtui.commands.streams import Exit
from jobtui.model.changes import Site as KnownSite
from jobtui.model.clock import FixedClock
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId, labels_of
from jobtui.model.jobs import Job
from jobtui.model.settings import ClusterAccess
from jobtui.model.specs import SourceSpec
from jobtui.recording.database import Recording
from jobtui.session import Session
from tests.balsam_server import FOLDER, TOKEN, RecordedBalsam, nanos, write_login
from tests.commands.running import Ran, Runner
from tests.conftest import NOW
from tests.fakes import ScriptedSource
from tests.loopback import served
from tests.rows import CAPTURES, ROWS
from tests.waiting import stop, wait_until

AT = "2026-11-20T19:30:00Z"


class Site:
    """A served Balsam, and jobtui on it."""

    def __init__(self, balsam: RecordedBalsam, url: str, run: Runner) -> None:
        self.balsam, self.url, self._run = balsam, url, run

    def __call__(self, *words: str) -> Ran:
        return self._run("--at", AT, "--since", "2026-11-20T12:00:00Z", "--balsam", self.url, *words)

    def report(self, *words: str, form: str = "--json") -> Ran:
        return self._run("--at", AT, "--balsam", self.url, "report", *words, *([form] if form else []))


@pytest.fixture
def site(run: Runner, plain_environment: Path) -> Iterator[Site]:
    balsam = RecordedBalsam()
    with served(balsam) as url:
        write_login(plain_environment / ".balsam" / "client.yml", url, TOKEN)
        yield Site(balsam, url, run)


@pytest.mark.parametrize(
    ("word", "narrows"),
    [
        ("id=balsam/7", lambda row, states: row["id"] == 7),
        ("native:RUNNING", lambda row, states: row["state"] == "RUNNING"),
        ("tag:experiment:post", lambda row, states: row["tags"].get("experiment") == "post"),
        ("tag:experiment", lambda row, states: "experiment" in row["tags"]),
        ("batch:2", lambda row, states: row["batch_job_id"] == 2),
        ("scheduler:99456", lambda row, states: row["batch_job_id"] == 2),
        ("to:RUN_ERROR", lambda row, states: "RUN_ERROR" in states),
        ("from:RUN_ERROR", lambda row, states: "RUN_ERROR" in states and row["state"] != "RUN_ERROR"),
        ("system:balsam", lambda row, states: True),
    ],
)
def test_a_word_that_the_event_log_answers_filters_jobs(word: str, narrows: Any, site: Site) -> None:
    batch = next(row for row in site.balsam.batch_jobs if row["id"] == 2)
    batch["scheduler_id"] = 99456
    found = {job["id"] for job in site("jobs", word, "--json").json["jobs"]}
    states: dict[int, set[str]] = {}
    for event in site.balsam.events:
        states.setdefault(event["job_id"], set()).add(event["to_state"])
    assert found == {
        f"balsam/{row['id']}" for row in site.balsam.jobs if narrows(row, states.get(row["id"], set()))
    }


def test_a_timeline_has_a_step_for_each_event(site: Site) -> None:
    number = next(row["job_id"] for row in site.balsam.events if row["to_state"] == "RESTART_READY")
    events = [row for row in site.balsam.events if row["job_id"] == number]
    ran = site("timeline", str(number), "--json")
    steps = [step for op in ran.json["ops"] for step in op["steps"]]
    assert [step["line"] for step in steps] == sorted(row["id"] for row in events)
    assert len(ran.json["ops"]) > 1
    assert {step["component"] for step in steps} <= {"balsam", "site", "launcher"}
    assert "restart" in site("timeline", str(number)).out.lower()


def test_doctor_says_how_it_is(site: Site, plain_environment: Path) -> None:
    ran = site("doctor")
    assert ran.code == 0, ran.out + ran.err
    assert f"{len(site.balsam.jobs)} jobs" in ran.out
    write_login(plain_environment / ".balsam" / "client.yml", site.url, TOKEN, "2026-11-20 19:00:00")
    assert "the login has expired" in site("doctor").out
    site.balsam.token = "another"
    ran = site("doctor")
    assert ran.code in (1, 5)
    assert "jobtui login balsam" in ran.out


def keep(balsam: RecordedBalsam, numbers: Collection[int]) -> None:
    """Let the server have these jobs and their parents only: it is asked for all that it has."""
    parents = {one for row in balsam.jobs if row["id"] in numbers for one in row["parent_ids"]}
    balsam.jobs = [row for row in balsam.jobs if row["id"] in {*numbers, *parents}]
    balsam.events = [row for row in balsam.events if row["job_id"] in {*numbers, *parents}]


@pytest.mark.parametrize("refreshed", ["2026-11-20T19:29:50", "2026-11-20T13:00:00"])
@pytest.mark.parametrize(("part", "states"), ROWS["parts of Balsam and the states that rest on them"])
def test_a_part_that_is_broken_from_the_start_is_named_and_doubted_where_it_matters(
    part: str, states: Sequence[str], refreshed: str, site: Site
) -> None:
    every = {row["state"]: row["id"] for row in site.balsam.jobs}
    keep(site.balsam, every.values())
    site.balsam.broken = f"/{part}/"
    for row in site.balsam.sites:
        row["last_refresh"] = refreshed
    for row in site.balsam.sessions:
        row["heartbeat"] = "2026-11-20T19:29:50"
    why = "failed (500): Internal Server Error; ask again, or see its log"
    unread = f"{part} cannot be read: {why}; never read"
    for command in ("jobs", "status", "incidents"):
        ran = site(command)
        assert (unread in ran.err, ran.code == Exit.NO_SOURCE) == (True, part == "jobs"), command
    for state in every if refreshed > "2026-11-20T19" else every.keys() & WAITING_FOR_AGENT:
        number = every[state]
        for command in ("timeline", "show", "explain"):
            ran, shown = site(command, f"balsam/{number}", "--json"), ran
            assert (ran.code == Exit.NO_SOURCE) is (part == "jobs")
            # Its record alone is asked for, and sessions are not for an ended job
            assert ("/jobs/: failed (500)" if part == "jobs" else unread) in ran.err or part == "sessions"
        doubts = [one for one in ran.json.get("blind_spots", ()) if one.endswith(f"its {unread}")]
        assert bool(doubts) is (ran.json.get("confidence", 1) <= GUESS) is (state in states), state
        if part != "jobs":
            (listed,) = site("jobs", f"id=balsam/{number}", "--json").json["jobs"]
            waits = listed["message"], listed["alert"]
            assert waits == (shown.json["job"]["message"], shown.json["job"]["alert"]), state
            if part not in ("apps", "sites") and state in WAITING_FOR_AGENT:
                is_silent = (part, refreshed < "2026-11-20T19") == ("batch-jobs", True)
                assert (ran.json["verdict"] == "site_agent_down") is is_silent, state
                reason = "the agent of site demo-site" if is_silent else ran.json["pending"]["words"]
                assert any(reason in one for one in waits), state


def test_secrets_in_what_a_job_carries_are_masked(site: Site) -> None:
    row = next(row for row in site.balsam.jobs if row["state"] == "FAILED")
    secret = "s3cr3t-of-the-job"
    row["tags"] = {"password": f"{secret}-1"}
    row["parameters"] = {"api_key": f"{secret}-2", "line": f"--password={secret}-3"}
    row["data"] = {"token": f"{secret}-4"}
    row["last_update"] = "2026-11-20T19:29:00+00:00"
    for event in site.balsam.events:
        if event["job_id"] == row["id"]:
            event["data"] = {**event["data"], "message": f"PASSWORD={secret}-5", "token": f"{secret}-6"}
    for words in ("jobs", "show", "timeline", "explain", "report"):
        thing = [] if words == "jobs" else [str(row["id"])]
        for form in ([], ["--json"], ["--csv"]):
            ran = site(words, *thing, *(["--markdown"] if words == "report" else []), *form)
            assert secret not in ran.out + ran.err, (words, form)


@pytest.fixture
def mounted(site: Site, tmp_path: Path) -> Path:
    """The file system of the site is mounted here."""
    place = tmp_path / "site"
    shutil.copytree(FOLDER / "site_logs", place / "log")
    site.balsam.sites[0]["path"] = str(place)
    return place


def test_the_logs_of_its_site_are_lines_of_the_job(site: Site, mounted: Path) -> None:
    lines = site("logs", "7", "--json").json["lines"]
    assert {line["component"] for line in lines} == {"site", "launcher"}
    assert {Path(line["source"]).parent for line in lines} == {mounted / "log"}
    assert [line["level"] for line in lines if "nonzero return 3" in line["text"]] == ["error"]
    assert "Job 7 advanced to PREPROCESSED" in site("logs", "balsam/7").out


def test_doctor_counts_the_lines_of_its_site(site: Site, mounted: Path) -> None:
    ran = site("doctor")
    assert ran.code == 0, ran.out + ran.err
    lines = sum(len(path.read_text().splitlines()) for path in (mounted / "log").iterdir())
    assert f"3 files, {lines} lines" in ran.out
    assert "[mounts]" not in ran.out


@pytest.mark.parametrize("number", [72, 83, 8])
def test_bundle_and_report_have_the_verdict_that_explain_has(
    number: int, site: Site, tmp_path: Path, run: Runner
) -> None:
    keep(site.balsam, [number])
    job = f"balsam/{number}"
    live = site("explain", job, "--json")
    assert site("explain", str(number), "--json").json["job"] == live.json["job"]
    file = tmp_path / "one.jobtui"
    assert site("bundle", job, "--output", str(file)).code == 0
    assert run("replay", file, "explain", job, "--json").out == live.out
    kept = Recording(file)
    assert kept.about.verdict is not None
    assert kept.about.verdict["sentence"] == live.json["sentence"]
    kept.close()
    assert f"    {live.json['verdict']}  " in site("report", job, "--markdown").out


WAITING_FOR_AGENT = {"PREPROCESSED", "RESTART_READY"}
TRUTH: list[dict[str, Any]] = json.loads((FOLDER / "analytics_groundtruth.json").read_text())
CASES: list[dict[str, Any]] = json.loads((FOLDER / "analytics_edge_cases.json").read_text())["cases"]


def words_of(truth: dict[str, Any]) -> list[str]:
    """The command line that asks what Balsam's own function was asked."""
    query, options = truth["filter"], truth["kwargs"]
    report = {"throughput_report": "throughput", "utilization_report": "utilization"}
    words = [report.get(truth["function"], "nodes"), "--exact"]
    if "to_state" in options:
        words.append(f"--to-state={options['to_state']}")
    if options.get("node_weighting") is False:
        words.append("--unweighted")
    words += [f"--scheduler-id={query['scheduler_id']}"] if "scheduler_id" in query else []
    words += [f"--batch-job={query['batch_job_id']}"] if "batch_job_id" in query else []
    words += [f"--to-state={state}" for state in query.get("state", [])]
    tags = query.get("tags") or query.get("filter_tags") or {}
    return words + ([f"--tag={','.join(f'{name}:{value}' for name, value in tags.items())}"] if tags else [])


def check(ran: Ran, truth: dict[str, Any], refusal: str = "nothing ran") -> None:
    assert (ran.code, refusal in ran.err) == ((1, True) if "error" in truth else (0, False)), ran.err
    if "error" in truth:
        return
    (series,) = ran.json["series"]
    assert [nanos(text.removesuffix("Z")) for text in series["x"]] == [nanos(text) for text in truth["x"]]
    assert series["y"] == pytest.approx(truth["y"], abs=1e-9)


@pytest.mark.parametrize("truth", TRUTH, ids=[" ".join(words_of(one)) for one in TRUTH])
def test_every_report_is_the_one_that_balsam_gave(truth: dict[str, Any], site: Site) -> None:
    check(site.report(*words_of(truth)), truth)


def crafted(site: Site, case: dict[str, Any]) -> None:
    """Let the server hold the events of a crafted case only."""
    site.balsam.events = case["events"]
    ids = {event["job_id"] for event in case["events"]}
    site.balsam.jobs = [
        {**site.balsam.jobs[0], "id": number, "tags": {"case": case["case"]}} for number in sorted(ids)
    ]
    site.balsam.batch_jobs = []


@pytest.mark.parametrize(
    "kind", ["utilization_weighted", "utilization_unweighted", "throughput_JOB_FINISHED"]
)
@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_reports_on_crafted_events_are_those_of_balsam(case: dict[str, Any], kind: str, site: Site) -> None:
    crafted(site, case)
    what, _, rest = kind.partition("_")
    ran = site.report(what, "--exact", *(["--unweighted"] if rest == "unweighted" else []))
    check(ran, case[kind], "does not say how many nodes; give --unweighted, or leave out --exact")


def test_a_window_is_asked_for_as_balsam_asks(site: Site) -> None:
    case = next(case for case in CASES if "windowed_filter" in case)
    crafted(site, case)
    query = case["windowed_filter"]
    window = [f"--since={query['timestamp_after']}Z", f"--until={query['timestamp_before']}Z"]
    check(site.report("utilization", "--exact", *window), case["utilization_weighted_windowed"])
    (right,) = site.report("utilization", *window).json["series"]
    assert min(right["y"]) >= 0  # what began before the window counts


def test_the_scheduler_id_narrows_by_default(site: Site) -> None:
    by_id = site.report("throughput", "--scheduler-id=456").json["series"]
    batch_job = next(row["id"] for row in site.balsam.batch_jobs if row["scheduler_id"] == 456)
    assert by_id == site.report("throughput", f"--batch-job={batch_job}").json["series"]
    assert by_id != site.report("throughput").json["series"]


def test_running_allocations_are_shown_and_said_to_be_estimated(site: Site) -> None:
    (series,) = site.report("nodes").json["series"]
    (exact,) = site.report("nodes", "--exact").json["series"]
    assert series["notes"] == ["1 allocation has an estimated start"]
    assert (series["estimated"], series["left_out"]) == (1, 0)
    assert max(series["y"]) >= max(exact["y"])
    assert series["y"][-1] > 0
    assert exact["y"][-1] == 0


@pytest.mark.parametrize(
    ("flag", "narrows"),
    [
        ("--job=3", lambda row, job: job["id"] == 3),
        ("--job=balsam/3,5", lambda row, job: job["id"] in (3, 5)),
        ("--batch-job=2", lambda row, job: job["batch_job_id"] == 2),
        ("--tag=experiment:post", lambda row, job: job["tags"].get("experiment") == "post"),
        ("--from-state=RUN_DONE", lambda row, job: row["from_state"] == "RUN_DONE"),
        ("--since=2026-11-20T18:30:00Z", lambda row, job: row["timestamp"] >= "2026-11-20T18:30:00"),
        ("--until=2026-11-20T18:30:00Z", lambda row, job: row["timestamp"] <= "2026-11-20T18:30:00"),
    ],
)
def test_every_query_of_the_event_log_narrows(flag: str, narrows: Any, site: Site) -> None:
    jobs = {job["id"]: job for job in site.balsam.jobs}
    finished = [row for row in site.balsam.events if row["to_state"] == "JOB_FINISHED"]
    wanted = {row["job_id"] for row in finished if narrows(row, jobs[row["job_id"]])}
    (series,) = site.report("throughput", flag).json["series"]
    assert (series["y"][-1] if series["y"] else 0) == len(wanted)


def test_utilization_is_drawn_over_what_is_available(site: Site) -> None:
    ran = site.report("utilization", "--plot", form="--plain")
    assert ran.code == 0, ran.err
    assert "utilization" in ran.out.splitlines()[0]
    assert "┄ nodes available" in ran.out
    assert "█" in ran.out
    assert "\x1b" not in ran.out
    assert all(len(line) <= 120 for line in ran.out.splitlines() if not line.startswith("note:"))


@pytest.mark.parametrize("what", ["utilization", "throughput", "nodes", "states"])
def test_every_report_can_be_drawn_in_ascii_and_is_a_picture_of_its_own(
    what: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    ran = site.report(what, "--plot", form="--plain")
    assert (ran.code, ran.out.isascii(), ran.out.count("\n") > 20) == (0, True, True)
    ran = site.report(what, "--svg", form="--plain")
    assert ran.code == 0, ran.err
    picture = ElementTree.fromstring(ran.out)
    inside = {one.tag.partition("}")[2] for one in picture.iter()}
    assert {"svg", "path", "text", "line"} <= inside
    assert "href" not in ran.out
    assert "nan" not in ran.out


URL = "https://balsam.test"
LINE = "2026-11-20 17:31:39.707 | 12 | DEBUG | balsam.site.service.processing:1] Job 7 advanced to FAILED\n"
SPECS = (SourceSpec("balsam", URL, label="alcf"),)


def write_logs(site: Path) -> None:
    (site / "log").mkdir(parents=True)
    (site / "log" / "service_2026-11-20_173100.log").write_text(LINE)


def told_of(path: str, source: str = URL) -> Batch:
    return Batch(cursor="1", sites=(KnownSite(id=1, source=source, name="theta", path=path),))


@asynccontextmanager
async def watching(
    specs: tuple[SourceSpec, ...], *batches: Batch, mounts: dict[str, str] | None = None
) -> AsyncIterator[tuple[Session, ScriptedSource]]:
    source = ScriptedSource(batches, name=URL, kind="balsam")
    async with Session([source], FixedClock(NOW)) as session:
        session.reach = ClusterAccess(mounts or {})
        watch_sites(session, specs)
        running = asyncio.create_task(session.run())
        yield session, source
        await stop(running)


def kinds(session: Session) -> list[str]:
    return [health.kind for health in session.store.sources()]


def is_read(session: Session) -> bool:
    found = [health for health in session.store.sources() if health.kind == SITE_LOGS.kind]
    return bool(found) and found[0].state is SourceState.OK and found[0].records == 1


async def test_site_logs_are_read_from_where_the_site_is_mounted(tmp_path: Path) -> None:
    write_logs(tmp_path / "mounted" / "site")
    mounts = {"/projects": str(tmp_path / "mounted")}
    async with watching(SPECS, told_of("/projects/site"), mounts=mounts) as (session, _):
        await wait_until(lambda: is_read(session))
        (line,) = session.store.correlation.unlinked_of(JobId("balsam@alcf/7"))
        assert line.step.step == "agent advanced it"


async def test_a_site_mounted_later_is_found_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LOOK_EVERY_S", 0.02)
    async with watching(SPECS, told_of(str(tmp_path / "site"))) as (session, _):
        await wait_until(lambda: bool(session.store.sites()))
        await asyncio.sleep(0)
        assert kinds(session) == ["balsam"]
        write_logs(tmp_path / "site")
        await wait_until(lambda: is_read(session))


async def test_a_site_that_comes_to_be_known_later_is_read_with_the_first(tmp_path: Path) -> None:
    write_logs(tmp_path / "one")
    write_logs(tmp_path / "two")
    async with watching(SPECS, told_of(str(tmp_path / "one"))) as (session, source):
        await wait_until(lambda: is_read(session))
        both = (
            KnownSite(id=1, source=URL, name="theta", path=str(tmp_path / "one")),
            KnownSite(id=2, source=URL, name="summit", path=str(tmp_path / "two")),
        )
        source.add(Batch(cursor="2", sites=both))
        await wait_until(lambda: session.store.sources()[1].records == 2)
        assert kinds(session) == ["balsam", SITE_LOGS.kind]


RECORDS = CAPTURES / "local/supervisor-job"
DIRECTORY = "supervisor-job"


@pytest.fixture
def record() -> Path:
    return next(p for p in sorted(RECORDS.iterdir()) if json.loads(p.read_bytes())["status"] == "completed")


@pytest.fixture
def roots(tmp_path: Path, record: Path) -> tuple[Path, Path]:
    """Two roots with one record; in the second, which was written later, it failed."""
    roots = (tmp_path / "one", tmp_path / "two")
    for root in roots:
        (root / DIRECTORY).mkdir(parents=True)
        shutil.copy2(record, root / DIRECTORY)
    other = roots[1] / DIRECTORY / record.name
    told = json.loads(record.read_bytes())
    told |= {"status": "error", "error": "no space left", "dbUpdateTime": told["dbUpdateTime"] + 60}
    other.write_text(json.dumps(told))
    return roots


def flags(roots: Sequence[Path]) -> list[str]:
    return [word for root in roots for word in ("--srdb", str(root))]


@pytest.mark.parametrize("turn", [1, -1])
def test_jobs_show_explain_tell_both(run: Runner, roots: tuple[Path, Path], record: Path, turn: int) -> None:
    given = flags(roots[::turn])
    places = {str(root) for root in roots}

    (job,) = run("jobs", *given, "--json").json["jobs"]
    assert (job["source"], job["status"]) == (str(roots[1]), "failed")
    assert [(one["source"], one["status"]) for one in job["others"]] == [(str(roots[0]), "completed")]
    assert "contradiction" in job["flags"]
    (found,) = run("jobs", "flag:contradiction", *given, "--json").json["jobs"]
    assert found == job

    shown = run("show", record.stem, *given, "--json")
    assert shown.code == Exit.ATTENTION
    assert {**shown.json["job"], "path": None, "native": None} == {**job, "path": None, "native": None}
    assert shown.json["job"]["path"] == str(roots[1] / DIRECTORY / record.name)
    counted = run("status", *given, "--json")
    assert (counted.code, counted.json["disputed"]) == (Exit.ATTENTION, 1)
    assert "disputed 1" in run("status", *given).out

    text = run("show", record.stem, *given).out
    assert all(place in text for place in places)

    verdict = run("explain", record.stem, *given, "--json")
    assert verdict.code == Exit.ATTENTION
    assert verdict.json["confidence"] < 0.5
    (contradiction,) = verdict.json["contradictions"]
    assert {fact["source"] for fact in contradiction["facts"]} == places


def test_two_roots_that_agree_count_once_without_a_word_of_doubt(
    run: Runner, roots: tuple[Path, Path], record: Path
) -> None:
    shutil.copy2(record, roots[1] / DIRECTORY)
    (job,) = run("jobs", *flags(roots), "--json").json["jobs"]
    assert "contradiction" not in job["flags"]
    assert {job["source"], *(one["source"] for one in job["others"])} == set(map(str, roots))
    assert run("show", record.stem, *flags(roots)).code == run("show", record.stem, *flags(roots[:1])).code
    assert run("explain", record.stem, *flags(roots), "--json").json["contradictions"] == []
    assert run("status", *flags(roots), "--json").json["disputed"] == 0


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("removed", [0, 1])
async def test_a_job_removed_from_one_root_stays_known_by_the_other(
    roots: tuple[Path, Path], record: Path, removed: int, turn: int
) -> None:
    job_id = JobId(record.stem)
    sources = [SirepoDb(root) for root in roots[::turn]]
    for source in sources:
        source._changes.sweep_s = 0
    async with Session(sources) as session:
        await session.catch_up()
        assert {one.source for one in all_of(session, job_id)} == set(map(str, roots))
        (roots[removed] / DIRECTORY / record.name).unlink()
        await session.catch_up()
        (left,) = all_of(session, job_id)
        assert left.source == str(roots[1 - removed])
        (roots[1 - removed] / DIRECTORY / record.name).unlink()
        await session.catch_up()
        assert session.store.job(job_id) is None


def all_of(session: Session, job_id: JobId) -> tuple[Job, ...]:
    job = session.store.job(job_id)
    return () if job is None else (job, *job.others)


class Pair(NamedTuple):
    """Two served Balsams, how each is called, and jobtui on both."""

    balsams: tuple[RecordedBalsam, RecordedBalsam]
    labels: tuple[str, str]
    flags: tuple[str, ...]
    run: Runner

    def __call__(self, *words: str) -> Ran:
        return self.run("--at", AT, "--since", "2026-11-20T12:00:00Z", *self.flags, *words)


@pytest.fixture
def pair(run: Runner, plain_environment: Path) -> Iterator[Pair]:
    one, other = RecordedBalsam(), RecordedBalsam()
    other.token = "of-the-other"
    other.sites[0]["name"] = "other-site"
    for row in other.jobs:
        row["workdir"] = f"other/{row['id']}"
    with served(one) as url, served(other) as other_url:
        folder = plain_environment / ".balsam"
        write_login(folder / "client.yml", url, TOKEN)
        write_login(folder / "client-other.yml", other_url, other.token)
        here, there = labels_of([url, other_url]).values()
        yield Pair((one, other), (here, there), ("--balsam", url, "--balsam", other_url), run)


def test_every_job_is_there_once_with_its_server(pair: Pair) -> None:
    jobs = pair("jobs", "--json").json["jobs"]
    numbers = [row["id"] for row in pair.balsams[0].jobs]
    assert {job["id"] for job in jobs} == {f"balsam@{la}/{n}" for la in pair.labels for n in numbers}
    assert {job["name"].startswith("other/") for job in jobs if pair.labels[1] in job["id"]} == {True}
    found = pair("jobs", f"batch:2@{pair.labels[0]}", "--json").json["jobs"]
    of_batch = [row["id"] for row in pair.balsams[0].jobs if row["batch_job_id"] == 2]
    assert {job["id"] for job in found} == {f"balsam@{pair.labels[0]}/{number}" for number in of_batch}


@pytest.mark.parametrize("thing", ["7", "#7", "balsam/7"])
@pytest.mark.parametrize("command", ["show", "explain", "timeline", "find"])
def test_a_mere_number_is_ambiguous_and_both_are_named(thing: str, command: str, pair: Pair) -> None:
    ran = pair(command, thing)
    assert ran.code == 4
    assert "is ambiguous" in ran.err
    for label in pair.labels:
        assert f"balsam@{label}/7" in ran.out + ran.err


def test_a_number_that_one_of_them_has_is_not_ambiguous(pair: Pair) -> None:
    pair.balsams[1].jobs = [row for row in pair.balsams[1].jobs if row["id"] != 7]
    assert pair("show", "7", "--json").json["job"]["id"] == f"balsam@{pair.labels[0]}/7"
    ran = pair("show", f"7@{pair.labels[1]}")
    assert (ran.code, ran.out) == (4, "")


def test_explaining_looks_at_the_sites_and_allocations_of_its_own_server(pair: Pair) -> None:
    for balsam in pair.balsams:
        balsam.jobs[0]["state"] = "STAGED_IN"
    waiting = pair.balsams[0].jobs[0]["id"]
    pair.balsams[0].sites[0]["last_refresh"] = "2026-11-20T18:00:00"
    pair.balsams[1].sites[0]["last_refresh"] = "2026-11-20T19:29:30"
    verdicts = [pair("explain", f"{waiting}@{label}", "--json").json["verdict"] for label in pair.labels]
    assert verdicts[0] == "site_agent_down"
    assert verdicts[1] != verdicts[0]


def test_reports_have_a_series_for_each(pair: Pair) -> None:
    finished = sum(row["to_state"] == "JOB_FINISHED" for row in pair.balsams[0].events)
    pair.balsams[1].events = []
    series = {one["name"]: one["y"] for one in pair("report", "throughput", "--json").json["series"]}
    assert [name.partition(", ")[2] for name in series] == list(pair.labels)
    last = [y[-1] if y else 0 for y in series.values()]
    assert last[1] == 0
    assert 0 < last[0] <= finished


@pytest.mark.parametrize("flag", ["--batch-job=2", "--scheduler-id=99456", "--job={}", "--job=balsam/{}"])
def test_a_report_about_a_number_is_of_one_server(flag: str, pair: Pair) -> None:
    for balsam in pair.balsams:
        next(row for row in balsam.batch_jobs if row["id"] == 2)["scheduler_id"] = 99456
    done = next(row["id"] for row in pair.balsams[0].jobs if row["state"] == "JOB_FINISHED")
    ran = pair("report", "throughput", flag.format(done))
    assert ran.code == 4
    for label in pair.labels:
        assert f"@{label}" in ran.err
    for label in pair.labels:
        number = flag.replace("balsam/", "").format(done)
        (series,) = pair("report", "throughput", f"{number}@{label}", "--json").json["series"][:1]
        assert series["y"]


def test_the_second_server_is_never_sent_the_login_of_the_first(pair: Pair) -> None:
    assert pair("jobs", "--json").code == 0
    assert [set(balsam.tokens) for balsam in pair.balsams] == [{f"Bearer {TOKEN}"}, {"Bearer of-the-other"}]
