"""Commands on journals, as the captured system would have them in production: no log file at all."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from tests.backends.journal.make import make_journal, needs_journal_tools
from tests.commands.running import AT, CAPTURES, Runner, sources_of
from tests.journal_memory import container_rows, exported, supervisor_rows

DOCKER = CAPTURES / "docker"
EXPECTED = json.loads((DOCKER / "expected.json").read_text())
TRUTH = EXPECTED["jobs"]
MASKED = "export SIREPO_SIM_DB_FILE_SERVER_TOKEN='***'"
RUN_JID = "VUlhaMOD-fuSjgiZf-activityAnimation"


@pytest.fixture
def sources(journals: Path) -> tuple[object, ...]:
    return ("--at", AT, "--srdb", DOCKER, "--journal", journals)


pytestmark = needs_journal_tools


def test_lines_have_their_hosts_and_can_be_chosen(run: Runner, sources: tuple[object, ...]) -> None:
    steps = [step for op in run("timeline", RUN_JID, "--json", *sources).json["ops"] for step in op["steps"]]
    assert all(step["cursor"] and step["line"] is None for step in steps)
    whole = run("logs", RUN_JID, "--json", *sources).json["lines"]
    assert {line["host"] for line in whole} == {"v3", "docker7"}
    assert all(line["line"] is None and line["cursor"] for line in whole)
    start = next(n for n, line in enumerate(whole) if "stdin=b" in line["text"])
    assert [line["continues"] for line in whole[start : start + 3]] == [False, True, True]
    units = run("logs", RUN_JID, "--json", "--unit", "sirepo.service", *sources).json["lines"]
    assert {line["source"] for line in units} == {"sirepo@v3"}
    assert units == [line for line in whole if line["source"] == "sirepo@v3"]
    container = run("logs", RUN_JID, "--json", "--unit", "srj-p-VUlhaMOD", *sources).json["lines"]
    assert {line["host"] for line in container} == {"docker7"}
    agent = run("logs", RUN_JID, "--json", "--agent", "srj-p-VUlhaMOD", "-n", "3", *sources).json["lines"]
    assert len(agent) == 3
    grepped = run("logs", RUN_JID, "--json", "--grep", "new status=", *sources).json["lines"]
    assert grepped
    assert all("new status=" in line["text"] for line in grepped)
    assert "sirepo_job_supervisor@v3  " in run("logs", RUN_JID, "-n", "4", *sources).out


def test_agents_and_their_times_are_those_of_the_capture(run: Runner, sources: tuple[object, ...]) -> None:
    agents = run("agents", "--json", *sources, "--since", "2026-11-20T20:00:00Z").json["agents"]
    assert {agent["agent"]: agent["messages"] for agent in agents} == {
        prefix: told["messages"] for prefix, told in EXPECTED["agents"].items()
    }
    for agent in agents:
        assert agent["connected_at"] <= agent["last_message_at"] <= agent["since"]
        assert (agent["log_place"], agent["log"].partition("@")[2]) == ("read", "docker7")
        assert agent["log"].startswith(agent["container"])
        assert "UTC" in agent["log_command"]
    files = run("agents", "--json", "--at", AT, *sources_of("docker")).json["agents"]
    kept = ("agent", "state", "host", "container_id", "why", "restarts")
    told = [sorted(tuple(agent[key] for key in kept) for agent in every) for every in (agents, files)]
    assert told[0] == told[1]


def test_lines_are_as_written_but_for_secrets(run: Runner, sources: tuple[object, ...]) -> None:
    rows = [*supervisor_rows("docker"), *container_rows("docker")]
    written = b"\n".join(message for _, fields in rows for message in fields["MESSAGE"]).decode()
    lines = run("logs", RUN_JID, "--json", *sources).json["lines"]
    assert [line["text"] for line in lines if line["text"] not in written] == [MASKED]


def test_a_container_has_what_it_wrote_itself(run: Runner, sources: tuple[object, ...]) -> None:
    name = "srj-p-VUlhaMOD"
    ran = run("logs", name, "--json", *sources)
    wrote = [row for _, row in container_rows("docker") if row["CONTAINER_NAME"] == (name.encode(),)]
    assert f"container {name}: its lines in 1 journal" in ran.err
    assert all(line["source"].startswith(name) for line in ran.json["lines"])
    assert len(ran.json["lines"]) == len(wrote) > 1


def test_lines_of_a_container_are_printed_before_the_program_is_imported(
    run: Runner, journals: Path, tmp_path: Path
) -> None:
    """As for `--grep`, which may call another of several containers `.3f2a`."""
    name = "srj-p-VUlhaMOD"
    rows = [
        (e, {**f, "MESSAGE": (b"Nov 20 20:34:31 agent_id=" + b"x1" * 16,)})
        for e, f in container_rows("docker")
    ]
    file = make_journal(tmp_path, [exported(rows)])
    for journal in (journals, file):
        for more in ((), ("-n", "2"), ("--plain",)):
            ran = run("logs", name, "--journal", journal, *more)
            whole = run("logs", name, "--journal", journal, "--grep", ".", *more)
            said, given = (re.sub(r"[.]\w{4}@", "@", text).split() for text in (ran.out, whole.out))
            assert said == given != []
            assert (ran.code, ran.err) == (0, whole.err)
    # what is said on stderr comes after the lines
    source = """import sys
