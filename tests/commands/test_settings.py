"""`config`, `init`, `completion`, `doctor` and `login`: what holds, what is found."""

import os
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.backends.balsam.login import read_login
from jobtui.backends.discovery import DiscoveryScope, suggest
from jobtui.commands.config import file_text
from jobtui.config import ConfigError, check_text, load
from jobtui.grammar import COMMANDS, SETTINGS, flags_of
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import AT, CAPTURES, ROOT, Runner, sources_of
from tests.loopback import served
from tests.pty_program import PtyProgram
from tests.rows import ROWS
from tests.tmux import Tmux


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
    assert ran.code == 0
    assert tomllib.loads(ran.out) == {"srdb": [str(checkout / "run")]}
    assert f"found in {checkout}" in ran.out
    assert not (plain_environment / ".config").exists()


@pytest.mark.usefixtures("no_programs")
def test_init_writes_for_the_user_alone_and_never_over_a_file(
    checkout: Path, plain_environment: Path, run: Runner
) -> None:
    path = plain_environment / ".config" / "jobtui" / "config.toml"
    assert run("init", "--yes").code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert load({}, {}).settings["srdb"].values == (str(checkout / "run"),)
    path.write_text("# mine\n")
    ran = run("init", "--yes")
    assert (ran.code, ran.err) == (2, f"jobtui: {path}: File exists\n")
    assert path.read_text() == "# mine\n"


def test_a_path_that_was_named_is_written_to(checkout: Path, tmp_path: Path, run: Runner) -> None:
    path = tmp_path / "new" / "c.toml"
    ran = run("init", "--yes", path)
    assert ran.code == 0, ran.err
    assert "srdb" in path.read_text()


def test_a_person_is_asked_and_may_say_no(checkout: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("# before\n")
    with Tmux([sys.executable, "-m", "jobtui", "init", str(path)], 200, 40, {"PATH": PATH}) as window:
        window.wait_text("[Y/n]")
        window.press("Enter", until="empty: done.")
        window.type("log=supervsor=x\n")
        window.wait_text("unknown role")
        window.type("log=supervisor=/var/log/s.log\n")
        window.press("Enter", until="Replace it, and keep the old one as")
        window.press("Enter", until="Nothing was written.")
        assert path.read_text() == "# before\n"
    with Tmux([sys.executable, "-m", "jobtui", "init", str(path)], 200, 40, {"PATH": PATH}) as window:
        window.wait_text("[Y/n]")
        window.type("n\n")
        window.wait_text("empty: done.")
        window.type("log=supervisor=/var/log/s.log\n\n")
        window.wait_text("Replace it, and keep the old one as")
        window.type("y\n")
        window.wait_text("[ended 0]")
    assert tomllib.loads(path.read_text()) == {"log": ["supervisor=/var/log/s.log"]}
    assert Path(f"{path}.old").read_text() == "# before\n"


PATH = "/nowhere"
"""Where no program of Slurm is."""


def found(root: Path, **environ: str) -> list[tuple[str, str]]:
    surroundings = DiscoveryScope(environ, "/", "/nowhere", str(root))
    return [(one.spec.setting, one.spec.target) for one in suggest(surroundings)]


def test_init_finds_the_sources_of_a_machine(tmp_path: Path) -> None:
    assert found(tmp_path) == []
    squeue = tmp_path / "bin" / "squeue"
    squeue.parent.mkdir()
    squeue.touch(0o755)
    state = tmp_path / "state"
    state.mkdir()
    (tmp_path / "etc" / "slurm").mkdir(parents=True)
    (tmp_path / "etc" / "slurm" / "slurm.conf").write_text(
        f"ClusterName=c\nstatesavelocation = {state} # x\n"
    )
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
    text = file_text({"srdb": [(odd, "found \n here")], "log": [("server=/x", "given")]})
    assert tomllib.loads(text) == {"srdb": [odd], "log": ["server=/x"]}
    assert tomllib.loads(file_text({})) == {}
    check_text("c.toml", file_text({}))
    with pytest.raises(ConfigError):
        check_text("c.toml", "srdb = 1")


TRY = r"""
offers() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _jobtui "$1"
  printf '%s\n' "${COMPREPLY[@]}"
}
offers "$@"
"""
FAILED = "hZk95g40-tAdRyEYP-heightWeightReport"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_understood_by_its_shell(shell: str, run: Runner, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    path = tmp_path / "script"
    path.write_text(run("completion", shell).out)
    checked = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_command_and_flag_is_offered(run: Runner) -> None:
    assert {*run("completion", "bash", "--", "").out.split()} >= {command.name for command in COMMANDS}
    for command in COMMANDS:
        offered = run("completion", "bash", "--", command.name, "--").out.split()
        assert {*offered} == {one.flag for one in SETTINGS} | {one.flag for one in flags_of(command)}


def test_jobs_are_offered_those_that_failed_first(run: Runner) -> None:
    offered = run("completion", "fish", "--", *sources_of("local"), "explain", "").out.splitlines()
    statuses = [line.split("\t")[1].split()[0] for line in offered]
    assert statuses == sorted(statuses, key=lambda status: status != "failed")
    assert len({*statuses}) > 1
    assert FAILED in run("completion", "bash", "--", *sources_of("local"), "explain", FAILED[:6]).out.split()


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
