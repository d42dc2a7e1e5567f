"""`bundle`, `record` and `replay`: what was kept answers when systems are gone; its file on full disks."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import pytest

from jobtui.backends.base import Batch
from jobtui.backends.registry import OTLP
from jobtui.commands.context import of_specs
from jobtui.config import Config
from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.live import LiveDemo
from jobtui.formats.parser import LogParser
from jobtui.model.clock import FixedClock, Nanos, to_rfc3339
from jobtui.model.specs import SourceSpec
from jobtui.recording import database
from jobtui.recording.database import About, Item, unpacked
from jobtui.recording.recorder import Recorder, RecordingWriter
from tests.analysis.captured import expected
from tests.analysis.explain.cases import played
from tests.backends.recording.files import MB, NOW, about, lines, noise, numbers, record, replayed, written
from tests.commands.running import AT, CAPTURES, TRUE_CAPTURES, Runner, sources_of, started
from tests.conftest import resize
from tests.demo.sites import DriverName
from tests.fakes import ScriptedSource
from tests.memory.runs import remembered
from tests.rows import ROWS, database_rows
from tests.tracing import a_span
from tests.waiting import wait_for

PLAYED_S = 420
ASKED = ("explain", "timeline", "show", "logs")


def moved(capture: str, tmp_path: Path) -> list[str]:
    """The flags of a capture that lies where it can be taken away."""
    shutil.copytree(CAPTURES / capture, tmp_path / capture)
    return [word.replace(str(CAPTURES / capture), str(tmp_path / capture)) for word in sources_of(capture)]


def bundled(capture: str, tmp_path: Path, run: Runner) -> tuple[str, Path]:
    """A job of a capture, and a bundle of it."""
    jid, file = sorted(expected(capture)["jobs"])[0], tmp_path / "one.jobtui"
    assert run("bundle", jid, "-o", file, "--at", AT, *sources_of(capture)).code == 0
    return jid, file


@pytest.mark.parametrize("capture", TRUE_CAPTURES)
def test_a_bundle_answers_as_the_system_that_is_gone(capture: str, tmp_path: Path, run: Runner) -> None:
    flags = moved(capture, tmp_path)
    jid = sorted(expected(capture)["jobs"])[0]
    live = {command: run(command, jid, "--json", "--at", AT, *flags) for command in ASKED}
    file = tmp_path / "one.jobtui"
    assert run("bundle", jid, "-o", file, "--at", AT, *flags).code == 0
    shutil.rmtree(tmp_path / capture)
    for command in ASKED:
        again = run("replay", file, command, jid, "--json")
        if command == "show":  # it tells which paths there are on this machine
            assert again.json["job"] == live[command].json["job"]
            assert again.json["history"] == live[command].json["history"]
        else:
            assert again.out == live[command].out, command
        assert again.code == live[command].code
    log = tmp_path / capture / "supervisor.log"  # another file, where one that was read was
    log.parent.mkdir()
    log.write_text("of another kind\n" * 99)
    told = run("replay", file, "doctor").out
    assert ("as recorded" in told, "no known shape" in told) == (True, False)


@pytest.mark.parametrize("incident", INCIDENTS)
def test_each_incident_has_the_same_verdict_byte_for_byte(incident: str, tmp_path: Path, run: Runner) -> None:
    site = tmp_path / "site"
    happened = played(incident, 5, DriverName.LOCAL, PLAYED_S)
    jid, flags = happened.jid, [*happened.write(site), "--at", to_rfc3339(happened.now)]
    live = run("explain", jid, "--json", *flags)
    file = tmp_path / "one.jobtui"
    assert run("bundle", jid, "-o", file, *flags).code == 0
    shutil.rmtree(site)
    again = run("replay", file, "explain", jid, "--json")
    assert again.out == live.out
    assert again.code == live.code
    assert again.json["verdict"] == INCIDENTS[incident].verdict


def test_going_back_shows_the_job_as_it_was(tmp_path: Path, run: Runner) -> None:
    jid, file = "DJouDZ9T-1O1o56MF-activityAnimation", tmp_path / "one.jobtui"
    run("bundle", jid, "-o", file, "--at", AT, *sources_of("local"))

    def status(at: str) -> str | None:
        jobs = run("replay", file, "--at", at, "jobs", "--json").json["jobs"]
        return next((job["status"] for job in jobs if job["id"] == jid), None)

    assert status("2026-11-20T20:34:51Z") is None
    assert status("2026-11-20T20:34:54Z") == "pending"
    assert status("2026-11-20T20:35:04.5Z") == "running"
    assert status("2026-11-20T20:36:00Z") == "completed"


def test_a_bundle_says_what_could_not_be_read(tmp_path: Path, run: Runner) -> None:
    file = tmp_path / "one.jobtui"
    jid = sorted(expected("local")["jobs"])[0]
    gone = "--log", tmp_path / "gone.log"
    made = run("bundle", jid, "-o", file, "--at", AT, *sources_of("local")[:2], *gone)
    assert made.code == 0
    assert "gone.log: no such file" in run("replay", file, "explain", jid).err
    assert "gone.log: no such file" in str(run("replay", file, "explain", jid, "--json").json["sources"])


def test_a_file_is_never_written_over(tmp_path: Path, run: Runner) -> None:
    file = tmp_path / "one.jobtui"
    file.write_text("mine")
    jid = sorted(expected("local")["jobs"])[0]
    ran = run("bundle", jid, "-o", file, "--at", AT, *sources_of("local"))
    assert ran.code == 5
    assert "File exists" in ran.err
    assert file.read_text() == "mine"
    assert [*tmp_path.iterdir()] == [file]


def test_a_damaged_entry_costs_only_itself_and_is_reported(tmp_path: Path, run: Runner) -> None:
    jid, file = bundled("local", tmp_path, run)
    with closing(sqlite3.connect(file)) as db, db:
        ((source,),) = db.execute("SELECT id FROM source WHERE name LIKE '%supervisor.log'")
        ((last,),) = db.execute("SELECT max(seq) FROM entry WHERE what = 'batch' AND source = ?", (source,))
        db.execute("UPDATE entry SET body = x'00ff' WHERE seq = ?", (last,))
    ran = run("replay", file, "explain", jid, "--json")
    assert ran.json["job"]["id"] == jid
    assert "1 entry is damaged" in ran.err


@pytest.mark.parametrize(("words", "said"), ROWS["no sense on a recording"])
def test_other_commands_are_refused(words: list[str], said: str, tmp_path: Path, run: Runner) -> None:
    _, file = bundled("local", tmp_path, run)
    ran = run("replay", file, *words)
    assert ran.code == 2
    assert said in ran.err


def test_a_recorder_ends_when_asked_and_says_what_it_kept(tmp_path: Path, run: Runner) -> None:
    place = tmp_path / "kept"
    ran = run.until(lambda: remembered() == 18, *sources_of("local"), "record", place)
    assert ran.code == 0, ran.err
    assert "records kept" in ran.err
    live, replayed = (
        run(*flags, "jobs", "--json").json["jobs"] for flags in (sources_of("local"), ("replay", place))
    )
    assert {job["id"]: job["status"] for job in replayed} == {job["id"]: job["status"] for job in live}
    assert run(*sources_of("local"), "record", tmp_path / "short", "--for", "1s").code == 0
    assert [path.name for path in place.iterdir()] == ["recording.jobtui"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_script_and_trace_of_a_job_on_a_cluster_are_in_its_bundle(tmp_path: Path, run: Runner) -> None:
    site = tmp_path / "site"
    site.mkdir()
    demo = LiveDemo(site, seed=4)
    demo.prepare()
    flags = [*of_specs(demo.specs), "--at", to_rfc3339(demo.world.kernel.now)]
    jobs = run("jobs", "--json", *flags).json["jobs"]
    jid = next(job["id"] for job in jobs if job["mode"] == "sbatch" and job["status"] == "completed")
    live = {command: run(command, jid, "--json", *flags) for command in ("script", "trace", "compare")}
    file = tmp_path / "one.jobtui"
    assert run("bundle", jid, "-o", file, *flags).code == 0
    shutil.rmtree(site)
    for command in ("script", "trace"):
        assert run("replay", file, command, jid, "--json").out == live[command].out
    again = run("replay", file, "compare", jid, "--json").json
    assert again["steps"] == live["compare"].json["steps"]
    kept = [unpacked(Item.SCRIPT, body).script for body in bodies(file, Item.SCRIPT)]
    tokens = [line for one in kept if one for line in one.script.splitlines() if b"TOKEN" in line]
    assert tokens
    assert all(line.endswith(b"=***") or line.endswith(b"='***'") for line in tokens)


def bodies(file: Path, what: Item) -> list[bytes]:
    return [body for (body,) in database_rows(file, "SELECT body FROM entry WHERE what = ?", what)]


SECRET = "s3cr3t-t0k3n-of-an-operator"


def test_spans_that_were_sent_are_asked_for_by_their_trace(tmp_path: Path, run: Runner) -> None:
    spec = SourceSpec(OTLP.setting, "127.0.0.1:4318")
    config = msgspec.to_builtins(Config({}, sources=(spec,)))
    writer = RecordingWriter(tmp_path / "r", About(version="0", made_at=NOW, at=NOW, config=config), 1 << 20)
    writer.put("otlp", spec.target, Item.BATCH, Batch(spans=(span := a_span(1, error=True),)), NOW)
    writer.close()
    ran = run("replay", tmp_path / "r", "trace", span.trace_id, "--json")
    assert (ran.code, ran.json["spans"]) == (1, 1)


RECORDED = "hZk95g40-4u2Pj0fB-heightWeightReport"


def fill(place: Path, leave: int = 0) -> Path:
    """Fill a disk except for this number of bytes."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            file.truncate(max(0, file.tell() - leave))
    return filler


