"""What is opened or printed for a thing that is named or pasted, in a terminal and without one; `demo`."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobtui import cli
from jobtui.commands import demo, open
from jobtui.commands.context import Context, make_context
from jobtui.commands.reader import Reader, configured, within
from jobtui.commands.streams import Exit
from jobtui.config import load
from jobtui.model.ids import JobFilter, JobId, TraceRef
from jobtui.screens.choices import Jump, look_up
from jobtui.session import Session
from jobtui.session.evidence import Gatherer
from tests.commands.running import AT, CAPTURES, FAILED, ROOT, Ran, Runner, jobtui, sources_of
from tests.commands.sites import Flags, flags
from tests.condor import CONDOR
from tests.rows import table
from tests.tracing import EXPECTED, capture_file

JID = "DJouDZ9T-3mJbMh8p-activityAnimation"


class Dashboard:
    """Notes what it is opened with, and reads what it is given once."""

    def __init__(self) -> None:
        self.opened: list[tuple[JobId | TraceRef | JobFilter | None, str]] = []
        self.words: list[str] = []
        self.job_attributes: tuple[str, ...] = ()
        self.jobs = 0
        self.ops = 0

    def __call__(
        self, session: Session, open_at: JobId | TraceRef | JobFilter | None, title: str, words: Sequence[str]
    ) -> None:
        self.words, self.job_attributes = list(words), session.store.traces.job_attributes
        asyncio.run(self._read(session))
        self.opened.append((open_at, title))

    async def _read(self, session: Session) -> None:
        async with session:
            await session.catch_up()
            self.jobs = len(session.store.jobs)
            self.ops = len(session.store.correlation.ops_of(JobId(JID)))


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Dashboard:
    """One that is opened as in a terminal."""
    monkeypatch.setattr(open, "has_terminal", lambda: True)
    monkeypatch.setattr(demo, "has_terminal", lambda: True)
    return Dashboard()


def context(dashboard: Dashboard, *arguments: str) -> Context:
    invocation = cli.parse(arguments)
    return make_context(invocation, load(invocation.settings, {}), dashboard)


def test_the_dashboard_opens_on_all_that_is_configured(dashboard: Dashboard) -> None:
    assert open.run(context(dashboard, *sources_of("local"))) == Exit.FINE
    assert dashboard.opened == [(None, "jobtui")]
    assert dashboard.jobs == 19
    assert dashboard.ops == 4


def test_the_dashboard_does_not_open_without_a_source(
    dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open.run(context(dashboard)) == Exit.NO_SOURCE
    assert dashboard.opened == []


def test_the_dashboard_knows_how_its_sources_are_named(
    dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "s=1.log").write_text("")
    monkeypatch.chdir(tmp_path)
    given = ("--srdb", "db", "--log", "supervisor=s.log", "--log", "./s=1.log", "--since", "2h")
    assert open.run(context(dashboard, *given)) == Exit.FINE
    assert dashboard.words == [
        *("--srdb", f"{tmp_path}/db"),
        *("--log", f"supervisor={tmp_path}/s.log"),
        *("--log", f"{tmp_path}/s=1.log"),
        *("--since", "2h"),
    ]
    again = context(dashboard, *dashboard.words).config.sources
    assert [spec.target for spec in again] == [f"{tmp_path}/db", f"{tmp_path}/s.log", f"{tmp_path}/s=1.log"]


def test_a_profile_is_in_its_title_and_its_sources_are_found_in_the_file_again(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'[profiles.prod]\nsrdb = ["{tmp_path}"]\n')
    assert open.run(context(dashboard, "--config", str(file), "--profile", "prod")) == Exit.FINE
    assert dashboard.opened == [(None, "jobtui prod")]
    assert dashboard.words == ["--profile", "prod", "--config", str(file)]


TRACE = "212c891717bfbac28a34dec05b616f14"
PARENT = f"00-{TRACE}-ff9c35a8f8c0b21f-01"
FROM_FILE = ("--trace-file", str(capture_file("job-fail", "otlp.pb")))


@pytest.mark.parametrize(
    ("words", "code", "opened"),
    [
        (("7Osx", *sources_of("local")), Exit.FINE, [(JID, "jobtui")]),
        (("srunit_long_run", *sources_of("local")), Exit.NOT_FOUND, []),
        (("--srdb", "/no/such/directory"), Exit.FINE, [(None, "jobtui")]),
        ((TRACE, *sources_of("local")), Exit.NOT_FOUND, []),  # a bare id is of a trace where traces are read
        ((f"{JID} {PARENT}", *sources_of("local"), *FROM_FILE), Exit.FINE, [(JID, "jobtui")]),
    ],
)
def test_the_dashboard_opens_at_the_job_that_was_meant(
    dashboard: Dashboard, words: tuple[str, ...], code: Exit, opened: list[object]
) -> None:
    assert open.run(context(dashboard, *words)) == code
    assert dashboard.opened == opened


@pytest.mark.parametrize("thing", [TRACE, PARENT, f"https://jaeger.example.org/trace/{TRACE}"])
def test_the_dashboard_opens_at_the_trace_that_was_meant(dashboard: Dashboard, thing: str) -> None:
    assert open.run(context(dashboard, thing, *FROM_FILE)) == Exit.FINE
    ((opened, _),) = dashboard.opened
    assert isinstance(opened, TraceRef)
    assert opened.trace_id == TRACE


def test_a_trace_is_printed_without_a_terminal(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(open, "has_terminal", lambda: False)
    assert open.run(context(dashboard, PARENT, *FROM_FILE)) == Exit.FAILED
    assert "step 7 of 10" in capsys.readouterr().out


def test_the_dashboard_knows_the_attributes_in_which_spans_name_jobs(dashboard: Dashboard) -> None:
    open.run(context(dashboard, "--job-attribute", "my.job", *sources_of("local")))
    assert dashboard.job_attributes == ("my.job",)


def test_commands_on_the_demo_have_the_same_ids_each_time_and_leave_nothing(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    failed = (ROOT / "README.md").read_text().split("jobtui demo explain ")[1].split()[0]
    assert failed in run("demo", "jobs", "status:failed").out
    why = run("demo", "explain", failed, "--json")
    assert why.code == 1
    assert f"jobtui demo logs {failed}" in why.out
    assert run("demo", "--seed", "3", "explain", failed).code == 4
    assert run("demo", "wait", failed).out == f"{failed} failed: a big ugly error\n"
    assert [*tmp_path.iterdir()] == []


def test_its_failures_are_asked_for_as_those_of_a_memory(run: Runner) -> None:
    seen = run("demo", "seen", "out of memory", "--json", "--at", "2020-01-01T00:00:00Z")
    assert seen.code == 0
    assert [one["count"] > 1 for one in seen.json["signatures"]] == [True]
    assert run("demo", "changed", "host:v4", "host:none", "--json").json["before"] >= 0
    assert "nothing is remembered yet" in run("seen").err


def test_open_without_a_terminal_prints_a_thing_or_the_job_table(run: Runner) -> None:
    shown = run(FAILED, "--at", AT, *sources_of("local"))
    assert shown == run("show", FAILED, "--at", AT, *sources_of("local"))
    assert shown.code == 1
    assert run(FAILED, "--json", *sources_of("local")).json["schema"] == "jobtui/show/1"
    assert run("--at", AT, *sources_of("local")) == run("jobs", "--at", AT, *sources_of("local"))


__all__ = ["flags"]

COMMANDS = (
    ("show",), ("timeline",), ("explain",), ("compare",), ("wait",), ("logs",), ("report", "--markdown"),
    ("bundle", "--output", "bundle.jobtui"), ("script",), ("trace",), ("find",), (),
)  # fmt: skip
"""Those that take an ID; the last is `jobtui SCRAP`."""

SCRAPS = table("scraps")
ONE = [
    (site, scrap.replace("{condor}", str(CONDOR)), job_id)
    for site, jobs in SCRAPS["one"].items()
    for job_id, scraps in jobs.items()
    for scrap in scraps
]
"""A site, a scrap, and the one job that is meant."""
SEVERAL = [(site, scrap, *told) for scrap, (site, *told) in SCRAPS["several"].items()]
LOST, RESTARTED = "VUlhaMOD-rkZ6gZzZ-activityAnimation", "VUlhaMOD-fuSjgiZf-activityAnimation"


@pytest.fixture
def sources(flags: Flags, plain_environment: Path) -> Flags:
    """All of a site, with spans and scripts, which are of other systems."""
    more = [f"--trace-file={capture_file('job-fail', 'otlp.pb')}", f"--archive={plain_environment}"]
    return lambda site: [*flags(site), *more]


JUMPS: dict[str, dict[str, Jump]] = {}
"""By site and scrap; a site is read once for all its scraps."""


def on_screen(site: str, sources: Sequence[str], scrap: str) -> Jump:
    """Where `:` and a paste lead on a dashboard that has read this site."""

    async def jumps(reader: Reader) -> dict[str, Jump]:
        await reader.read_jobs()
        await reader.read_logs(None)
        await reader.read_traces()
        store, names = reader.session.store, reader.session.logs().names()
        gatherer, every = Gatherer.of(reader.session), (*ONE, *SEVERAL)
        return {text: await look_up(text, store, names, gatherer) for at, text, *_ in every if at == site}

    if site not in JUMPS:
        asked = context(Dashboard(), "jobs", "--at", AT, *sources)
        JUMPS[site] = asyncio.run(within(asked, configured(asked), jumps))
    return JUMPS[site][scrap]


def ran(run: Runner, command: tuple[str, ...], capture: str, scrap: str, *more: str) -> Ran:
    return run(*command, *more, "--at", AT, *sources_of(capture), "--", scrap)


LACKS = ("no good run of", "no script of", "number in a scheduler is", "no script was found", "no trace was")
"""What may be said of a job that is found: that no run is like it, that it has no script, or no trace."""


@pytest.mark.parametrize(("nth", "told"), enumerate(ONE))
def test_every_command_takes_the_one_job_that_is_meant(
    nth: int,
    told: tuple[str, str, str],
    run: Runner,
    sources: Flags,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each scrap on a screen and by every sixth command: all of them look it up in the same way."""
    capture, scrap, job_id = told
    monkeypatch.chdir(tmp_path)
    flags = sources(capture)
    if "/tracing/" not in scrap:
        jump = on_screen(capture, flags, scrap)
        assert jump.is_clear, jump
        goal = jump.goals[0]
        assert goal.job == job_id or goal.trace is not None or f"{job_id}_" in (goal.filter or "")
    for command in COMMANDS[nth % 6 :: 6]:
        found = run(*command, "--at", AT, *flags, "--", scrap)
        why = (command, found)
        said = found.out + found.err
        assert found.code in (0, 1, 3) or any(words in found.err for words in LACKS), why
        is_quiet = command[:1] in (("bundle",), ("compare",), ("logs",), ("script",), ("trace",))
        assert job_id in said or is_quiet or EXPECTED["job-fail"]["traceID"] in found.out, why
        is_said = f"taken as job {job_id}" in found.err or f"its job is {job_id}" in found.err
        shows_trace = found.out.startswith(EXPECTED["job-fail"]["traceID"])  # `jobtui TRACE` does
        names_job = command[:1] not in (("find",), ("script",), ("trace",)) and not shows_trace
        if names_job and job_id in said:
            assert is_said is (job_id not in scrap and "user/" not in scrap), why


