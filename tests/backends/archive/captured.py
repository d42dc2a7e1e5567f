"""What SArchive and Slurm wrote, unpacked where a test may write, and the truth to compare with."""

import json
import os
import shutil
import tarfile
from functools import cache
from pathlib import Path

from jobtui.backends.archive.source import DirectorySearch
from jobtui.formats.sarchive import parse_wanted
from jobtui.model.clock import Nanos, from_seconds
from jobtui.model.scripts import Answer, ArchivedScript
from tests.builders import some

FIXTURES = Path(__file__).parents[2] / "fixtures" / "sarchive"
JOBS = tuple(str(number) for number in range(1, 13))
DAY = "20261120"
SUBMITTED = from_seconds(1_795_207_823)
"""2026-11-20 20:50:23 UTC, when the jobs of the captures were submitted."""
TORQUE = "2720868.master.cluster.lab"


def script_of(number: str) -> bytes:
    return (FIXTURES / "slurm-daily" / DAY / f"job.{number}_script").read_bytes()


def environment_of(number: str) -> dict[bytes, bytes]:
    """The environment of a job, taken apart without the program's own parser."""
    data = (FIXTURES / "slurm-daily" / DAY / f"job.{number}_environment").read_bytes()
    pairs = (entry.split(b"=", 1) for entry in data[4:].split(b"\0")[:-1])
    return {name: value for name, value in pairs}


@cache
def documents() -> list[dict[str, object]]:
    lines = (FIXTURES / "kafka-and-es-documents.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def archive_in(place: Path, period: str, *, at: Nanos = SUBMITTED) -> Path:
    directory = place / period if period else place
    directory.mkdir(parents=True, exist_ok=True)
    for file in (FIXTURES / "slurm-daily" / DAY).iterdir():
        shutil.copy(file, directory)
        os.utime(directory / file.name, ns=(at, at))
    return place


def torque_in(place: Path) -> Path:
    shutil.copytree(FIXTURES / "torque-yearly", place, dirs_exist_ok=True)
    return place


def spool_in(place: Path) -> Path:
    with tarfile.open(FIXTURES / "spool.tar.gz") as packed:
        packed.extractall(place, filter="data")
    return place


def look(place: Path, text: str, cluster: str = "", **more: object) -> Answer:
    wanted = some(parse_wanted(text))
    return DirectorySearch(str(place), cluster, wanted._replace(**more), SUBMITTED).answer()  # type: ignore[arg-type]


def found(place: Path, text: str, cluster: str = "", **more: object) -> ArchivedScript:
    return some(look(place, text, cluster, **more).script)


def check(script: ArchivedScript | None, number: str) -> None:
    assert script is not None
    assert script.environment is not None
    assert (script.script, dict(script.environment.variables)) == (script_of(number), environment_of(number))
