"""`doctor` and `login`: what each source is worth, and how one is let in."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.backends.balsam.login import read_login
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import AT, CAPTURES, ROOT, Runner, sources_of
from tests.loopback import served
from tests.pty_program import PtyProgram

ALL_CAPTURES = sorted(path.name for path in CAPTURES.iterdir() if path.is_dir())
KNOWN = (
    "Nov 20 20:34:31 30699     0 sirepo/job_supervisor.py:254:receive ServerReq(api_runSimulation, None)\n"
)
UNKNOWN = "Nov 20 20:34:31 30699     0 sirepo/job_supervisor.py:99:novel a message of a release to come\n"


@pytest.mark.parametrize("capture", ALL_CAPTURES)
def test_every_capture_is_fine(capture: str, run: Runner) -> None:
    ran = run("doctor", "--json", "--at", AT, *sources_of(capture))
    assert ran.code == 0, ran.out
    for check in ran.json["checks"]:
        assert check["fine"]
        if check["kind"] == "logfile" or (check["kind"] == "agent_copies" and check["records"]):
            assert check["unknown_share"] < 0.01
            assert check["lines"] > 0


def test_copies_that_are_not_understood_are_a_fault(tmp_path: Path, run: Runner) -> None:
    shutil.copytree(CAPTURES / "sbatch", tmp_path / "sbatch")
    (copy,) = (tmp_path / "sbatch").glob("user/*/agent-sbatch/*/20261120204857-*.log")
    novel = UNKNOWN.replace("20:34:31", "20:49:00") * 9
    copy.write_text(json.dumps({"filename": "x", "stderr": "", "stdout": novel}))
    ran = run("doctor", "--json", "--at", AT, "--srdb", tmp_path / "sbatch")
    assert ran.code == 1
    (check,) = (check for check in ran.json["checks"] if check["kind"] == "agent_copies")
    assert not check["fine"]
    assert check["unknown_share"] > 0.01
    assert check["examples"] == ["a message of a release to come"]


def test_a_log_that_is_not_understood_is_a_fault(tmp_path: Path, run: Runner) -> None:
    log = tmp_path / "supervisor.log"
    log.write_text(KNOWN * 20 + UNKNOWN)
    ran = run("doctor", "--json", "--log", log)
    assert ran.code == 1
    (check,) = ran.json["checks"]
    assert (check["fine"], check["lines"]) == (False, 21)
    assert "4.8% of its records have no known shape" in check["says"]
    assert check["examples"] == ["a message of a release to come"]
    table = run("doctor", "--plain", "--log", log).out
    assert "✗" in table
    assert "of unknown shape: a message of a release to come" in table


@pytest.fixture
def balsam() -> RecordedBalsam:
    return RecordedBalsam()


@pytest.fixture
def url(balsam: RecordedBalsam, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with served(balsam) as address:
        yield address


@pytest.fixture
def path(plain_environment: Path) -> Path:
    return plain_environment / ".balsam" / "client.yml"


def enter(program: PtyProgram, password: bytes) -> None:
    program.wait_seen(b"User [")
    program.press(b"operator\n")
    program.wait_seen(b"Password: ")
    program.press(password + b"\n")


def test_a_wrong_password(url: str, path: Path) -> None:
    with PtyProgram(["-m", "jobtui", "--balsam", url, "login", "balsam"]) as program:
        enter(program, b"wrong")
        program.wait_seen(b"the password is wrong")
        assert program.wait_end(20) == 1
    assert not path.exists()


def test_a_login_to_another_server_is_not_replaced_unasked(url: str, path: Path) -> None:
    write_login(path, "https://other.example.org", "theirs")
    with PtyProgram(["-m", "jobtui", "--balsam", url, "login", "balsam"]) as program:
        program.wait_seen(b"[r]eplace it, or keep this one [b]eside it")
        program.press(b"\n")
        assert program.wait_end(20) == 0
    assert read_login(str(path)).token == "theirs"


def test_a_login_to_a_second_server_is_kept_beside_the_first(url: str, path: Path, run: Runner) -> None:
    write_login(path, "https://other.example.org", "theirs")
    with PtyProgram(["-m", "jobtui", "--balsam", url, "login", "balsam"]) as program:
        program.wait_seen(b"[b]eside it")
        program.press(b"b\n")
        enter(program, b"right-password")
        program.wait_seen(b"logged in to")
        assert program.wait_end(20) == 0
        assert b"right-password" not in program.seen
        assert TOKEN.encode() not in program.seen
        assert b"until 2026-11-22T19:31:25Z" in program.seen
    assert read_login(str(path)).token == "theirs"
    (beside,) = set(path.parent.iterdir()) - {path}
    assert beside.stat().st_mode & 0o777 == 0o600
    ran = run("--balsam", url, "jobs", "--json", "--since", "2026-11-20T12:00:00Z")
    assert ran.json["sources"][0]["state"] == "ok"
