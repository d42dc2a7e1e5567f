"""Lines of a Balsam site's logs, as its own logging wrote them."""

import time
from pathlib import Path

import pytest

from jobtui.formats.levels import level_of
from jobtui.formats.parser import SiteLogParser, read_time
from jobtui.model.clock import Nanos
from jobtui.model.logs import LogRecord
from jobtui.model.pages import Level

FOLDER = Path(__file__).parents[1] / "fixtures" / "balsam" / "site_logs"
EXPECTED = {
    "service": [
        ("site_advanced", "1"), ("site_advanced", "2"), ("site_advanced", "7"), ("site_app_failed", "7"),
        ("site_advanced", "7"),
    ],
    "mpi_mode": [("launcher_stashed", "1"), ("launcher_unusable", "2"), ("launcher_unusable", "2")],
    "serial_mode": [
        ("launcher_worker", "7"), ("launcher_returned", "7"), ("launcher_retries", "7"),
        ("launcher_worker", "7"), ("launcher_worker", "1"), ("launcher_worker", "1"),
        ("launcher_terminated", "7"),
    ],
}  # fmt: skip


def records(name: str) -> list[LogRecord]:
    (path,) = FOLDER.glob(f"{name}*")
    parser = SiteLogParser(str(path), "balsam@there")
    return parser.parse(path.read_bytes(), 0, 1, Nanos(0)).records


@pytest.mark.parametrize("name", EXPECTED)
def test_lines_that_name_a_job_become_records(name: str) -> None:
    found = records(name)
    assert [(one.shape, one.fields["job"]) for one in found] == EXPECTED[name]
    assert {one.fields["jid"] for one in found} == {f"balsam@there/{job}" for _, job in EXPECTED[name]}
    lines = next(FOLDER.glob(f"{name}*")).read_text().splitlines()
    for one in found:
        assert lines[one.line - 1].endswith(one.text)
        assert one.at is not None
        assert one.at == read_time(lines[one.line - 1][:23])


def test_what_went_wrong_stands_out() -> None:
    levels = {one.shape: level_of(one.text) for one in records("service") + records("mpi_mode")}
    assert levels == {
        "site_advanced": Level.PLAIN,
        "site_app_failed": Level.ERROR,
        "launcher_stashed": Level.WARNING,
        "launcher_unusable": Level.ERROR,
    }


def test_local_times_are_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    at = []
    for zone in ("UTC", "America/Chicago"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        at.append(read_time("2026-11-20 17:31:39.707") or 0)
    assert (at[1] - at[0]) / 3600e9 == 6
