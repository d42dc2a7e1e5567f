"""The log screen on real captured logs, and on small ones that are written to while it is shown."""

from pathlib import Path

import pytest

from tests.screens.captured import CAPTURED, copied, on_logs, stamped, until, until_said
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text


async def test_a_search_goes_to_the_nearest_line_and_counts() -> None:
    async with on_logs(CAPTURED[:1]) as (app, pilot):
        await until(app, pilot, "of 1,431 lines")
        await pilot.press("slash", *"crystal", "enter")
        await until_said(app, pilot, "not found")
        await press(pilot, "slash", *"_computejob(", "enter", until="/_computejob( ")
        await press(pilot, "N", until=lambda: " of " in screen_text(app)[0])
        rank, _, total = screen_text(app)[0].partition("_computejob( ")[2].split()[:3]
        await press(pilot, "N", until=f"{int(rank) - 1} of {total}")
        await press(pilot, "n", until=f"{rank} of {total}")
        await press(pilot, "escape", until=lambda: "_computejob(" not in screen_text(app)[0])


async def test_only_lines_found_are_shown_and_the_line_is_kept() -> None:
    async with on_logs(CAPTURED[:1]) as (app, pilot):
        await until(app, pilot, "of 1,431 lines")
        await press(pilot, "colon", *"700", "enter", until="line 700")
        await press(pilot, "slash", *"exit=", "enter", until="/exit=")
        await press(pilot, "ampersand", until="&exit=")
        await wait_until(
            lambda: all(
                "exit=" in line or line.startswith("/") for line in screen_text(app)[2:-1] if line.strip()
            ),
            pilot,
        )
        number = screen_text(app)[0].partition("line ")[2].split()[0]
        await pilot.press("ampersand")
        await until(app, pilot, f"line {number}", "/exit=")


async def test_a_time_leads_to_a_line_and_a_wrong_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("".join(stamped(second, f"at {second}") + "  undated\n" for second in range(0, 60, 2)))
    async with on_logs([path], size=(80, 24)) as (app, pilot):
        await until(app, pilot, "of 60 lines")
        await press(pilot, "colon", *"20:34:21", "enter", until="line 23")
        await press(pilot, "j", "colon", *"-10s", "enter", until="line 13")
        await press(pilot, "enter", until="20:34:12Z")
        await press(pilot, "escape", "k", "enter", until="20:34:10Z, as the nearest line with a time")
        await press(pilot, "escape", "colon", *"25:00", "enter", until="25:00 is no time; such as 20:42:55")
        await press(pilot, "escape", "colon", *"20:35", "enter", until="line 12")
        await until_said(app, pilot, "no line is known to be of 2026-11-20 20:35:00Z or later")


