"""A real kernel that kills for want of memory, and the journal of its host, which tells whose it was."""

import asyncio
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.analysis.explain.case import CERTAIN
from jobtui.analysis.killer import Ending, find_killer
from jobtui.backends.job_reader import SessionJobReader
from jobtui.model.clock import Nanos, SystemClock
from tests.backends.journal.rigs import ssh_client
from tests.real.journal_hosts import JournalHost, missing_programs

GROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
LIMITS = ("memory.limit_in_bytes", "memory.max")
GREEDY = "echo $$ >{}/cgroup.procs && exec python3 -c 'taken = b\"1\" * (200 << 20)'"


async def nothing_again(at: Nanos, told: object) -> bool:
    return False


@pytest.fixture
def group() -> Iterator[Path]:
    """A memory cgroup of 40 MB, called as Docker calls that of a container."""
    root = next((root for root in GROUPS if (root / "cgroup.procs").exists()), None)
    if root is None or os.geteuid() or missing_programs():
        pytest.skip(f"needs root and control groups; missing: {missing_programs() or 'none'}")
    made = root / f"docker-{secrets.token_hex(32)}.scope"
    made.mkdir()
    try:
        limit = next((made / name for name in LIMITS if (made / name).exists()), None)
        if limit is None:
            pytest.skip("memory is no controller of this machine's control groups")
        limit.write_text(str(40 << 20))
        yield made
    finally:
        made.rmdir()


async def test_the_kernel_is_named_and_only_for_its_own_container(
    group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JournalHost(tmp_path / "host", 1) as host, ssh_client(tmp_path / "client", monkeypatch) as client:
        client.settings(host.sshd.root)
        done = await asyncio.create_subprocess_exec("sh", "-c", GREEDY.format(group))
        assert await done.wait() == -9
        ending = Ending(SystemClock().now(), host.name, names=frozenset({group.name[7:19]}))
        reader = SessionJobReader(tuple, nothing_again)
        for journal in (str(host.directory), host.gatewayd.spec, host.sshd.spec):
            found = await reader.host_messages(host.name, journal, *ending.window)
            while not find_killer(found, ending).words:  # it comes to the journal a moment later
                found = await reader.host_messages(host.name, journal, *ending.window)
            killer = find_killer(found, ending)
            told = f"memory cgroup of {group.name[:19]} reached 40 MB (host {host.name}, "
            assert killer.words.startswith(f"killed by the kernel: {told}")
            assert killer.confidence == CERTAIN
            other = find_killer(found, ending._replace(names=frozenset({"0123456789ab"})))
            assert (other.words, bool(other.near)) == ("", True)