@pytest.mark.parametrize(("capture", "scrap", "kind", "count", "job_id"), SEVERAL)
def test_a_word_for_several_jobs_is_answered_for_each_of_them(
    capture: str, scrap: str, kind: str, count: int, job_id: str, run: Runner, sources: Flags
) -> None:
    flags = sources(capture)
    (goal, *_), is_clear, _ = on_screen(capture, flags, scrap)
    assert is_clear
    assert goal.filter is not None
    assert goal.filter.startswith("user:") if kind == "a user" else goal.filter.count(",") == count - 1
    for command in COMMANDS:
        found = run(*command, "--at", AT, *flags, "--", scrap)
        if command in (("logs",), ("find",), ()):
            assert found.code == 0
            assert found.out.count("\n") > 1
        else:
            assert (found.code, found.out) == (4, ""), (command, found)
            assert f"is {kind} with {count} jobs" in found.err
            end = f"{' '.join(command[:1])} {job_id}"
            offered = [line for line in found.err.split("\n") if line.endswith(end)]
            assert count > 9 or (offered and all(": jobtui --" in line for line in offered)), offered


def test_the_log_of_a_unit_is_given_whole_and_by_time(run: Runner) -> None:
    whole = ran(run, ("logs",), "sbatch", "supervisor", "--json").json["lines"]
    text = (CAPTURES / "sbatch" / "supervisor.log").read_text()
    assert len(whole) == min(1000, text.count("\n"))
    assert all(line["ids"]["job"] is None and line["source"].endswith("supervisor.log") for line in whole)
    last = ran(run, ("logs",), "sbatch", "supervisor", "--json", "-n", "3").json["lines"]
    assert last == whole[-3:]
    since, until = "2026-11-20T20:48:00Z", "2026-11-20T20:48:10Z"
    within = ran(run, ("logs",), "sbatch", "supervisor", "--json", "--since", since, "--until", until)
    times = {line["at"] for line in within.json["lines"] if line["at"]}
    assert times
    assert all(since <= at[:19] + "Z" <= until for at in times)


def test_the_last_steps_and_runs_and_the_first_lines_are_given(run: Runner) -> None:
    whole, last = (
        ran(run, ("timeline",), "docker", RESTARTED, "--csv", *most).out.splitlines()
        for most in ((), ("-n", "5"))
    )
    assert len(last) == 6
    assert {*last} < {*whole}
    assert len(ran(run, ("show",), "docker", RESTARTED, "--json", "-n", "0").json["runs"]) == 0
    for command in ("explain", "compare"):
        all_of_it, part = (ran(run, (command,), "docker", RESTARTED, *most) for most in ((), ("-n", "2")))
        assert part.out.splitlines() == all_of_it.out.splitlines()[:2]


@pytest.mark.parametrize(("lines", "code"), [(b"fuSjgiZf\n\nrkZ6gZzZ\n", 0), (b" fuSjgiZf, rkZ6gZzZ", 4)])
def test_several_ids_at_once_are_looked_up_one_by_one(lines: bytes, code: int) -> None:
    found = jobtui("find", "-", "--json", *sources_of("docker"), stdin=lines)
    assert (found.code, {one["id"] for one in found.json["candidates"][:2]}) == (code, {RESTARTED, LOST})
