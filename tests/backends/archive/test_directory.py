"""An archive in a directory: its pairs, its links, and what is no pair."""

import asyncio
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends.archive.search import ScriptQuery, Tally, find_script, search
from jobtui.backends.archive.source import ArchiveDirectory, NotRead, read_kept, root_of
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceDenied, SourceMissing
from jobtui.model.scripts import Answer, Outcome, ScriptPeriod, Wanted
from tests.backends.archive import captured
from tests.backends.archive.captured import DAY, JOBS, SUBMITTED, archive_in, check, found, look, script_of
from tests.builders import some
from tests.loopback import nobody

DAYS = 86_400 * SECOND


@pytest.mark.parametrize("period", [DAY, "202611", "2026", "", "spool"])
@pytest.mark.parametrize("submitted_at", [SUBMITTED, None])
def test_every_job_is_found_byte_for_byte(tmp_path: Path, period: str, submitted_at: Nanos | None) -> None:
    is_spool = period == "spool"
    source = captured.spool_in(tmp_path / "spool") if is_spool else archive_in(tmp_path / "archive", period)
    for number, text in [*((number, number) for number in JOBS), ("10", "10_3")]:
        script = found(source, text, "huppel", submitted_at=None if is_spool else submitted_at)
        check(script, number)
        assert (script.cluster, script.number) == ("huppel", number)
        assert is_spool or script.archived_at == SUBMITTED
        assert some(script.environment).is_whole


ONE = f"{captured.TORQUE}.JB"
ALL, *TASKS = (f"2720870{end}" for end in (
    ".master.cluster.lab.TA", "-1.master.cluster.lab.JB", "-2.master.cluster.lab.JB",
))  # fmt: skip
OF_TORQUE = {
    captured.TORQUE: [ONE], "2720868": [ONE], "2720870": [ALL, *TASKS], "2720870[2]": [ALL, TASKS[1]],
    "2720870-1": [ALL, TASKS[0]],
}  # fmt: skip


@pytest.mark.parametrize("text", OF_TORQUE)
def test_a_job_of_torque_has_its_files_with_and_without_its_server(tmp_path: Path, text: str) -> None:
    script = found(captured.torque_in(tmp_path), text)
    assert script.script.startswith(b"#!/bin/bash\n#PBS -N ")
    assert [name.decode() for name, _ in some(script.environment).variables] == OF_TORQUE[text]


def test_jobs_of_one_number_are_distinguished_by_date(tmp_path: Path) -> None:
    before = Nanos(SUBMITTED - 300 * DAYS)
    archive_in(tmp_path, DAY)
    archive_in(tmp_path, "20260124", at=before)
    (tmp_path / "20260124" / "job.7_script").write_bytes(b"#!/bin/sh\nolder\n")
    assert found(tmp_path, "7", submitted_at=SUBMITTED).script == script_of("7")
    assert found(tmp_path, "7", submitted_at=before).script == b"#!/bin/sh\nolder\n"
    assert found(tmp_path, "7", until=Nanos(SUBMITTED - 100 * DAYS)).script == b"#!/bin/sh\nolder\n"
    newest = found(tmp_path, "7")
    assert newest.script == script_of("7")
    assert any("2 jobs of this number" in note for note in newest.notes)


def test_a_script_of_another_time_is_not_taken_for_the_job(tmp_path: Path) -> None:
    archive_in(tmp_path, DAY)
    answer = look(tmp_path, "7", submitted_at=Nanos(SUBMITTED + 30 * DAYS))
    assert answer.script is None
    assert answer.tried[0].outcome is Outcome.NOT_THERE
    assert DAY in answer.tried[0].note
    tried = look(tmp_path, "77", submitted_at=Nanos(SUBMITTED - 40 * DAYS)).tried[0]
    assert tried.outcome is Outcome.BEGAN_LATER
    assert DAY in tried.note


def test_missing_numbers_with_one_last_digit_are_reported(tmp_path: Path) -> None:
    directory = tmp_path / DAY
    directory.mkdir()
    for number in range(100, 140):
        if number % 10 != 9:
            (directory / f"job.{number}_script").write_bytes(b"#!/bin/sh\n")
    tried = look(tmp_path, "119", submitted_at=SUBMITTED).tried[0]
    assert tried.outcome is Outcome.NOT_THERE
    assert "ending in 9" in tried.note
    assert "hash.9" in tried.note


