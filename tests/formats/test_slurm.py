"""What Slurm's commands print: every form of it gives the same jobs, and nothing makes a parser raise."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.slurm import SQUEUE, ends_in_json, jobs_with_steps, pieces_of, queued_job, shown_jobs
from jobtui.model.clock import SECOND
from jobtui.model.jobs import JobStatus
from jobtui.model.slurm import STATUSES, SlurmExit, SlurmJob
from tests.builders import some
from tests.offenders import each
from tests.rows import ROWS
from tests.slurm_stand_in import CAPTURES, DIRECTORY, captured_jobs, psv_rows

FORMS = sorted(captured_jobs())
DEFAULTS = SlurmJob(id="")


@each(*FORMS)
def test_every_form_gives_the_same_jobs(form: str) -> None:
    everything = captured_jobs()
    best, jobs = everything["scontrol-show-job.txt"], everything[form]
    assert jobs.keys() == best.keys()
    for job_id, job in jobs.items():
        for name in SlurmJob.__struct_fields__:
            told, known = getattr(job, name), getattr(best[job_id], name)
            untold = told == getattr(DEFAULTS, name) or known == getattr(DEFAULTS, name)
            assert (
                told == known or untold or (name == "reason" and "sacct" in form)
            )  # an older one, (job_id, name, told, known)


def test_steps_belong_to_the_job_before_them_and_a_name_is_never_read_as_fields() -> None:
    jobs = {job.id: job for job in jobs_with_steps(psv_rows("sacct-all.psv"))}
    (batch,) = jobs["3"].steps
    assert (batch.id, batch.state, batch.exit, batch.max_rss) == ("batch", "FAILED", SlurmExit(15), "4900K")
    real = (CAPTURES / "scontrol-show-job-oneline.txt").read_text().splitlines()[0]
    name = "x UserId=root(0) GroupId=root(0) MCS_label=N/A JobState=RUNNING StdOut=/etc/passwd"
    ((job, said),) = shown_jobs(real.replace("JobName=beam-scan", f"JobName={name}"))
    assert (job.name, job.user, job.state) == (name, "jobuser", "COMPLETED")
    assert said["StdOut"] == f"{DIRECTORY}/beam-1.out"
    assert next(shown_jobs(real.replace("=COMPLETED", "=CANCELLED").replace("=0:0", "=0:54")))[0].not_started
    assert [*shown_jobs("JobId=1 JobState=FAILED\n")] == []


HOSTILE = 'a|b\nUserId=root(0) GroupId=root(0) MCS_label=N/A ~x~\nJobId=9 JobName=y\x1b[31m [/] "\\\x00'


@given(name=st.text(max_size=60) | st.just(HOSTILE), after=st.text(max_size=20))
def test_a_table_is_read_with_any_name_in_it(name: str, after: str) -> None:
    separator = "~0123456789~"
    name, after = name.replace(separator, ""), after.replace(separator, "")
    row = {field: "" for field in SQUEUE} | {"%i": "7_3", "%T": "FAILED", "%j": name, "%Z": after}
    whole = "".join(f"{''.join(value + separator for value in row.values())}\n" for _ in range(2))
    rows, skips = pieces_of(whole.encode("utf-8", "replace"), separator, len(SQUEUE), "squeue")
    assert not skips
    for found in rows:
        job = some(queued_job(dict(zip(SQUEUE, found, strict=True))))
        assert (job.id, job.name.encode("utf-8", "replace")) == ("7_3", name.encode("utf-8", "replace"))


@each(*range(32))
def test_a_table_that_was_cut_off_loses_its_last_row(kept: int) -> None:
    row = "".join(f"{value}~" for value in ("1", "name", "RUNNING"))
    rows, skips = pieces_of(f"{row}\n{row}"[:kept].encode(), "~", 3, "squeue")
    assert len(list(rows)) == (kept >= len(row)) + (kept > 2 * len(row))
    is_whole = kept in (0, len(row), len(row) + 1, 2 * len(row) + 1)
    assert len(skips) == (0 if is_whole else 1)


@each("24.05", "24.11")
def test_the_end_of_a_job_is_read_of_later_releases(release: str) -> None:
    path = CAPTURES / "shapes" / f"{release}-accounting.json"
    ((number, end),) = ends_in_json(path.read_bytes()).items()
    assert (number, end.state, end.exit) == ("42", "FAILED", SlurmExit(3))
    assert end.submitted_at == 1795206870 * SECOND
    if release == "24.11":  # 24.05 tells neither
        assert (end.stdout, end.stderr) == ("/home/jdoe/fel-42.out", "/home/jdoe/fel-42.err")


@each(*ROWS["signals in Slurm's JSON"])
def test_the_signal_that_ended_a_job_is_read_of_every_release(signal: object, code: object) -> None:
    told = {"signal": signal, "return_code": code}
    text = json.dumps({"jobs": [{"job_id": 5, "state": {"current": ["FAILED"]}, "exit_code": told}]})
    assert ends_in_json(text.encode())["5"].exit == SlurmExit(0, 9)


@each("", "[]", "{}", '{"jobs": {}}', "[" * 100_000, '{"jobs": [1, null, {}]}')
def test_bytes_that_are_not_an_answer_raise_value_error_or_give_nothing(text: str) -> None:
    try:
        assert ends_in_json(text.encode()) == {}
    except ValueError:
        assert "jobs" not in text or text == '{"jobs": {}}'


@each(*sorted(STATUSES))
def test_an_expected_time_is_not_a_fact(state: str) -> None:
    row = {"%i": "1", "%T": state, "%S": "2026-11-20T20:10:00", "%e": "2026-11-20T21:10:00", "%N": "n1"}
    job = some(queued_job(row))
    assert (job.started_at is None) == (job.status is JobStatus.PENDING)
    assert (job.ended_at is None) == job.status.is_live
    assert msgspec.json.decode(msgspec.json.encode(job), type=SlurmJob) == job
