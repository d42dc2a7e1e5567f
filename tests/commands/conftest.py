"""Fixtures of the command tests."""

import pytest

from tests.commands.running import Runner


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    """Runs a command line in this process."""
    return Runner(capsys)
