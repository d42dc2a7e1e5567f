"""A big journal as Sirepo's hosts have it: made once by systemd-journal-remote, kept for later runs.

Entries are of the forms that the supervisor, docker's containers and others write, about 20 fields each. The
same number makes the same entries.
"""

import hashlib
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jobtui.model.tables import home_of
from tests.backends.journal.make import REMOTE

UNIT = "sirepo_job_supervisor.service"
CONTAINER = "srj-p-user0007"
FORM = 1
"""Part of the name under which a journal is kept: what is made otherwise is made again."""
START_US = 1_700_000_000_000_000
STEP_US = 40_000
PROGRESS = 100_000

_USERS = 40
_BODIES = 4_000


def kept_journal(entries: int) -> Path:
    place = Path(home_of("CACHE"), "jobtui-bench") / f"journal-{FORM}-{entries}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=place.parent, prefix="making-"))
    try:
        _make(making, entries)
        making.rename(place)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return place


def _make(directory: Path, entries: int) -> None:
    with remote_writer(directory / "remote-node1.journal") as process:
        assert process.stdin is not None
        for number, text in enumerate(export_entries(entries), 1):
            process.stdin.write(text)
            if number % PROGRESS == 0:
                print(f"  {number:,} of {entries:,} entries written", file=sys.stderr, flush=True)
        process.stdin.close()
        if process.wait():
            raise OSError(f"systemd-journal-remote ended with {process.returncode}")


def remote_writer(file: Path) -> "subprocess.Popen[bytes]":
    if not REMOTE:
        raise OSError("there is no systemd-journal-remote: apt-get install systemd-journal-remote")
    command = [REMOTE, "--split-mode=none", f"--output={file}", "-"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)


def export_entries(count: int) -> Iterator[bytes]:
    draw = random.Random(count)
    bodies = [_body(draw, number) for number in range(_BODIES)]
    boot, machine = "b" * 32, "c" * 32
    for number in range(count):
        at_us = START_US + number * STEP_US
        yield (
            f"__CURSOR=s={machine};i={number + 1:x};b={boot};m={number * STEP_US:x};t={at_us:x};x=0\n"
            f"__REALTIME_TIMESTAMP={at_us}\n__MONOTONIC_TIMESTAMP={number * STEP_US}\n"
            f"_BOOT_ID={boot}\n_MACHINE_ID={machine}\n_HOSTNAME=node1\n"
            f"{draw.choice(bodies)}JOBTUI_NUMBER={number}\n\n"
        ).encode()


def _body(draw: random.Random, number: int) -> str:
    user = f"user{draw.randrange(_USERS):04}"
    job = f"{user}-{_token(draw, 8)}-{draw.choice(('animation', 'fluxReport', 'beamPreviewReport'))}"
    kind = number % 20
    if kind < 9:
        return _supervisor(draw, user, job)
    return _container(draw, user, job) if kind < 17 else _other(draw)


def _supervisor(draw: random.Random, user: str, job: str) -> str:
    line = draw.choice(("_incoming", "_receive", "run", "prepare_send", "send"))
    message = (
        f"14458     0 sirepo/job_supervisor.py:{draw.randrange(900)}:{line} "
        f"class=<class 'sirepo.job_supervisor.ServerReq'> content={{'api': 'api_runSimulation', "
        f"'computeJid': '{job}', 'computeJobSerial': {draw.randrange(10**9)}, 'data': {{<SNIP>}}, "
        f"'reqId': '{_token(draw, 32)}', 'runDir': '/srv/sirepo/db/user/{user}/{job}'}}"
    )
    return _fields(
        MESSAGE=message, PRIORITY="6", SYSLOG_IDENTIFIER="sirepo", SYSLOG_FACILITY="3", _PID="14458",
        _UID="1000", _GID="1000", _COMM="python", _EXE="/srv/sirepo/.pyenv/versions/py3/bin/python3.9",
        _SYSTEMD_UNIT=UNIT, _SYSTEMD_CGROUP=f"/system.slice/{UNIT}", _TRANSPORT="stdout",
    )  # fmt: skip


def _container(draw: random.Random, user: str, job: str) -> str:
    letter = draw.choice("ps")
    name = f"srj-{letter}-{user}"
    full = hashlib.sha256(name.encode()).hexdigest()
    message = (
        f"   24     0 sirepo/pkcli/job_agent.py:{draw.randrange(90, 700)}:job_cmd_reply cmd=_Cmd(jid={job} "
        f"o={_token(draw, 4)} job_cmd=compute run_dir=/srv/sirepo/db/user/{user}/{job}) "
        f'stdout=b\'{{"state":"running","frameCount":{draw.randrange(400)}}}\''
    )
    return _fields(
        MESSAGE=message, PRIORITY="6" if letter == "p" else "3", CONTAINER_ID=full[:12],
        CONTAINER_ID_FULL=full, CONTAINER_NAME=name, CONTAINER_TAG=full[:12],
        IMAGE_NAME="radiasoft/sirepo:prod", SYSLOG_IDENTIFIER=full[:12], _PID="812", _UID="0", _GID="0",
        _COMM="dockerd", _EXE="/usr/bin/dockerd", _SYSTEMD_UNIT="docker.service",
        _SYSTEMD_CGROUP="/system.slice/docker.service", _TRANSPORT="journal",
    )  # fmt: skip


def _other(draw: random.Random) -> str:
    message = (
        f"sched: _slurm_rpc_allocate_resources JobId={draw.randrange(10**6)} usec={draw.randrange(9000)}"
    )
    return _fields(
        MESSAGE=message, PRIORITY="6", SYSLOG_IDENTIFIER="slurmctld", _PID="702", _COMM="slurmctld",
        _SYSTEMD_UNIT="slurmctld.service", _TRANSPORT="syslog",
    )  # fmt: skip


def _fields(**fields: str) -> str:
    return "".join(f"{name}={value}\n" for name, value in fields.items())


def _token(draw: random.Random, length: int) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=length))
