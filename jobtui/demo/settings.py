"""What kind of site is simulated. Values only."""

from enum import StrEnum

import msgspec

from jobtui.model.clock import Nanos, from_seconds

START = from_seconds(1_795_206_870)
"""When a simulated site starts unless told otherwise: 2026-11-20 20:34:30 UTC."""


class DriverName(StrEnum):
    """How agents are started."""

    LOCAL = "local"
    DOCKER = "docker"


class Era(StrEnum):
    """Which Sirepo is played."""

    TODAY = "today"
    Y2020 = "2020"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated site.

    `prefixes` limits how many different first four characters op and agent ids have, so that they clash
    (None: as random as real ones). `pid_time` is the time and process id at the head of supervisor and server
    lines, which production leaves to the journal. `agents_in_supervisor_log` lets local agents write into the
    supervisor's stream. `ops` is when users stop, `restarts`, `crashes` and `agent_deaths` are chances per
    thing that a user does, `tempo` stretches the pauses between. `torn_records` is the share of multi-line
    records that are written in two pieces. `dev` is development mode: the sbatch driver echoes the cluster's
    log into its own.
    """

    users: int = 4
    sbatch_users: int = 0
    ops: int | None = 200
    prefixes: int | None = None
    era: Era = Era.TODAY
    driver: DriverName = DriverName.LOCAL
    pid_time: bool = True
    agents_in_supervisor_log: bool = True
    torn_records: float = 0.0
    restarts: float = 0.0
    crashes: float = 0.0
    agent_deaths: float = 0.0
    slots_parallel: int = 2
    slots_sequential: int = 2
    slots_run_sbatch: int = 1
    hosts: tuple[str, ...] = ("v1.sirepo.example", "v2.sirepo.example", "v3.sirepo.example")
    start: Nanos = START
    root: str = "/srv/sirepo/db"
    site_packages: str = "../../venv/lib/python3.11/site-packages/"
    agent_site_packages: str = "/srv/sirepo/venv/lib/python3.11/site-packages/"
    cluster_root: str = "/scratch/{user}/sirepo-prod"
    cluster_host: str = "hpc.sirepo.example"
    supervisor_port: int = 8001
    server_port: int = 8000
    tempo: float = 1.0
    max_secs_sequential: float = 360
    max_secs_parallel: float = 3600
    max_secs_parallel_paid: float = 7200
    max_secs_analysis: float = 144
    idle_check_secs: float = 1800
    dev: bool = True
