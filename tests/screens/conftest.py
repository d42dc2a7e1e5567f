"""What only tests of screens need."""

import os
from pathlib import Path

import pytest

SNAPSHOTS = "TEXTUAL_SNAPSHOT_TEMPDIR"
"""Where the snapshot plugin keeps what it found, for its report; set by the plugin when it starts."""


@pytest.fixture(scope="session")
def snapshot_directory() -> str:
    """That directory, asked for before the environment of a test is made a plain one."""
    return os.environ.get(SNAPSHOTS, "")


@pytest.fixture(autouse=True)
def keep_snapshot_directory(
    snapshot_directory: str, plain_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave the plugin its directory."""
    if snapshot_directory:
        monkeypatch.setenv(SNAPSHOTS, snapshot_directory)
