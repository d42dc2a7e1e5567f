"""The memory as a user has it: taken in, asked, bounded, whole after a crash, and without secrets."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from jobtui.analysis.recurrence import kind_of
from jobtui.memory.database import FILE_NAME, Memory
from jobtui.memory.writer import MemoryThread, MemoryWriter
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import Faults
from jobtui.model.jobs import JobStatus
from jobtui.model.memory import EndedRun, JobMemory
from jobtui.recording.database import RecordingError
from jobtui.render.memory import memory_lines
from tests.builders import a_job, ago, some
from tests.commands.running import AT, CAPTURES, Runner, environment, sources_of
from tests.conftest import NOW, resize
from tests.memory.runs import DAY, a_run, home_file, remembered, rows, written
from tests.waiting import wait_for

FAILED = "VUlhaMOD-tD9ZqDpL-heightWeightReport"
WRITES = """
import sys, time
from pathlib import Path
from jobtui.memory.writer import MemoryThread, MemoryWriter
from tests.memory.runs import a_run
thread = MemoryThread(MemoryWriter(Path(sys.argv[1]), 1 << 30))
number = 0
while True:
    thread.put(a_run(number))
    number += 1
    time.sleep(0.0005)
    if number % 100 == 0:
        print(number, thread.kept, flush=True)
