"""The copies of cluster agents' logs as a source and as a log: real ones, new ones, broken ones."""

import json
import os
import shutil
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.backends import agent_copies, copied_log
from jobtui.backends.agent_copies import AgentCopies
from jobtui.backends.base import Batch, RewindableSource, Source, SourceError
from jobtui.backends.copied_log import CopiedLog
from jobtui.backends.log_book import SessionLogs
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import LogParser
from jobtui.model.clock import Nanos
from jobtui.model.pages import Level, Log, LogUnreadable, Query, SearchState
from tests.analysis.captured import NEWEST, ROOT

CAPTURE = ROOT / "sbatch"
UID = "3pMDuIiL"
HOST = Path("user") / UID / "agent-sbatch" / "localhost"
RECORD = "Nov 20 20:48:{:02}  9015     0 job_agent.py:487:_op opName=run o=ab{:02} runDir=/scratch/x"
SECRETS = ("PZa5LRaHMU5QBE61nU0UKULYJnm2UYT9", "ukUt84zjHqMx9TqYRpHQGkdfllJUzaoH")


def write_copy(root: Path, name: str, lines: Iterable[str], *, uid: str = UID, stderr: str = "") -> Path:
    path = root / "user" / uid / "agent-sbatch" / "cori" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines)
    path.write_text(json.dumps({"filename": str(path), "stderr": stderr, "stdout": text}, indent=4))
    return path


def records(*numbers: int) -> list[str]:
    return [RECORD.format(number, number) for number in numbers]


def prefixes(batch: Batch) -> list[str]:
    return [record.fields["o"] or "" for record in batch.records if record.shape == "op_arrived"]


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[AgentCopies]:
    made = AgentCopies(tmp_path, lambda: [UID], every_s=0)
    yield made
    await made.aclose()


async def test_what_real_copies_tell_is_in_the_clusters_log_too() -> None:
    batch = await AgentCopies(CAPTURE, lambda: [UID]).poll(None)
    log = (CAPTURE / "scratch/jdoe/sirepo-dev/job_agent.log").read_bytes()
    whole = [record.text for record in LogParser("x").parse(log, 0, 1, NEWEST).records]
    told = [record.text for record in batch.records]
    assert len(told) == len(set(zip(told, (record.at for record in batch.records), strict=True)))
    assert len(told) > 20
    assert set(told) <= set(whole)
    assert (batch.skip_count, batch.note) == (0, None)
    assert {record.source for record in batch.records} == {str(CAPTURE / HOST)}


async def test_agents_learn_user_and_host_from_it() -> None:
    correlator = Correlator()
    parsed = LogParser("s").parse((CAPTURE / "supervisor.log").read_bytes(), 0, 1, NEWEST)
    correlator.feed(parsed.records)
    correlator.feed((await AgentCopies(CAPTURE, lambda: [UID]).poll(None)).records)
    agents = {str(agent.agent): agent for agent in correlator.agents()}
    assert (agents["somG"].uid, agents["somG"].host) == (UID, "localhost")
    assert agents["somG"].log == str(CAPTURE / HOST)


async def test_repeats_over_copies_are_dropped_and_new_copies_come(
    tmp_path: Path, source: AgentCopies
) -> None:
    assert (await source.poll(None)).records == ()
    write_copy(tmp_path, "20261120204749-remote-after-start.log", records(1, 2, 3))
    first = await source.poll("1")
    assert prefixes(first) == ["ab01", "ab02", "ab03"]
    assert prefixes(await source.poll(first.cursor)) == []
    write_copy(tmp_path, "20261120204852-remote-before-start.log", records(2, 3, 4))
    second = await source.poll(first.cursor)
    assert prefixes(second) == ["ab04"]
    assert prefixes(await source.poll(None)) == ["ab01", "ab02", "ab03", "ab04"]


async def test_kinds_of_2020_are_read(tmp_path: Path, source: AgentCopies) -> None:
    write_copy(tmp_path, "20200224213911-remote.log", records(1))
    write_copy(tmp_path, "20200224213911-start.log", ["started"])
    assert prefixes(await source.poll(None)) == ["ab01"]


