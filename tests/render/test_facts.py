"""Facts of jobs, runs, sources and allocations in words."""

from typing import Any

from msgspec.structs import replace

from jobtui.analysis.compare import last_good
from jobtui.model.changes import Allocation, Site
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.jobs import JobStatus, Run
from jobtui.render.columns import cells_of, text_widths
from jobtui.render.facts import matter, status_words
from jobtui.render.resources import ALLOCATION_COLUMNS, ServerLook, live_first, site_lines
from jobtui.render.runs import ran_s, side_by_side, waited_s
from jobtui.render.sources import judge, judge_all, labels, strip_line
from jobtui.render.spans import Piece, width_of
from jobtui.render.text import NONE
from tests.builders import a_job, ago, text_of
from tests.conftest import NOW
from tests.offenders import each
from tests.rows import ROWS


@each(*ROWS["the one thing to know"])
def test_the_most_important_fact_is_shown(status: str, fields: dict[str, Any], words: str) -> None:
    assert matter(a_job(status=JobStatus(status), **fields), NOW).text == words


def test_a_pending_job_says_what_it_waits_for() -> None:
    job = a_job(status=JobStatus.PENDING, started_at=None, queued_at=ago(3))
    assert matter(job, NOW).text.startswith("waits for ")
    stuck = a_job(status=JobStatus.PENDING, started_at=None, queued_at=ago(400))
    assert matter(stuck, NOW).style == "status.needs_person"
    assert text_of(status_words(stuck, NOW, absolute=False)).startswith("! ○ pending for ")


def test_the_status_with_its_age_time_or_alone() -> None:
    job = a_job(status=JobStatus.FAILED, ended_at=ago(120))
    for absolute, words in ((False, "✗ failed 2m ago"), (True, "✗ failed at 20:58:00Z"), (None, "✗ failed")):
        assert text_of(status_words(job, NOW, absolute=absolute)) == words
    assert text_of(status_words(a_job(), NOW, absolute=True)) == "● running since 20:59:00Z"
    odd = a_job(status=JobStatus.UNKNOWN, native_status="melting")
    assert "melting" in text_of(status_words(odd, NOW, absolute=False))


GOOD, BAD, RUNNING = JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.RUNNING


def a_run(number: int, status: JobStatus, **fields: object) -> Run:
    return Run(number=number, status=status, native_status=status.value, **fields)  # type: ignore[arg-type]


def test_the_last_good_one_is_the_nearest_before_else_the_newest_after() -> None:
    runs = [a_run(1, GOOD), a_run(2, BAD), a_run(3, GOOD), a_run(4, BAD)]
    assert [last_good(runs, number) for number in (4, 3, 1)] == [runs[2], runs[0], runs[2]]
    assert last_good(runs[1:2], 2) is None


@each(*ROWS["how long runs waited and ran"])
def test_waited_s_and_ran_s_measure_runs(status: str, times: dict[str, float], measured: list[float]) -> None:
    run = a_run(1, JobStatus(status), **{name: ago(seconds) for name, seconds in times.items()})
    assert [one for one in (waited_s(run, NOW), ran_s(run, NOW)) if one is not None] == measured


def test_equal_lines_of_two_runs_are_dim() -> None:
    bad = a_run(2, BAD, error="gone", mode="parallel")
    lines = {
        span.text.split()[0]: span for span in side_by_side(bad, a_run(1, GOOD, mode="parallel"), NOW, 120)
    }
    assert lines["error"].style == "error"
    assert lines["mode"].style == "dim"
    assert lines["status"].style == ""


DB = SourceHealth(name="/srv/db", kind="sirepo_db", state=SourceState.OK, read_at=ago(1))
LOG = SourceHealth(name="/var/log/supervisor.log", kind="logfile", state=SourceState.OK, read_at=ago(2))
LATE = SourceHealth(name="/var/log/late.log", kind="logfile", state=SourceState.OK, read_at=ago(40))
DOWN = SourceHealth(
    name="/srv/gone.log", kind="logfile", state=SourceState.DOWN, error="no such file", read_at=ago(130)
)
NAMED = SourceHealth(
    name="gone.log", kind="logfile", state=SourceState.DOWN, error="gone.log: no such file; check the path"
)
NEVER = SourceHealth(name="/srv/none.log", kind="logfile", state=SourceState.DOWN, error="permission denied")
READING = replace(DB, records=26_000, left=74_000, is_behind=True)
STARTING = SourceHealth(name="/srv/new.log", kind="logfile")


@each(*ROWS["states of sources"])
def test_each_state_has_its_words(name: str, told: dict[str, Any], words: str, style: str) -> None:
    fields = {key: ago(value) if key.endswith("_at") else value for key, value in told.items()}
    assert judge(replace(globals()[name], **fields), NOW) == Piece(words, style)


def test_labels_are_short_and_differ() -> None:
    first = SourceHealth(name="/a/x/server.log", kind="logfile")
    second = SourceHealth(name="/a/y/server.log", kind="logfile")
    assert labels([DB, LOG, first, second]) == ["db", "supervisor.log", "x/server.log", "y/server.log"]
    other_db = SourceHealth(name="/other/db2", kind="sirepo_db")
    assert labels([DB, other_db]) == ["db", "db2"] or len(set(labels([DB, other_db]))) == 2


def test_a_source_is_named_once_also_in_a_narrow_line() -> None:
    assert text_of(strip_line([NAMED], NOW, 120)) == " gone.log down: no such file; check the path"
    silent = replace(STARTING, asked_at=ago(70))
    assert judge_all([DB, silent, LOG], NOW) == Piece("new.log no answer for 1m10s", "warning")
    assert judge_all([DB, silent, DOWN], NOW).style == "error"
    assert "no sources" in text_of(strip_line([], NOW, 80))


