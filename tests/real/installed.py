"""A jobtui that somebody installed, tried as they would: its version, the demo in a pipe, the dashboard."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from jobtui import __version__
from tests.pty_program import PtyProgram

KEPT = ("PATH", "LANG", "LC_ALL", "PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR", "UV_DEFAULT_INDEX")
"""What of the environment an installed program is given; nothing of this checkout."""
NOWHERE = "http://127.0.0.1:1"
OFFLINE = {name: NOWHERE for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
"""Proxies that are not there."""


def clean(home: Path, **more: str) -> Mapping[str, str]:
    """The environment of somebody with this home directory."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    return {**kept, "HOME": str(home), "TMPDIR": str(home), **more}


def ran(words: Sequence[str | Path], environ: Mapping[str, str], cwd: Path | None = None) -> str:
    """What a program prints, which must end well."""
    done = subprocess.run(
        [*map(str, words)],
        env=environ,
        cwd=cwd or environ["HOME"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def try_program(words: Sequence[str | Path], environ: Mapping[str, str]) -> None:
    """Start it in all the ways that a newcomer does."""
    assert ran([*words, "--version"], environ) == f"jobtui {__version__}\n"
    assert "STATE" in ran([*words, "demo", "--seed", "3"], environ)
    assert "WHAT HAPPENS" in ran([*words, "demo", "--incident", "list"], environ)
    command = ["env", "-i", "TERM=xterm-256color", *(f"{name}={value}" for name, value in environ.items())]
    start = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
    with PtyProgram(["-c", start, *command, *map(str, words), "demo", "--seed", "3"]) as program:
        program.wait_seen(b"jobtui demo")
        program.wait_seen(b"quit")
        program.press(b"q")
        program.wait_seen(b"\x1b[?1049l")
        assert program.wait_end(20) == 0
