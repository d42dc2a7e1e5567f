"""Running jobtui as a user does: the real program on the captures of a real Sirepo."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobtui.cli import main

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "fixtures" / "sirepo"
TRUE_CAPTURES = ("local", "docker", "sbatch", "local-debug", "docker-debug")
"""Those whose truth was noted inside the supervisor."""

AT = "2026-11-20T21:00:00Z"
"""Shortly after the captures were taken."""


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """What it printed, as the JSON that it must be."""
        assert self.out.isascii()
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document


class Runner:
    """Runs commands in this process and gives what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ran:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Ran(code, *self._capsys.readouterr())


def environment(**more: str) -> Mapping[str, str]:
    """The environment of a program started by a test."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def jobtui(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> Ran:
    """Run the real program, without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "jobtui", *map(str, arguments)],
        cwd=cwd,
        env=environment() if env is None else env,
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Ran(
        done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )


def sources_of(capture: str) -> list[str]:
    """Flags that name everything of a capture: its records and the logs of server and supervisor."""
    place = CAPTURES / capture
    flags = ["--srdb", str(place)]
    for role in ("supervisor", "server"):
        if (place / f"{role}.log").exists():
            flags += ["--log", f"{role}={place / f'{role}.log'}"]
    return flags