async def test_what_is_written_is_shown_and_searched(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(stamped(1, "needle one") + stamped(2, "plain"))
    async with on_logs([path]) as (app, pilot):
        await until(app, pilot, "needle one", "following")
        await press(pilot, "slash", *"needle", "enter", until="1 of 1")
        with path.open("a") as file:
            file.write(stamped(3, "needle two"))
        await until(app, pilot, "needle two", "of 2")


async def test_a_rotation_is_told_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(stamped(1, "old"))
    async with on_logs([path]) as (app, pilot):
        await until(app, pilot, "old", "following")
        path.rename(tmp_path / "x.log.1")
        path.write_text(stamped(2, "new"))
        await until(app, pilot, "20:34:01 old", "20:34:02 new", "rotated")
        path.unlink()
        await until(app, pilot, "no such file", "20:34:02 new")


async def test_lines_are_copied_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.log"
    trace = "Traceback (most recent call last):\n  File x\nKeyError: 'password=hunter2'\n"
    path.write_text(stamped(1, "first") + stamped(2, "it raised") + trace + stamped(3, "token=abcdef123456"))
    async with on_logs([path]) as (app, pilot):
        await until(app, pilot, "following", "it raised")
        found = copied(app, monkeypatch)
        await press(pilot, "y", until=lambda: found)
        await press(pilot, "g", "j", "Y", until=lambda: len(found) == 2)
        await press(pilot, "g", "v", "j", "Y", until=lambda: len(found) == 3)
    other = tmp_path / "y.log"
    other.write_text(stamped(4, "of another"))
    async with on_logs([path, other]) as (app, pilot):
        await until(app, pilot, "of another", "it raised")
        block = copied(app, monkeypatch)
        await press(pilot, "g", "j", "Y", until=lambda: block)
    assert block == found[1:2], "all logs in one give undated lines the time of the line before them"
    assert found[0].endswith("token=***")
    assert [line.split()[-1] for line in found[1].splitlines()] == ["raised", "last):", "x", "'password=***'"]
    assert [line.split()[-1] for line in found[2].splitlines()] == ["first", "raised"]


ALL_KEYS = ("e", "E", "n", "ampersand", *"fGgyY", "enter", *"wxvm", "apostrophe")


async def test_every_key_works_without_logs_and_on_an_empty_one(tmp_path: Path) -> None:
    async with on_logs([]) as (app, pilot):
        await until(app, pilot, "no logs to read")
        await pilot.press(*ALL_KEYS, "tab", "slash", "colon", "escape")
        await pilot.pause()
    path = tmp_path / "x.log"
    path.touch()
    async with on_logs([path], size=(40, 10)) as (app, pilot):
        await pilot.press(*ALL_KEYS)
        path.write_text(stamped(1, "one"))
        await until(app, pilot, "one")


def record(second: int, words: str) -> str:
    return f"{stamped(second, words)}Traceback (most recent call last):\n  File x\nValueError: {words}\n"


async def test_records_and_lines_that_say_the_same_fold(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(record(1, "one") + "".join(stamped(at, f"GET /{at}") for at in range(2, 9)))
    async with on_logs([path], size=(100, 24)) as (app, pilot):
        await until(app, pilot, "of 11 lines", "GET /8")
        await press(pilot, "space", until="+6 GET /2")
        assert "File x" in text(app)
        await press(pilot, "z", until="+3 one … ValueError: one")
        assert screen_text(app)[0].count("folded") == 1
        await press(pilot, "k", "enter", until="  File x")
        await press(pilot, "escape", "space", until=lambda: "File x" in text(app) and "+6 GET" in text(app))
        with path.open("a") as file:
            file.write(stamped(9, "GET /9"))
        await until(app, pilot, "+7 GET /2")
        await press(pilot, "slash", *"get /7", "enter", until="20:34:07 +2 GET /7")
        await press(pilot, "escape", "z", until=lambda: "+" not in text(app).partition("GET")[2])


async def test_values_are_counted_and_kept_or_dropped(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(
        "".join(stamped(at, f"GET /{at}") for at in range(40)) + record(41, "bad") + stamped(42, "end")
    )
    async with on_logs([path], size=(100, 24)) as (app, pilot):
        await until(app, pilot, "of 45 lines")
        await press(pilot, "c", until="records of 45 lines")
        assert any(line.split()[0] == "40" and "GET #" in line for line in screen_text(app) if line.strip())
        row = next(nth for nth, line in enumerate(screen_text(app)) if "GET #" in line)
        first = next(nth for nth, line in enumerate(screen_text(app)) if "RECORDS" in line) + 1
        await press(pilot, *["j"] * (row - first), "minus", until="without shape:GET #")
        await until(app, pilot, "ValueError: bad", "20:34:42 end")
        assert "GET /" not in text(app)
        with path.open("a") as file:
            file.write(stamped(43, "GET /43") + stamped(44, "later"))
        await until(app, pilot, "20:34:44 later")
        assert "GET /43" not in text(app)
        await press(pilot, "escape", until="GET /43")
