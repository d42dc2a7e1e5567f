"""Several logs in one pane: order, late lines, what is missing; and the copies of agents' logs."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jobtui.backends import agent_copies
from jobtui.backends.agent_copies import AgentCopies
from jobtui.backends.base import Batch
from jobtui.backends.journal.records import StreamNames, WantedStreams
from jobtui.formats.parser import LogParser
from jobtui.logs import merged as merged_logs
from jobtui.logs.catalog import SessionLogs
from jobtui.logs.journal import JournalPages, Selection
from jobtui.logs.merged import Mergeable, MergedLog
from jobtui.logs.pages import LogPages
from jobtui.model.clock import MONTHS, SECOND, FixedClock, Nanos, Offset, to_rfc3339
from jobtui.model.pages import Extent, Level, LogUnreadable, SearchState
from tests.analysis.captured import NEWEST, ROOT
from tests.backends.log_fakes import END, all_before, searched
from tests.journal_memory import T0, MemoryJournal
from tests.polling import polled
from tests.waiting import LONG_S


def journal_pages(journal: MemoryJournal, name: str = "v3") -> JournalPages:
    return JournalPages(
        name, lambda: journal.reader(name), Selection(StreamNames(name), WantedStreams(), None, ())
    )


def line(second: int, text: str) -> str:
    stamp = to_rfc3339(Nanos(T0 + second * SECOND))
    month = MONTHS[int(stamp[5:7]) - 1]
    return f"{month} {stamp[8:10]} {stamp[11:19]} 7 0 a/b.py:1:f {text}\n"


def two_journals() -> list[MemoryJournal]:
    made = [MemoryJournal(), MemoryJournal()]
    made[0].log("j1", 1)
    made[1].log("k2", 2, host="v7")
    return made


Make = Callable[..., MergedLog]


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(T0)


@pytest.fixture(autouse=True)
def all_logs_answer_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(merged_logs, "LOOK_S", LONG_S)


@pytest.fixture
async def merged_of(clock: FixedClock) -> AsyncIterator[Make]:
    made: list[MergedLog] = []

    def make(logs: Mapping[str, Mergeable], **more: Any) -> MergedLog:
        made.append(MergedLog(logs, now=clock.now, **more))
        return made[-1]

    yield make
    for merged in made:
        await merged.aclose()


def words(merged: MergedLog) -> list[str]:
    return [line.text.split()[-1] for line in merged.lines]


async def test_files_and_journals_in_the_order_of_time(merged_of: Make, tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text(line(1, "f1") + line(4, "f4"))
    one, other = MemoryJournal(), MemoryJournal()
    one.log("j2", 2)
    other.log("k3", 3, host="v7")
    merged = merged_of({str(file): LogPages(file), "a": journal_pages(one), "b": journal_pages(other)})
    before = await merged.look()
    assert words(merged) == ["f1", "j2", "k3", "f4"]
    assert [line.origin for line in merged.lines] == [
        str(file), "sirepo_job_supervisor@v3", "sirepo_job_supervisor@v7", str(file),
    ]  # fmt: skip
    positions = {line.text: line.position for line in merged.lines}
    other.log("k35 late", 3.5, host="v7")
    await asyncio.wait_for(merged.changed(LONG_S), LONG_S / 2)
    after = await merged.look()
    assert words(merged) == ["f1", "j2", "k3", "late", "f4"]
    assert after.revision != before.revision
    assert all(positions.get(line.text, line.position) == line.position for line in merged.lines)


async def test_older_lines_are_read_when_asked_for_without_gaps(merged_of: Make) -> None:
    busy, quiet = MemoryJournal(), MemoryJournal()
    for n in range(6_000):
        busy.log(f"busy {n}", 10_000 + n)
    for n in range(1_600):
        quiet.log(f"quiet {n}", n * 10, host="v7")
    merged = merged_of({"busy": journal_pages(busy), "quiet": journal_pages(quiet, "v7")})
    await merged.look()
    assert words(merged)[0] == "5000"  # not the quiet one's lines from before
    seen = await all_before(merged, 700)
    assert len(seen) == 7_600
    assert [line.position for line in seen] == sorted({line.position for line in seen})
    assert [line.text for line in seen if "busy" in line.text] == [f"busy {n}" for n in range(6_000)]
    ahead = await merged.after(seen[100].position, 7_600)
    assert list(ahead.lines) == seen[100:]


async def test_a_time_before_what_was_read_is_read_back_to(merged_of: Make, tmp_path: Path) -> None:
    journal, file = MemoryJournal(), tmp_path / "x.log"
    for number in range(3_000):
        journal.log(f"entry {number}", number)
    file.write_text("".join(line(second, f"at {second}\n  and more") for second in range(0, 4_000, 100)))
    for merged in (merged_of({"v3": journal_pages(journal), "x": LogPages(file)}), journal_pages(journal)):
        await merged.look()
        for second, text in ((50, "entry 50"), (49.5, "entry 50"), (2_999, "entry 2999")):
            assert (found := await merged.position_of_time(Nanos(T0 + round(second * SECOND)))) is not None
            assert (await merged.after(found, 1)).lines[0].text == text
        assert await merged.position_of_time(Nanos(T0 + 9_000 * SECOND)) is None


async def test_an_unreadable_journal_is_marked_as_a_gap(merged_of: Make, clock: FixedClock) -> None:
    one, other = two_journals()
    merged = merged_of({"a": journal_pages(one), "b": journal_pages(other)})
    clock.advance(5)
    await merged.look()
    other.broken = "connection refused"
    clock.advance(4)
    one.log("j8", 8)
    await merged.look()
    assert [line.text.split()[0] for line in merged.lines] == ["j1", "k2", "not", "j8"]
    gap = merged.lines[2]
    assert gap.is_gap
    assert (gap.origin, gap.at) == ("b", T0 + 5 * SECOND)
    assert "connection refused" in gap.text
    other.log("k7", 7, host="v7")
    other.broken = ""
    clock.advance(11)
    await merged.look()
    assert [line.text.split()[0] for line in merged.lines] == ["j1", "k2", "not", "k7", "j8"]
    assert merged.lines[2].position == gap.position
    assert "until 20:37:00Z" in merged.lines[2].text
    assert "nothing missing" in merged.lines[2].text


async def test_a_log_that_hangs_holds_up_no_other(merged_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_logs, "LOOK_S", 0.3)
    one, other = two_journals()
    hanging = journal_pages(other)
    go_on = asyncio.Event()
    look = hanging.look

    async def wait_and_look() -> Extent:
        await go_on.wait()
        return await look()

    monkeypatch.setattr(hanging, "look", wait_and_look)
    merged = merged_of({"a": journal_pages(one), "b": hanging})
    async with asyncio.timeout(LONG_S):
        while words(merged) != ["j1"]:  # a log that answers late comes with a later look
            await merged.look()
    go_on.set()
    await asyncio.wait_for(merged.changed(LONG_S), LONG_S / 2)
    await merged.look()
    assert words(merged) == ["j1", "k2"]


async def test_order_that_clocks_cannot_prove_is_marked(merged_of: Make) -> None:
    one, other = MemoryJournal(), MemoryJournal()
    for second, text in ((1, "a"), (2, "c"), (9, "e")):
        one.log(text, second)
    for at_s, text in ((1.3, "b"), (5.0, "d")):
        other.log(text, at_s, host="v7")
    offsets = {("v3", "v7"): Offset(-0.2, 0.4)}
    merged = merged_of({"a": journal_pages(one), "b": journal_pages(other)}, offsets=lambda: offsets)
    extent = await merged.look()
    page = await merged.before(END, 10)
    assert [(line.text, line.unproven) for line in page.lines] == [
        ("a", False), ("b", True), ("c", False), ("d", False), ("e", False),
    ]  # fmt: skip
    assert "v7 ±0.4 s" in extent.event


async def test_the_lines_held_are_bounded(merged_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_logs, "LINES_KEPT", 500)
    journal = MemoryJournal()
    for n in range(900):
        journal.log(f"line {n}", n)
    merged = merged_of({"a": journal_pages(journal)})
    extent = await merged.look()
    assert words(merged) == [str(n) for n in range(400, 900)]
    assert "newest lines only" in extent.event
    page = await merged.before(extent.begin, 100)
    assert (page.lines, page.at_edge) == ((), True)


async def test_lines_and_what_is_missing_are_given_up_to_the_begin(
    merged_of: Make, tmp_path: Path, clock: FixedClock
) -> None:
    file = tmp_path / "server.log"
    busy, quiet = MemoryJournal(), MemoryJournal()
    file.write_text("".join(line(n, f"f{n}") for n in range(0, 7_000, 7)))
    for n in range(7_000):
        busy.log(f"busy {n}", n + 0.5)
    quiet.log("quiet 3", 3, host="v7")
    logs = {"x": LogPages(file), "busy": journal_pages(busy), "quiet": journal_pages(quiet, "v7")}
    merged = merged_of(logs)
    async with asyncio.timeout(LONG_S):
        while len(whole := merged.lines) < 8_001:  # a log that answers late comes with a later look
            await merged.look()
            await merged.before(END, 9_000)
    assert len(whole) == 8_001
    quiet.broken = "connection refused"
    clock.advance(9_000)
    await merged.look()
    quiet.broken = ""
    clock.advance(100)
    await merged.look()
    gaps = [held for held in merged.lines if held.is_gap]
    busy.log("busy 8000", 8_000)
    await merged.look()
    assert words(merged)[-1] == "8000"
    seen = await all_before(merged, 700)
    assert [held for held in seen if held.is_gap] == gaps
    assert [held.text for held in seen if not held.is_gap] == [held.text for held in whole] + ["busy 8000"]
    assert [held.position for held in seen] == sorted({held.position for held in seen})


async def test_a_merged_log_waits_and_fails_where_nothing_can_be_read(merged_of: Make) -> None:
    journal = MemoryJournal()
    journal.log("j1", 1)
    merged = merged_of({"a": journal_pages(journal)})
    await merged.look()
    calls = journal.calls
    await merged.changed(0.05)
    assert journal.calls == calls
    journal.broken = "no permission"
    merged = merged_of({"a": journal_pages(journal)})
    with pytest.raises(LogUnreadable, match="no permission"):
        await merged.look()


CAPTURE = ROOT / "sbatch"
UID = "3pMDuIiL"
HOST = Path("user") / UID / "agent-sbatch" / "localhost"
RECORD = "Nov 20 20:48:{:02}  9015     0 job_agent.py:487:_op opName=run o=ab{:02} runDir=/scratch/x"
SECRET = "ukUt84zjHqMx9TqYRpHQGkdfllJUzaoH"


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


async def test_real_copies_repeat_lines_of_the_cluster_log() -> None:
    batch = await AgentCopies(CAPTURE, lambda: [UID]).poll(None)
    log = (CAPTURE / "scratch/jdoe/sirepo-dev/job_agent.log").read_bytes()
    whole = [record.text for record in LogParser("x").parse(log, 0, 1, NEWEST).records]
    told = [record.text for record in batch.records]
    assert len(told) == len(set(zip(told, (record.at for record in batch.records), strict=True)))
    assert len(told) > 20
    assert set(told) <= set(whole)
    assert (batch.skip_count, batch.note) == (0, None)
    assert {record.source for record in batch.records} == {str(CAPTURE / HOST)}


async def test_repeats_over_copies_are_dropped(tmp_path: Path, source: AgentCopies) -> None:
    assert (await source.poll(None)).records == ()
    write_copy(tmp_path, "20261120204749-remote-after-start.log", records(1, 2, 3))
    first = await source.poll(None)
    assert prefixes(first) == ["ab01", "ab02", "ab03"]
    nothing = await source.poll(first.cursor)
    assert prefixes(nothing) == []
    write_copy(tmp_path, "20261120204852-remote-before-start.log", records(2, 3, 4))
    second = await source.poll(nothing.cursor)
    assert prefixes(second) == ["ab04"]
    assert prefixes(await source.poll(None)) == ["ab01", "ab02", "ab03", "ab04"]
    source = AgentCopies(tmp_path, lambda: [UID])
    cursor = (await source.poll(None)).cursor
    write_copy(tmp_path, "20261120204749-start.log", records(1))
    assert prefixes(await source.poll(cursor)) == []


async def test_only_directories_of_named_users_are_read(tmp_path: Path) -> None:
    users = [UID]
    source = AgentCopies(tmp_path, lambda: users)
    write_copy(tmp_path, "20261120204749-start.log", records(1))
    write_copy(tmp_path, "20261120204749-start.log", records(2), uid="otherUid")
    first = await source.poll(None)
    assert prefixes(first) == ["ab01"]
    users += ["otherUid", "../../..", "/etc", ""]
    assert prefixes(await source.poll(first.cursor)) == ["ab02"]
    assert len(source.directories) == 2


async def test_unusual_directory_entries_are_ignored(tmp_path: Path, source: AgentCopies) -> None:
    good = write_copy(tmp_path, "20200224213911-remote.log", records(1))
    write_copy(tmp_path, "20200224213911-start.log", ["started"])
    os.mkfifo(good.parent / "20261120204750-start.log")
    (good.parent / "20261120204751-start.log").mkdir()
    (good.parent / "20261120204752-start.log").symlink_to("/nowhere")
    (good.parent / "notes.txt").write_text("x")
    (good.parent.parent / "file").write_text("x")
    (good.parent.parent / "link").symlink_to("/etc")
    batch = await source.poll(None)
    assert prefixes(batch) == ["ab01"]
    assert source.directories == (str(good.parent),)
    assert prefixes(await source.starting_at(Nanos(0)).poll(None)) == ["ab01"]


async def test_only_the_newest_copies_are_read_and_that_is_said(
    tmp_path: Path, source: AgentCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_copies, "COPIES_READ", 3)
    for number in range(6):
        write_copy(tmp_path, f"2026112020470{number}-start.log", records(number))
    batch = await source.poll(None)
    assert (prefixes(batch), batch.note) == (["ab03", "ab04", "ab05"], "3 older copies were not read")
    write_copy(tmp_path, "20261120204749-start.log", ["x" * agent_copies.COPY_BYTES])
    batch = await source.poll(None)
    assert f"larger than {agent_copies.COPY_BYTES:,} bytes" in batch.skipped[0].why


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
    batches = await polled(source)
    assert [prefix for batch in batches for prefix in prefixes(batch)] == [f"ab{n:02}" for n in range(30)]
    assert len(batches) > 10
    assert not (await source.poll(batches[-1].cursor)).more


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
    assert "lines before these may be missing" in text
    by_place = {line.position: line.text for line in page.lines}
    for record in batch.records:
        assert record.text.split("\n")[0][:50] in by_place[record.offset]
    search = await searched(log, "sbatch_login", extent.begin)
    assert (search.state, len(search.hits)) == (SearchState.DONE, text.count("opName=sbatch_login"))
    environment = [line.text for line in page.lines if line.text.startswith("SIREPO_PKCLI")]
    assert len(environment) > 5
    assert all(one.endswith(("=", "=***")) for one in environment)
    assert SECRET not in str([record.fields.get("agent_id") for record in batch.records])
    before = await log.before(extent.end, 3)
    assert before.lines == page.lines[-3:]
    overview = log.overview()
    assert (overview.lines, overview.complete) == (len(page.lines), True)
    assert overview.until == [line.at for line in page.lines if line.at][-1]
    await log.aclose()
    await log.aclose()


async def test_a_log_of_copies_goes_on_when_one_comes(tmp_path: Path) -> None:
    path = write_copy(tmp_path, "20261120204749-start.log", records(1), stderr="tail: no\nsuch file")
    log = SessionLogs(tuple).open(str(path.parent))
    extent = await log.look()
    lines = (await log.after(extent.begin, 10)).lines
    assert [line.level for line in lines][1] is Level.ERROR
    assert lines[1].text == "stderr: tail: no such file"
    assert await log.next_error(extent.begin, forward=True) == lines[1].position
    write_copy(tmp_path, "20261120204852-start.log", records(2))
    await log.changed(30.0)
    grown = await log.look()
    assert grown.end > extent.end
    assert "ab02" in (await log.before(grown.end, 1)).lines[0].text
    shutil.rmtree(path.parent)
    with pytest.raises(LogUnreadable, match="cori"):
        await log.look()
    await log.aclose()
