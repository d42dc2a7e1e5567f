"""Journals on the log screen: streams by name, a set of logs in one, gaps, doubts, places out of records."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.base import Source
from jobtui.backends.journal.source import Journal
from jobtui.backends.logfile import LogFile
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.pages import LogLine
from jobtui.render.log_lines import LineLook, Tags, body, gutter
from jobtui.render.text import width
from jobtui.screens.choices import LogSetScreen
from jobtui.screens.logs import LogsScreen
from jobtui.session import Session
from tests.journal_memory import T0, MemoryJournal
from tests.screens.captured import until
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text

UNIT = "sirepo_job_supervisor.service"


def a_journal() -> MemoryJournal:
    journal = MemoryJournal()
    for n in range(30):
        journal.write(f"sirepo/a.py:1:f of the supervisor {n}", n, unit=UNIT, host="v3", pid=7)
    at = {"unit": "docker.service", "container": "srj-p-VUlhaMOD", "container_id": "e" * 64}
    journal.write("of the agent", 30, host="v7", pid=1, **at)
    return journal


@asynccontextmanager
async def on_logs(
    sources: Sequence[Source], *, size: tuple[int, int] = (110, 24)
) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    session = Session(sources, FixedClock(Nanos(T0 + 60 * SECOND)))
    app = JobtuiApp(session)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "2", until=LogsScreen)
        yield app, pilot


def source_of(journal: MemoryJournal) -> Journal:
    return Journal("ssh://v3", lambda: journal.reader("ssh://v3"), since=Nanos(1))


async def test_streams_are_named_as_they_come_and_can_be_chosen(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text("Nov 20 20:36:50 7 0 a/b.py:1:f of the server\n")
    journal = a_journal()
    async with on_logs([LogFile(file), source_of(journal)], size=(110, 40)) as (app, pilot):
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


async def test_what_cannot_be_read_stands_among_the_lines_and_in_the_header() -> None:
    journal, other = a_journal(), a_journal()
    there = Journal("ssh://v9", lambda: other.reader("ssh://v9"), since=Nanos(1))
    async with on_logs([source_of(journal), there], size=(120, 40)) as (app, pilot):
        await until(app, pilot, "of the agent")
        other.broken = "connection refused"
        await until(app, pilot, "not reached from here on", "connection refused")
        other.broken = ""
        await until(app, pilot, "read since, nothing missing")


LINE = LogLine(place=1, end=2, text="the message", size=11, at=T0, stamped=True)


def drawn(line: LogLine, tags: Tags | None = None) -> str:
    return "".join(span.text for span in body(line, LineLook(tags=tags)))


def test_a_line_whose_time_is_known_elsewhere_shows_it() -> None:
    assert drawn(LINE) == "20:36:40 the message"


def test_a_gap_and_a_doubt_are_marked() -> None:
    gap = LogLine(place=1, end=2, text="nothing here", size=0, at=T0, stamped=True, is_gap=True)
    assert drawn(gap) == "20:36:40 ╌╌ nothing here ╌╌"
    doubtful = LogLine(place=1, end=2, text="x", size=0, unproven=True)
    assert gutter(doubtful, bookmarked=False, hides_hit=False)[0].text == "±"
    assert gutter(LINE, bookmarked=False, hides_hit=False)[0].text == " "


def test_sources_have_tags_of_one_width_and_styles_of_their_own() -> None:
    tags = Tags({"/var/log/server.log": "server", "srj-p-VUlhaMOD.3f2a@docker7": "p-VUlh.3f2a@docker7"}, 14)
    found = [
        tags.of(name) for name in ("/var/log/server.log", "srj-p-VUlhaMOD.3f2a@docker7", "new@v3", "名@v3")
    ]
    assert {width(tag.text) for tag in found} == {15}
    assert len({tag.style for tag in found}) == 4
    assert found[2].text.startswith("new@v3")
    assert tags.of("new@v3") is found[2]
