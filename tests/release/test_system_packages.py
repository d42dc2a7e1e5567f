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


def test_it_waits_for_a_lock_and_goes_on(programs: Path) -> None:
    ran = installed(programs, LOCKED, 3)
    assert ran.returncode == 0
    assert ran.stderr.count("apt is locked by another program") == 1
    assert len((programs / "slept").read_text().split()) == 3
    assert (programs / "calls").read_text().split("\n")[-2].endswith("no-such-package")


def test_it_waits_for_a_lock_no_longer_than_it_says(programs: Path) -> None:
    ran = installed(programs, LOCKED, 10_000)
    assert ran.returncode == 1
    assert "still locked by another program after 300 s" in ran.stderr
    assert "process 7" in ran.stderr
    assert sum(map(int, (programs / "slept").read_text().split())) == 300


def test_any_other_failure_ends_it_at_once(programs: Path) -> None:
    ran = installed(programs, "E: Unable to locate package no-such-package", 1)
    assert ran.returncode == 1
    assert "Unable to locate package" in ran.stderr
    assert not (programs / "slept").exists()