@pytest.mark.parametrize("leave", [0, 4096, 32_768], ids=["full", "nearly full", "full in the middle"])
def test_a_bundle_that_fails_on_a_full_disk_leaves_nothing(small_disk: Path, leave: int, run: Runner) -> None:
    filler = fill(small_disk, leave)
    ran = run(*sources_of("local"), "bundle", RECORDED, "-o", small_disk / "b.jobtui")
    assert (ran.code, ran.out) == (5, "")
    assert "cannot be written" in ran.err
    assert list(small_disk.iterdir()) == [filler]


@pytest.mark.parametrize("leave", [0, 8192], ids=["full", "full in the middle"])
def test_a_recording_that_cannot_begin_harms_no_directory(small_disk: Path, leave: int, run: Runner) -> None:
    filler = fill(small_disk, leave)
    record = *sources_of("local"), "record", small_disk / "r"
    ran = run.until(remembered, *record)
    assert ran.code == 5
    assert "Traceback" not in ran.err
    filler.unlink()
    resize(small_disk, "16m")
    again = run.until(remembered, *record)
    assert again.code == 0, again.err
    assert run("replay", small_disk / "r", "jobs", "--json").json["jobs"]


def test_a_batch_that_a_full_disk_refuses_is_written_later(small_disk: Path) -> None:
    resize(small_disk, "200k")
    writer = recorder_in(small_disk)
    recorder, source = Recorder(writer, FixedClock(NOW)), ScriptedSource(name="a.log", kind="logfile")
    filler = fill(small_disk, 4096)
    recorder.delivered(source, lines(1, text=noise(1, 900)))
    wait_for(lambda: recorder.problem is not None)
    filler.unlink()
    wait_for(lambda: recorder.problem is None)
    recorder.close()
    writer.close()
    assert numbers(small_disk) == [1]


