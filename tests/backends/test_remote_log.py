"""The end of a log on a cluster, read over ssh from a real sshd on loopback."""

from pathlib import Path

import pytest

from jobtui.backends import remote_log
from jobtui.backends.log_book import SessionLogs
from jobtui.backends.remote_log import GAP
from jobtui.model.pages import LogUnreadable
from tests.analysis.captured import ROOT
from tests.backends.journal.ssh_rig import SshClient, Sshd, needs_sshd

LOG = ROOT / "sbatch" / "scratch" / "jdoe" / "sirepo-dev" / "job_agent.log"


@needs_sshd
async def test_a_real_log_is_read_with_its_environment_masked(server: Sshd) -> None:
    log = SessionLogs(tuple).open(server.address_of(LOG))
    extent = await log.look()
    page = await log.after(extent.begin, 10_000)
    lines = LOG.read_text().splitlines()
    assert len(page.lines) == len(lines)
    masked = {line.text for line in page.lines if "=***" in line.text}
    assert "HOME=***" in masked
    assert not [
        line
        for line in page.lines
        if line.text.startswith("SIREPO_") and not line.text.endswith(("=", "***"))
    ]
    assert page.lines[-1].at is not None
    await log.aclose()


@needs_sshd
async def test_it_goes_on_and_says_where_lines_are_missing(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_log, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(remote_log, "TAIL_LINES", 3)
    path = tmp_path / "job_agent.log"
    path.write_text("one\ntwo\n")
    log = SessionLogs(tuple).open(server.address_of(path))

    async def texts() -> list[str]:
        extent = await log.look()
        return [line.text for line in (await log.after(extent.begin, 100)).lines]

    assert await texts() == ["one", "two"]
    path.write_text("one\ntwo\nthree\n")
    assert await texts() == ["one", "two", "three"]
    path.write_text("".join(f"{number}\n" for number in range(9)))
    assert await texts() == ["one", "two", "three", GAP, "6", "7", "8"]
    await log.aclose()


@needs_sshd
async def test_what_is_not_there_says_so(server: Sshd, tmp_path: Path) -> None:
    log = SessionLogs(tuple).open(server.address_of(tmp_path / "none.log"))
    with pytest.raises(LogUnreadable, match="No such file"):
        await log.look()
    await log.aclose()


async def test_a_cluster_is_not_asked_more_often_than_need_be(client: SshClient, tmp_path: Path) -> None:
    client.replace(f'echo asked >> {tmp_path}/asked; for last; do :; done; sh -c "$last"')
    (tmp_path / "a.log").write_text("one\n")
    log = SessionLogs(tuple).open(f"ssh://cori{tmp_path}/a.log")
    for _ in range(3):
        await log.look()
    assert (tmp_path / "asked").read_text().count("asked") == 1
    await log.aclose()
