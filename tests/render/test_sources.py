import msgspec
import pytest

from jobtui.model.health import SourceHealth, SourceState
from jobtui.render.sources import judge, judge_all, labels, strip_line
from jobtui.render.spans import width_of
from tests.builders import ago, text_of
from tests.conftest import NOW

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
READING = msgspec.structs.replace(DB, records=26_000, left=74_000, is_behind=True)
STARTING = SourceHealth(name="/srv/new.log", kind="logfile")


@pytest.mark.parametrize(
    ("source", "words", "style"),
    [
        (DB, "<5s", "dim"),
        (msgspec.structs.replace(DB, newest_at=ago(4)), "<1m", "dim"),
        (msgspec.structs.replace(DB, newest_at=ago(3 * 3_600 + 61)), "3h01m", "dim"),
        (msgspec.structs.replace(DB, newest_at=ago(3_601), ahead_s=3_600.0), "2h", "dim"),
        (msgspec.structs.replace(LATE, newest_at=ago(3_600)), "40s late", "warning"),
        (LATE, "40s late", "warning"),
        (DOWN, "down, last read 2m10s ago", "error"),
        (NEVER, "down", "error"),
        (STARTING, "starting", "dim"),
        (READING, "reading 26,000 of 100,000", ""),
        (msgspec.structs.replace(READING, left=0), "reading 26,000", ""),
        (msgspec.structs.replace(STARTING, asked_at=ago(3)), "starting", "dim"),
        (msgspec.structs.replace(STARTING, asked_at=ago(70)), "no answer for 1m10s", "warning"),
        (msgspec.structs.replace(DB, asked_at=ago(70)), "<5s", "dim"),
        (msgspec.structs.replace(DB, news=9, news_at=ago(900)), "<5s", "dim"),
        (
            msgspec.structs.replace(DB, news=10, news_at=ago(900), pause_s=4.0),
            "nothing new for 14m",
            "warning",
        ),
        (msgspec.structs.replace(DB, news=10, news_at=ago(900), pause_s=400.0), "<5s", "dim"),
        (msgspec.structs.replace(LATE, news=10, news_at=ago(900)), "40s late", "warning"),
    ],
)
def test_each_state_has_its_words(source: SourceHealth, words: str, style: str) -> None:
    assert judge(source, NOW) == (words, style)


def test_labels_are_short_and_differ() -> None:
    first = SourceHealth(name="/a/x/server.log", kind="logfile")
    second = SourceHealth(name="/a/y/server.log", kind="logfile")
    assert labels([DB, LOG, first, second]) == ["db", "supervisor.log", "x/server.log", "y/server.log"]
    other_db = SourceHealth(name="/other/db2", kind="sirepo_db")
    assert labels([DB, other_db]) == ["db", "db2"] or len(set(labels([DB, other_db]))) == 2


def test_the_strip_names_all_and_colours_only_what_is_late_or_down() -> None:
    line = strip_line([DB, LOG, DOWN], NOW, 120)
    assert text_of(line) == " db <5s · supervisor.log <5s · gone.log down, last read 2m10s ago: no such file"
    assert [span.style for span in line if span.style not in ("", "rule")] == ["dim", "dim", "error"]


def test_the_name_of_a_source_is_said_once() -> None:
    assert text_of(strip_line([NAMED], NOW, 120)) == " gone.log down: no such file; check the path"


def test_where_there_is_little_room_one_that_never_answered_is_named() -> None:
    silent = msgspec.structs.replace(STARTING, asked_at=ago(70))
    assert judge_all([DB, silent, LOG], NOW) == ("new.log no answer for 1m10s", "warning")
    assert judge_all([DB, silent, DOWN], NOW).style == "error"


def test_skipped_input_is_counted() -> None:
    source = SourceHealth(
        name="/x/a.log", kind="logfile", state=SourceState.PARTIAL, read_at=ago(1), skipped=1200
    )
    assert text_of(strip_line([source], NOW, 120)) == " a.log <5s, 1,200 skipped"


@pytest.mark.parametrize("cells", range(1, 100, 7))
def test_where_it_is_narrow_what_is_wrong_comes_first(cells: int) -> None:
    line = strip_line([DB, LOG, NEVER, LATE], NOW, cells)
    assert width_of(line) <= max(cells, 12)
    if cells >= 30:
        assert "none.log down" in text_of(line)
        assert "more" in text_of(line) or cells > 80


@pytest.mark.parametrize(
    ("sources", "words", "style"),
    [
        ((DB, LOG), "<5s", "dim"),
        ((DB, LATE), f"{labels([DB, LATE])[1]} {judge(LATE, NOW).words}", "warning"),
        ((DB, NEVER, LATE), "none.log down", "error"),
        ((NEVER, msgspec.structs.replace(NEVER, name="/b")), "2 sources down", "error"),
        (
            (msgspec.structs.replace(DB, skipped=2, state=SourceState.PARTIAL), LOG),
            "<5s, some skipped",
            "dim",
        ),
        ((SourceHealth(name="/a", kind="logfile"),), "starting", "dim"),
        ((), "no sources", "warning"),
    ],
    ids=["fresh", "late", "down", "both down", "skipped", "starting", "none"],
)
def test_the_worst_is_said_where_there_is_little_room(
    sources: tuple[SourceHealth, ...], words: str, style: str
) -> None:
    assert judge_all(sources, NOW) == (words, style)


def test_no_sources_are_told() -> None:
    assert "no sources" in text_of(strip_line([], NOW, 80))