"""


def test_runs_are_remembered_once_and_reported(run: Runner) -> None:
    assert run("seen").code == run("changed", "7d").code == 5
    for _ in range(2):
        ran = run(*sources_of("docker"), "remember", "--once")
        assert ran.code == 0, ran.err
    assert remembered() == 11
    document = run("seen", "--json", "--at", AT).json
    assert document["schema"] == "jobtui/seen/1"
    counts = {one["signature"]: one["count"] for one in document["signatures"]}
    assert counts["a big ugly error"] == 1
    assert counts["error exit(N)"] == 1
    assert run("seen", FAILED, "--at", AT).out.splitlines()[-2].endswith(f"{FAILED}: a big ugly error")
    assert run("seen", "ugly", "--csv", "--at", AT).out.splitlines()[1].startswith("a big ugly error,1,1,")
    assert run("seen", "never heard of").code == 4


@pytest.mark.parametrize("numbers", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_first_and_last_are_those_of_the_runs_in_whatever_order_they_come(
    tmp_path: Path, numbers: tuple[int, ...]
) -> None:
    memory = written(tmp_path / FILE_NAME, *(a_run(number, "a big ugly error") for number in numbers))
    (seen,) = memory.signatures(Nanos((DAY * 86_400 + 9) * SECOND))
    times = [one // SECOND - DAY * 86_400 for one in (seen.first, seen.last)]
    assert (times, seen.job) == ([1, 3], "job-3")


def test_a_run_counts_once_whichever_label_its_cluster_has(tmp_path: Path) -> None:
    run, now = a_run(22, "a big ugly error"), Nanos((DAY * 86_400 + 99) * SECOND)
    told = [replace(run, id=name) for name in ("slurm/22", "slurm@es.org-jobs/22", "slurm@hpc/22")]
    memory = written(tmp_path / FILE_NAME, *told, *2 * [replace(told[2], user="one of another cluster")])
    assert rows(memory.path) == 2
    for one in told:
        assert [seen.count for seen in memory.signatures(now, one.id)] == [2]
    assert memory.signatures(now, "slurm/23") == ()


def test_explain_and_incidents_say_that_a_failure_was_seen_before(run: Runner, tmp_path: Path) -> None:
    asked = (*sources_of("docker"), "--at", AT, "explain", FAILED)
    assert run(*asked, "--json").json["seen_before"] is None
    run(*sources_of("docker"), "remember", "--once")
    assert run(*asked, "--json").json["seen_before"] is None  # it is this failure itself
    others = [a_run(number, "a big ugly error", host="v9") for number in range(40)]
    good = [a_run(number) for number in range(100, 400)]
    written(home_file(), *others, *good)
    found = run(*asked, "--json").json["seen_before"]
    assert (found["signature"], found["count"], found["users"]) == ("a big ugly error", 41, 8)
    (where,) = [one for one in found["where"] if one["field"] == "host"]
    assert where | {"interval": None, "usual_share": None} == {
        "field": "host", "value": "v9", "count": 40, "of": 41, "share": 0.9756,
        "usual_share": None, "interval": None,
    }  # fmt: skip
    assert where["usual_share"] == 0.0
    low, high = where["interval"]
    assert 0.85 < low < 0.976 < high < 1.0
    text = run(*asked).out
    assert "41 times, 8 users" in text
    assert "40 of 41 on host v9" in text
    assert "41 times" in run(*sources_of("docker"), "--at", AT, "incidents").out
    bundle = tmp_path / "b.jobtui"
    assert run(*sources_of("docker"), "--at", AT, "bundle", FAILED, "-o", bundle).code == 0
    assert run("remember", "--forget").code == 0
    assert run("replay", bundle, "explain", FAILED, "--json").json["seen_before"] == found


def test_a_recording_and_a_bundle_are_taken_in(run: Runner, tmp_path: Path) -> None:
    record = *sources_of("docker"), "record", tmp_path / "r"
    assert run.until(lambda: remembered() == 11, *record).code == 0  # `record` remembers too
    assert run("remember", "--forget").code == 0
    assert run("replay", tmp_path / "r", "seen", "--json").json["signatures"]
    assert not home_file().exists()
    assert run("replay", tmp_path / "r", "remember").code == 0
    assert remembered() == 11
    assert (run("demo", "remember").code, run("demo", "seen").code) == (2, 0)
    assert remembered() == 11  # the demo has one of its own


def test_remember_takes_in_a_run_that_ends_meanwhile(tmp_path: Path) -> None:
    place, path = tmp_path / "db" / "supervisor-job", home_file()
    shutil.copytree(CAPTURES / "docker" / "supervisor-job", place)
    late = place / f"{FAILED}.json"
    late.rename(tmp_path / "late")
    command = [sys.executable, "-m", "jobtui", "--srdb", str(place.parent), "remember"]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: path.exists() and rows(path) == 10)
        (tmp_path / "late").rename(late)
        wait_for(lambda: rows(path) == 11)
        process.terminate()
        assert "11 runs added" in process.communicate()[1]
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [(("7d",), 0), (("14d", "7d"), 0), (("host:v1", "host:v2"), 0), (("nonsense",), 2), (("7d", "14d"), 2),
     (("400d", "200d"), 2), (("host:v1", "7d"), 2), (("1d", "2d", "3d"), 2)],
)  # fmt: skip
def test_changed_takes_times_or_filters(words: tuple[str, ...], code: int, run: Runner) -> None:
    written(home_file(), *(a_run(number) for number in range(20)))
    assert run("changed", *words).code == code


def test_changed_names_what_is_new_gone_and_fails_more(run: Runner) -> None:
    def on(day: int, number: int, text: str = "", **fields: object) -> EndedRun:
        at = Nanos((DAY + day) * 86_400 * SECOND + number * SECOND)
        return EndedRun(id=f"{day}-{number}", system="s", kind="k", verdict="x", ended_at=at, text=text,
                        is_failed=bool(text), **fields)  # type: ignore[arg-type]  # fmt: skip

    before = [
        on(number % 7, number, "old trouble" if number < 30 else "", host="v1") for number in range(300)
    ]
    now = [
        on(7 + number % 7, number, "new trouble" if number < 40 else "", host="v1") for number in range(300)
    ]
    written(home_file(), *before, *now)
    ran = run("changed", "13d", "6d", "--json", "--at", "2026-11-14T12:00:00Z")
    assert ran.code == 3, ran.err
    assert (ran.json["before"], ran.json["runs"]) == (300, 300)
    said = {(one["what"], one["value"]): one["count"] for one in ran.json["changes"]}
    assert said == {("new", "new trouble"): 40, ("gone", "old trouble"): 0}
    apart = run("changed", "host:v1", "host:v2")
    assert apart.code == 0


def test_start_and_end_are_estimated_from_like_runs_only(tmp_path: Path) -> None:
    job = a_job(status=JobStatus.PENDING, queued_at=ago(0), started_at=None)

    def like(number: int) -> EndedRun:
        at = Nanos(NOW - (200 - number) * 600 * SECOND)
        waited = 60.0 * (1 + number % 10)
        return EndedRun(
            id=f"j{number}", system=job.system, kind=kind_of(job), ended_at=at, verdict="completed",
            waited_s=waited, ran_s=100.0,
        )  # fmt: skip

    memory = written(tmp_path / FILE_NAME, *map(like, range(200)))
    told = memory.of_job(job, "", NOW)
    assert told.start is not None
    assert told.end is not None
    assert (told.start.low_s, told.start.high_s) == (60.0, 600.0)
    assert (told.end.low_s, told.end.high_s) == (160.0, 700.0)
    assert told.start.held == told.start.of > 100
    (start, end) = memory_lines(told)
    assert start == f"may start in 1m to 10m; such ranges were right for 100 % of the last {told.start.of}"
    assert end.startswith("may end in 2m40s to 11m; such")
    later = some(memory.of_job(replace(job, queued_at=ago(290)), "", NOW).start)
    assert (later.low_s, later.high_s) == (10.0, 310.0)
    running = memory.of_job(replace(job, status=JobStatus.RUNNING, started_at=ago(10)), "", NOW)
    assert running.start is None
    assert running.end is not None
    assert (running.end.low_s, running.end.high_s) == (90.0, 90.0)
    assert memory.of_job(replace(job, app="other"), "", NOW) == JobMemory(NOW)
    assert written(tmp_path / "few", *map(like, range(59))).of_job(job, "", NOW) == JobMemory(NOW)


def test_nothing_secret_is_in_the_file(run: Runner) -> None:
    secrets = ("hunter2hunter2", "ghp_" + "a1B2" * 9, "s3cr3tvalue")
    text = f"login failed: password={secrets[0]} token {secrets[1]} https://me:{secrets[2]}@x.org/y"
    written(home_file(), a_run(1, text, model=f"password={secrets[0]}", user=f"token={secrets[1]}"))
    data = b"".join(path.read_bytes() for path in home_file().parent.iterdir())
    assert not [secret for secret in secrets if secret.encode() in data]
    assert home_file().stat().st_mode & 0o077 == 0


def test_the_oldest_go_where_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.memory.writer.CUT_AT_ONCE", cut := 2_000)
    writer = MemoryWriter(tmp_path / FILE_NAME, 400 << 10)
    for begin in range(0, 5 * cut, cut // 4):
        with writer.together():
            for number in range(begin, begin + cut // 4):
                writer.add(a_run(number * 40, f"broke in {number}" if number % 10 == 0 else ""))
            writer.flush()
    assert writer.let_go
    assert writer.kept_bytes <= 800 << 10
    newest = Nanos((DAY * 86_400 + 5 * cut * 40) * SECOND)
    (seen,) = Memory(writer.path).signatures(newest)
    assert seen.count == cut // 2  # what is told of all time goes with the last of it only
    ((days,),) = sqlite3.connect(writer.path).execute("SELECT count(DISTINCT day) FROM tally WHERE day > 0")
    assert days < 5 * cut * 40 / 86_400


def test_a_killed_writer_loses_the_last_second_at_most(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with subprocess.Popen(
        [sys.executable, "-c", WRITES, path], stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            put, kept = map(int, line.split())
            if kept > 500:
                break
        process.send_signal(signal.SIGKILL)
    assert rows(path) >= kept
    assert rows(path) >= put - 4_000  # at most this number is put in two seconds
    assert written(path, a_run(10**6)).is_there  # it goes on
    ((whole,),) = sqlite3.connect(path).execute("PRAGMA integrity_check")
    counted = "SELECT runs FROM tally WHERE field = 0 AND day = 0 AND signature = 0"
    ((runs,),) = sqlite3.connect(path).execute(counted)
    assert (whole, runs) == ("ok", rows(path))


def test_a_full_disk_costs_nothing_that_was_written(small_disk: Path) -> None:
    resize(small_disk, "1m")
    thread = MemoryThread(MemoryWriter(small_disk / FILE_NAME, 1 << 30))
    thread.put(a_run(0))
    wait_for(lambda: thread.kept)
    number = 0

    def is_full() -> bool:
        nonlocal number
        for _ in range(500 if number < 5_000 else 0):
            number += 1
            thread.put(a_run(number, f"broke at {number}", model=f"m{number}" * 20))
        return thread.problem is not None

    wait_for(is_full)
    assert "full" in (thread.problem or "")
    kept = thread.kept
    assert rows(small_disk / FILE_NAME) == kept > 0
    resize(small_disk, "64m")
    wait_for(lambda: thread.kept == number + 1)  # what waited is written as soon as there is room
    thread.close()
    assert (rows(small_disk / FILE_NAME), thread.lost) == (number + 1, 0)


@pytest.mark.parametrize(("part", "name", "kept"), [(MemoryWriter, "add", 6), (MemoryThread, "write_end", 7)])
def test_a_run_that_cannot_be_remembered_costs_no_other_and_the_end_is_tried_again(
    part: type, name: str, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    work, ends = getattr(part, name), iter([True])

    def breaks(self: object, *given: EndedRun) -> object:
        if given[0].id == "job-3" if given else next(ends, False):
            raise LookupError("hunter2")
        return work(self, *given)

    monkeypatch.setattr(part, name, breaks)
    thread = MemoryThread(MemoryWriter(tmp_path / FILE_NAME, 1 << 30))
    for number in range(7):
        thread.put(a_run(number))
    wait_for(lambda: thread.kept == kept)
    thread.close()
    assert (thread.lost, rows(tmp_path / FILE_NAME)) == (7 - kept, kept)
    assert [(fault.stage, fault.count) for fault in expected_faults.all()] == [("remembering", 1)]


def test_another_database_a_later_layout_and_a_second_writer_are_refused(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    written(path, a_run(1))
    first = MemoryWriter(path, 1 << 30)
    with pytest.raises(RecordingError, match="another jobtui remembers"):
        MemoryWriter(path, 1 << 30)
    first.close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(RecordingError, match="later jobtui"):
        Memory(path).signatures(Nanos(0))
    os.unlink(path)
    path.write_text("not a database")
    with pytest.raises(RecordingError, match="not a memory of jobtui"):
        Memory(path).signatures(Nanos(0))


def test_a_change_on_a_node_is_reported_where_no_host_is_known(tmp_path: Path) -> None:
    runs = [a_run(n, "killed" * (n > 199 and n % 3 == 0), host="", node=f"n{n % 3}") for n in range(400)]
    ended = (Nanos((DAY + n // 200) * 86_400 * SECOND) for n in range(400))
    memory = written(
        tmp_path / "memory", *(replace(run, ended_at=at) for run, at in zip(runs, ended, strict=True))
    )
    found = memory.compared(range(DAY, DAY + 1), range(DAY + 1, DAY + 2)).changes
    assert ("node", "n0", "more") in {(one.field, one.value, one.what) for one in found}
