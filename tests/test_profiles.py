"""Several profiles side by side: their sources, one table, and a line for each."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobtui.analysis.counts import profile_states
from jobtui.config import ConfigError, load
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.jobs import JobStatus
from jobtui.render.sources import labels, profile_line
from tests.builders import a_job
from tests.commands.running import Runner
from tests.conftest import NOW


@pytest.fixture
def two_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with two profiles, each with a database of one job; a log is in both."""
    for site, status in (("prod", "running"), ("hpc", "error")):
        directory = tmp_path / site / "supervisor-job"
        directory.mkdir(parents=True)
        jid = f"vn9mPEFC-{site:a<8}-animation"
        (directory / f"{jid}.json").write_text(json.dumps({"computeJid": jid, "status": status}))
    log = tmp_path / "shared.log"
    log.write_text("")
    config = tmp_path / "config.toml"
    config.write_text(
        f'log = "{log}"\n'
        f'[profiles.prod]\nsrdb = "{tmp_path}/prod"\n[profiles.prod.hosts]\nv3 = "ssh://v3"\n'
        f'[profiles.hpc]\nsrdb = "{tmp_path}/hpc"\n[profiles.hpc.hosts]\nv7 = "ssh://v7"\n'
    )
    monkeypatch.setenv("JOBTUI_CONFIG", str(config))
    return tmp_path


def test_their_sources_are_read_together_each_with_its_profile(two_sites: Path) -> None:
    config = load({"profile": ("prod, hpc",)}, {"JOBTUI_CONFIG": str(two_sites / "config.toml")})
    told = {Path(spec.target).name: spec.profile for spec in config.sources}
    assert told == {"prod": "prod", "hpc": "hpc", "shared.log": ""}
    assert config.profile == "prod,hpc"
    assert config.hosts == {"v3": "ssh://v3", "v7": "ssh://v7"}
    assert {*config.profile_of_source.values()} == {"prod", "hpc"}
    with pytest.raises(ConfigError, match='no profile "nowhere"'):
        load({"profile": ("prod,nowhere",)}, {"JOBTUI_CONFIG": str(two_sites / "config.toml")})


def test_one_table_has_the_jobs_of_both_and_status_a_line_for_each(two_sites: Path, run: Runner) -> None:
    table = run("jobs", "--profile", "prod,hpc").out.splitlines()
    assert "PROFILE" in table[0]
    assert {("prod" in line, "hpc" in line) for line in table[1:]} == {(True, False), (False, True)}
    lines = run("status", "--profile", "prod,hpc").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["prod", "hpc"]
    assert "1 of 1 source up · 1 running" in lines[1]
    document = run("status", "--json", "--profile", "prod,hpc").json
    assert [one["profile"] for one in document["profiles"]] == ["prod", "hpc"]
    assert {one.get("profile") for one in document["sources"]} == {"prod", "hpc"}
    (job_id, *_) = [one["id"] for one in run("jobs", "--json", "--profile", "prod,hpc").json["jobs"]]
    following = run("explain", job_id, "--json", "--profile", "prod,hpc").json["next"]
    ours = [one["command"] for one in following if one["command"].startswith("jobtui ")]
    assert ours
    assert all("--profile prod,hpc" in command for command in ours)
    told = run("doctor", "--profile", "prod,hpc").out
    assert told.count(": 1 job\n") == 2, told
    alone = run("jobs", "--profile", "prod").out
    assert "PROFILE" not in alone
    assert run("status", "--json", "--profile", "prod").json["profiles"] == []


def job(source: str, number: int, **more: Any) -> Any:
    return a_job(number, source=source, **more)


def test_a_line_tells_what_is_unusual() -> None:
    ended = [
        *(job("a", n, status=JobStatus.FAILED, ended_at=Nanos(NOW - 60 * SECOND)) for n in range(6)),
        *(job("a", n, status=JobStatus.COMPLETED, ended_at=Nanos(NOW - 60 * SECOND)) for n in range(6, 12)),
        *(
            job("a", n, status=JobStatus.COMPLETED, ended_at=Nanos(NOW - 7_200 * SECOND))
            for n in range(12, 32)
        ),
        job("b", 40, status=JobStatus.PENDING, queued_at=Nanos(NOW - 3_600 * SECOND), started_at=None),
        job("b", 41, status=JobStatus.RUNNING),
        job("c", 42, status=JobStatus.RUNNING),
    ]
    health = [
        SourceHealth(name="a", kind="sirepo_db", profile="prod", state=SourceState.OK),
        SourceHealth(name="b", kind="sirepo_db", profile="hpc", state=SourceState.DOWN),
        SourceHealth(name="c", kind="sirepo_db"),
    ]
    prod, hpc = profile_states(ended, health, lambda _: NOW)
    assert (prod.ended, prod.failed, prod.usual_share, prod.is_unusual) == (12, 6, 0.0, True)
    assert (hpc.up, hpc.sources, hpc.running, hpc.longest_wait_s) == (0, 1, 1, 3_600.0)
    texts = ["".join(span.text for span in profile_line(state)) for state in (prod, hpc)]
    assert texts == [
        " prod  1 of 1 source up · 0 running · 50 % of 12 failed in 1h, usually 0 %",
        " hpc  0 of 1 source up · 1 running · longest wait 1h",
    ]
    assert labels(health)[:2] == ["prod: db", "hpc: db"]
    assert profile_states(ended, health[:1], lambda _: NOW) == []
