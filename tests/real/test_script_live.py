"""Scripts out of a real Slurm with accounting: exact from slurmctld and its spool, as text from slurmdbd."""

from collections.abc import Iterator

import pytest

from jobtui.backends.archive.source import ArchiveDirectory
from jobtui.backends.slurm.client import Commands
from jobtui.backends.slurm.source import Slurm, find_kept
from jobtui.model.scripts import Wanted
from tests.commands.running import Runner
from tests.real.slurm_system import START_S, SlurmSystem, a_cluster
from tests.waiting import wait_for

pytestmark = pytest.mark.real
SCRIPT = b"#!/bin/sh\n#SBATCH -J live\n#SBATCH -o out-%j.txt\n\nprintf 'caf\xe9'\necho $MULTI"


@pytest.fixture(scope="module")
def system() -> Iterator[SlurmSystem]:
    yield from a_cluster()


@pytest.fixture
def number(system: SlurmSystem, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job that has ended, with a variable of two lines."""
    monkeypatch.setenv("SLURM_CONF", str(system.conf))
    monkeypatch.setenv("MULTI", "one\ntwo three")
    (system.work / "live.sh").write_bytes(SCRIPT)
    system.submit_words([str(system.work / "live.sh")])  # the first of a cluster is not always kept
    submitted = system.submit_words(["--export=MULTI,HOME", str(system.work / "live.sh")])
    wait_for(
        lambda: "echo $MULTI" in system.run("sacct", "-j", submitted, "--batch-script"), timeout_s=START_S
    )
    wait_for(lambda: "COMPLETED" in system.run("sacct", "-nXj", submitted, "-o", "State"), timeout_s=START_S)
    return submitted


async def test_slurmctld_its_spool_and_accounting_have_the_same(system: SlurmSystem, number: str) -> None:
    live = (await Slurm(Commands("local")).find(Wanted(number))).script
    spool = ArchiveDirectory(str(system.root / "ctld"))
    copied = (await spool.find(Wanted(number))).script
    await spool.aclose()
    assert live is not None
    assert copied is not None
    assert live.script == copied.script == SCRIPT
    assert live.environment is not None
    assert copied.environment is not None
    assert copied.environment.is_whole
    assert dict(live.environment.variables) == dict(copied.environment.variables)
    assert live.environment.value("MULTI") == "one\ntwo three"


async def test_accounting_alone_has_it_as_text(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands("local")
    forgotten = await commands.scontrol("write", "batch_script", "999999", "-")
    assert "Invalid job id" in forgotten.stderr

    async def scontrol(*words: str) -> object:
        return forgotten

    monkeypatch.setattr(commands, "scontrol", scontrol)
    kept = (await find_kept(commands, Wanted(number))).script
    assert kept is not None
    assert kept.script == SCRIPT.replace(b"\xe9", b"?")


def test_the_command_prints_it(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = Runner(capsys)("script", number, "--slurm", "local", "--json").json
    assert document["script"].startswith("#!/bin/sh\n#SBATCH -J live\n")
    assert document["outputs"][0]["path"].endswith(f"out-{number}.txt")
    assert document["outputs"][0]["said_by"] == "the scheduler"


def test_a_job_of_srun_has_none(
    system: SlurmSystem, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(system.conf))
    system.run("srun", "-J", "by-hand", "true")
    numbers = system.run("squeue", "-h", "-t", "all", "-n", "by-hand", "-o", "%i").split()
    ran = Runner(capsys)("script", numbers[-1], "--slurm", "local", "--json")
    assert ran.code == 4
    assert [one["result"] for one in ran.json["tried"]] == [
        "interactive job has none: srun and salloc submit no script"
    ]


def test_tasks_of_an_array_have_its_script_by_either_number(
    system: SlurmSystem, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(system.conf))
    (system.work / "array.sh").write_bytes(SCRIPT)
    array = system.submit_words(["--array=1-3", str(system.work / "array.sh")])
    wait_for(
        lambda: system.run("sacct", "-nXj", array, "-o", "State").split() == ["COMPLETED"] * 3,
        timeout_s=START_S,
    )
    raw = dict(
        line.split("|") for line in system.run("sacct", "-nXPj", array, "-o", "JobID,JobIDRaw").splitlines()
    )
    run = Runner(capsys)
    expected = SCRIPT.decode("utf-8", "backslashreplace")
    for named in (array, f"{array}_2", raw[f"{array}_1"]):
        document = run("script", named, "--slurm", "local", "--json").json
        assert (document["script"], document["number"]) == (expected, array), named
