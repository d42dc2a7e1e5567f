"""Slurm of another host, through a real sshd; its commands there are stand-ins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.backends.base import SourceMissing, SourceUnreachable
from jobtui.model.jobs import JobStatus
from tests.backends.journal.ssh_rig import Sshd, a_server, needs_sshd
from tests.backends.slurm.reading import Reading
from tests.slurm_stand_in import StandIn

pytestmark = needs_sshd


@pytest.fixture
def far(tmp_path: Path) -> Iterator[tuple[Sshd, StandIn]]:
    """A host with Slurm's commands, and with a login that prints things of its own."""
    cluster = StandIn(tmp_path)
    (cluster.path / "ssh").unlink()
    with a_server() as server:
        server.die()
        login = f"export PATH='{cluster.search_path}' SQUEUE_FORMAT=%i; echo hello"
        more = f'ForceCommand {login}; eval "$SSH_ORIGINAL_COMMAND"'
        server.prepare(more=more)
        server.start()
        yield server, cluster


async def test_the_cluster_of_another_host_is_read_through_sshd(far: tuple[Sshd, StandIn]) -> None:
    server, cluster = far
    cluster.captured()
    reading = Reading(server.spec)
    jobs = await reading.read()
    assert jobs["slurm/2"].error == "exit code 3"
    assert jobs["slurm/9"].status is JobStatus.RUNNING
    assert len(cluster.calls("squeue")) == 1
    detail = await reading.source.detail(jobs["slurm/2"].id)
    assert detail is not None
    assert dict(detail.facts)["output"]
    server.die()
    with pytest.raises(SourceUnreachable):
        await reading.read()
    await reading.source.aclose()


async def test_a_host_without_slurm_says_so(far: tuple[Sshd, StandIn]) -> None:
    server, cluster = far
    (cluster.path / "squeue").write_text("#!/bin/sh\necho squeue: not found >&2; exit 127\n")
    with pytest.raises(SourceMissing, match="squeue"):
        await Reading(server.spec).read()
