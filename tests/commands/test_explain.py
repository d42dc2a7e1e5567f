"""`explain` and `incidents` on the captures of a real system."""

import json
import shlex
import shutil
from collections import Counter
from pathlib import Path

import pytest

from jobtui.demo.incidents import INCIDENTS
from jobtui.model.clock import to_rfc3339
from jobtui.model.commands import Command
from jobtui.session.evidence import typed_here
from tests.analysis.captured import CAPTURES as CAPTURES_WITH_TRUTH
from tests.analysis.captured import expected
from tests.analysis.explain.cases import ASKED, CONFIDENT, played
from tests.commands.running import AT, CAPTURES, Runner, check_document, sources_of
from tests.condor import CONDOR
from tests.demo.sites import DriverName
from tests.offenders import each
from tests.rows import ROWS

NEXT = {
    "supervisor_restarted": [" logs -", "timeline"], "canceled_by_user": ["timeline"],
    "agent_lost": ["logs --agent=", "timeline"],
    "killed_by_signal": ["compare", "logs"], "timed_out": ["compare", "logs"],
    "prepare_failed": ["logs", "compare"], "sbatch_failed": ["logs", "compare"], "completed": [],
}  # fmt: skip
"""What is offered for the verdicts on the captured jobs, of which no file is here."""
EXITS = {"fine": 0, "open": 0, "failed": 1, "stuck": 3}


@pytest.mark.parametrize("capture", CAPTURES_WITH_TRUTH)
def test_every_job_gets_its_verdict_as_json(capture: str, run: Runner) -> None:
    for jid, truth in expected(capture)["jobs"].items():
        ran = run("explain", jid, "--json", "--at", AT, *sources_of(capture))
        check_document(ran.json, "explain")
        code = ASKED[truth["asked"][-1]]
        assert ran.json["verdict"] == code
        assert ran.json["confidence"] >= CONFIDENT
        assert ran.json["evidence"]
        assert ran.json["contradictions"] == []
        assert ran.code == EXITS[code.concern]
        offered = [step["command"] for step in ran.json["next"]]
        assert len(offered) <= 4
        if capture == "docker":
            wanted = NEXT.get(code, [])
            assert all(words in one for words, one in zip(wanted, offered, strict=code in NEXT))


def test_what_is_offered_next_answers_with_what_is_read(run: Runner, tmp_path: Path) -> None:
    log = shutil.copy(CONDOR / "cluster.log", tmp_path / "its log")
    condor = ("81422934.0@jobsub02.fnal.gov", "--condor-log", str(log))
    local = ("hZk95g40-tAdRyEYP-heightWeightReport", *sources_of("local")[:2])
    for words, count in ((local, 0), (condor, 1)):
        offered = [shlex.split(step["command"]) for step in run("explain", *words, "--json").json["next"]]
        others = [run(*one[1:]).out for one in offered if "compare" not in one]
        assert len(others) == count == len(list(filter(None, others))), offered


def test_sources_that_disagree_are_named_with_both_facts(tmp_path: Path, run: Runner) -> None:
    job = "hZk95g40-4u2Pj0fB-heightWeightReport"
    (db := tmp_path / "supervisor-job").mkdir()
    record = json.loads((CAPTURES / "local" / "supervisor-job" / f"{job}.json").read_text())
    (db / f"{job}.json").write_text(json.dumps({**record, "status": "running"}))
    flags = ("--at", AT, "--srdb", str(tmp_path), *sources_of("local")[2:])
    ran = run("explain", job, *flags)
    assert "sources disagree" in ran.out.splitlines()
    document = run("explain", job, "--json", *flags).json
    check_document(document, "explain")
    (one,) = document["contradictions"]
    assert one["about"] == "the record is live, the log says that it ended"
    assert [fact["text"] for fact in one["facts"]] == ["status: running", "status completed"]


ON_CLUSTER = "3pMDuIiL-lv6FKX2U-activityAnimation"
MESH = "Traceback (most recent call last):\n  File 'p.py', line 3\nValueError: mesh is tangled\n"
BALANCE = "job_agent.py:1 start jid={jid}\nsbatch: error: No available node hour balance for account m1\n"

WRITTEN = {
    "told.txt: ValueError: mesh": {"in.sbatch": "srun python p.py > told.txt 2>&1\n", "told.txt": MESH},
    "below.txt: ValueError: mesh": {"in.sbatch": "srun p > ./logs/below.txt\n", "logs/below.txt": MESH},
    "prep-sbatch.log: ValueError: mesh": {"prep-sbatch.log": MESH},
    "job_agent.log: sbatch: error: No available": {"../../../../job_agent.log": BALANCE},
}