async def test_only_users_that_are_named_are_looked_at(tmp_path: Path) -> None:
    users = [UID]
    source = AgentCopies(tmp_path, lambda: users)
    write_copy(tmp_path, "20261120204749-start.log", records(1))
    write_copy(tmp_path, "20261120204749-start.log", records(2), uid="otherUid")
    first = await source.poll(None)
    assert prefixes(first) == ["ab01"]
    users += ["otherUid", "../../..", "/etc", ""]
    assert prefixes(await source.poll(first.cursor)) == ["ab02"]
    assert len(source.directories) == 2


async def test_between_two_looks_nothing_is_read(tmp_path: Path) -> None:
    source = AgentCopies(tmp_path, lambda: [UID])
    cursor = (await source.poll(None)).cursor
    write_copy(tmp_path, "20261120204749-start.log", records(1))
    assert prefixes(await source.poll(cursor)) == []


BROKEN = ["", "{", "[]", '{"stdout": 3}', "\0\0", '{"stdout": "x', "[" * 100_000]


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
async def test_a_broken_copy_costs_that_copy_only(tmp_path: Path, source: AgentCopies, content: str) -> None:
    path = write_copy(tmp_path, "20261120204749-start.log", [])
    path.write_text(content)
    write_copy(tmp_path, "20261120204852-start.log", records(4))
    batch = await source.poll(None)
    assert prefixes(batch) == ["ab04"]
    assert batch.skip_count == 1
    assert batch.skipped[0].where == f"{source.name}: {UID}/agent-sbatch/cori/{path.name}"


async def test_a_copy_that_is_mended_in_its_place_is_read(tmp_path: Path, source: AgentCopies) -> None:
    path = write_copy(tmp_path, "20261120204749-start.log", records(1))
    whole = path.read_text()
    path.write_text(whole[:30])
    os.utime(path.parent, ns=(0, 0))
    first = await source.poll(None)
    assert (first.skip_count, prefixes(first)) == (1, [])
    path.write_text(whole)
    assert path.parent.stat().st_mtime_ns == 0
    mended = await source.poll(first.cursor)
    assert (mended.recovered, mended.skip_count, prefixes(mended)) == (1, 0, ["ab01"])


async def test_odd_entries_do_no_harm(tmp_path: Path, source: AgentCopies) -> None:
    good = write_copy(tmp_path, "20261120204749-start.log", records(1))
    os.mkfifo(good.parent / "20261120204750-start.log")
    (good.parent / "20261120204751-start.log").mkdir()
    (good.parent / "20261120204752-start.log").symlink_to("/nowhere")
    (good.parent / "notes.txt").write_text("x")
    (good.parent.parent / "file").write_text("x")
    (good.parent.parent / "link").symlink_to("/etc")
    batch = await source.poll(None)
    assert prefixes(batch) == ["ab01"]
    assert source.directories == (str(good.parent),)


async def test_of_very_many_only_the_newest_are_read(
    tmp_path: Path, source: AgentCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copied_log, "COPIES_READ", 3)
    for number in range(6):
        write_copy(tmp_path, f"2026112020470{number}-start.log", records(number))
    batch = await source.poll(None)
    assert prefixes(batch) == ["ab03", "ab04", "ab05"]
    assert batch.note == "3 older copies were not read"


async def test_a_larger_file_is_no_copy(
    tmp_path: Path, source: AgentCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copied_log, "COPY_BYTES", 1_000)
    write_copy(tmp_path, "20261120204749-start.log", ["x" * 2_000])
    batch = await source.poll(None)
    assert "larger than 1,000 bytes" in batch.skipped[0].why


async def test_users_beyond_the_limit_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_copies, "USERS_LOOKED_AT", 1)
    write_copy(tmp_path, "20261120204749-start.log", records(1))
    batch = await AgentCopies(tmp_path, lambda: ["aaaaaaaa", UID]).poll(None)
    assert prefixes(batch) == ["ab01"]
    assert batch.note == "only 1 of 2 users with jobs on a cluster are looked at"


async def test_many_directories_are_read_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_copies, "SLICE_S", 0.0)
    users = [f"user{number:04}" for number in range(30)]
    for number, uid in enumerate(users):
        write_copy(tmp_path, "20261120204749-start.log", records(number), uid=uid)
    source = AgentCopies(tmp_path, lambda: users)
    batches = [await source.poll(None)]
    while batches[-1].more:
        batches.append(await source.poll(batches[-1].cursor))
    assert [prefix for batch in batches for prefix in prefixes(batch)] == [f"ab{n:02}" for n in range(30)]
    assert len(batches) > 10
    assert not (await source.poll(batches[-1].cursor)).more


