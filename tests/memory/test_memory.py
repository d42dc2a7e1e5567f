"""The memory as a user has it: taken in, asked, bounded, whole after a crash, and without secrets.

Of three weeks of made-up history, many times: what is said is what was planted, and ranges hold as stated.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import log, log1p
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jobtui.analysis import recurrence
from jobtui.analysis.signature import signature
from jobtui.analysis.statistics import bounds, expected
from jobtui.memory.database import FILE_NAME, Memory
from jobtui.memory.writer import MemoryThread, MemoryWriter
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import Faults
from jobtui.model.jobs import JobStatus
from jobtui.model.memory import EndedRun, JobMemory, Seen
from jobtui.recording.database import RecordingError
from jobtui.render.memory import memory_lines, seen_words
from tests.builders import a_job, ago, some
from tests.commands.running import AT, CAPTURES, Runner, environment, sources_of
from tests.conftest import NOW, resize
from tests.memory.runs import DAY, a_run, home_file, remembered, rows, written
from tests.rows import ROWS, database_rows, program
from tests.waiting import wait_for

FAILED = "VUlhaMOD-tD9ZqDpL-heightWeightReport"
WRITES = program("remembers")


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


@pytest.mark.parametrize(("words", "code"), ROWS["what is compared by changed"])
def test_changed_takes_times_or_filters(words: list[str], code: int, run: Runner) -> None:
    written(home_file(), *(a_run(number) for number in range(20)))
    assert run("changed", *words).code == code


def test_changed_names_what_is_new_gone_and_fails_more(run: Runner) -> None:
    def on(day: int, nth: int, text: str = "", **fields: object) -> EndedRun:
        at = Nanos((DAY + day) * 86_400 * SECOND + nth * SECOND)
        return EndedRun(id=f"{day}-{nth}", system="s", kind="k", verdict="x", ended_at=at, text=text,
                        is_failed=bool(text), **fields)  # type: ignore[arg-type]  # fmt: skip

    old = [on(nth % 7, nth, "old trouble" if nth < 30 else "", host="v1") for nth in range(300)]
    new = [on(7 + nth % 7, nth, "new trouble" if nth < 40 else "", host="v1") for nth in range(300)]
    written(home_file(), *old, *new)
    ran = run("changed", "13d", "6d", "--json", "--at", "2026-11-14T12:00:00Z")
    assert ran.code == 3, ran.err
    assert (ran.json["before"], ran.json["runs"]) == (300, 300)
    said = {(one["what"], one["value"]): one["count"] for one in ran.json["changes"]}
    assert said == {("new", "new trouble"): 40, ("gone", "old trouble"): 0}


def test_a_failure_that_was_seen_once_says_so() -> None:
    assert seen_words(Seen("x", ago(60), ago(60), 1, 2), NOW) == "first seen 1m ago, once, 2 users"


def test_start_and_end_are_estimated_from_like_runs_only(tmp_path: Path) -> None:
    job = a_job(status=JobStatus.PENDING, queued_at=ago(0), started_at=None)

    def like(number: int) -> EndedRun:
        at = Nanos(NOW - (200 - number) * 600 * SECOND)
        waited = 60.0 * (1 + number % 10)
        return EndedRun(
            id=f"j{number}", system=job.system, kind=recurrence.kind_of(job), ended_at=at,
            verdict="completed", waited_s=waited, ran_s=100.0,
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
    assert (some(running.end).low_s, some(running.end).high_s) == (90.0, 90.0)
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
    writer.close()
    ((days,),) = database_rows(writer.path, "SELECT count(DISTINCT day) FROM tally WHERE day > 0")
    assert days < 5 * cut * 40 / 86_400


def test_a_killed_writer_loses_the_last_second_at_most(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    command = [sys.executable, "-c", WRITES, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        for line in process.stdout:
            put, kept = map(int, line.split())
            if kept > 500:
                break
        process.send_signal(signal.SIGKILL)
    assert rows(path) >= kept
    assert rows(path) >= put - 4_000  # at most this number is put in two seconds
    assert written(path, a_run(10**6)).is_there  # it goes on
    ((whole,),) = database_rows(path, "PRAGMA integrity_check")
    counted = "SELECT runs FROM tally WHERE field = 0 AND day = 0 AND signature = 0"
    ((runs,),) = database_rows(path, counted)
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
    database_rows(path, "PRAGMA user_version = 99")
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
    assert ("node", "n0", "more") in {(one.now.field, one.now.value, one.what) for one in found}


DAYS, RUNS = 21, 3_000
FIRST_DAY = 20_000
VALUES: Mapping[str, int] = {"host": 10, "version": 5, "user": 40, "app": 6}
"""The fields, and how many values each has."""
PLANTED = "ValueError: planted in cell {}"
TEXTS = (PLANTED, "OSError: [Errno 28] No space left on device: '/scratch/{}/x'",
         "FloatingPointError at step {}", "KeyError: 'beam'", "MPI_ABORT on rank {}")  # fmt: skip
SLOW_DAYS = 3


class World(NamedTuple):
    """Runs in the order of their ends, in columns. `failures` are numbers of TEXTS, -1 for a good run."""

    field: str
    value: str
    facts: Mapping[str, list[str]]
    days: list[int]
    failures: list[int]
    waited: list[float]
    ran: list[float]

    @property
    def late(self) -> int:
        """How many of its runs are of the days on which a slow host is slow."""
        begin = FIRST_DAY + DAYS - SLOW_DAYS
        own = zip(self.facts[self.field], self.days, strict=True)
        return sum(value == self.value and day >= begin for value, day in own)

    @property
    def effect(self) -> tuple[int, float]:
        """How many runs failed by the planted cause, and how many times as often as others."""
        own = [at for at, value in enumerate(self.facts[self.field]) if value == self.value]
        count = sum(self.failures[at] == 0 for at in own)
        elsewhere = sum(one == 0 for one in self.failures) - count
        return count, count / len(own) / max(elsewhere / (RUNS - len(own)), 1e-9)

    def finished(self) -> Iterator[EndedRun]:
        for at, number in enumerate(self.failures):
            text = TEXTS[number].format(at * 7919 % 1_000_003) if number >= 0 else ""
            yield EndedRun(
                id=f"job{at}", system="sirepo", kind=f"sirepo\t{self.facts['app'][at]}", verdict="x",
                ended_at=Nanos((self.days[at] * 86_400 + at) * SECOND), is_failed=bool(text), text=text,
                waited_s=self.waited[at], ran_s=self.ran[at],
                **{name: values[at] for name, values in self.facts.items()},
            )  # fmt: skip


def world(kind: str, seed: int) -> World:
    """One in which the cause is a host, version or user, a host that became slow (`site`), or none.

    A cause has 20 to 60 failures, at 3 to 12 times the rate of others; a version is bad from the middle on.
    """
    rng = Random(f"{kind} {seed}")
    facts = {}
    for name, n in VALUES.items():
        weights = list(accumulate(rng.uniform(0.3, 1.0) for _ in range(n)))
        facts[name] = rng.choices([f"{name}{at}" for at in range(n)], cum_weights=weights, k=RUNS)
    days = [FIRST_DAY + at * DAYS // RUNS for at in range(RUNS)]
    weights = list(accumulate(rng.uniform(0.5, 2.0) for _ in TEXTS[1:]))
    usual = rng.choices(range(1, len(TEXTS)), cum_weights=weights, k=RUNS)
    failures = [one if rng.random() < 0.06 else -1 for one in usual]
    field = {"none": "", "site": "host"}.get(kind, kind)
    value = f"{field}{rng.randrange(VALUES[field])}" if field else ""
    if field and kind != "site":
        begin = RUNS // 2 if kind == "version" else 0
        own = sum(one == value for one in facts[field][begin:])
        rate, lift = rng.uniform(25, 60) / own, rng.uniform(3, 12)
        for at in range(begin, RUNS):
            if rng.random() < rate / (1 if facts[field][at] == value else lift):
                failures[at] = 0
    queue, slow, waited = 0.0, log(rng.uniform(3, 12)), list[float]()
    for at in range(RUNS):
        queue = 0.98 * queue + rng.gauss(0, 0.07)  # waits hang together
        is_slow = kind == "site" and facts["host"][at] == value and days[at] >= FIRST_DAY + DAYS - SLOW_DAYS
        waited.append(rng.lognormvariate(4.0 + queue + slow * is_slow, 0.7))
    length = {f"app{at}": rng.uniform(3, 6) for at in range(VALUES["app"])}
    ran = [rng.lognormvariate(length[app], 0.5) for app in facts["app"]]
    return World(field, value, facts, days, failures, waited, ran)


SEEDS = int(os.environ.get("JOBTUI_WORLDS", "40"))
LEAST_RUNS, LEAST_EFFECT = 20, 3.0
LAST_DAY = FIRST_DAY + DAYS - 1
Said = set[tuple[str, str, str]]


def where_said(one: World) -> Said:
    """What every failure is said to go with."""
    said: Said = set()
    every = Counter(one.days)
    tests = sum(VALUES.values())
    by_value = {name: Counter(zip(one.days, values, strict=True)) for name, values in one.facts.items()}
    for nth in range(len(TEXTS)):
        at = [at for at, failure in enumerate(one.failures) if failure == nth]
        own = Counter(one.days[one_at] for one_at in at)
        tallies = []
        for name, values in one.facts.items():
            for value, _ in Counter(values[one_at] for one_at in at).most_common(3):
                mine = Counter(one.days[one_at] for one_at in at if values[one_at] == value)
                having = {day: by_value[name][day, value] for day in own}
                tallies.append(recurrence.on_same_days(name, value, own, mine, every, having))
        said |= {(f"where {nth}", share.field, share.value) for share in recurrence.unusual(tallies, tests)}
    return said


def places_said(one: World) -> Said:
    runs = Counter(one.facts["host"])
    bad = Counter(host for host, number in zip(one.facts["host"], one.failures, strict=True) if number >= 0)
    tallies = [
        recurrence.Frequency("host", host, bad[host], n, bad.total() - bad[host], RUNS - n)
        for host, n in runs.items()
    ]
    return {("places", share.field, share.value) for share in recurrence.unusual(tallies, len(tallies), 10)}


def stretch(one: World, part: slice) -> recurrence.RunCounts:
    failures = one.failures[part]
    counts = Counter({("all", ""): len(failures)})
    failed = Counter({("all", ""): sum(number >= 0 for number in failures)})
    counts.update(("signature", TEXTS[number]) for number in failures if number >= 0)
    for name, values in one.facts.items():
        counts.update((name, value) for value in values[part])
        failed.update((name, value) for value, n in zip(values[part], failures, strict=True) if n >= 0)
    return recurrence.RunCounts(len(failures), counts, failed, {})


def changes_said(one: World) -> Said:
    found = recurrence.changes(stretch(one, slice(RUNS // 2)), stretch(one, slice(RUNS // 2, RUNS)))
    return {("changed", change.now.field, change.now.value) for change in found}


def sites_said(one: World) -> Said:
    days: defaultdict[str, dict[int, recurrence.Day]] = defaultdict(dict)
    for day, host, number, waited in zip(one.days, one.facts["host"], one.failures, one.waited, strict=True):
        known = days[host].get(day, recurrence.Day())
        days[host][day] = recurrence.Day(
            known.runs + 1, known.failed + (number >= 0), known.waited + 1, known.wait + log1p(waited)
        )
    found = (one for host, own in days.items() for one in recurrence.deviation("host", host, own, LAST_DAY))
    return {("site", one.field, one.value) for one in found}


@pytest.mark.parametrize("kind", ["host", "version", "user", "site", "none"])
def test_associations_name_what_was_planted(kind: str) -> None:
    """Found in 9 of 10 worlds with 20 runs and three times the rate; nothing else is said in 95 of 100."""
    found, false = [], []
    for seed in range(SEEDS):
        one = world(kind, seed)
        said = where_said(one) | places_said(one) | changes_said(one) | sites_said(one)
        if kind == "site" and one.late >= LEAST_RUNS:
            found.append(("site", "host", one.value) in said)
        elif kind != "none" and one.effect[0] >= LEAST_RUNS and one.effect[1] >= LEAST_EFFECT:
            found.append(("where 0", one.field, one.value) in said)
        if kind == "version":  # it is bad from the middle on
            found.append(("changed", "signature", TEXTS[0]) in said)
            said = {fact for fact in said if fact[0] != "changed"}
        if others := {fact for fact in said if fact[1:] != (one.field, one.value)}:
            false.append((seed, others))
    assert sum(found) >= 0.9 * len(found)
    assert len(false) <= 0.05 * SEEDS, false


def runs_of(one: World, app: str) -> list[tuple[int, int, float]]:
    """Waits of like runs: when they began, when they were known, and how long they were."""
    found = []
    for at, name in enumerate(one.facts["app"]):
        if name == app:
            ended = round((FIRST_DAY + at * DAYS / RUNS) * 86_400)
            started = ended - round(one.ran[at])
            found.append((started - round(one.waited[at]), started, one.waited[at]))
    return found


def test_estimated_ranges_are_right_as_often_as_stated() -> None:
    stated, held, checked = [], 0, 0
    for kind in ("none", "site"):
        for seed in range(SEEDS):
            runs = sorted(runs_of(world(kind, seed), "app0"))
            for at in range(len(runs) - 40, len(runs), 8):
                began, _, length = runs[at]
                found = expected([run for run in runs[:at] if run[1] <= began])
                if found is not None:
                    stated.append(found.held / found.of)
                    held += found.low_s <= length <= found.high_s
                    checked += 1
    assert checked > 3 * SEEDS
    assert abs(sum(stated) / len(stated) - held / checked) <= 0.05


def test_a_range_needs_thirty_like_runs_and_as_many_to_try_it_on() -> None:
    runs = [(at * 100, at * 100 + 50, float(at % 7)) for at in range(59)]
    assert bounds([1.0] * 29) is None
    assert bounds(sorted(range(30))) == (2, 27)
    assert expected(runs) is None
    assert expected([*runs, (6_000, 6_050, 3.0), (6_100, 6_150, 3.0)]) is not None
    assert expected([*runs, (6_000, 6_050, 3.0), (6_100, 6_150, 3.0)], 5.5) is None  # few took this long


@pytest.mark.parametrize("kind", ["host", "version", "user"])
def test_the_file_gives_the_answers_that_the_runs_give(kind: str, tmp_path: Path) -> None:
    one = world(kind, 3)
    writer = MemoryWriter(tmp_path / "memory.jobtui", 1 << 30)
    with writer.together():
        assert all(map(writer.add, one.finished()))
        writer.flush()
    writer.close()
    memory, now = Memory(writer.path), Nanos((LAST_DAY * 86_400 + 80_000) * SECOND)
    names = [signature(text.format(1)) for text in TEXTS]
    seen = {names.index(seen.signature): seen for seen in memory.signatures(now)}
    assert {n: found.count for n, found in seen.items()} == Counter(n for n in one.failures if n >= 0)
    whole = {n: memory.of_job(a_job(ended_at=now), TEXTS[n].format(1), now).seen for n in seen}
    said = {(f"where {n}", s.field, s.value) for n, found in whole.items() if found for s in found.where}
    assert said == where_said(one)
    assert {("places", share.field, share.value) for share in memory.shares(now)} == places_said(one)
    middle = FIRST_DAY + DAYS // 2
    compared = memory.compared(range(FIRST_DAY, middle), range(middle, LAST_DAY + 1))
    assert compared.before + compared.now == RUNS
    new = {one.what for one in compared.changes if one.now.field == "signature"}
    assert new == ({"new"} if kind == "version" else set())
