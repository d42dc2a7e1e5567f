"""A cluster on which each user sees their own jobs only, as one of them sees it, live."""

import shlex
from collections.abc import Iterator

import pytest

from jobtui.backends.slurm.client import Commands, slurm_faults
from jobtui.backends.slurm.source import Slurm
from jobtui.model.ids import JobId
from jobtui.transport.ssh import LocalShell, Running
from tests.real.slurm_system import USER, SlurmSystem, a_cluster

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def system() -> Iterator[SlurmSystem]:
    yield from a_cluster(accounting=False, more="PrivateData=jobs")


class UsersShell(LocalShell):
    async def run(self, line: str) -> Running:
        become = f"setpriv --reuid={USER} --regid=nogroup --init-groups"
        return await super().run(f"exec {become} sh -c {shlex.quote(line)}")


async def test_users_see_their_own_jobs_and_nothing_of_others(
    system: SlurmSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(system.conf))
    own = system.submit("sleep 60", "--hold")
    other = system.run("sbatch", "--parsable", "--hold", f"--chdir={system.work}", "--wrap=true").strip()
    source = Slurm(Commands("local", UsersShell("local", slurm_faults())))
    batch = await source.poll(None)
    assert [job.id for job in batch.jobs] == [f"slurm/{own}"]
    assert not batch.skip_count
    assert await source.detail(JobId(f"slurm/{own}")) is not None
    assert await source.detail(JobId(f"slurm/{other}")) is None
    await source.aclose()