def kept(place: Path) -> int:
    """How many lines of logs are in a recording."""
    with closing(database.Recording(place)) as kept:
        entries = [entry for source in (1, 2) for entry in kept.delivered(source, 0, Nanos(1 << 62), 999)]
    return sum(len(one.value.records) for one in entries if one.what is database.Item.BATCH)


def test_a_recorder_that_is_killed_while_lines_come_keeps_each_once(tmp_path: Path, run: Runner) -> None:
    log, place, count = tmp_path / "supervisor.log", tmp_path / "r", 0
    data = (CAPTURES / "local/supervisor.log").read_bytes()
    text, known = data.splitlines(keepends=True), len(LogParser("").parse(data, 0, 1, NOW).records)
    log.touch()
    flags = ["--srdb", str(CAPTURES / "local"), "--log", f"supervisor={log}"]
    for part in (text[:300], text[300:900], text[900:], []):
        # it is killed at the end of this
        with log.open("ab", 0) as file, started(tmp_path / "out", *flags, "record", str(place)):
            wait_for((place / database.FILE_NAME).exists)
            for number, line in enumerate(part):
                file.write(line)
                if number == len(part) // 2:
                    wait_for(partial(lambda before: kept(place) > before, count))
            if not part:
                wait_for(lambda: kept(place) >= known)
        count = kept(place)
    assert count == known
    for words in (["jobs"], *(["timeline", job["id"]] for job in run("jobs", "--json", *flags).json["jobs"])):
        live, again = run(*words, "--json", *flags), run("replay", place, *words, "--json")
        name = "jobs" if words == ["jobs"] else "ops"
        assert again.json[name] == live.json[name], words
        assert "left out" not in again.err


