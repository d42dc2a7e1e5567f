"""The commands on a cluster: the captured one, answered by programs that stand in for Slurm's."""

import csv
import gzip
import io
import os
from pathlib import Path

import pytest

from tests.commands.running import AT, Runner, check_document, shown
from tests.slurm_stand_in import StandIn


@pytest.fixture
def cluster(cluster: StandIn) -> StandIn:
    return cluster.captured()


@pytest.fixture
def run(cluster: StandIn, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


LOCAL = ("--slurm", "local", "--at", AT)
ENDED_S = 1_795_206_000


def write(path: Path, text: str) -> None:
    """Write a file as of the end of a job."""
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    os.utime(path, (ENDED_S, ENDED_S))


def test_logs_print_the_jobs_own_output_and_no_others(run: Runner, cluster: StandIn, tmp_path: Path) -> None:
    for number in (31, 32):
        cluster.show(str(number), shown(number, tmp_path, "beam-%j.out", "beam-%j.err"))
        (tmp_path / f"beam-{number}.out").write_text("".join(f"{number}: line {at}\n" for at in range(5)))
    (tmp_path / "beam-31.err").write_bytes(b"caf\xe9 \x1b[31mred\n")
    ran = run(*LOCAL, "logs", "slurm/31", "--json")
    lines = ran.json["lines"]
    assert [line["text"] for line in lines[:5]] == [f"31: line {at}" for at in range(5)]
    assert (lines[4]["source"], lines[4]["line"]) == (f"{tmp_path}/beam-31.out", 5)
    assert lines[5]["text"].startswith("caf\ufffd")
    assert len(lines) == 6
    assert "\x1b" not in run(*LOCAL, "logs", "slurm/31").out
    assert len(run(*LOCAL, "logs", "slurm/31", "-n", "2", "--json").json["lines"]) == 2
    assert len(run(*LOCAL, "logs", "slurm/31", "--grep", "line [34]", "--json").json["lines"]) == 2
    (tmp_path / "beam-31.out").write_text("password:\nhunter2\nplain\n")
    texts = [line["text"] for line in run(*LOCAL, "logs", "slurm/31", "--json").json["lines"]]
    assert texts[:3] == ["password:", "***", "plain"]
    half = run(*LOCAL, "logs", "slurm/32", "--json")
    assert len(half.json["lines"]) == 5
    assert "its output beam-32.err" in half.err


@pytest.mark.parametrize("command", ["/home/u/run.sh", "/home/u/run.sh 12 /data/in.dat"])
def test_the_reason_is_found_where_its_own_script_writes_to(
    run: Runner, cluster: StandIn, tmp_path: Path, command: str
) -> None:
    cluster.queue({"%i": "32", "%A": "32", "%F": "32"})
    cluster.accounts({"JobID": "31", "JobIDRaw": "31", "State": "FAILED", "ExitCode": "3:0"})
    cluster.show("31", shown(31, tmp_path, "beam.out") + f"   Command={command}\n")
    for name in ("run", "other"):
        (tmp_path / f"{name}.sh").write_text(f"./solve > {name}.txt 2>&1\n")
        write(tmp_path / f"{name}.txt", f"ValueError: no cell in {name}\n")
    assert "after 10m: ValueError: no cell in run" in run(*LOCAL, "explain", "slurm/31").out
    for scrap, why in (
        (f"{tmp_path}/run.txt", "it writes to this file"),
        ("ValueError: no cell in run", "its output says this"),
    ):
        found = run(*LOCAL, "find", scrap, "--json").json["candidates"]
        assert [(one["id"], one["why"]) for one in found] == [("slurm/31", why)]


def test_a_file_that_another_job_wrote_to_since_is_the_reason_of_none(
    run: Runner, cluster: StandIn, tmp_path: Path
) -> None:
    cluster.show("31", shown(31, tmp_path, "all.out"))
    write(out := tmp_path / "all.out", "KeyError: 'mesh'\n")
    assert run(*LOCAL, "explain", "slurm/31", "--json").json["cause"]["text"] == "KeyError: 'mesh'"
    for at, why in ((600, "10m after this job, perhaps by another"), (-3_600, "before this job began")):
        os.utime(out, (ENDED_S + at, ENDED_S + at))
        verdict = run(*LOCAL, "explain", "slurm/31", "--json").json
        assert (verdict["cause"], verdict["confidence"] > 0.9) == (None, True)
        assert f"{out} was last written {why}" in verdict["blind_spots"]
    logs = run(*LOCAL, "logs", "slurm/31")
    assert "KeyError" in logs.out
    assert why in logs.err


@pytest.mark.parametrize("name", ["beam.out", "beam.out.1", "beam.out.gz"])
def test_a_named_output_is_found_among_more_files_than_are_listed_and_put_away(
    run: Runner, cluster: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("jobtui.backends.sirepo.run_dir.MOST_ENTRIES", 0)
    cluster.show("31", shown(31, tmp_path, "beam.out"))
    write(tmp_path / name, "step\n" * 60_000 + "ValueError: no beam in the ring\n")
    assert f"ValueError: no beam in the ring ({name}:60001)" in run(*LOCAL, "explain", "slurm/31").out


def test_a_failure_is_known_by_what_its_program_wrote(run: Runner, cluster: StandIn, tmp_path: Path) -> None:
    """Its row in the queue tells the exit code alone, which other failures have as well."""
    cluster.queue()
    rows = [{"JobID": f"{number}", "JobIDRaw": f"{number}", "State": "FAILED", "ExitCode": "3:0"}
            for number in (31, 32, 33)]  # fmt: skip
    cluster.accounts(*rows)
    for number in (31, 32):
        cluster.show(str(number), shown(number, tmp_path, f"beam-{number}.out"))
        (tmp_path / f"beam-{number}.out").write_text(f"ValueError: no cell {number * 7}\n")
    assert run("--slurm", "local", "remember", "--once", "--since", "2026-11-01").code == 0
    told = {one["signature"]: one["count"] for one in run("seen", "--json").json["signatures"]}
    assert told == {"ValueError: no cell N": 2, "exit code 3": 1}
    assert run("--slurm", "local", "explain", "slurm/31", "--json").json["seen_before"]["count"] == 2


def test_a_job_that_only_accounting_knows_has_its_own_script_and_output(
    run: Runner, cluster: StandIn, tmp_path: Path
) -> None:
    lines = {31: "sbatch -n 1 -H run.sh x", 32: "sbatch -o mine-%j.txt ./run.sh", 33: "sbatch --wrap ./x"}
    (run_dir := tmp_path / "user/VUlhaMOD/myapp/VUlhaMOD-fuSjgiZf-activityAnimation").mkdir(parents=True)
    files = {31: tmp_path / "slurm-31.out", 32: tmp_path / "mine-32.txt", 33: run_dir / "run.log"}
    cluster.queue()
    cluster.accounts(
        *({"JobID": f"{number}", "JobIDRaw": f"{number}", "JobName": "beam" if number == 32 else "run.sh",
           "State": "FAILED", "ExitCode": "1:0", "WorkDir": f"{file.parent}", "SubmitLine": lines[number]}
          for number, file in files.items())
    )  # fmt: skip
    for number, file in files.items():
        file.write_text(f"ValueError: no cell {number}\n")
        told = run(*LOCAL, "explain", f"slurm/{number}").out
        assert all(one in told for one in (f"no cell {number} ({file.name}:1)", f"logs slurm/{number}"))
    (tmp_path / "run.sh").write_text("#SBATCH -o beam-%j\n")
    (tmp_path / "slurm-31.out").rename(tmp_path / "beam-31").write_text("ValueError: no ring\n")
    assert "ValueError: no ring (beam-31:1)" in run(*LOCAL, "explain", "slurm/31").out
    for path, numbers, why in (
        (f"{tmp_path}/run.sh", (31, 32), "Slurm was given this script"),
        (f"{tmp_path}/mine-32.txt", (32,), "it writes to this file"),
        ("/elsewhere/run.sh", (33,), "its name is that of the file; which script it was given is not known"),
    ):
        found = run(*LOCAL, "find", path, "--json").json["candidates"]
        sure = [(one["id"], one["why"]) for one in found if "spelled" not in one["why"]]
        assert sure == [(f"slurm/{number}", why) for number in numbers]


def test_logs_of_a_user_have_outputs_of_jobs_of_then(run: Runner, cluster: StandIn, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        cluster.show(str(number), shown(number, tmp_path, "beam-%j.out"))
        (tmp_path / f"beam-{number}.out").write_text(f"{number}: line\n")
    ran = run(*LOCAL, "logs", "vm", "--json")
    assert {line["text"] for line in ran.json["lines"]} == {"1: line", "2: line", "3: line"}
    late = run(*LOCAL, "logs", "jobuser", "--json", "--since", "2026-11-20T20:51:00Z")
    assert [line["text"] for line in late.json["lines"]] == ["3: line"]


def test_an_array_is_judged_and_has_logs_as_a_whole(run: Runner, cluster: StandIn, tmp_path: Path) -> None:
    cluster.queue({"%i": "40_[3-9]", "%A": "40", "%F": "40", "%K": "3-9", "%T": "PENDING"})
    tasks = {1: "COMPLETED", 2: "FAILED", 12: "FAILED"}
    rows = ({"JobID": f"40_{task}", "State": state, "ExitCode": "3:0"} for task, state in tasks.items())
    cluster.accounts(*rows)
    for task, state in tasks.items():
        text = shown(40 + task, tmp_path, f"{task}.out").replace("=FAILED", f"={state}")
        cluster.show(f"40_{task}", f"{text}   ArrayJobId=40 ArrayTaskId={task}\n")
        (tmp_path / f"{task}.out").write_text(f"line of {task}\n")
    lines = run(*LOCAL, "logs", "40", "--json").json["lines"]
    assert [line["text"] for line in lines] == [f"line of {task}" for task in tasks]
    verdict = run(*LOCAL, "explain", "40", "--json").json
    assert (verdict["verdict"], "tasks 2, 12 failed" in verdict["sentence"]) == ("program_failed", True)


def test_logs_print_the_end_of_long_output_and_say_so(run: Runner, cluster: StandIn, tmp_path: Path) -> None:
    cluster.show("31", shown(31, tmp_path, "long"))
    (tmp_path / "long").write_text("".join(f"{at:063}\n" for at in range(20_000)))
    ran = run(*LOCAL, "logs", "slurm/31", "--json")
    lines = ran.json["lines"]
    assert (int(lines[-1]["text"]), lines[-1]["line"]) == (19_999, 20_000)
    assert 1_000 < len(lines) < 10_000
    assert "are left out" in ran.err


def test_output_is_read_where_the_directory_is_mounted(run: Runner, cluster: StandIn, tmp_path: Path) -> None:
    (tmp_path / "x.out").write_text("there\n")
    cluster.show("31", shown(31, Path("/cluster/home"), "x.out"))
    config = tmp_path / "config.toml"
    config.write_text(f'[mounts]\n"/cluster/home" = "{tmp_path}"\n')
    assert run(*LOCAL, "--config", config, "logs", "slurm/31").out.endswith("there\n")


def test_incidents_tell_exit_codes_apart(run: Runner, cluster: StandIn) -> None:
    failed = {"State": "FAILED"}
    for_each = enumerate((127, 3, 1, 127, 3, 1), 60)
    ids = [(str(number), f"{code}:0") for number, code in for_each]
    cluster.accounts(*({**failed, "JobID": id_, "JobIDRaw": id_, "ExitCode": exit_} for id_, exit_ in ids))
    cluster.queue()
    groups = run(*LOCAL, "incidents", "--json", "--since", "2h").json["incidents"]
    assert {tuple(group["jobs"]) for group in groups} == {
        ("slurm/60", "slurm/63"), ("slurm/61", "slurm/64"), ("slurm/62", "slurm/65"),
    }  # fmt: skip


@pytest.fixture
def waiting(cluster: StandIn) -> StandIn:
    cluster.waiting()
    return cluster


def test_the_contract_of_nodes(waiting: StandIn, run: Runner) -> None:
    ran = run(*LOCAL[:2], "nodes", "--json")
    assert ran.code == 0
    check_document(ran.json, "nodes")
    assert [one["node"] for one in ran.json["nodes"]][:3] == ["n5", "n6", "n7"]
    rows = list(csv.DictReader(io.StringIO(run(*LOCAL[:2], "nodes", "job:slurm/1", "--csv").out)))
    assert [(row["node"], row["standing"], row["jobs"]) for row in rows] == [("n1", "full", "slurm/1")]


@pytest.mark.parametrize("job", ["13", "18", "21", "24", "39"])
def test_the_contract_of_pending(job: str, waiting: StandIn, run: Runner) -> None:
    told = run(*LOCAL[:2], "explain", f"slurm/{job}", "--json").json
    check_document(told, "explain")
    assert told["pending"]
    assert run(*LOCAL[:2], "explain", "slurm/1", "--json").json["pending"] is None


def test_a_bundle_tells_the_same(waiting: StandIn, run: Runner, tmp_path: Path) -> None:
    bundle = str(tmp_path / "job.jobtui")
    assert run(*LOCAL[:2], "bundle", "slurm/14", "-o", bundle).code == 0
    live = run(*LOCAL[:2], "explain", "slurm/14", "--json").json["pending"]
    waiting.fault("scontrol", "away")
    kept = run("replay", bundle, "explain", "slurm/14", "--json").json["pending"]
    same = ("category", "reason", "ahead", "of", "nodes", "scheduler_estimate")
    assert {name: kept[name] for name in same} == {name: live[name] for name in same}
    nodes = run("replay", bundle, "nodes", "is:broken", "--json").json["nodes"]
    assert [one["node"] for one in nodes] == ["n5", "n6", "n7"]
