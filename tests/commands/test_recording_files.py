"""The file of a recording: whole or not there, of its owner, never through a link, on a full disk too."""

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from jobtui.backends.base import Batch
from jobtui.formats.parser import LogParser
from jobtui.model.clock import FixedClock, Nanos
from jobtui.recording import database
from jobtui.recording.recorder import Recorder, RecordingWriter
from tests.backends.recording.files import MB, NOW, about, lines, noise, numbers, record, replayed, written
from tests.commands.running import CAPTURES, Runner, sources_of, started
from tests.fakes import ScriptedSource
from tests.waiting import wait_for

JID = "hZk95g40-4u2Pj0fB-heightWeightReport"
SMALL_KB = 64


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    (place := tmp_path / "disk").mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_KB}k", "none", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path, leave: int = 0) -> Path:
    """Fill a disk but for so many bytes."""
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
    ran = run(*sources_of("local"), "bundle", JID, "-o", small_disk / "b.jobtui")
    assert (ran.code, ran.out) == (5, "")
    assert "cannot be written" in ran.err
    assert list(small_disk.iterdir()) == [filler]


@pytest.mark.parametrize("leave", [0, 8192], ids=["full", "full in the middle"])
def test_a_recording_that_cannot_begin_leaves_its_directory_usable(
    small_disk: Path, leave: int, run: Runner
) -> None:
    filler = fill(small_disk, leave)
    ran = run(*sources_of("local"), "record", small_disk / "r", "--for", "1s")
    assert ran.code == 5
    assert "Traceback" not in ran.err
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    again = run(*sources_of("local"), "record", small_disk / "r", "--for", "1s")
    assert again.code == 0, again.err
    assert run("replay", small_disk / "r", "jobs", "--json").json["jobs"]


def test_an_empty_file_of_an_earlier_failure_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "r").touch()
    RecordingWriter(tmp_path / "r", about(), MB, goes_on=True).close()
    database.Recording(tmp_path / "r").close()


def test_what_a_full_disk_refuses_at_the_end_of_a_batch_is_written_later(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=200k", str(small_disk)], check=True)
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
    with closing(database.Recording(place)) as recording:
        entries = [
            entry for source in (1, 2) for entry in recording.delivered(source, 0, Nanos(1 << 62), 999)
        ]
    return sum(len(one.value.records) for one in entries if one.what is database.What.BATCH)


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
    first.put("logfile", "a.log", database.What.BATCH, Batch(records=(record(1),)), NOW)
    first.close()
    recorder_in(tmp_path).close()
    assert any(batch.records for batch in replayed(tmp_path, 0))


def a_database(path: Path, version: int = 0) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE precious (a)")
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.close()


def linked(path: Path) -> None:
    written(path.with_name("other"), (database.What.BATCH, Batch(), 0))
    path.symlink_to("other")


def hard_linked(path: Path) -> None:
    written(path.with_name("other"), (database.What.BATCH, Batch(), 0))
    path.hardlink_to(path.with_name("other"))


def newer(path: Path) -> None:
    written(path, (database.What.BATCH, Batch(), 0))
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {database.VERSION + 1}")
    db.close()


def with_a_view(path: Path) -> None:
    written(path, (database.What.BATCH, Batch(), 0))
    db = sqlite3.connect(path)
    db.execute("DROP TABLE entry")
    db.execute(
        "CREATE VIEW entry AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x)"
        " SELECT n AS seq, n AS at, 1 AS source, 'batch' AS what, '' AS key, x'00' AS body FROM x"
    )
    db.commit()
    db.close()


def of_somebody_else(path: Path) -> None:
    written(path, (database.What.BATCH, Batch(), 0))
    os.chown(path, 12_345, -1)


@pytest.mark.parametrize("make", [a_database, linked, hard_linked, newer, with_a_view, of_somebody_else])
def test_nothing_is_written_into_what_is_no_recording_of_ours(tmp_path: Path, make: object) -> None:
    path = tmp_path / database.FILE_NAME
    if make is of_somebody_else and os.geteuid():
        pytest.skip("only root gives files away")
    make(path)  # type: ignore[operator]
    before = path.read_bytes()
    with pytest.raises(database.RecordingError):
        recorder_in(tmp_path)
    assert path.read_bytes() == before
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def linked_side(path: Path) -> None:
    path.symlink_to("precious")


@pytest.mark.parametrize("side", database.SIDE_FILES)
@pytest.mark.parametrize("make", [linked_side, os.mkfifo, Path.mkdir])
def test_what_is_odd_in_place_of_a_file_of_sqlite_is_not_opened(
    tmp_path: Path, side: str, make: Callable[[Path], None], run: Runner
) -> None:
    recorder_in(tmp_path).close()
    make(tmp_path / f"{database.FILE_NAME}{side}")
    with pytest.raises(database.RecordingError, match="is no regular file"):
        recorder_in(tmp_path)
    ran = run("replay", tmp_path, "jobs")
    assert (ran.code, "is no regular file" in ran.err) == (5, True)
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
    path = written(tmp_path / database.FILE_NAME, (database.What.BATCH, Batch(), 0))
    name = os.fsencode(precious)
    ending = (
        bytes(4) + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + database.SUPER_JOURNAL
    )
    torn = with_a_hot_journal(path, ending)
    assert run("replay", path, "jobs").code == 5
    assert precious.read_text() == "of some use"
    assert path.read_bytes() == torn[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_journal_of_another_user_is_not_rolled_back(tmp_path: Path, run: Runner) -> None:
    path = written(tmp_path / database.FILE_NAME, (database.What.BATCH, Batch(), 0))
    torn = with_a_hot_journal(path)
    os.chown(f"{path}-journal", 12_345, -1)
    assert run("replay", path, "jobs").code == 5
    assert path.read_bytes() == torn[0]


@pytest.mark.parametrize(("make", "said"), [(newer, "renew jobtui"), (with_a_view, "has other tables")])
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
def test_odd_settings_in_a_bundle_are_one_clear_error(
    tmp_path: Path, config: str, at: int, run: Runner
) -> None:
    path = written(tmp_path / "r", (database.What.BATCH, Batch(records=(record(1, noise(1, 9)),)), 0))
    db = sqlite3.connect(path)
    text = f'{{"version": "0", "made_at": {NOW}, "at": {at}, "config": {config}}}'
    db.execute("UPDATE about SET value = ?", (text,))
    db.commit()
    db.close()
    ran = run("replay", path, "jobs")
    assert (ran.code, "damaged" in ran.err, "fault" in ran.err) == (5, True, False)


def test_a_time_of_the_past_is_refused(run: Runner, tmp_path: Path) -> None:
    ran = run(*sources_of("local"), "--at", "2026-11-20T20:34:30Z", "record", tmp_path / "r", "--for", "1s")
    assert (ran.code, "--at" in ran.err) == (2, True)
    assert not (tmp_path / "r").exists()