def test_a_missing_directory_raises(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="no such directory"):
        look(tmp_path / "gone", "1")
    (tmp_path / "file").touch()
    with pytest.raises(SourceMissing, match="not a directory"):
        look(tmp_path / "file", "1")


def test_denied_files_and_missing_files_have_different_outcomes(open_path: Path) -> None:
    source = archive_in(open_path / "archive", DAY)
    for file in (source / DAY).iterdir():
        file.chmod(0o000)
    for directory in (source, source / DAY):
        directory.chmod(0o111)
    try:
        with nobody():
            assert look(source, "7", submitted_at=SUBMITTED).tried[0].outcome is Outcome.DENIED
            assert look(source, "7").tried[0].outcome is Outcome.DENIED
            assert look(source, "70", submitted_at=SUBMITTED).tried[0].outcome is Outcome.NOT_THERE
    finally:
        for directory in (source, source / DAY):
            directory.chmod(0o755)


async def test_an_archive_that_may_not_be_listed_says_that_it_cannot_be_searched(open_path: Path) -> None:
    source = archive_in(open_path / "archive", DAY)
    source.chmod(0o111)
    archive = ArchiveDirectory(str(source))
    try:
        with nobody(), pytest.raises(SourceDenied, match="may not be listed"):
            [one async for one in archive.walk(ScriptPeriod(), lambda where: None)]
    finally:
        source.chmod(0o755)
        await archive.aclose()


def test_a_job_near_midnight_is_found_and_no_directory_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_in(tmp_path, DAY)
    monkeypatch.setattr(os, "scandir", lambda path: pytest.fail("was listed"))
    monkeypatch.setattr("jobtui.backends.archive.source.SAMPLES", 0)
    assert look(tmp_path, "7", submitted_at=SUBMITTED).script is not None
    archive_in(tmp_path, "20261121")
    assert look(tmp_path, "7", submitted_at=SUBMITTED).script is not None


def test_a_pipe_in_place_of_the_environment_leaves_the_script(tmp_path: Path) -> None:
    archive_in(tmp_path, DAY)
    (tmp_path / DAY / "job.1_environment").unlink()
    os.mkfifo(tmp_path / DAY / "job.1_environment")
    script = found(tmp_path, "1")
    assert script.environment is None
    assert any("pipe" in note for note in script.notes)


def test_a_large_script_is_whole_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive_in(tmp_path, DAY)
    large = b"#!/bin/sh\n" + b"echo \x1b[31m\xff\n" * 900_000
    (tmp_path / DAY / "job.1_script").write_bytes(large)
    assert found(tmp_path, "1").script == large
    monkeypatch.setattr("jobtui.backends.archive.source.MOST_BYTES", 1 << 20)
    assert look(tmp_path, "1").tried[0].outcome is Outcome.REFUSED


async def test_walking_is_bounded_in_time_and_number(tmp_path: Path) -> None:
    archive_in(tmp_path, DAY)
    archive_in(tmp_path, "20261020", at=Nanos(SUBMITTED - 31 * DAYS))
    archive = ArchiveDirectory(str(tmp_path))
    since = ScriptPeriod(since=Nanos(SUBMITTED - DAYS))
    lately = [one async for one in archive.walk(since, lambda where: None)]
    tally = Tally()
    few = [hit async for hit in search([archive], ScriptQuery("", "", ScriptPeriod(most=5)), tally)]
    await archive.aclose()
    assert len(lately) == len(JOBS)
    assert (len(few), tally.scripts) == (5, 5)
    assert tally.cuts == [f"{archive.name}: more than 5 scripts, the others were left out"]


