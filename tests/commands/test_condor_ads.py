"""Expressions in job ads on the command line: with HTCondor's library, without it, with a broken one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jobtui.backends import ad_library
from tests.ad_stand_in import AD, AS_WRITTEN, installed
from tests.commands.contract import check_document
from tests.commands.running import Runner

Install = Callable[[str | None], None]
BROKEN = "raise ImportError('libx.so.1')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "queue.ad"
    path.write_text(AD)
    return path


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Lets the library be found in a directory, or nowhere."""
    return lambda directory: monkeypatch.setattr(ad_library, "directory_of_library", lambda: directory)


def facts_in(text: str) -> dict[str, str]:
    pairs = (line.split(maxsplit=1) for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def test_an_expression_is_shown_with_its_value(
    run: Runner, path: Path, tmp_path: Path, install: Install
) -> None:
    install(installed(tmp_path))
    facts = facts_in(run("--condor-log", path, "show", "7.0").out)
    assert facts["RequestMemory"] == f"5 MiB = {AS_WRITTEN}"
    assert facts["PeriodicHold"].startswith("imagesize > 5 || userHome() (not evaluated: calls userHome")
    assert facts["Requirements"] == "false on any machine = imagesize > 5000"
    ran = run("--condor-log", path, "show", "7.0", "--json")
    check_document(ran.json, "show")
    assert ran.json["job"]["native"]["values"] == {"RequestMemory": "5"}
    assert ran.json["job"]["native"]["ad"]["RequestMemory"] == AS_WRITTEN


@pytest.mark.parametrize("is_broken", [False, True])
def test_without_the_library_it_is_shown_as_it_is_written(
    is_broken: bool, run: Runner, path: Path, tmp_path: Path, install: Install
) -> None:
    install(installed(tmp_path, BROKEN) if is_broken else None)
    facts = facts_in(run("--condor-log", path, "show", "7.0").out)
    assert facts["RequestMemory"] == AS_WRITTEN
    assert not {"PeriodicHold", "Requirements"} & facts.keys()
    assert "values" not in run("--condor-log", path, "show", "7.0", "--json").json["job"]["native"]


def test_a_job_that_no_machine_can_take_is_explained(
    run: Runner, path: Path, tmp_path: Path, install: Install
) -> None:
    install(installed(tmp_path))
    ran = run("--condor-log", path, "explain", "7.0", "--json")
    assert (ran.code, ran.json["verdict"]) == (0, "idle")
    why = "it requires imagesize > 5000, which its own ad makes false"
    assert ran.json["sentence"].endswith(f"and no machine can take it: {why}.")
    path.write_text(AD.replace("5000", "4000"))
    ran = run("--condor-log", path, "explain", "7.0", "--json")
    assert ran.json["sentence"].endswith("for a machine; none has taken it yet.")


def test_doctor_tells_what_evaluates_them_or_why_nothing_does(
    run: Runner, path: Path, tmp_path: Path, install: Install
) -> None:
    install(None)
    missing = "3 expressions in job ads, shown as they are written: HTCondor's library is not there; "
    assert says(run, path) == ["1 job", f"{missing}pip install 'jobtui[htcondor]' evaluates them"]
    install(installed(tmp_path, BROKEN))
    broken = "HTCondor's library cannot be loaded: ImportError: libx.so.1"
    assert says(run, path)[1] == f"3 expressions in job ads, shown as they are written: {broken}"
    install(installed(tmp_path))
    assert says(run, path)[1:] == [
        "3 expressions in job ads, 2 evaluated by HTCondor's library 0",
        "1 not evaluated: PeriodicHold calls userHome, which is not evaluated here",
    ]


def says(run: Runner, path: Path) -> list[str]:
    ran = run("--condor-log", path, "doctor", "--json")
    assert ran.code == 0
    (check,) = ran.json["checks"]
    assert check["fine"]
    found: list[str] = check["says"]
    return found


def test_doctor_says_nothing_of_ads_without_expressions(run: Runner, path: Path, install: Install) -> None:
    install(None)
    path.write_text("ClusterId = 7\nProcId = 0\nRequestMemory = 5\n")
    assert says(run, path) == ["1 job"]


def test_a_bundle_is_evaluated_where_it_is_looked_at(
    run: Runner, path: Path, tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(None)
    monkeypatch.chdir(tmp_path)
    assert run("--condor-log", path, "bundle", "7.0", "--output", "b.jobtui").code == 0
    install(installed(tmp_path))
    facts = facts_in(run("replay", "b.jobtui", "show", "7.0").out)
    assert facts["RequestMemory"] == f"5 MiB = {AS_WRITTEN}"


@pytest.mark.skipif(ad_library.directory_of_library() is None, reason="HTCondor's library is not there")
def test_the_library_itself_gives_the_values(run: Runner, path: Path) -> None:
    path.write_text(AD + 'PeriodicRelease = regexp("^a\\.b$", "a.b") && time() > QDate\n')
    facts = facts_in(run("--condor-log", path, "show", "7.0").out)
    assert facts["RequestMemory"] == f"5 MiB = {AS_WRITTEN}"
    assert facts["PeriodicRelease"].startswith("true = ")
