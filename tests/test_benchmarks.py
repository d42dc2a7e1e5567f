"""The measuring itself: verdicts, the table, and the meter on programs whose behaviour is known."""

import json
import sys

import pytest

from benchmarks.beside import left_out
from benchmarks.pty_meter import idle, idle_beside, percentile, press_often, ratio
from benchmarks.records import records, write_records
from benchmarks.rows import Row, at_least, at_most, at_most_over, at_most_times, report, rows_in, table
from benchmarks.run import BEGIN, END, renewed
from benchmarks.terminal import NotReady, Program, Terminal

ECHO = """
import os, sys, termios, tty
tty.setraw(0)
os.write(1, b"\\x1b[?2026$p")
answer = os.read(0, 11)
os.write(1, b"ready " + answer[3:])
while (key := os.read(0, 8)) != b"q":
    os.write(1, b"<" + key + b">")
"""


def program(source: str, ready: str = "ready", timeout_s: float = 20.0) -> Program:
    return Program(argv=[sys.executable, "-c", source], ready=ready, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("row", "holds"),
    [
        (at_most("a", 50.0, "ms", 50.0), True),
        (at_most("a", 50.1, "ms", 50.0), False),
        (at_least("a", 99.0, "lines/s", 100.0), False),
        (at_most_times("a", 16.0, "ms", reference=10.0, limit=1.6), True),
        (at_most_times("a", 17.0, "ms", reference=10.0, limit=1.6), False),
        (at_most_times("a", 17.0, "ms", reference=10.0, limit=1.6, ratio=1.5), True),
        (at_most_over("a", 160.0, "ms", reference=10.0, limit=150.0), True),
        (at_most_over("a", 161.0, "ms", reference=10.0, limit=150.0), False),
    ],
)
def test_a_budget_holds_up_to_its_limit(row: Row, holds: bool) -> None:
    assert row.holds is holds


def test_a_report_fails_when_one_budget_does(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [at_most("good", 1.0, "ms", 2.0), at_most("bad", 3.0, "ms", 2.0)]
    assert report(rows[:1], as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["what"] == "good"
    assert report(rows, as_json=False) == 1
    assert "NO" in capsys.readouterr().out.splitlines()[-1]


def test_the_columns_of_the_table_are_aligned() -> None:
    lines = table(
        [at_most("short", 1.0, "ms", 2.0), at_most("a longer name", 1234.0, "ms", 2.0)]
    ).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len({line.count("|") for line in lines}) == 1


def test_what_could_not_be_measured_is_in_the_table_without_a_figure() -> None:
    row = left_out("htop")
    assert "apt-get install htop" in row.what
    assert "nan" not in table([row])
    assert report([row], as_json=False) == 0


def test_rows_of_programs_that_were_not_run_stay() -> None:
    before = rows_in(table([at_most("a", 1, "ms", 2), at_most("b", 1, "ms", 2)]))
    assert [row[0] for row in before] == ["a", "b"]
    after = rows_in(table([at_most("c", 5, "ms", 6), at_most("a", 3, "ms", 2)], before))
    assert after == [
        ("a", "<= 2 ms", "3 ms", "", "", "NO"),
        before[1],
        ("c", "<= 6 ms", "5 ms", "", "", "yes"),
    ]


def test_only_what_is_between_the_markers_is_renewed() -> None:
    document = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert renewed(document, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    with pytest.raises(ValueError, match="markers"):
        renewed("no markers", "new")


def test_a_percentile_is_a_value_that_occurred() -> None:
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 0.95) == 95.0
    assert percentile([3.0], 0.95) == 3.0
    assert percentile([1.0, 9.0], 0.5) == 1.0
    assert ratio([10.0, 40.0, 30.0], [10.0, 20.0, 10.0]) == 2.0


def test_keys_and_their_answers_are_measured() -> None:
    with Terminal(program(ECHO)) as terminal:
        assert terminal.wait_for("ready 2026;2$y") > 0
        terminal.settle()
        told = press_often(terminal, "down", 5)
        assert (told.answered, told.median_bytes, told.most_bytes) == (5, 5, 5)
        assert 0 < told.p50_ms <= told.p95_ms < 3000
        assert terminal.rss_mb() > terminal.rss_of_files_mb() > 0


TALKING = """
import time
print("ready", flush=True)
while True:
    print("x" * 98, flush=True)
    time.sleep(0.01)
"""


def test_idling_is_watched_in_the_same_moments() -> None:
    with Terminal(program(ECHO)) as quiet, Terminal(program(TALKING)) as loud:
        quiet.wait_for("ready")
        loud.wait_for("ready")
        (no_bytes, _), (many_bytes, _) = idle_beside((quiet, loud), 0.5)
        assert no_bytes == 0
        assert many_bytes > 500


def test_a_slow_reader_gets_no_more_than_it_asks_for() -> None:
    with Terminal(program("print('x' * 500 + 'ready')")) as terminal:
        data = terminal.read(10.0, 100)
        assert data is not None
        assert len(data) == 100


A_LITTLE = 3
"""Percent of a core: more than one tick of the clock of processes, less than the share of one in a crowd."""


def test_a_busy_program_is_told_from_an_idle_one() -> None:
    with Terminal(program("print('ready', flush=True)\nwhile True: pass")) as terminal:
        terminal.wait_for("ready")
        assert idle(terminal, 0.5)[1] > A_LITTLE
    with Terminal(program(ECHO)) as terminal:
        terminal.wait_for("ready")
        received, busy = idle(terminal, 0.5)
        assert received == 0
        assert busy < A_LITTLE


WORKS_THEN_TICKS = """
import time
print("ready", flush=True)
while time.process_time() < 0.5: pass
print("x" * 1_000, flush=True)
while True:
    time.sleep(0.1)
    print(".", flush=True)
"""


def test_a_program_is_at_rest_when_its_work_is_done_and_its_clock_goes_on() -> None:
    with Terminal(program(WORKS_THEN_TICKS)) as terminal:
        terminal.wait_for("ready")
        terminal.rest(at_most_s=600.0)
        assert terminal.received > 1_000


def test_a_program_that_never_shows_its_text_is_an_error() -> None:
    with Terminal(program("print('other')")) as terminal, pytest.raises(NotReady, match="ended"):
        terminal.wait_for("ready")
    with Terminal(program("input()", timeout_s=0.2)) as terminal, pytest.raises(NotReady, match="in time"):
        terminal.wait_for("ready")


def test_made_up_records_are_different_and_repeatable(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("db")
    newest = write_records(root, 30, seed=2)
    files = sorted(path.stem for path in (root / "supervisor-job").iterdir())
    assert files == sorted(str(record["computeJid"]) for record in records(30, seed=2))
    assert newest["status"] == "running"
