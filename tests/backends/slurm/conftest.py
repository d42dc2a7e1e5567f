from pathlib import Path

import pytest

from tests.slurm_stand_in import StandIn


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn(tmp_path)
    monkeypatch.setenv("PATH", made.search_path)
    return made
