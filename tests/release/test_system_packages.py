"""Tests of `scripts/system-packages`: it waits for the locks of apt, with a limit. apt-get is a stand-in."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "system-packages"
LOCKED = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr)"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Stand-ins: apt-get fails with the text of `said` as often as `times` says; sleep counts and returns."""
    (tmp_path / "apt-get").write_text(
        f"""#!/bin/sh
echo "$*" >> {tmp_path}/calls
left=$(cat {tmp_path}/times)
[ "$left" -gt 0 ] || exit 0
echo $((left - 1)) > {tmp_path}/times
cat {tmp_path}/said >&2
exit 100
"""
    )
    (tmp_path / "sleep").write_text(f"#!/bin/sh\necho $1 >> {tmp_path}/slept\n")
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    for name in ("apt-get", "sleep", "id"):
        (tmp_path / name).chmod(0o755)
    return tmp_path


def installed(programs: Path, said: str, times: int) -> subprocess.CompletedProcess[str]:
    (programs / "said").write_text(said)
    (programs / "times").write_text(str(times))
    environ = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    words = [str(SCRIPT), "no-such-program=no-such-package"]
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("said", "times", "slept_s", "words"),
    [
        (LOCKED, 3, None, "apt is locked by another program"),
        (LOCKED, 10_000, 300, "still locked by another program after 300 s"),
        ("E: Unable to locate package no-such-package", 1, 0, "Unable to locate package"),
    ],
    ids=["a lock is waited for", "no longer than it says", "any other failure ends it at once"],
)
def test_it_waits_for_a_lock(programs: Path, said: str, times: int, slept_s: int | None, words: str) -> None:
    ran = installed(programs, said, times)
    slept = programs / "slept"
    waits = [*map(int, slept.read_text().split())] if slept.exists() else []
    assert ran.stderr.count(words) == 1
    assert ran.returncode == (0 if slept_s is None else 1)
    assert len(waits) == 3 if slept_s is None else sum(waits) == slept_s
    assert ("process 7" in ran.stderr) is (slept_s == 300)
    if slept_s is None:
        assert (programs / "calls").read_text().split("\n")[-2].endswith("no-such-package")
