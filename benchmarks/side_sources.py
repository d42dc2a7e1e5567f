"""The sources beside a simulated site, as far as this machine has the programs for them."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.journal_files import journal_remote
from benchmarks.side_archives import ElasticSide, KafkaSide
from benchmarks.side_condor import CondorSide
from benchmarks.side_files import AgentCopiesSide, ArchiveSide, TraceFileSide
from benchmarks.side_journals import GatewaySide, JournalSide, gatewayd
from benchmarks.side_receiver import ReceiverSide
from benchmarks.side_slurm import SlurmSide
from benchmarks.side_traces import JaegerSide, TempoSide
from benchmarks.sides import Side


def made_sides(directory: Path, root: Path) -> list[Side]:
    """Every kind that can be had, in a directory; agents' copies are below the database root of the site."""
    return list(_made(directory, root))


def left_out() -> dict[str, str]:
    """The kinds that cannot be had on this machine, and what is missing for each."""
    missing = {}
    if journal_remote() is None:
        missing[JournalSide.name] = "systemd-journal-remote"
    if gatewayd() is None:
        missing[GatewaySide.name] = "systemd-journal-gatewayd, -remote, systemd-socket-activate"
    if find_spec("confluent_kafka") is None:
        missing[KafkaSide.name] = "confluent-kafka"
    return missing


def _made(directory: Path, root: Path) -> Iterator[Side]:
    missing = left_out()
    yield TraceFileSide(directory / "traces")
    yield ArchiveSide(directory / "archive")
    yield AgentCopiesSide(root)
    yield SlurmSide(directory / "slurm")
    yield CondorSide(directory / "condor")
    yield ReceiverSide()
    yield JaegerSide()
    yield TempoSide()
    yield ElasticSide()
    if KafkaSide.name not in missing:
        yield KafkaSide()
    if JournalSide.name not in missing:
        yield JournalSide(directory / "v1")
    if GatewaySide.name not in missing:
        yield GatewaySide(directory / "v2")