@pytest.mark.parametrize("reason", WRITTEN)
def test_the_reason_is_found_in_whatever_was_written(run: Runner, tmp_path: Path, reason: str) -> None:
    shutil.copytree(CAPTURES / "sbatch/scratch", tmp_path / "scratch")
    (directory,) = (tmp_path / "scratch").rglob(ON_CLUSTER)
    (directory / "run.log").unlink()
    for name, written in WRITTEN[reason].items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).resolve().write_text(written.format(jid=ON_CLUSTER))
    config = tmp_path / "config.toml"
    config.write_text(f'[mounts]\n"/srv/sirepo/hpc/scratch" = "{tmp_path / "scratch"}"\n')
    found = run("explain", ON_CLUSTER, "--json", "--config", config, "--at", AT, *sources_of("sbatch")).json
    place = found["cause"]["source"].rpartition("/")[2]
    assert f"{place}: {found['cause']['text']}".startswith(reason)


def test_an_output_is_found_in_whichever_database_has_its_directory(run: Runner, tmp_path: Path) -> None:
    shutil.copytree(CAPTURES / "local-debug/supervisor-job", tmp_path / "a/supervisor-job")
    shutil.copytree(CAPTURES / "local-debug/user", tmp_path / "b/user")
    (log := tmp_path / "cut.log").write_text((CAPTURES / "local-debug/supervisor.log").read_text()[:50_000])
    flags = ["--srdb", tmp_path / "a", "--srdb", tmp_path / "b", "--log", f"supervisor={log}"]
    found = run("explain", "oXcGYsM2-ACYVbYcm-heightWeightReport", "--json", "--at", AT, *flags).json
    assert found["cause"]["source"] == f"{tmp_path}/b/user/oXcGYsM2/myapp/ACYVbYcm/heightWeightReport/run.log"
    assert found["confidence"] == 0.9
    (tmp_path / "b/user/ltxFhKlc/myapp/AUDxb5Vv/heightWeightReport/run.log").write_text(MESH)  # it ended well
    good = run("explain", "ltxFhKlc-AUDxb5Vv-heightWeightReport", "--json", "--at", AT, *flags).json
    assert good["cause"] is None


def test_commands_are_short_if_the_shell_has_sources(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBTUI_SRDB", str(CAPTURES / "local"))
    monkeypatch.setenv("JOBTUI_LOG", str(CAPTURES / "local" / "supervisor.log"))
    steps = run("explain", "hZk95g40-7hdJ64j8-activityAnimation", "--json").json["next"]
    assert 0 < len(steps) <= 4
    (first, *_) = (step["command"] for step in steps)
    assert first.startswith("jobtui logs --since=")
    assert first.endswith(" supervisor.log")
    words = shlex.split(first)[1:]
    assert run(*words).out


@each(*ROWS["commands where their host and program are known"])
def test_a_command_is_offered_where_its_host_and_program_are_known(
    words: list[str], where: dict[str, str], typed: str
) -> None:
    command = Command(*words, **where)
    assert typed_here({"v4": "ssh://op@v4:22", "here": ""}, "", command) == typed
    assert typed_here({}, "ssh://hpc", Command("sacct", "-j", "7")) == "ssh hpc 'sacct -j 7'"


@pytest.mark.parametrize("name", INCIDENTS)
def test_explain_in_brief_names_cause_evidence_and_next_step(name: str, run: Runner, tmp_path: Path) -> None:
    play = played(name, 1, DriverName.LOCAL, 420)
    asked = ("explain", play.jid, "--at", to_rfc3339(play.now), *play.write(tmp_path))
    ran, document = run(*asked, "--brief"), run(*asked, "--json").json
    lines = ran.out.splitlines()
    assert len(ran.out) <= 1_500
    assert ran.out.replace("\n", "").isprintable()
    assert lines[0].startswith(f"{play.jid}: ")
    assert lines[1].startswith(f"cause: {play.expected}, ")
    evidence = [line for line in lines if line.startswith("evidence: ")]
    assert any(document["evidence"][0]["text"][:40] in line for line in evidence)
    steps = [line for line in lines if line.startswith("next: ")]
    assert any(document["next"][0]["why"] in line for line in steps) if document["next"] else steps


def test_incidents_groups_the_failures_of_a_capture(run: Runner) -> None:
    ran = run("incidents", "--json", "--at", AT, *sources_of("local"))
    check_document(ran.json, "incidents")
    assert ran.code == 3
    (group,) = ran.json["incidents"]
    failed = [
        jid for jid, job in expected("local")["jobs"].items() if ASKED[job["asked"][-1]] == "program_failed"
    ]
    assert sorted(group["jobs"]) == sorted(failed)
    assert {one["verdict"] for one in ran.json["alone"]} == {
        "killed_by_signal", "timed_out", "prepare_failed", "agent_lost", "supervisor_restarted",
        "run_dir_gone",
    }  # fmt: skip
    assert (ran.json["doubtful"], ran.json["blind_spots"]) == ([], [])
    for one in (group, *ran.json["alone"]):
        told = [run("explain", jid, "--json", "--at", AT, *sources_of("local")).json for jid in one["jobs"]]
        assert Counter(each["verdict"] for each in told) == one["verdicts"]
        assert min(each["confidence"] for each in told) == one["confidence"]
    ran = run("incidents", "-n", "0", "--at", AT, *sources_of("local"))
    assert (ran.code, ran.out, "and 7 more" in ran.err) == (3, "", True)  # not that nothing went wrong
