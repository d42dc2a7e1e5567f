"""What is found when nothing is configured."""

from pathlib import Path

import pytest

from jobtui.backends.discovery import Surroundings, discover, looked_for
from jobtui.model.specs import SourceSpec
from tests.balsam_http import write_login


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    (tmp_path / "home").mkdir()
    (tmp_path / "here" / "deep").mkdir(parents=True)
    return Surroundings({}, str(tmp_path / "here" / "deep"), str(tmp_path / "home"))


def a_run(checkout: Path) -> SourceSpec:
    (checkout / "run" / "supervisor-job").mkdir(parents=True)
    return SourceSpec("srdb", str(checkout / "run"))


def test_nothing_is_found_where_nothing_is(around: Surroundings, tmp_path: Path) -> None:
    (tmp_path / "here" / "run").mkdir()  # a directory of that name alone is nobody's database
    assert discover(around) == ()
    assert "SIREPO_SRDB_ROOT" in looked_for()


def test_sirepos_own_variable_comes_first(around: Surroundings, tmp_path: Path) -> None:
    a_run(tmp_path / "here")
    (found,) = discover(around._replace(environ={"SIREPO_SRDB_ROOT": "/srv/sirepo/db"}))
    assert found == (SourceSpec("srdb", "/srv/sirepo/db"), "SIREPO_SRDB_ROOT")


@pytest.mark.parametrize("checkout", ["here", "here/deep", "here/deep/sirepo", "home/src/radiasoft/sirepo"])
def test_the_run_directory_of_a_checkout_is_found(
    around: Surroundings, tmp_path: Path, checkout: str
) -> None:
    spec = a_run(tmp_path / checkout)
    (found,) = discover(around)
    assert found.spec == spec
    assert checkout in found.origin


def test_the_nearest_checkout_is_taken(around: Surroundings, tmp_path: Path) -> None:
    a_run(tmp_path / "here")
    nearest = a_run(tmp_path / "here" / "deep")
    assert [finding.spec for finding in discover(around)] == [nearest]


def test_the_local_journal_is_found_by_its_units(around: Surroundings, tmp_path: Path) -> None:
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


def test_the_server_of_balsams_login_is_found(around: Surroundings, tmp_path: Path) -> None:
    path = write_login(tmp_path / "home" / ".balsam" / "client.yml", "https://balsam.example.org", "secret")
    assert discover(around) == ((SourceSpec("balsam", "https://balsam.example.org"), f"found {path}"),)
    other = write_login(tmp_path / "elsewhere" / "login.yml", "https://other.example.org", "secret")
    moved = around._replace(environ={"BALSAM_CLIENT_PATH": str(other)})
    assert discover(moved) == ((SourceSpec("balsam", "https://other.example.org"), f"found {other}"),)


@pytest.mark.parametrize("url", ["", "ftp://x", "http://user:word@x", "null", "[]"])
def test_a_login_without_an_address_is_no_source(around: Surroundings, tmp_path: Path, url: str) -> None:
    write_login(tmp_path / "home" / ".balsam" / "client.yml", url, "secret")
    assert discover(around) == ()


def test_a_login_that_others_may_read_is_not_used(around: Surroundings, tmp_path: Path) -> None:
    write_login(tmp_path / "home" / ".balsam" / "client.yml", "https://x.org", "secret", mode=0o644)
    assert discover(around) == ()
