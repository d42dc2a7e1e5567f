"""`doctor` and `login`: what each source is worth, and how one is let in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.backends.balsam.login import read_login
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import AT, CAPTURES, ROOT, Runner, sources_of
from tests.loopback import served
from tests.pty_program import PtyProgram

ALL_CAPTURES = sorted(path.name for path in CAPTURES.iterdir() if path.is_dir())


@pytest.mark.parametrize("capture", ALL_CAPTURES)
def test_every_capture_is_fine(capture: str, run: Runner) -> None:
    ran = run("doctor", "--json", "--at", AT, *sources_of(capture))
    assert ran.code == 0, ran.out
    for check in ran.json["checks"]:
        assert check["fine"]
        if check["kind"] == "logfile" or (check["kind"] == "agent_copies" and check["records"]):
            assert check["unknown_share"] < 0.01
            assert check["lines"] > 0


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
