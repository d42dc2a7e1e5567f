"""Ids as types, with the grammar by which they are recognized.

Grammar of Sirepo's ids: a computeJid is `<uid>-<simulationId>-<computeModel>`; agent ids and op ids are
32 characters of base 62 of which logs show the first four. Agent ids are secrets: jobtui keeps their
prefix and nothing else.
"""

import re
from functools import lru_cache
from typing import NamedTuple, NewType

JobId = NewType("JobId", str)
"""The id of a job in its own system: a computeJid for Sirepo."""
Uid = NewType("Uid", str)
SimulationId = NewType("SimulationId", str)
OpPrefix = NewType("OpPrefix", str)
OpId = NewType("OpId", str)
AgentPrefix = NewType("AgentPrefix", str)
RunDir = NewType("RunDir", str)
ContainerName = NewType("ContainerName", str)

PREFIX_LENGTH = 4

LATELY = 4_096
"""Ids and paths whose parts are remembered: the lines of one job come close together and repeat them."""

UID = r"[A-Za-z0-9]{8}"
SIMULATION_ID = r"(?:[A-Za-z0-9]{8}|_1_st(?:ful|lss))"
JID = rf"{UID}-{SIMULATION_ID}-\w+"

_JID = re.compile(rf"(?P<uid>{UID})-(?P<simulation_id>{SIMULATION_ID})-(?P<model>\w+)", re.ASCII)
_CONTAINER = re.compile(rf"srj-(?P<kind>[sp])-(?P<uid>{UID})", re.ASCII)
_LOCAL_RUN_DIR = re.compile(rf"/user/({UID})/\w+/({SIMULATION_ID})/(\w+)/?$", re.ASCII)
_SBATCH_RUN_DIR = re.compile(rf"/user/{UID}/\w+/({JID})/?$", re.ASCII)
_FULL_ID = re.compile(r"[A-Za-z0-9]{32}", re.ASCII)
_PREFIX = re.compile(r"[A-Za-z0-9]{4}", re.ASCII)


def system_job_id(system: str, native: str | int) -> JobId:
    """The id of a job whose system gives mere numbers: `balsam/12`, `slurm/22_1`.

    A label that tells two installations of one system apart is part of `system`: `balsam@host`.
    """
    return JobId(f"{system}/{native}")


class Numbered(NamedTuple):
    """The parts of the id of a job whose system gives mere numbers.

    `label` tells its server from others, "" for the only one.
    """

    system: str
    label: str
    number: str


LABEL = r"[A-Za-z0-9.:-]{1,200}"
"""What tells a server from others of its system."""
NUMBER = r"\d{1,18}(?:[_+]\d{1,9})?"
"""The number of a job, of a task of a Slurm array (`22_1`), of a part of a job of several (`22+1`)."""
_NUMBERED = re.compile(rf"([a-z]+)(?:@({LABEL}))?/({NUMBER})", re.ASCII)


def numbered(text: str) -> Numbered | None:
    """The parts of `balsam/12` or `balsam@host/12`, None when `text` is neither."""
    match = _NUMBERED.fullmatch(text)
    return None if match is None else Numbered(match[1], match[2] or "", match[3])


class JidParts(NamedTuple):
    """The parts of a computeJid."""

    uid: Uid
    simulation_id: SimulationId
    model: str


@lru_cache(LATELY)
def split_jid(text: str) -> JidParts | None:
    """The parts of a computeJid, None when `text` is not one."""
    match = _JID.fullmatch(text)
    if match is None:
        return None
    return JidParts(Uid(match["uid"]), SimulationId(match["simulation_id"]), match["model"])


def is_quasi_jid(jid: str) -> bool:
    """Whether a computeJid is the record of a stateful or stateless compute call, not of a simulation."""
    return "-_1_st" in jid


@lru_cache(LATELY)
def jid_of_run_dir(run_dir: str) -> JobId | None:
    """The computeJid that a run directory belongs to, None when the path is not one.

    Local and Docker: `.../user/<uid>/<app>/<simulationId>/<model>`.
    sbatch: `.../user/<uid>/<app>/<computeJid>`.
    """
    if match := _LOCAL_RUN_DIR.search(run_dir):
        return JobId("-".join(match.groups()))
    if match := _SBATCH_RUN_DIR.search(run_dir):
        return JobId(match[1])
    return None


def database_root(run_dir: str) -> str | None:
    """The database root a local or Docker run directory lies in; None for any other, as one on a cluster."""
    match = _LOCAL_RUN_DIR.search(run_dir)
    return run_dir[: match.start()] if match else None


def app_of_run_dir(run_dir: str) -> str | None:
    """The simulation type named in a run directory path, None when the path is not a run directory."""
    match = _LOCAL_RUN_DIR.search(run_dir) or _SBATCH_RUN_DIR.search(run_dir)
    return match[0].split("/")[3] if match else None


class ContainerParts(NamedTuple):
    """What the name of a Docker agent's container says."""

    kind: str
    uid: Uid


def split_container(text: str) -> ContainerParts | None:
    """Kind (`sequential` or `parallel`) and user of a container name, None when `text` is not one."""
    match = _CONTAINER.fullmatch(text)
    if match is None:
        return None
    return ContainerParts("parallel" if match["kind"] == "p" else "sequential", Uid(match["uid"]))


def is_full_id(text: str) -> bool:
    """Whether `text` has the form of a full op or agent id."""
    return _FULL_ID.fullmatch(text) is not None


def is_prefix(text: str) -> bool:
    """Whether `text` has the form of an op or agent prefix as logs show it."""
    return _PREFIX.fullmatch(text) is not None


def op_prefix(op_id: str) -> OpPrefix:
    """What logs show of an op id."""
    return OpPrefix(op_id[:PREFIX_LENGTH])


def agent_prefix(agent_id: str) -> AgentPrefix:
    """What may be shown of an agent id, which is a secret."""
    return AgentPrefix(agent_id[:PREFIX_LENGTH])
