"""`config`, `init`, `completion`, `doctor` and `login`: what holds, what is found."""

import os
import re
import shutil
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from jobtui.backends.balsam.login import read_login
from jobtui.backends.discovery import DiscoveredSource, DiscoveryScope, suggest
from jobtui.commands.config import file_text
from jobtui.config import ConfigError, check_text, load
from jobtui.grammar import COMMANDS, SETTINGS, flags_of
from jobtui.model.specs import SourceSpec
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import ALL_CAPTURES, AT, ROOT, Runner, a_db, jobtui, sources_of
from tests.loopback import served
from tests.rows import ROWS, program
from tests.terminals import PtyProgram, Tmux
from tests.waiting import wait_for


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a Sirepo database."""
    (tmp_path / "run" / "supervisor-job").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is found, so that Slurm's are not."""
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("no_programs")
def test_init_prints_the_file_off_a_terminal(checkout: Path, plain_environment: Path, run: Runner) -> None:
    ran = run("init")
    assert (ran.code, tomllib.loads(ran.out)) == (0, {"srdb": [str(checkout / "run")]})
    assert f"found supervisor-job in {checkout}" in ran.out
    assert "not written; `jobtui init --yes` writes it to" in ran.err
    assert not (plain_environment / ".config").exists()


@pytest.mark.usefixtures("no_programs")
def test_init_writes_for_the_user_alone_and_never_over_a_file(
    checkout: Path, plain_environment: Path, run: Runner
) -> None:
    path = plain_environment / ".config" / "jobtui" / "config.toml"
    assert run("init", "--yes").code == 0
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    assert load({}, {}).settings["srdb"].values == (str(checkout / "run"),)
    path.write_text("# mine\n")
    assert run("init", "--yes")[::2] == (2, f"jobtui: {path}: File exists\n")
    assert path.read_text() == "# mine\n"


