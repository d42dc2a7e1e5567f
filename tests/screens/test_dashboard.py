"""The table of jobs, its charts, journals among logs; the way between screens; a pause, and times."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.widget import Widget

from jobtui.app import JobtuiApp
from jobtui.backends.base import Batch
from jobtui.backends.journal.source import Journal
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceMissing, SourceUnreachable
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.jobs import JobStatus
from jobtui.model.pages import LogLine, LogUnreadable, MaskedLines
from jobtui.render.log_lines import LineLook, Tags, body, gutter
from jobtui.render.text import Zone, width
from jobtui.screens.choices import LogSetScreen
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.logs import LogsScreen
from jobtui.screens.sources import SourcesScreen
from jobtui.widgets.filter_bar import CommandBar, FilterBar
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.frame import Header, RuleLine
from jobtui.widgets.job_table import JobTable
from tests.builders import a_job, a_step, ago, an_agent, an_op, job_id
from tests.conftest import NOW
from tests.fakes import batch
from tests.journal_memory import T0, MemoryJournal
from tests.screens.captured import on_logs, until
from tests.screens.scene import FAILED, Scene, jobs, on_jobs, read, ready, see
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text, text_of, watch


async def test_the_dashboard_paints_before_any_source_has_answered() -> None:
    scene = Scene()
    for source in (scene.db, scene.log, scene.dead):
        source.hold()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        for words in ("STATE", "db starting", "0 running"):
            await see(scene.app, pilot, words)
        for source in (scene.db, scene.log, scene.dead):
            source.go_on()
        await ready(scene, pilot)


async def test_changes_are_shown_though_no_output_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.session.evidence.Gatherer.at_hand", lambda *_: asyncio.Event().wait())
    async with on_jobs() as (scene, pilot, table):
        failed = a_job(4, status=JobStatus.FAILED, error="out of memory", ended_at=ago(0))
        scene.db.add(batch(failed, gone=[job_id(3)]))
        await wait_until(lambda: "out of memory" in "\n".join(text_of(table)), pilot)
        assert job_id(3) not in table.rows.jobs
        assert len(table.rows.jobs) == len(jobs()) - 1
        scene.app.screen.set_filter("host:v99")  # type: ignore[attr-defined]  # only logs tell it, later
        await wait_until(lambda: not table.rows.is_sorting and not len(table.rows.index), pilot)
        done = next(job for job in table.rows.jobs.values() if job.status is JobStatus.COMPLETED)
        monkeypatch.setattr(scene.correlation, "agent_of", {done.id: an_agent(host="v99")}.get)
        table.apply([done])
        assert table.rows.index.window(0, 9) == [done.id]


async def test_letters_that_come_together_are_filtered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[str]()
    monkeypatch.setattr(JobsScreen, "edit_filter", lambda view, bar, text: done.append(text))
    async with on_jobs() as (scene, pilot, _):
        await press(pilot, "/", until=lambda: scene.app.screen.query(FilterInput))
        for text in ("z", "zz", "zzz"):
            scene.app.screen.query_one(FilterInput).value = text
        await wait_until(lambda: done == ["zzz"], pilot)
        (bar := scene.app.screen.query_one(FilterBar)).action_cancel()
        bar.edited("zz")  # what was typed just before
        await wait_until(lambda: not scene.app.screen.query(FilterBar), pilot)
        await pilot.pause()
        assert done == ["zzz"]


async def test_nothing_is_painted_when_nothing_changed() -> None:
    async with on_jobs() as (scene, pilot, table):
        await pilot.pause()
        screen = scene.app.screen
        assert isinstance(screen, JobsScreen)
        painted = [watch(view) for view in (table, *screen.query(RuleLine), screen.query_one(Header))]
        scene.db.add(batch(*jobs()))
        polls = scene.db.polls
        await wait_until(lambda: scene.db.polls >= polls + 2, pilot)
        screen.tick()
        await pilot.pause()
        assert painted == [[] for _ in painted]


@pytest.mark.parametrize("keys", [("j", "j", "down"), ()], ids=["moved", "on the first row"])
async def test_enter_opens_the_job_and_escape_comes_back_to_the_place(keys: tuple[str, ...]) -> None:
    async with on_jobs() as (scene, pilot, table):
        await pilot.press(*keys)
        here = table.cursor_id
        await press(pilot, "enter", until=JobScreen)
        assert isinstance(scene.app.screen, JobScreen)
        assert scene.app.screen.job_id == here
        scene.db.add(batch(a_job(11, status=JobStatus.FAILED, ended_at=ago(0), name="while away")))
        await wait_until(lambda: scene.store.job(job_id(11)) is not None, pilot)
        await press(pilot, "escape", until=JobsScreen)
        await wait_until(lambda: len(table.rows.jobs) == 11, pilot)
        assert table.cursor_id == here


async def test_one_message_when_a_partly_read_source_goes_down() -> None:
    scene = Scene([batch(*jobs(), more=True), *[SourceUnreachable("/srv/db: [red]no answer[/]")] * 99])
    async with on_jobs(scene, size=(80, 24), notifications=True) as (_, pilot, _):
        await wait_until(lambda: len(scene.app._notifications) == 1, pilot)
        await see(scene.app, pilot, "9+ jobs, 1+ internal hidden (x)")
        assert [one.message for one in scene.app._notifications] == ["db is down: [red]no answer[/]"]
        scene.app.notify("other is down: " * 20, severity="error", timeout=60)
        ends = ["next", "▌ othe"]
        await wait_until(lambda: [one[:6].strip() for one in screen_text(scene.app)[-2:]] == ends, pilot)


async def test_a_job_about_which_sources_disagree_is_flagged() -> None:
    job = a_job(1, name="at odds", written_at=NOW)
    scene = Scene([batch(job, a_job(2, name="in peace"))])
    steps = [a_step("op created"), a_step("sent", 1), a_step("status completed", 30)]
    scene.correlation.put(job.id, an_op(jid=job.id, steps=steps))
    async with scene.app.run_test(size=(140, 30)) as pilot:

        def is_flagged() -> bool:
            scene.clock.advance(1)
            return "sources disagree" in "\n".join(screen_text(scene.app))

        await wait_until(is_flagged, pilot)
        (line,) = (line for line in screen_text(scene.app) if "sources disagree" in line)
        assert "at odds" in line
        assert line.strip().startswith("!")


async def test_several_profiles_have_a_line_each_and_a_column() -> None:
    scene = Scene()
    scene.store.name_profiles({"/srv/db": "prod", "/var/log/supervisor.log": "hpc"})
    async with on_jobs(scene) as (_, pilot, table):
        lines = await see(scene.app, pilot, "hpc  1 of 1 source up")
        assert any(line.startswith(" prod  1 of 1 source up · ") for line in lines)
        assert any("PROFILE" in line for line in lines)
        assert any("prod: db" in line for line in lines)
        assert len(table.visible_jobs) > 5


def drawn(top: Widget) -> int:
    return sum(len(widget._styles_cache._cache) for widget in top.walk_children(Widget, with_self=True))


async def test_a_covered_screen_keeps_nothing_drawn_and_is_drawn_again() -> None:
    async with read() as (scene, pilot):
        jobs = scene.app.screen
        await wait_until(lambda: drawn(jobs) > 30 and " sure" in text(scene.app), pilot)
        before = screen_text(scene.app)
        await press(pilot, "6", until=SourcesScreen)
        await wait_until(lambda: drawn(jobs) == 0, pilot)
        await wait_until(lambda: drawn(scene.app.screen) > 30, pilot)
        await press(pilot, "1", until=JobsScreen)
        await wait_until(lambda: drawn(jobs) > 30, pilot)
        assert screen_text(scene.app) == before
        assert jobs.query_one(JobTable).is_attached


async def test_closed_widgets_are_freed() -> None:
    async with read() as (scene, pilot):
        kept, typed_in = weakref.WeakSet[object](), weakref.WeakSet[object]()
        for _ in range(3):
            await press(pilot, "colon", until=lambda: any(map(drawn, scene.app.screen.query(CommandBar))))
            kept.update(bar._styles_cache for bar in scene.app.screen.query(CommandBar))
            typed_in.add(scene.app.focused)
            await press(pilot, "escape", until=lambda: not scene.app.screen.query(CommandBar))
        gc.collect()
        assert len(kept) == 3, "textual lets go of them by itself now: app._give_back need not"
        scene.app._give_back()
        gc.collect()
        assert len(kept) <= 1  # the screen knows the children it had last
        assert len(typed_in) <= 1


def a_journal() -> MemoryJournal:
    journal = MemoryJournal()
    for n in range(30):
        journal.log(f"sirepo/a.py:1:f of the supervisor {n}", n)
    at = {"unit": "docker.service", "container": "srj-p-VUlhaMOD", "container_id": "e" * 64}
    journal.write("of the agent", 30, host="v7", pid=1, **at)
    return journal


AFTER_IT = Nanos(T0 + 60 * SECOND)


def source_of(journal: MemoryJournal) -> Journal:
    return Journal("ssh://v3", lambda: journal.reader("ssh://v3"), since=Nanos(1))


async def test_streams_are_named_as_they_come_and_can_be_chosen(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text("Nov 20 20:36:50 7 0 a/b.py:1:f of the server\n")
    journal = a_journal()
    async with on_logs(file, source_of(journal), size=(110, 40), now=AFTER_IT) as (app, pilot):
        await until(app, pilot, "all · server.log · supervisor@v3 · p-VUlh@v7")
        await until(
            app, pilot, "20:36:50 server", "20:36:51 supervisor@v3 of the supervisor 11", "of the agent"
        )
        journal.write("from a new one", unit="sirepo.service", host="v3", pid=9)
        await until(app, pilot, "from a new one")
        await press(pilot, "s", until=LogSetScreen)
        assert "▌p-VUlh@v7" in text(app)
        await press(pilot, "a", "space", "down", "down", "space", "enter", until=LogsScreen)
        await until(app, pilot, "2 logs", "of the server", "of the agent")
        await wait_until(lambda: "of the supervisor" not in text(app), pilot)
        await pilot.press("tab", "tab", "tab")
        await until(app, pilot, "of the supervisor 29", "20:37:09")


async def test_a_broken_journal_shows_among_the_lines_and_in_the_header() -> None:
    journal, other = a_journal(), a_journal()
    there = Journal("ssh://v9", lambda: other.reader("ssh://v9"), since=Nanos(1))
    async with on_logs(source_of(journal), there, size=(120, 40), now=AFTER_IT) as (app, pilot):
        await until(app, pilot, "of the agent")
        other.broken = "connection refused"
        await until(app, pilot, "not reached after this", "connection refused")
        other.broken = ""
        await until(app, pilot, "read later, nothing missing")


@pytest.mark.parametrize("key", ["space", "c", "enter", "Y"])
async def test_a_log_that_a_key_cannot_read_is_no_fault(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*asked: object) -> None:
        raise LogUnreadable("no route to host")

    (log := tmp_path / "x.log").write_text("one\ntwo\n")
    async with on_logs(log) as (app, pilot):
        await until(app, pilot, "two")
        monkeypatch.setattr(MaskedLines, "before", broken)
        monkeypatch.setattr(MaskedLines, "after", broken)
        await press(pilot, key, until=lambda: "no route to host" in text(app))


async def test_counts_are_not_shown_over_another_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = threading.Event()
    monkeypatch.setattr("jobtui.screens.logs.count_facets", lambda lines: ends.wait(60) and ())
    for name in ("x", "y"):
        (tmp_path / name).write_text(f"of {name}\n")
    async with on_logs(tmp_path / "x", tmp_path / "y") as (app, pilot):
        await until(app, pilot, "of x", "of y")
        await press(pilot, "c", until=lambda: "counting" in text(app))
        await press(pilot, "tab", until=lambda: "of y" not in text(app))
        ends.set()
        await wait_until(lambda: not any(one.group == "facets" for one in app.workers), pilot)
        assert isinstance(app.screen, LogsScreen)


LINE = LogLine(position=1, end=2, text="the message", size=11, at=T0, stamped=True)


def line_of(line: LogLine, tags: Tags | None = None) -> str:
    return "".join(span.text for span in body(line, LineLook(tags=tags)))


def test_a_line_shows_its_time_and_a_gap_and_a_doubt_are_marked() -> None:
    assert line_of(LINE) == "20:36:40 the message"
    gap = LogLine(position=1, end=2, text="nothing here", size=0, at=T0, stamped=True, is_gap=True)
    assert line_of(gap) == "20:36:40 ╌╌ nothing here ╌╌"
    doubtful = LogLine(position=1, end=2, text="x", size=0, unproven=True)
    assert gutter(doubtful, bookmarked=False, hides_hit=False)[0].text == "±"
    assert gutter(LINE, bookmarked=False, hides_hit=False)[0].text == " "


def test_tags_of_sources_have_one_width_and_different_styles() -> None:
    tags = Tags({"/var/log/server.log": "server", "srj-p-VUlhaMOD.3f2a@docker7": "p-VUlh.3f2a@docker7"}, 14)
    found = [*map(tags.of, ("srj-p-VUlhaMOD.3f2a@docker7", "/var/log/server.log", "new@v3", "名@v3"))]
    assert {width(tag.text) for tag in found} == {15}
    assert [tag.style for tag in found] == ["source.1", "source.0", "source.2", "source.3"]
    assert found[2].text.startswith("new@v3")
    assert tags.of("new@v3") is found[2]


SIZE = (120, 30)


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.charts.REST_S", 0.0)
    monkeypatch.setattr("jobtui.screens.charts.RESTS", 0)


async def test_the_charts_count_running_jobs_and_go_on() -> None:
    async with read(size=SIZE) as (scene, pilot):
        await press(pilot, "4", until="3 jobs running, 2 jobs waiting")
        scene.store.apply("/srv/db", batch(a_job(77, started_at=ago(5), queued_at=ago(6))))
        await wait_until(lambda: "4 jobs running, 2 jobs waiting" in text(scene.app), pilot)


async def test_balsam_shows_nodes_over_those_that_are_there() -> None:
    job = JobId("balsam/1")
    changes = (
        StateChange(1, job, ago(100), "READY", "PREPROCESSED", "/srv/db"),
        StateChange(2, job, ago(50), "PREPROCESSED", "RUNNING", "/srv/db", 3.0),
    )
    given = Allocation(id=1, source="/srv/db", site_id=1, state="running", nodes=4, start_at=ago(80))
    scene = Scene([Batch(cursor="1", changes=changes, allocations=(given,), count=2)])
    async with read(scene, size=SIZE) as (_, pilot):
        await press(pilot, "4", until="3 of 4 nodes busy, 1 idle, 0 jobs waiting")
        await wait_until(lambda: "┄ nodes available" in text(scene.app), pilot)  # drawn in a thread


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "XYZ-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
    Zone.is_local = False


def top(app: JobtuiApp) -> str:
    return "\n".join(screen_text(app)[:3])


async def test_a_pause_holds_rows_counts_and_clock_and_says_what_waits() -> None:
    async with on_jobs() as (scene, pilot, table):
        await press(pilot, "p", until=lambda: "paused 21:00:00Z, 0 changes waiting" in top(scene.app))
        await pilot.press("j", "j")
        assert table.cursor == 2
        before = text_of(table)
        scene.clock.advance(600)
        scene.db.add(batch(a_job(4, status=JobStatus.FAILED, error="out of memory"), gone=[job_id(3)]))
        await wait_until(lambda: "2 changes waiting" in top(scene.app), pilot)
        assert text_of(table) == before
        assert "21:00:00Z" in screen_text(scene.app)[1]
        await press(pilot, "p", until=lambda: "out of memory" in "\n".join(text_of(table)))
        assert len(table.rows.jobs) == len(jobs()) - 1
        assert "paused" not in top(scene.app)
        await wait_until(lambda: "21:10:00Z" in top(scene.app), pilot)


async def test_a_key_goes_from_utc_to_the_zone_here_on_every_screen_and_in_filters(zone: None) -> None:
    async with read() as (scene, pilot):
        table = scene.app.screen.query_one(JobTable)
        for key in ("6", "question_mark", "1"):
            await press(pilot, key, until=lambda: "21:00:00Z" in top(scene.app))
            await press(pilot, "u", until=lambda: "23:00:00 XYZ" in top(scene.app))
            await press(pilot, "u", until=lambda: "21:00:00Z" in top(scene.app))
        await press(pilot, "u", until=lambda: "23:00:00 XYZ" in top(scene.app))
        await press(pilot, "slash", *"queued<22:57", "enter", until=lambda: len(table.rows.index) == 1)


async def test_ops_steps_and_sources_stay_in_a_pause() -> None:
    scene = Scene(open_at=FAILED)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: scene.is_read() and "no such element" in top(scene.app), pilot)
        await wait_until(lambda: "status error" in text(scene.app), pilot)
        await press(pilot, "p", until=lambda: "paused" in top(scene.app))
        before = screen_text(scene.app)
        late = an_op("run", jid=FAILED, op=OpPrefix("l8te"), steps=[a_step("came too late", 50)])
        scene.correlation.put(FAILED, late)
        scene.clock.advance(90)
        scene.log.add(SourceMissing("gone"))
        scene.db.add(batch(a_job(id=FAILED, status=JobStatus.COMPLETED, name="done by now")))
        await wait_until(lambda: "1 change waiting" in top(scene.app), pilot)
        await pilot.press("o")
        await pilot.pause()
        assert screen_text(scene.app)[1:] == before[1:]
        await press(pilot, "6", until="supervisor.log")
        assert "gone" not in text(scene.app)
        await press(pilot, "escape", "p", until="l8te")


async def test_a_log_stays_in_a_pause_and_moves_on_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("line 1\nline 2\n")
    async with on_logs(path, size=(80, 24)) as (app, pilot):
        await until(app, pilot, "line 2", "following")
        await press(pilot, "p", until="paused")
        with path.open("a") as file:
            file.write("line 3\n")
        await wait_until(lambda: app._session.store.sources()[0].records == 3, pilot)
        await press(pilot, "k", "G", "j", "6", "2", until="line 2")
        assert "line 3" not in text(app)
        await press(pilot, "p", until="line 3")
