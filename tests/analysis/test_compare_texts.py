"""What is kept of two runs, put beside each other: inputs, scripts, environments; never a secret."""

from collections.abc import Mapping
from typing import cast

from jobtui.analysis.compare import FileDiff, Side, compare
from jobtui.analysis.compare_texts import Kept, texts_compared
from jobtui.model.job_desk import FilePart, JobDesk, Unreadable
from jobtui.model.jobs import Job
from jobtui.model.scripts import Answer, ArchivedScript, Environment, Outcome, Tried, Variable, Wanted
from tests.analysis.captured import correlate, logs
from tests.builders import a_job, an_agent
from tests.conftest import NOW


class Shelf:
    """A desk with these files, and scripts by the number of their job."""

    def __init__(self, files: Mapping[str, str], scripts: Mapping[str, ArchivedScript]) -> None:
        self._files = files
        self._scripts = scripts

    async def read_file(self, path: str, name: str, *, tail: bool) -> FilePart:
        if (text := self._files.get(f"{path}/{name}")) is None:
            raise Unreadable(f"{path}/{name}: is not there")
        return FilePart(name=name, text=text, begin=0, size=len(text), written_at=NOW)

    async def script(self, wanted: Wanted) -> Answer:
        found = self._scripts.get(wanted.number)
        return Answer(found, (Tried("/archive", Outcome.FOUND if found else Outcome.NOT_THERE),))


def desk(files: Mapping[str, str] | None = None, *scripts: ArchivedScript) -> JobDesk:
    return cast(JobDesk, Shelf(files or {}, {script.number: script for script in scripts}))


def archived(number: str, script: bytes, **variables: str) -> ArchivedScript:
    kept = tuple(Variable(name.encode(), value.encode()) for name, value in variables.items())
    return ArchivedScript(
        number=number, script=script, source=f"/archive/{number}", environment=Environment(kept)
    )


def kept(job: Job, *dirs: str) -> Kept:
    return Kept(Side(job, None, ()), dirs, None)


def slurm(number: int) -> Kept:
    return kept(a_job(number, id=f"slurm/{number}", system="slurm"))


def named(files: tuple[FileDiff, ...]) -> dict[str, FileDiff]:
    return {file.name: file for file in files}


async def test_inputs_differ_by_content_and_secrets_are_masked() -> None:
    files = {
        "/a/in.json": '{"size": 3, "password": "hush1"}',
        "/b/in.json": '{"password": "hush2", "size": 4}',
        "/b/parameters.py": "x = 1",
    }
    found = named(await texts_compared(desk(files), kept(a_job(1), "/gone", "/a"), kept(a_job(2), "/b")))
    assert {'- "size": 4', '+ "size": 3'} <= set(found["in.json"].lines)
    assert "hush" not in str(found)
    assert found["parameters.py"].note == "/gone/parameters.py: is not there"
    assert "script" not in found


async def test_jobs_of_slurm_have_no_files_of_inputs_to_miss() -> None:
    for other in (slurm(7), slurm(8)):
        found = named(await texts_compared(desk(), slurm(7), other))
        assert not found.keys() & {"in.json", "parameters.py"}


async def test_scripts_and_environments_where_both_are_archived() -> None:
    one = archived("7", b"#!/bin/sh\nsrun a\n", N="1", API_TOKEN="hush", SAME="x")
    two = archived("8", b"#!/bin/sh\nsrun b\n", N="2", API_TOKEN="hush2", SAME="x")
    found = named(await texts_compared(desk({}, one, two), slurm(7), slurm(8)))
    assert found["script"].lines == ("-srun b", "+srun a")
    assert {"-N=2", "+N=1"} <= set(found["environment"].lines)
    assert "hush" not in str(found)
    assert not any("SAME" in line for line in found["environment"].lines)


async def test_what_differs_between_any_two_jobs_is_only_counted() -> None:
    one, two = (archived(str(n), b"date 2026-11-2%d\nsrun a\n" % n) for n in (7, 8))
    found = named(await texts_compared(desk({}, one, two), slurm(7), slurm(8)))
    assert found["script"].lines == ()
    assert found["script"].note == "the same; 1 more differ in dates, ids and ports only"


async def test_a_script_that_is_not_archived_is_said_to_be_missing() -> None:
    found = named(await texts_compared(desk({}, archived("7", b"x\n")), slurm(7), slurm(8)))
    assert found["script"].note == "none of slurm/8 was found (/archive: not there)"


def test_container_and_image_are_facts_of_a_side() -> None:
    good, bad = (an_agent(image=f"radiasoft/sirepo:{tag}") for tag in ("prod", "dev"))
    found = compare(Side(a_job(1), None, (), bad), Side(a_job(2), None, (), good), "", NOW)
    facts = {pair.name: pair for pair in found.facts}
    assert facts["image"].differs
    assert facts["container"].left == "srj-p-EPRSqtUW"
    assert not facts["host"].differs


def test_the_image_is_the_one_that_docker_was_told() -> None:
    for capture in ("docker-debug", "legacy-2020"):
        agents = correlate(logs(capture)).agents()
        assert {agent.image for agent in agents if agent.image} == {"radiasoft/sirepo:dev"}, capture