def test_a_person_is_asked_and_may_say_no(checkout: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("# before\n")
    command, environ = [sys.executable, "-m", "jobtui", "init", str(path)], {"PATH": str(tmp_path)}
    asked = partial(Tmux, command, 200, 40, environ)
    with asked() as window:
        window.wait_text("[Y/n]")
        window.press("Enter", until="empty to end.")
        window.type("log=supervsor=x\n")
        window.wait_text("unknown role")
        window.type("log=supervisor=/var/log/s.log\n")
        window.press("Enter", until="Replace it, and keep the old one as")
        window.press("Enter", until="Nothing was written.")
        assert path.read_text() == "# before\n"
    with asked() as window:
        window.wait_text("[Y/n]")
        window.type("n\n")
        window.wait_text("empty to end.")
        window.type("log=supervisor=/var/log/s.log\n\n")
        window.wait_text("Replace it, and keep the old one as")
        window.type("y\n")
        window.wait_text("[ended 0]")
    assert tomllib.loads(path.read_text()) == {"log": ["supervisor=/var/log/s.log"]}
    assert Path(f"{path}.old").read_text() == "# before\n"


def found(root: Path, **environ: str) -> list[tuple[str, str]]:
    surroundings = DiscoveryScope(environ, "/", "/nowhere", str(root))
    return [(one.spec.setting, one.spec.target) for one in suggest(surroundings)]


def test_init_finds_the_sources_of_a_machine(tmp_path: Path) -> None:
    assert found(tmp_path) == []
    (squeue := tmp_path / "squeue").touch(0o755)
    (state := tmp_path / "state").mkdir()
    (slurm := tmp_path / "etc" / "slurm").mkdir(parents=True)
    (slurm / "slurm.conf").write_text(f"ClusterName=c\nstatesavelocation = {state} # x\n")
    (tmp_path / "srv" / "sarchive").mkdir(parents=True)
    assert found(tmp_path, PATH=str(squeue.parent)) == [
        ("slurm", "local"),
        ("archive", str(tmp_path / "srv" / "sarchive")),
        ("archive", str(state)),
    ]
    os.chmod(squeue, 0o644)
    assert ("slurm", "local") not in found(tmp_path, PATH=str(squeue.parent))


def test_a_file_with_any_value_is_one_that_can_be_read() -> None:
    odd = 'a"b\\c\u00e9 \n x'
    chosen = {"srdb": odd, "log": "server=/x"}
    text = file_text([DiscoveredSource(SourceSpec(*one), "found \n here") for one in chosen.items()])
    assert tomllib.loads(text) == {"srdb": [odd], "log": ["server=/x"]}
    assert tomllib.loads(file_text([])) == {}
    check_text("c.toml", file_text([]))
    with pytest.raises(ConfigError):
        check_text("c.toml", "srdb = 1")


TRY = program("try_completion")
FAILED = "hZk95g40-tAdRyEYP-heightWeightReport"


@pytest.mark.parametrize(("shell", "unsorted"), [("bash", " -o nosort "), ("zsh", " -V "), ("fish", " -k ")])
def test_a_script_is_understood_by_its_shell_and_keeps_failed_jobs_first(
    shell: str, unsorted: str, run: Runner
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    script = run("completion", shell).out
    checked = subprocess.run([shell, "-n", "/dev/stdin"], input=script, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr, unsorted in script) == (0, "", True)


def test_every_command_and_flag_is_offered(run: Runner) -> None:
    assert {*run("completion", "bash", "--", "").out.split()} >= {command.name for command in COMMANDS}
    for command in COMMANDS:
        offered = run("completion", "bash", "--", command.name, "--").out.split()
        assert {*offered} == {one.flag for one in SETTINGS} | {one.flag for one in flags_of(command)}


def offered(*words: object) -> str:
    """What fish is offered, once there is a list of jobs."""
    wait_for(lambda: jobtui("completion", "fish", "--", *words).out)
    return jobtui("completion", "fish", "--", *words).out


def test_jobs_are_offered_those_that_failed_first() -> None:
    statuses = re.findall(r"\t(\w+)", offered(*sources_of("local"), "explain", ""))
    assert statuses == sorted(statuses, key=lambda status: status != "failed")
    assert len({*statuses}) > 1
    assert FAILED in offered(*sources_of("local"), "explain", FAILED[:6]).split()


def test_jobs_are_kept_for_the_next_key_and_for_this_user_alone(plain_environment: Path) -> None:
    db = a_db(plain_environment, aaaaaaaa__bbbbbbbb__m={"status": "error", "uid": "u"})
    words = "--srdb", db, "explain", ""
    assert offered(*words) == "aaaaaaaa-bbbbbbbb-m\tfailed u None\n"
    [path] = plain_environment.glob(".cache/jobtui-completion/????????")
    db.rename(gone := plain_environment / "gone")
    assert offered(*words) == "aaaaaaaa-bbbbbbbb-m\tfailed u None\n"
    assert jobtui("completion", "fish", "--", "--srdb", db.parent, *words).out == ""  # another list
    gone.rename(db)
    a_db(plain_environment, aaaaaaaa__cccccccc__m={})  # new, and found although the list is of before
    os.utime(path, (before := time.time() - 60, before))
    assert offered(*words[:-1], "aaaaaaaa-c").startswith("aaaaaaaa-cccccccc-m\t")
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    path.write_bytes(b"\nbbb\tok\nccc\t\x1b[2J\xff\n")
    assert offered(*words) == "bbb\tok\n"
    path.chmod(0o640)  # anybody could have written it
    assert offered(*words).startswith("aaaaaaaa-bbbbbbbb-m\t")


@pytest.mark.parametrize(("words", "offered"), ROWS["what bash offers"])
def test_bash_offers_what_fits(words: list[str], offered: str, run: Runner, tmp_path: Path) -> None:
    (tmp_path / "db dir").mkdir()
    (tmp_path / "a b.log").touch()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", run("completion", "bash").out + TRY, "bash", *words],
        cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [offered]


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
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with served(RecordedBalsam()) as address:
        yield address


@pytest.fixture
def path(plain_environment: Path) -> Path:
    return plain_environment / ".balsam" / "client.yml"


def enter(program: PtyProgram, *answers: bytes) -> None:
    for question, answer in zip((b"User [", b"Password: "), answers, strict=True):
        program.wait_seen(question)
        program.press(answer + b"\n")


def test_a_wrong_password(url: str, path: Path) -> None:
    with PtyProgram(["-m", "jobtui", "--balsam", url, "login", "balsam"]) as program:
        enter(program, b"operator", b"wrong")
        program.wait_seen(b"the password is wrong")
        assert program.wait_end(20) == 1
    assert not path.exists()


def test_a_login_to_a_second_server_is_kept_in_another_file_and_replaces_none_unasked(
    url: str, path: Path, run: Runner
) -> None:
    write_login(path, "https://other.example.org", "theirs")
    with PtyProgram(["-m", "jobtui", "--balsam", url, "login", "balsam"]) as program:
        program.wait_seen(b"[r]eplace it, or keep this one [b]eside it")
        program.press(b"\n")
        assert program.wait_end(20) == 0
    assert ([*path.parent.iterdir()], read_login(str(path)).token) == ([path], "theirs")
    with PtyProgram(["-m", "jobtui", "--balsam", url, "login", "balsam"]) as program:
        program.wait_seen(b"[b]eside it")
        program.press(b"b\n")
        enter(program, b"operator", b"right-password")
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