def recorder_in(directory: Path) -> RecordingWriter:
    return RecordingWriter(directory / database.FILE_NAME, about(), MB, goes_on=True)


def test_two_recorders_do_not_share_a_directory(tmp_path: Path) -> None:
    first = recorder_in(tmp_path)
    with pytest.raises(database.RecordingError, match="another jobtui records here"):
        recorder_in(tmp_path)
    first.put("logfile", "a.log", database.Item.BATCH, Batch(records=(record(1),)), NOW)
    first.close()
    recorder_in(tmp_path).close()
    assert any(batch.records for batch in replayed(tmp_path, 0))


def changed(path: Path, *statements: str) -> None:
    """Say these to a database, which is made where there is none."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for one in statements:
            db.execute(one)


def an_empty_one(path: Path) -> Path:
    return written(path, (database.Item.BATCH, Batch(), 0))


VIEW = (
    "CREATE VIEW entry AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x)"
    " SELECT n AS seq, n AS at, 1 AS source, 'batch' AS what, '' AS key, x'00' AS body FROM x"
)


def newer(path: Path) -> None:
    changed(an_empty_one(path), f"PRAGMA user_version = {database.VERSION + 1}")


def with_a_view(path: Path) -> None:
    changed(an_empty_one(path), "DROP TABLE entry", VIEW)


def of_somebody_else(path: Path) -> None:
    os.chown(an_empty_one(path), 12_345, -1)


NOT_OURS: dict[str, Callable[[Path], object]] = {
    "a database": lambda path: changed(path, "CREATE TABLE precious (a)"),
    "linked": lambda path: path.symlink_to(an_empty_one(path.with_name("other")).name),
    "hard linked": lambda path: path.hardlink_to(an_empty_one(path.with_name("other"))),
    "newer": newer,
    "with a view": with_a_view,
    "of somebody else": of_somebody_else,
}


@pytest.mark.parametrize("make", NOT_OURS.values(), ids=NOT_OURS)
def test_nothing_is_written_into_a_file_that_is_not_a_recording(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    path = tmp_path / database.FILE_NAME
    if make is of_somebody_else and os.geteuid():
        pytest.skip("only root gives files away")
    make(path)
    before = path.read_bytes()
    with pytest.raises(database.RecordingError):
        recorder_in(tmp_path)
    assert path.read_bytes() == before
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


@pytest.mark.parametrize("side", database.SIDE_FILES)
@pytest.mark.parametrize("make", [lambda path: path.symlink_to("precious"), os.mkfifo, Path.mkdir])
def test_an_odd_file_in_place_of_a_recording_is_not_opened(
    tmp_path: Path, side: str, make: Callable[[Path], None], run: Runner
) -> None:
    recorder_in(tmp_path).close()
    make(tmp_path / f"{database.FILE_NAME}{side}")
    with pytest.raises(database.RecordingError, match="is not a regular file"):
        recorder_in(tmp_path)
    ran = run("replay", tmp_path, "jobs")
    assert (ran.code, "is not a regular file" in ran.err) == (5, True)
    assert not (tmp_path / "precious").exists()


def with_a_hot_journal(path: Path, ending: bytes = b"") -> tuple[bytes, bytes]:
    """Leave a database as one that was killed while it wrote; what is in it then, and in its journal."""
    journal = Path(f"{path}-journal")
    db = sqlite3.connect(path, isolation_level=None)
    for sql in ("PRAGMA journal_mode = DELETE", "PRAGMA cache_size = 1", "CREATE TABLE IF NOT EXISTS t (a)"):
        db.execute(sql)
    db.execute("BEGIN")
    db.execute("INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
               " SELECT randomblob(1000) FROM n")  # fmt: skip
    torn = path.read_bytes(), journal.read_bytes() + ending
    db.close()
    path.write_bytes(torn[0])
    journal.write_bytes(torn[1])
    return torn


def test_a_killed_database_of_somebody_else_stays_as_it_is(tmp_path: Path, run: Runner) -> None:
    path = tmp_path / "theirs.db"
    torn = with_a_hot_journal(path)
    assert run("replay", path, "jobs").code == 5
    assert (path.read_bytes(), Path(f"{path}-journal").read_bytes()) == torn


def test_a_journal_of_a_recording_deletes_no_file_that_it_names(tmp_path: Path, run: Runner) -> None:
    """SQLite deletes a super-journal, whatever file it is, once it has rolled back what names it."""
    (precious := tmp_path / "precious").write_text("of some use")
    path = an_empty_one(tmp_path / database.FILE_NAME)
    name = os.fsencode(precious)
    length, total = len(name).to_bytes(4, "big"), sum(name).to_bytes(4, "big")
    ending = bytes(4) + name + length + total + database.SUPER_JOURNAL
    torn = with_a_hot_journal(path, ending)
    assert run("replay", path, "jobs").code == 5
    assert precious.read_text() == "of some use"
    assert path.read_bytes() == torn[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_journal_of_another_user_is_not_rolled_back(tmp_path: Path, run: Runner) -> None:
    path = an_empty_one(tmp_path / database.FILE_NAME)
    torn = with_a_hot_journal(path)
    os.chown(f"{path}-journal", 12_345, -1)
    assert run("replay", path, "jobs").code == 5
    assert path.read_bytes() == torn[0]


@pytest.mark.parametrize(("make", "said"), [(newer, "update this one"), (with_a_view, "has other tables")])
def test_a_file_of_another_layout_is_refused(
    tmp_path: Path, make: Callable[[Path], None], said: str, run: Runner
) -> None:
    make(tmp_path / "r")
    ran = run("replay", tmp_path / "r", "jobs")
    assert (ran.code, ran.err.count("\n")) == (5, 1)
    assert said in ran.err


@pytest.mark.parametrize(
    ("config", "at"),
    [*((config, 2**62) for config in ('"x"', "7", "[[1]]", '{"sources": 7}', "null")), ("[{}]", 2**70)],
)
def test_odd_settings_in_a_bundle_are_one_error(tmp_path: Path, config: str, at: int, run: Runner) -> None:
    path = written(tmp_path / "r", (database.Item.BATCH, Batch(records=(record(1, noise(1, 9)),)), 0))
    about_it = f'{{"version": "0", "made_at": {NOW}, "at": {at}, "config": {config}}}'
    changed(path, f"UPDATE about SET value = '{about_it}'")
    ran = run("replay", path, "jobs")
    assert (ran.code, "damaged" in ran.err, "fault" in ran.err) == (5, True, False)