async def test_archives_are_asked_in_turn_and_each_outcome_is_reported(tmp_path: Path) -> None:
    here = ArchiveDirectory(str(archive_in(tmp_path / "here", DAY)), "huppel")
    there = ArchiveDirectory(str(tmp_path / "there"), "snel")
    answer = await find_script([there, here], Wanted("10", "2", cluster="huppel"))
    outcomes = [one.outcome for one in answer.tried]
    assert outcomes == [Outcome.ARRAY, Outcome.OTHER_CLUSTER, Outcome.FOUND]
    assert answer.tried[0].result == "array: under job 10"
    missing = await find_script([there], Wanted("10"))
    assert missing.tried[0].outcome is Outcome.NO_ARCHIVE
    interactive = await find_script([here], Wanted("10", is_batch=False))
    assert interactive.tried[0].outcome is Outcome.INTERACTIVE
    await asyncio.gather(here.aclose(), there.aclose())


async def test_jobs_of_one_number_on_two_clusters_are_distinguished(tmp_path: Path) -> None:
    one = ArchiveDirectory(str(archive_in(tmp_path / "one", DAY)), "huppel")
    two = ArchiveDirectory(str(archive_in(tmp_path / "two", DAY)), "snel")
    both = await find_script([one, two], Wanted("7"))
    assert any("snel" in note for note in some(both.script).notes)
    named = await find_script([one, two], Wanted("7", cluster="snel"))
    assert some(named.script).cluster == "snel"
    await asyncio.gather(one.aclose(), two.aclose())


async def test_a_place_that_hangs_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(ArchiveDirectory):
        async def find(self, wanted: Wanted) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("jobtui.backends.archive.search.ANSWER_S", 0.01)
    here = ArchiveDirectory(str(archive_in(tmp_path / "here", DAY)))
    hanging = Hanging(str(tmp_path / "hanging"))
    answer = await find_script([hanging, here], Wanted("7"))
    await asyncio.gather(here.aclose(), hanging.aclose())
    assert answer.tried[0].outcome is Outcome.NO_ANSWER


LINKS = {
    "here": "job.2_script",
    "up and down": "../20261020/job.2_script",
    "through a link": "../latest/job.2_script",
    "absolute": "{archive}/20261020/job.2_script",
}


@pytest.mark.parametrize("target", LINKS.values(), ids=LINKS)
def test_a_link_that_stays_in_the_archive_is_followed(tmp_path: Path, target: str) -> None:
    archive = archive_in(tmp_path / "archive", DAY)
    archive_in(archive, "20261020")
    (archive / "latest").symlink_to("20261020")
    path = archive / DAY / "job.1_script"
    path.unlink()
    path.symlink_to(target.format(archive=archive))
    (tmp_path / "link").symlink_to(archive)
    for source in (archive, tmp_path / "link"):
        assert found(source, "1", submitted_at=SUBMITTED).script == script_of("2")


def test_a_linked_directory_of_a_date_is_followed_only_within(tmp_path: Path) -> None:
    archive = archive_in(tmp_path / "archive", "kept")
    (archive / DAY).symlink_to("kept")
    assert look(archive, "1", submitted_at=SUBMITTED).script is not None
    archive_in(tmp_path / "elsewhere", DAY)
    (archive / DAY).unlink()
    (archive / DAY).symlink_to(tmp_path / "elsewhere" / DAY)
    (tried,) = look(archive, "1", submitted_at=SUBMITTED).tried
    assert tried.outcome is Outcome.REFUSED
    assert "out of the archive" in tried.note


@given(
    st.lists(st.sampled_from(["..", ".", "a", "b", "link", "back", "out", "{root}/a", "{root}"]), max_size=6),
    st.lists(st.sampled_from(["..", "a", "b", "/", "link"]), max_size=4),
)
@settings(max_examples=60)
def test_no_links_lead_out(names: list[str], target: list[str]) -> None:
    with tempfile.TemporaryDirectory() as outside:
        root = Path(outside, "root")
        (root / "a" / "b").mkdir(parents=True)
        for directory in (Path(outside), root, root / "a", root / "a" / "b"):
            (directory / "f").write_text(str(directory))
        (root / "link").symlink_to("/".join(target) or ".")
        (root / "a" / "back").symlink_to("..")
        (root / "a" / "out").symlink_to("../..")
        with suppress(NotRead):
            kept = read_kept(root_of(str(root)), "/".join([*names, "f"]).format(root=root))
            assert Path(kept.data.decode()).is_relative_to(root)