@each(*range(1, 100, 7))
def test_a_narrow_strip_shows_the_faulty_sources_first(cells: int) -> None:
    two = [replace(NEVER, error="no " * 60), replace(NEVER, name="/b/c.log")]
    line = strip_line([DB, LOG, *two, LATE], NOW, cells)
    assert width_of(line) <= max(cells - 1, 12)
    if cells >= 30:
        assert sum(name in text_of(line) for name in ("none.log down", "c.log down")) >= min(2, cells // 30)
        assert "more" in text_of(line) or cells > 70


@each(
    ((DB, LOG), "up", "dim"),
    ((replace(DB, records=1), replace(LOG, newest_at=ago(600))), "10m", "dim"),
    ((LOG, READING), "db reading 26,000 of 100,000", ""),
    ((LOG, replace(DB, news=10, news_at=ago(900))), "db nothing new for 14m", "warning"),
    ((DB, LATE), f"{labels([DB, LATE])[1]} {judge(LATE, NOW).text}", "warning"),
    ((DB, NEVER, LATE), "none.log down", "error"),
    ((NEVER, replace(NEVER, name="/b")), "2 sources down", "error"),
    ((replace(DB, records=300, skipped=2), LOG), "undated, some skipped", "dim"),
    ((SourceHealth(name="/a", kind="logfile"),), "starting", "dim"),
    ((), "no sources", "warning"),
)
def test_a_narrow_line_says_the_worst(sources: tuple[SourceHealth, ...], words: str, style: str) -> None:
    assert judge_all(sources, NOW) == Piece(words, style)


SITE = Site(id=1, source="b", name="theta", path="/projects/x", seen_at=ago(30), queued=3)
GIVEN = Allocation(
    id=4, source="b", site_id=1, state="running", nodes=64, scheduler_id="4711", queue="prod", mode="mpi",
    wall_time_s=3600.0, start_at=ago(600), start_estimated=True, launchers=1, heartbeat_at=ago(20),
    tags=(("experiment", "a"),),
)  # fmt: skip
OVER = Allocation(id=3, source="b", site_id=1, state="finished", nodes=8, start_at=ago(900), end_at=ago(300))
REFUSED = Allocation(id=5, source="b", site_id=9, state="submit_failed", nodes=8, note="no budget")

LOOK = ServerLook(NOW, {"b": ""}, {}, {("b", 1): "theta"})


def cells(one: Allocation, look: ServerLook = LOOK) -> dict[str, tuple[str, str]]:
    row = cells_of(ALLOCATION_COLUMNS, one, look)
    return {column.key: (cell.text, cell.style) for column, cell in zip(ALLOCATION_COLUMNS, row, strict=True)}


def test_live_allocations_come_first() -> None:
    assert live_first((OVER, REFUSED, GIVEN), LOOK) == [GIVEN, REFUSED, OVER]
    texts = [text for text, _ in cells(GIVEN).values() if text not in ("", NONE)]
    assert texts == ["● running", "4", "4711", "64", "~10m", "1h", "20s", "theta", "prod", "experiment:a"]
    assert cells(REFUSED)["note"] == ("no budget", "error")
    assert cells(REFUSED)["site"][0] == "9"


def changed(one: Allocation, **fields: object) -> Allocation:
    return replace(one, **fields)


@each(
    (changed(GIVEN, heartbeat_at=ago(301)), True),
    (changed(GIVEN, launchers=0, heartbeat_at=None), True),
    (GIVEN, False),
    (changed(GIVEN, state="finished", heartbeat_at=ago(9_000)), False),
    (changed(GIVEN, launchers=0, heartbeat_at=None, start_at=ago(60)), False),
    (changed(GIVEN, launchers=0, heartbeat_at=None, start_at=None), False),
)
def test_a_stale_launcher_is_marked(one: Allocation, is_stale: bool) -> None:
    assert one.is_stale(NOW) == is_stale
    state, style = cells(one)["state"]
    assert (state[0] == "!", style == "warning") == (is_stale, is_stale)


def test_a_silent_site_is_marked() -> None:
    words = "● theta · agent heard from 30s ago · 3 jobs in its scheduler · /projects/x"
    assert [*site_lines([SITE], LOOK)][1][:2] == (words, "")
    text, style = [*site_lines([replace(SITE, seen_at=ago(4_000))], LOOK)][1][:2]
    assert (text.startswith("! theta · agent silent for 1h06m"), style) == (True, "warning")


def test_several_servers_have_different_labels() -> None:
    look = ServerLook(NOW, {"b": "here", "c": "there"})
    there = replace(GIVEN, source="c", nodes=7)
    sites = [*site_lines([SITE, replace(SITE, source="c")], look)]
    assert [site.text.split()[1] for site in sites[1:]] == ["theta@here", "theta@there"]
    assert live_first((there, OVER, GIVEN), look) == [GIVEN, OVER, there]
    assert cells(there, look)["server"][0] == "there"
    assert text_widths(ALLOCATION_COLUMNS, [GIVEN], LOOK, 120).items() >= {"server": 0, "note": 0}.items()


@each(({}, "give --balsam"), ({"https://b": ""}, "none is known yet"))
def test_an_empty_list_of_sites_says_whether_a_server_is_asked(labels: dict[str, str], words: str) -> None:
    assert words in [*site_lines([], ServerLook(NOW, labels))][1].text
