"""What the dashboard is opened on, and when it is not."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobtui import cli
from jobtui.commands import demo, open
from jobtui.commands.context import Context, make_context
from jobtui.commands.streams import Exit
from jobtui.config import load
from jobtui.model.ids import JobFilter, JobId, TraceRef
from jobtui.session import Session
from tests.commands.running import sources_of
from tests.tracing import capture_file

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
def dashboard() -> Dashboard:
    return Dashboard()


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open, "has_terminal", lambda: True)
    monkeypatch.setattr(demo, "has_terminal", lambda: True)


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
