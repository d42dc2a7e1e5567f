"""What a script and its environment say: their lines, where output goes, and how two differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.job_outputs import filled, outputs_of
from jobtui.analysis.last_good import last_good_like
from jobtui.analysis.script_diff import Kind, diff_scripts, unified, without_noise
from jobtui.analysis.script_text import masked_script, pieces, shown_variables
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.scripts import ArchivedScript, Environment, Scheduler, Variable, Wanted
from jobtui.model.secrets import MASK
from tests.builders import a_job, ago


def a_script(text: str | bytes, number: str = "7", **variables: str) -> ArchivedScript:
    pairs = tuple(Variable(name.encode(), value.encode()) for name, value in variables.items())
    data = text.encode() if isinstance(text, str) else text
    return ArchivedScript(number=number, script=data, source="here", environment=Environment(pairs))


@given(st.text())
def test_pieces_are_the_line(line: str) -> None:
    assert "".join(piece.text for piece in pieces(line)) == line


def test_secrets_are_masked_and_nothing_else() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"
    script = f"#!/bin/sh\nexport API_TOKEN=abc123\ncat <<E\n{key}\nE\necho ok\n".encode()
    text = masked_script(script)
    assert "abc123" not in text
    assert "MIIEow" not in text
    assert text.count("\n") == script.count(b"\n")
    plain = "#!/bin/sh\nfor i in 1 2; do\techo $i; done\n"
    assert masked_script(plain.encode()) == plain


def test_environments_are_masked_by_name_and_by_content() -> None:
    script = a_script("", DB_PASSWORD="hunter2", URL="postgres://me:hunter2@db/x", PLAIN="a=b\nc", EMPTY="")
    assert script.environment is not None
    shown = {one.name: one.value for one in shown_variables(script.environment)}
    assert "hunter2" not in str(shown)
    assert (shown["DB_PASSWORD"], shown["PLAIN"], shown["EMPTY"]) == (MASK, "a=b\nc", "")


@pytest.mark.parametrize(
    ("script", "wanted", "paths"),
    [
        ("", Wanted("7"), ["/w/slurm-7.out"]),
        ("", Wanted("7", "2"), ["/w/slurm-7_2.out"]),
        ("#SBATCH -a 1-9\n", Wanted("7"), ["/w/slurm-7_%a.out"]),
        ("#SBATCH --output=%x.%j.log\n#SBATCH -J beam\n", Wanted("7"), ["/w/beam.7.log"]),
        ("#SBATCH -o%5j.o -e %j.e\n", Wanted("7"), ["/w/00007.o", "/w/7.e"]),
        ("#SBATCH --output a_%A_%a\n", Wanted("7", "12"), ["/w/a_7_12"]),
        ("#SBATCH --output=/abs/%u/100%%\n", Wanted("7"), ["/abs/me/100%"]),
        ("#SBATCH -D sub --output='a b'\n", Wanted("7"), ["/w/sub/a b"]),
        ("#SBATCH --output=x --error=x\n", Wanted("7"), ["/w/x"]),
        ("#SBATCH --output=first\n#SBATCH --output=last\n", Wanted("7"), ["/w/last"]),
        ("echo hi\n#SBATCH --output=late\n", Wanted("7"), ["/w/slurm-7.out"]),
        ('#SBATCH --output="open\n', Wanted("7"), ['/w/"open']),
    ],
)
def test_where_the_output_of_a_slurm_job_goes(script: str, wanted: Wanted, paths: list[str]) -> None:
    found = outputs_of(a_script(f"#!/bin/sh\n{script}", SLURM_SUBMIT_DIR="/w", USER="me"), wanted)
    assert [output.path for output in found] == paths


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("#PBS -N beam\n", ["beam.o7", "beam.e7"]),
        ("#PBS -N beam -j oe\n", ["beam.o7"]),
        ("#PBS -o host:/logs/ -e err.txt\n", ["/logs/STDIN.o7", "err.txt"]),
    ],
)
def test_where_the_output_of_a_torque_job_goes(script: str, paths: list[str]) -> None:
    made = ArchivedScript(number="7.m", script=script.encode(), source="x", scheduler=Scheduler.TORQUE)
    assert [output.path for output in outputs_of(made, Wanted("7"))] == paths


@given(st.text(), st.dictionaries(st.sampled_from("jAaxu"), st.text()))
def test_any_pattern_can_be_filled(pattern: str, values: dict[str, str]) -> None:
    filled(pattern, values)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("date 2026-11-20T20:50:23Z", "date 2025-01-02 03:04:05"),
        ("run_20261120_2050", "run_20250102_0304"),
        ("id 6f1c2a3b-1111-2222-3333-444455556666", "id 00000000-aaaa-bbbb-cccc-ddddeeeeffff"),
        ("url http://h:8001/x", "url http://h:43210/x"),
        ("--port=8001", "--port=9999"),
        ("t=1795207823", "t=1795999999"),
        ("out-7.log", "out-8.log"),
    ],
)
def test_noise_is_folded(one: str, other: str) -> None:
    found = diff_scripts(a_script(f"a\n{one}\nb\n", "7"), a_script(f"a\n{other}\nb\n", "8"))
    assert found.is_same
    assert found.folded == 1
    assert not list(unified(found.rows))


@pytest.mark.parametrize(("one", "other"), [("seed 1000", "seed 1001"), ("a=b", "a=c"), ("x 12", "x 13")])
def test_what_is_no_noise_is_not(one: str, other: str) -> None:
    assert without_noise(one) != without_noise(other)


def test_scripts_and_environments_are_compared() -> None:
    this = a_script("#!/bin/sh\nmodule load a/2\nrun\nend\n", A="1", SAME="x", NEW="y", TOKEN="one")
    other = a_script("#!/bin/sh\nmodule load a/1\nrun\nmore\nend\n", A="2", SAME="x", OLD="z", TOKEN="two")
    found = diff_scripts(this, other)
    assert list(unified(found.rows)) == [
        "@@ -1,5 +1,4 @@", " #!/bin/sh", "-module load a/1", "+module load a/2", " run", "-more", " end",
    ]  # fmt: skip
    kinds = {variable.name: variable.kind for variable in found.variables}
    assert kinds == {
        "A": Kind.CHANGED, "SAME": Kind.SAME, "NEW": Kind.THIS, "OLD": Kind.OTHER, "TOKEN": Kind.CHANGED,
    }  # fmt: skip
    token = next(variable for variable in found.variables if variable.name == "TOKEN")
    assert (token.this, token.other) == (MASK, MASK)


LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


@given(LINES, LINES)
def test_a_unified_difference_turns_the_other_into_this(this: list[str], other: list[str]) -> None:
    found = diff_scripts(
        a_script("".join(f"{x}\n" for x in this)), a_script("".join(f"{x}\n" for x in other))
    )
    assert [row.this for row in found.rows if row.this is not None] == this
    assert [row.other for row in found.rows if row.other is not None] == other
    assert found.is_same is (this == other)


def test_large_scripts_are_compared_as_far_as_is_quick() -> None:
    this = a_script("".join(f"x{n}\n" for n in range(30_000)))
    other = a_script("".join(f"y{n}\n" for n in range(30_000)))
    assert "only" in diff_scripts(this, other).note
    alike = a_script("head\n" + "".join(f"x{n}\n" for n in range(30_000)))
    assert diff_scripts(this, alike).note == ""


def test_the_last_good_job_is_of_the_same_name_and_user() -> None:
    def job(native: str, age: float, status: JobStatus = JobStatus.COMPLETED, **more: object) -> Job:
        return a_job(
            id=f"slurm/{native}",
            system="slurm",
            queued_at=ago(age),
            status=status,
            **{"name": "beam", "owner": "me", **more},
        )

    failed = job("50_2", 100, JobStatus.FAILED)
    jobs = [
        failed, job("50_1", 100), job("40", 200), job("45", 150, name="other"), job("46", 140, owner="you"),
        job("47", 130, JobStatus.FAILED), job("60", 50),
    ]  # fmt: skip
    assert last_good_like(failed, jobs) == jobs[2]
    assert last_good_like(failed, [jobs[0], jobs[-1]]) == jobs[-1]
    assert last_good_like(failed, jobs[:2]) is None
