"""What tests of several backends need: pages of a log, and an ssh of their own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jobtui.logs.pages import LogPages
from tests.backends.journal.rigs import SshClient, ssh_client


@pytest.fixture
async def pages(tmp_path: Path) -> AsyncIterator[LogPages]:
    log = LogPages(tmp_path / "x.log")
    yield log
    await log.aclose()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshClient]:
    with ssh_client(tmp_path / "client", monkeypatch) as made:
        yield made


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A directory that every user may enter, as pytest's own are not."""
    with TemporaryDirectory(prefix="jobtui-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
