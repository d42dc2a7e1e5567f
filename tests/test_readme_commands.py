"""What the README tells a newcomer to type works as it stands there, on files of a real Sirepo."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from jobtui.commands.help import FIRST_STEPS
from tests.commands.running import CAPTURES, ROOT, environment, jobtui

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
INSTALLATION = ("git clone", "scripts/install", "alias jobtui=")
"""Beginnings of what is typed to have the program at all."""

DATABASE = "/srv/sirepo/db"
"""Where the README's installation has its records; its logs are where one stands."""

EXPECTED = {"jobs": 0, "explain": 1, "timeline": 1, "logs": 0, "find": 0, "doctor": 0, "status": 0}
"""Exit codes; that of a job that failed is 1, which `jobtui JOB` without a terminal gives too."""

AT = "2026-11-20T21:00:00Z"


def typed() -> list[str]:
    """Every line that is typed, without the comments behind them."""
    lines = [line[2:] for block in BLOCKS for line in block.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s+# .*", "", line) for line in lines]


def settings() -> list[str]:
    """What is set before anything is asked."""
    return [line for line in typed() if line.startswith("export ")]


ASKED = [line for line in typed() if line.startswith("jobtui")]


def test_every_line_is_installation_a_setting_or_a_question() -> None:
    rest = {*typed()} - {*ASKED} - {*settings()}
    assert {next((start for start in INSTALLATION if line.startswith(start)), line) for line in rest} == {
        *INSTALLATION
    }
    assert len(ASKED) >= 6
    assert settings()


@pytest.mark.parametrize("line", ASKED)
def test_it_works_as_typed(line: str, tmp_path: Path) -> None:
    capture = CAPTURES / "docker"
    (tmp_path / "db").mkdir()
    for name in ("supervisor-job", "user"):
        (tmp_path / "db" / name).symlink_to(capture / name)
    for name in ("supervisor.log", "server.log"):
        (tmp_path / name).symlink_to(capture / name)
    function = f'jobtui() {{ {shlex.quote(sys.executable)} -m jobtui "$@"; }}'
    script = "\n".join([function, *settings(), line]).replace(DATABASE, str(tmp_path / "db"))
    ran = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path,
        env={**environment(), "JOBTUI_AT": AT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    word = line.split()[1] if " " in line else ""
    assert ran.returncode == EXPECTED.get(word, 1 if word else 0), ran.stderr
    assert ran.stdout
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("line", [words for words, _ in FIRST_STEPS])
def test_first_steps_of_the_help_are_possible(line: str) -> None:
    place = CAPTURES / "docker"
    names = {"DIR": str(place), "supervisor=FILE": f"supervisor={place / 'supervisor.log'}", "ID": "COebzySB"}
    words = [names.get(word, word) for word in line.split()[1:]]
    ran = jobtui(*words, env=environment(JOBTUI_AT=AT, SIREPO_SRDB_ROOT=str(place)))
    assert ran.code in (0, 1), ran.err
    assert ran.out