async def test_its_copies_are_in_the_log_of_all(tmp_path: Path) -> None:
    write_copy(tmp_path, "20261120204801-remote-after-start.log", records(1, 2))
    (tmp_path / "sirepo.log").write_text("".join(f"{line}\n" for line in records(3)))
    cluster_log = tmp_path / "job_agent.log"
    cluster_log.write_text("".join(f"{line}\n" for line in records(4)))
    source = AgentCopies(tmp_path, lambda: [UID])
    await source.poll(None)
    sources: list[Source] = [source, LogFile(tmp_path / "sirepo.log")]
    book = SessionLogs(lambda: sources)
    assert await in_one(book.merged(None)) == (records(1, 2, 3), 2)
    by_hand = (*book.names(), str(cluster_log))
    assert await in_one(book.merged(by_hand)) == (records(1, 2, 3, 4), 3)
    await source.aclose()


async def in_one(log: Log) -> tuple[list[str], int]:
    """What a log of several shows of records, and of how many logs."""
    extent = await log.look()
    page = await log.before(extent.end, 100)
    await log.aclose()
    assert not any(line.is_gap for line in page.lines)
    own = [line for line in page.lines if "_op opName" in line.text]
    return [line.text for line in own], len({line.origin for line in own})


async def test_it_can_be_read_again_and_closed_twice(source: AgentCopies) -> None:
    assert isinstance(source, RewindableSource)
    assert not source.begins_after(Nanos(0))
    again = source.starting_at(Nanos(0))
    assert again.name == source.name
    await source.aclose()
    await source.aclose()
    with pytest.raises(SourceError, match="closed"):
        await source.poll(None)


# As a log to be read.


async def test_the_log_of_real_copies_can_be_read_and_searched() -> None:
    source = AgentCopies(CAPTURE, lambda: [UID])
    batch = await source.poll(None)
    book = SessionLogs(lambda: [source])
    (name,) = book.names()
    log = book.open(name)
    extent = await log.look()
    page = await log.after(extent.begin, 1_000)
    assert page.at_edge
    text = "\n".join(line.text for line in page.lines)
    assert "── copy remote-after-start ──" in text
    assert "lines before these may be in no copy" in text
    by_place = {line.place: line.text for line in page.lines}
    for record in batch.records:
        assert record.text.split("\n")[0][:50] in by_place[record.offset]
    search = log.search(Query("sbatch_login", False, True), extent.begin)
    await search.run()
    assert (search.state, len(search.hits)) == (SearchState.DONE, text.count("opName=sbatch_login"))
    before = await log.before(extent.end, 3)
    assert before.lines == page.lines[-3:]
    overview = log.overview()
    assert (overview.lines, overview.complete) == (len(page.lines), True)
    await log.aclose()
    await log.aclose()


async def test_values_of_the_environment_are_nowhere_in_it() -> None:
    copied = CopiedLog(CAPTURE / HOST, gives_records=False)
    added = copied.look()
    environment = [line.text for line in added.lines if line.text.startswith("SIREPO_PKCLI")]
    assert len(environment) > 5
    assert all(text.endswith(("=", "=***")) for text in environment)


async def test_a_log_of_copies_goes_on_when_one_comes(tmp_path: Path) -> None:
    path = write_copy(tmp_path, "20261120204749-start.log", records(1), stderr="tail: no\nsuch file")
    log = SessionLogs(tuple).open(str(path.parent))
    extent = await log.look()
    lines = (await log.after(extent.begin, 10)).lines
    assert [line.level for line in lines][1] is Level.ERROR
    assert lines[1].text == "stderr: tail: no such file"
    assert await log.next_error(extent.begin, forward=True) == lines[1].place
    write_copy(tmp_path, "20261120204852-start.log", records(2))
    await log.changed(30.0)
    grown = await log.look()
    assert grown.end > extent.end
    assert "ab02" in (await log.before(grown.end, 1)).lines[0].text
    shutil.rmtree(path.parent)
    with pytest.raises(LogUnreadable, match="cori"):
        await log.look()
    await log.aclose()


async def test_bytes_of_secrets_do_not_get_into_records() -> None:
    batch = await AgentCopies(CAPTURE, lambda: [UID]).poll(None)
    for record in batch.records:
        assert SECRETS[1] not in str(record.fields.get("agent_id"))
