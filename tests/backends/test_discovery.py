"""What is found when nothing is configured, until when, and which files are reported."""

from pathlib import Path

import pytest

from jobtui.backends.base import Batch, PolledSource
from jobtui.backends.discovery import LOOKED_FOR, DiscoveryScope, discover
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import Skip
from jobtui.model.logs import LogRecord
from jobtui.model.specs import SourceSpec
from tests.balsam_server import write_login
from tests.rows import ROWS


@pytest.fixture
def around(tmp_path: Path) -> DiscoveryScope:
    (tmp_path / "home").mkdir()
    (tmp_path / "here" / "deep").mkdir(parents=True)
    return DiscoveryScope({}, str(tmp_path / "here" / "deep"), str(tmp_path / "home"))


def a_run(checkout: Path) -> SourceSpec:
    (checkout / "run" / "supervisor-job").mkdir(parents=True)
    return SourceSpec("srdb", str(checkout / "run"))


def test_the_variable_of_sirepo_is_found_before_a_checkout(around: DiscoveryScope, tmp_path: Path) -> None:
    (tmp_path / "here" / "run").mkdir()  # a directory of that name alone is nobody's database
    assert discover(around) == ()
    assert "SIREPO_SRDB_ROOT" in LOOKED_FOR
    a_run(tmp_path / "here")
    (found,) = discover(around._replace(environ={"SIREPO_SRDB_ROOT": "/srv/sirepo/db"}))
    assert found == (SourceSpec("srdb", "/srv/sirepo/db"), "SIREPO_SRDB_ROOT")
    nearest = a_run(tmp_path / "here" / "deep")
    inside = around._replace(directory=f"{nearest.target}/user/EPRSqtUW")
    assert [[finding.spec for finding in discover(at)] for at in (around, inside)] == [[nearest]] * 2


@pytest.mark.parametrize("checkout", ["here", "here/deep", "here/deep/sirepo", "home/src/radiasoft/sirepo"])
def test_the_run_directory_of_a_checkout(around: DiscoveryScope, tmp_path: Path, checkout: str) -> None:
    spec = a_run(tmp_path / checkout)
    (found,) = discover(around)
    assert found.spec == spec
    assert checkout in found.origin


def test_the_local_journal_is_found_by_its_units(around: DiscoveryScope, tmp_path: Path) -> None:
    root = tmp_path / "root"
    machine = around._replace(root=str(root))
    (root / "var/log/journal").mkdir(parents=True)
    assert discover(machine) == ()
    unit = root / "etc/systemd/system/sirepo_job_supervisor.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("")
    assert discover(machine) == ((SourceSpec("journal", "local"), f"found {unit}"),)
    both = discover(machine._replace(environ={"SIREPO_SRDB_ROOT": "/srv/sirepo/db"}))
    assert [finding.spec.setting for finding in both] == ["srdb", "journal"]
    (root / "var/log/journal").rmdir()
    assert discover(machine) == ()


def test_the_server_of_balsams_login_is_found(around: DiscoveryScope, tmp_path: Path) -> None:
    path = write_login(tmp_path / "home" / ".balsam" / "client.yml", "https://balsam.example.org", "secret")
    assert discover(around) == ((SourceSpec("balsam", "https://balsam.example.org"), f"found {path}"),)
    other = write_login(tmp_path / "elsewhere" / "login.yml", "https://other.example.org", "secret")
    moved = around._replace(environ={"BALSAM_CLIENT_PATH": str(other)})
    assert discover(moved) == ((SourceSpec("balsam", "https://other.example.org"), f"found {other}"),)


@pytest.mark.parametrize(("url", "mode"), ROWS["odd logins of Balsam"])
def test_an_odd_login_is_not_a_source(around: DiscoveryScope, tmp_path: Path, url: str, mode: int) -> None:
    write_login(tmp_path / "home" / ".balsam" / "client.yml", url, "secret", mode=mode)
    assert discover(around) == ()


def records(*seconds: int | None) -> tuple[LogRecord, ...]:
    return tuple(
        LogRecord("a.log", n, n, None if at is None else Nanos(at * SECOND), 1, "shape", {}, "text")
        for n, at in enumerate(seconds)
    )


class Given(PolledSource):
    """What is read of it is given."""

    kind = "logfile"

    def __init__(self, until_s: int, *batches: Batch) -> None:
        super().__init__("a.log")
        self.until, self._batches = Nanos(until_s * SECOND), list(batches)

    async def read(self, *, begins: bool) -> Batch:
        return self._batches.pop(0)


async def test_records_after_a_time_are_left_out_and_that_is_said() -> None:
    first = Batch(records=records(1, None, 2), count=9, more=True)
    then = Batch(records=records(3, None, 4, 2), skipped=(Skip("", ""),), skip_count=1, more=True)
    source = Given(3, first, then, Batch(records=records(5, None), more=True))
    assert (await source.poll(None)).records == first.records
    cut = await source.poll("1")
    assert [record.at for record in cut.records] == [3 * SECOND, None, 2 * SECOND]  # one clock was ahead
    assert (cut.more, cut.skip_count, cut.note) == (True, 1, "nothing after 1970-01-01T00:00:03Z was read")
    for cursor in ("2", "3"):
        after = await source.poll(cursor)
        assert (after.records, after.more, after.skip_count, after.note) == ((), False, 0, cut.note)
    batch = await Given(0, Batch(records=records(9), note="tail only")).poll(None)
    assert batch.note == "tail only; nothing after 1970-01-01T00:00:00Z was read"
