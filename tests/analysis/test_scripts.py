"""What a script and its environment say: their lines, where output goes, and how two differ."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.compare import FileDiff, RunSide, choose
from jobtui.analysis.scripts import (
    RowKind,
    diff_scripts,
    masked_script,
    outputs_of,
    shown_variable,
    unified,
    wanted_of_sirepo,
    wanted_of_slurm,
)
from jobtui.backends.job_reader import JobReader
from jobtui.model import scripts as model
from jobtui.model.job_reader import FilePart, SbatchStatus, Unreadable
from jobtui.model.jobs import Job, JobDetail, JobStatus, Run
from jobtui.model.secret_words import MASK
from jobtui.render.job_files import head_facts
from jobtui.session import Session
from jobtui.session.comparison import texts_compared
from jobtui.session.evidence import Gatherer
from tests.builders import a_job, ago, some
from tests.offenders import each
from tests.rows import ROWS


def a_script(text: str, number: str = "7", **variables: str) -> model.ArchivedScript:
    pairs = tuple(model.Variable(name.encode(), value.encode()) for name, value in variables.items())
    made = model.Environment(pairs)
    return model.ArchivedScript(number=number, script=text.encode(), source="here", environment=made)


def test_secrets_of_scripts_and_environments_are_masked_and_nothing_else() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"
    script = f"#!/bin/sh\nexport API_TOKEN=abc123\ncat <<E\n{key}\nE\necho ok\n".encode()
    text = masked_script(script)
    assert "abc123" not in text
    assert "MIIEow" not in text
    assert text.count("\n") == script.count(b"\n")
    plain = "#!/bin/sh\nfor i in 1 2; do\techo $i; done\n"
    assert masked_script(plain.encode()) == plain
    made = a_script("", DB_PASSWORD="hunter2", URL="postgres://me:hunter2@db/x", PLAIN="a=b\nc", EMPTY="")
    shown = dict(map(shown_variable, some(made.environment).variables))
    assert "hunter2" not in str(shown)
    assert (shown["DB_PASSWORD"], shown["PLAIN"], shown["EMPTY"]) == (MASK, "a=b\nc", "")


@each(*ROWS["output of a Slurm script"])
def test_the_script_of_a_slurm_job_names_its_outputs(script: str, wanted: str, paths: list[str]) -> None:
    number, _, task = wanted.partition("_")
    made = a_script(f"#!/bin/sh\n{script}", SLURM_SUBMIT_DIR="/w", USER="me")
    found = outputs_of(made, model.Wanted(number, task))
    assert [output.path for output in found] == paths


@each(*ROWS["output of a Torque job"])
def test_the_script_of_a_torque_job_names_its_outputs(script: str, paths: list[str]) -> None:
    torque = model.Scheduler.TORQUE
    made = model.ArchivedScript(number="7.m", script=script.encode(), source="x", scheduler=torque)
    assert [output.path for output in outputs_of(made, model.Wanted("7"))] == paths


@each(*ROWS["noise in scripts"])
def test_noise_is_folded(one: str, other: str, is_noise: bool) -> None:
    found = diff_scripts(a_script(f"a\n{one}\nb\n", "7"), a_script(f"a\n{other}\nb\n", "8"))
    assert (found.is_same, found.folded) == (is_noise, int(is_noise))
    assert bool(list(unified(found.rows))) is not is_noise


def test_scripts_and_environments_are_compared() -> None:
    this = a_script("#!/bin/sh\nmodule load a/2\nrun\nend\n", A="1", SAME="x", NEW="y", TOKEN="one")
    other = a_script("#!/bin/sh\nmodule load a/1\nrun\nmore\nend\n", A="2", SAME="x", OLD="z", TOKEN="two")
    found = diff_scripts(this, other)
    assert list(unified(found.rows)) == [
        "@@ -1,5 +1,4 @@", " #!/bin/sh", "-module load a/1", "+module load a/2", " run", "-more", " end",
    ]  # fmt: skip
    told = {one.name: (one.kind, one.this, one.other) for one in found.variables}
    assert told.pop("TOKEN") == (RowKind.CHANGED, MASK, MASK)
    assert {name: kind for name, (kind, _, _) in told.items()} == {
        "A": RowKind.CHANGED, "SAME": RowKind.SAME, "NEW": RowKind.THIS, "OLD": RowKind.OTHER,
    }  # fmt: skip


LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


@given(LINES, LINES)
def test_a_unified_difference_turns_the_other_into_this(this: list[str], other: list[str]) -> None:
    both = diff_scripts(a_script("".join(f"{x}\n" for x in this)), a_script("".join(f"{x}\n" for x in other)))
    assert [row.this for row in both.rows if row.this is not None] == this
    assert [row.other for row in both.rows if row.other is not None] == other
    assert both.is_same is (this == other)


def test_signs_of_a_path_that_are_not_known_are_said_beside_it() -> None:
    script = a_script("#!/bin/sh\n#SBATCH -o %x.%N.%j.%%d -e %q\n#SBATCH -J beam\n")
    told = outputs_of(script, model.Wanted("7"))
    assert [output.unknown for output in told] == ["%N", "%q"]
    assert any("%N is not known here" in text for _, text in head_facts(script, told))


def test_large_scripts_are_compared_as_far_as_is_quick() -> None:
    this, other = (a_script("".join(f"{letter}{n}\n" for n in range(40_000))) for letter in "xy")
    assert "only" in diff_scripts(this, other).note
    this, other = (a_script(head + "".join(f"x{n}\n" for n in range(29_000))) for head in ("", "head\n"))
    assert diff_scripts(this, other).note == ""


def test_the_last_good_job_is_of_the_same_name_and_user() -> None:
    good, bad = JobStatus.COMPLETED, JobStatus.FAILED
    rows = (
        ("50_2", 100, bad, "beam", "me"), ("50_1", 100, good, "beam", "me"), ("40", 200, good, "beam", "me"),
        ("45", 150, good, "other", "me"), ("46", 140, good, "beam", "you"), ("47", 130, bad, "beam", "me"),
        ("60", 50, good, "beam", "me"),
    )  # fmt: skip
    jobs = [
        slurm(f"slurm/{native}", queued_at=ago(age), status=status, name=name, owner=owner)
        for native, age, status, name, owner in rows
    ]
    assert some(choose(jobs[0], (), jobs)).job_id == jobs[2].id
    assert some(choose(jobs[0], (), [jobs[0], jobs[-1]])).job_id == jobs[-1].id
    assert choose(jobs[0], (), jobs[:2]) is None


def slurm(native: str, **fields: object) -> Job:
    known = {"status": JobStatus.COMPLETED, "queued_at": ago(100), **fields}
    return a_job(id=native, system="slurm", **known)


def wanted_of(job: Job, *runs: Run, **native: Any) -> model.Wanted:
    return some(wanted_of_slurm(job, JobDetail(job=job, runs=runs, history=(), native=native)))


def test_wanted_of_names_the_script_of_slurm_and_sirepo_jobs() -> None:
    for native, task in (("slurm/22", ""), ("slurm/22_1", "1"), ("slurm@login1/22_1", "1")):
        job = slurm(native)
        assert wanted_of_slurm(job) == model.Wanted("22", task, submitted_at=job.queued_at)
    assert wanted_of(slurm("slurm@login1/22"), slurm={"cluster": "huppel"}).cluster == "huppel"
    failed: Any = {"status": JobStatus.FAILED, "native_status": ""}
    runs = (Run(number=n, queued_at=ago(at), **failed) for n, at in ((1, 900), (2, 100)))
    assert wanted_of(slurm("slurm/22"), *runs).submitted_at == ago(900)
    assert wanted_of_slurm(a_job(1)) is wanted_of_slurm(a_job(id="balsam/7", system="balsam")) is None
    noted = SbatchStatus("running", "4007", submitted_at=ago(50))
    assert wanted_of_sirepo(noted) == model.Wanted("4007", submitted_at=ago(50))
    assert wanted_of_sirepo(SbatchStatus("pending")) is None


@each(*ROWS["jobs of Slurm with and without a script"])
def test_srun_and_salloc_have_no_script(native: dict[str, Any], status: str, is_batch: bool) -> None:
    assert wanted_of(slurm("slurm/22", status=JobStatus(status)), **native).is_batch is is_batch


class Shelf:
    """A `JobReader` without files, and scripts by the number of their job."""

    def __init__(self, *scripts: model.ArchivedScript) -> None:
        self._scripts = {script.number: script for script in scripts}

    async def read_file(self, path: str, name: str, *, tail: bool) -> FilePart:
        raise Unreadable(f"{path}/{name}: is not there")

    async def script(self, wanted: model.Wanted) -> model.Answer:
        found = self._scripts.get(wanted.number)
        outcome = model.Outcome.FOUND if found else model.Outcome.NOT_THERE
        return model.Answer(found, (model.Tried("/archive", outcome),))


async def differing(*scripts: model.ArchivedScript) -> dict[str, FileDiff]:
    jobs = (a_job(number, id=f"slurm/{number}", system="slurm") for number in (7, 8))
    sides = (RunSide(job, None, (), None, (), JobDetail(job=job)) for job in jobs)
    gatherer = Gatherer(Session([]).store, cast(JobReader, Shelf(*scripts)), ago(0))
    return {file.name: file for file in await texts_compared(gatherer, *sides)}


async def test_archived_scripts_and_environments_are_compared_and_noise_counted() -> None:
    one = a_script("#!/bin/sh\nsrun a\n", "7", N="1", API_TOKEN="hush", SAME="x")
    two = a_script("#!/bin/sh\nsrun b\n", "8", N="2", API_TOKEN="hush2", SAME="x")
    found = await differing(one, two)
    assert found["script"].lines == ("-srun b", "+srun a")
    assert {"-N=2", "+N=1"} <= set(found["environment"].lines)
    assert "hush" not in str(found)
    assert not any("SAME" in line for line in found["environment"].lines)
    found = await differing(*(a_script(f"date 2026-11-2{n}\nsrun a\n", str(n)) for n in (7, 8)))
    told = found["script"]
    assert (told.lines, told.note) == ((), "the same; 1 more differ in dates, ids and ports only")
