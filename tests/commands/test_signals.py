"""Signals that end a command end the programs that it started, too."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.running import environment
from tests.waiting import is_zombie, wait_for

SSH = """\
#!/bin/sh
[ "$1" = -G ] && exit 0
echo $$ >> {pids}
exec sleep 1000
"""


@pytest.mark.parametrize(
    "words",
    [("logs", "EPRSqtUW-IVh7w74d-heightWeightReport", "-f"), ("record", "kept"), ("jobs",)],
    ids=lambda w: w[0],
)
@pytest.mark.parametrize("number", [signal.Signals(n) for n in (1, 2, 9, 15)], ids=lambda n: n.name)
def test_no_program_outlives_the_command_that_started_it(
    words: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    (ssh := tmp_path / "ssh").write_text(SSH.format(pids=pids))
    ssh.chmod(0o755)
    command = [sys.executable, "-m", "jobtui", "--journal", "ssh://far", "--slurm", "ssh://far", *words]
    path = f"{tmp_path}:{os.environ['PATH']}"
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(PATH=path), stderr=subprocess.PIPE
    ) as started:
        wait_for(lambda: pids.exists() and pids.read_text().endswith("\n"))
        started.send_signal(number)
        _, said = started.communicate(timeout=60)
    assert started.returncode in (0, 4, 5, 130, 128 + number, -number), said  # 0 to 5: what it had
    assert b"Traceback" not in said
    children = [int(pid) for pid in pids.read_text().split()]
    wait_for(lambda: all(not Path(f"/proc/{pid}").exists() or is_zombie(pid) for pid in children))