from jobtui import cli
from jobtui.commands import container
container.complain, container._unread = len, str
cli.main(sys.argv[1:])
print({*sys.modules} & {'msgspec', 'asyncio'})"""
    words = [sys.executable, "-c", source, "logs", name, "--plain", f"--journal={journals}"]
    assert subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.endswith(b"\nset()\n")


def test_a_journal_that_is_read_in_part_is_said_to_be(
    run: Runner, journals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "journalctl"
    path = os.environ["PATH"]
    program.write_text(f'#!/bin/sh\nPATH={path}\njournalctl "$@" && printf "__CURSOR=torn\\n"\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{path}")
    ran = run("logs", "srj-p-VUlhaMOD", "--journal", journals)
    assert "srj-p-VUlhaMOD@docker7" in ran.out
    assert "journalctl failed" in ran.err
    assert "parts of the output that could not be read: 1" in ran.err


def test_doctor_says_how_much_of_a_journal_is_understood(run: Runner, journals: Path, tmp_path: Path) -> None:
    since = ("--since", "2026-11-20T20:00:00Z")
    (check,) = run("doctor", "--json", "--at", AT, "--journal", journals, *since).json["checks"]
    whole = len(supervisor_rows("docker")) + len(container_rows("docker"))
    assert check["lines"] >= whole
    assert check["unknown_share"] < 0.01
    novel = "Nov 20 20:45:31 30699     0 sirepo/job_supervisor.py:99:novel a message of a release to come"
    rows = [(entry, {**fields, "MESSAGE": (novel.encode(),)}) for entry, fields in supervisor_rows("docker")]
    make_journal(tmp_path, [exported(rows)])
    ran = run("doctor", "--json", "--at", AT, "--journal", tmp_path, *since)
    assert ran.code == 1
    (check,) = ran.json["checks"]
    assert "of its records have no known shape" in check["says"][0]


KILLED_JID, KILLED_CONTAINER = "eGO70vz3-COebzySB-heightWeightReport", "44520da17f71"
ENDED_US = 1_795_207_791_000_000
SIREPO_SAYS = 'Traceback (most recent call last):\n  File "a.py", line 1\nRuntimeError: error exit(-9)\n'
"""What Sirepo writes below the output of a program that was killed: no reason."""
OOM = (
    "memory: usage 2097152kB, limit 2097152kB, failcnt 60",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/docker/{cgroup},"
    "task_memcg=/docker/{cgroup},task=python3,pid=6875,uid=0",
    "Memory cgroup out of memory: Killed process 6875 (python3) total-vm:221384kB, anon-rss:40704kB",
)


@pytest.mark.parametrize("container", [KILLED_CONTAINER, "134199ca4bef"], ids=["its container", "another"])
def test_the_journal_of_a_host_tells_who_killed_it(run: Runner, tmp_path: Path, container: str) -> None:
    fields = "_TRANSPORT=kernel\nSYSLOG_IDENTIFIER=kernel\n_HOSTNAME=v1\n_BOOT_ID=" + "b" * 32
    times = (ENDED_US - 1_000_000 + number for number in range(3))
    entries = "".join(
        f"__REALTIME_TIMESTAMP={at}\n__MONOTONIC_TIMESTAMP={at - 1}\n{fields}\n"
        f"MESSAGE={text.format(cgroup=container.ljust(64, '0'))}\n\n"
        for at, text in zip(times, OOM, strict=True)
    )
    make_journal(tmp_path / "v1", [entries.encode()], "system.journal")
    settings = tmp_path / "config.toml"
    settings.write_text(f'[hosts]\n"v1.sirepo.example" = "{tmp_path / "v1"}"\n')
    srdb = tmp_path / "docker"
    copytree(DOCKER / "supervisor-job", srdb / "supervisor-job")
    output = srdb / "user/eGO70vz3/myapp/COebzySB/heightWeightReport/run.log"
    output.parent.mkdir(parents=True)
    output.write_text(SIREPO_SAYS)
    flags = ("--config", settings, "--at", AT, "--srdb", srdb, "--log", DOCKER / "supervisor.log")
    bundle = tmp_path / "killed.jobtui"
    assert run("bundle", KILLED_JID, "--output", bundle, *flags).code == 0
    asked = "explain", KILLED_JID, "--json"
    for told in (run(*asked, *flags), run("replay", bundle, *asked)):
        facts = [fact["text"] for fact in told.json["evidence"] if fact["what"] != "near in time"]
        near = [fact["text"] for fact in told.json["evidence"] if fact["what"] == "near in time"]
        assert told.json["verdict"] == "killed_by_signal"
        if container == KILLED_CONTAINER:
            killer = "Killed by the kernel: memory cgroup of docker/44520da17f71 reached 2 GB (host v1"
            assert told.json["sentence"].startswith(killer)
            assert facts[0].startswith("Memory cgroup out of memory")
            assert (told.json["confidence"], near) == (0.9, [])
        else:
            assert "sender unknown" in told.json["sentence"]
            assert any("name nothing that is its own" in spot for spot in told.json["blind_spots"])
            assert (told.json["confidence"], len(near)) == (0.9, 1)
