"""Files of HTCondor jobs as a source: followed, written anew, packed, very large, broken."""

import gzip
import os
from pathlib import Path

import pytest

from jobtui.backends.base import Batch, SourceError
from jobtui.backends.condor_files import CondorFile
from jobtui.model.ids import JobId
from tests.condor import CONDOR, book_of, event, executing, facts_in, submitted
from tests.tracing import CAPTURES

END = "Fri Nov 20 20:40:14 UTC 2026 a.sh COMPLETED with exit status 3\n"
BEGIN = "Fri Nov 20 20:40:06 UTC 2026 7.0@s.example.org BEGIN EXECUTION a.sh\n"


async def all_of(source: CondorFile) -> list[Batch]:
    """Every batch there is; closes the source."""
    batches = [await source.poll(None)]
    while batches[-1].more:
        batches.append(await source.poll(batches[-1].cursor))
    await source.aclose()
    return batches


def said(batches: list[Batch]) -> list[tuple[str, str]]:
    return [(fact.what, fact.job) for batch in batches for fact in batch.condor]


@pytest.mark.parametrize("piece", [300, 4096, 1 << 20])
@pytest.mark.parametrize("name", ["cluster.log", "cluster.xml.log", "cluster.json.log", "job.ad"])
async def test_in_whatever_pieces_a_file_is_read_it_says_the_same(name: str, piece: int) -> None:
    batches = await all_of(CondorFile(CONDOR / name, piece_bytes=max(piece, 1200)))
    true = [(fact.what, fact.job, fact.offset, fact.line) for fact in facts_in(CONDOR / name)]
    assert [(f.what, f.job, f.offset, f.line) for batch in batches for f in batch.condor] == true
    assert sum(batch.skip_count for batch in batches) == 0


async def test_an_output_is_followed_and_its_job_remembered(tmp_path: Path) -> None:
    path = tmp_path / "job.out"
    path.write_text(BEGIN + "working\n")
    source = CondorFile(path)
    first = await source.poll(None)
    with path.open("a") as file:
        file.write("still working\n" + END[:20])
    second = await source.poll(first.cursor)
    with path.open("a") as file:
        file.write(END[20:])
    third = await source.poll(second.cursor)
    await source.aclose()
    assert said([first, second, third]) == [
        ("begin_execution", "7.0@s.example.org"),
        ("completed", "7.0@s.example.org"),
    ]
    assert third.condor[0].line == 4


async def test_a_file_that_was_cut_short_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(submitted() + executing())
    source = CondorFile(path)
    first = await source.poll(None)
    path.write_text(submitted(job="008.000.000"))
    second = await source.poll(first.cursor)
    await source.aclose()
    assert said([second]) == [("submit", "8.0@jobsub02.fnal.gov")]


def replaced(path: Path, text: str) -> None:
    """Put another file in the place of a log."""
    draft = path.with_suffix(".new")
    draft.write_text(text)
    draft.replace(path)


HELD_LATER = event(12, "2026-11-20 10:05:00Z", "Job was held.", "no room", "Code 34 Subcode 0")


@pytest.mark.parametrize("is_emptied", [False, True], ids=["at once", "empty for a while"])
@pytest.mark.parametrize("is_new", [True, False], ids=["moved", "cut"])
async def test_what_a_rotated_log_says_is_behind_what_the_one_before_it_said(
    tmp_path: Path, *, is_new: bool, is_emptied: bool
) -> None:
    path = tmp_path / "a.log"
    path.write_text(submitted() + executing())
    source = CondorFile(path)
    batches = [await source.poll(None)]
    if is_new:
        path.rename(tmp_path / "a.log.old")
    if is_emptied:
        path.write_text("")
        batches.append(await source.poll(batches[-1].cursor))
    path.write_text(HELD_LATER)
    batches.append(await source.poll(batches[-1].cursor))
    with path.open("a") as file:
        file.write(event(13, "2026-11-20 10:06:00Z", "Job was released.", "by me"))
    batches.append(await source.poll(batches[-1].cursor))
    await source.aclose()
    book, _ = book_of(*(batch.condor for batch in batches))
    facts = book.facts_of(JobId("7.0@jobsub02.fnal.gov"))
    assert [fact.what for fact in facts] == ["submit", "execute", "held", "released"]
    detail = book.detail(JobId("7.0@jobsub02.fnal.gov"))
    assert detail is not None
    assert detail.job.native_status == "IDLE"


async def test_a_log_that_was_copied_anew_as_it_grew_says_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(submitted())
    source = CondorFile(path)
    first = await source.poll(None)
    replaced(path, submitted() + executing())
    second = await source.poll(first.cursor)
    await source.aclose()
    book, _ = book_of(first.condor, second.condor)
    assert [fact.what for fact in book.facts_of(JobId("7.0@jobsub02.fnal.gov"))] == ["submit", "execute"]


async def test_ads_that_are_written_anew_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text('[{"ClusterId": 7, "ProcId": 0, "JobStatus": 1}]')
    source = CondorFile(path)
    first = await source.poll(None)
    unchanged = await source.poll(first.cursor)
    path.write_text('[{"ClusterId": 7, "ProcId": 0, "JobStatus": 2}, {"ClusterId": 7, "Proc')
    second = await source.poll(unchanged.cursor)
    await source.aclose()
    assert [fact.values["JobStatus"] for batch in (first, unchanged, second) for fact in batch.condor] == [
        "1",
        "2",
    ]
    assert second.skip_count == 1


async def test_very_many_ads_come_in_parts_each_once(tmp_path: Path) -> None:
    path = tmp_path / "q.ads"
    path.write_text("".join(f"ClusterId = {n}\nProcId = 0\nJobStatus = 1\n\n" for n in range(1, 1_301)))
    batches = await all_of(CondorFile(path))
    assert [len(batch.condor) for batch in batches] == [500, 500, 300]
    assert {job for _, job in said(batches)} == {f"{n}.0" for n in range(1, 1_301)}
    lost = CondorFile(path)
    assert (await lost.poll(batches[0].cursor)).condor == batches[1].condor
    await lost.aclose()


async def test_a_packed_log_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress((CONDOR / "cluster.log").read_bytes()))
    assert len(said(await all_of(CondorFile(path)))) == 12


async def test_of_a_huge_output_the_beginning_and_the_end_are_read(tmp_path: Path) -> None:
    path = tmp_path / "job.out"
    path.write_text(BEGIN)
    os.truncate(path, 1 << 30)  # a hole: it takes no room on the disk
    with path.open("ab") as file:
        file.write(b"\n" + END.encode())
    batches = await all_of(CondorFile(path, piece_bytes=1 << 20, most_bytes=2 << 20))
    assert said(batches) == [("begin_execution", "7.0@s.example.org"), ("completed", "7.0@s.example.org")]
    assert "1024 MiB" in (batches[0].note or "")
    assert len(batches) < 6


async def test_a_huge_event_log_goes_on_at_a_whole_event(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(submitted() + executing() * 5_000)
    batches = await all_of(CondorFile(path, piece_bytes=20_000, most_bytes=50_000))
    assert sum(batch.skip_count for batch in batches) == 0
    assert 200 < len(said(batches)) < 1_000
    assert said(batches)[-1] == ("execute", "7.0@jobsub02.fnal.gov")
    assert all(fact.line == 0 for fact in batches[-1].condor)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100_000,
        b"\xff" * 5_000,
        b"{" * 5_000,
        b"<c>" * 2_000,
        b"...\n" * 1_000,
        b"no job\n" * 100,
    ],
    ids=["empty", "nul", "bytes", "braces", "elements", "dots", "text"],
)
async def test_a_file_of_something_else_gives_no_job(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(data)
    batches = await all_of(CondorFile(path, piece_bytes=1_000))
    assert said(batches) == []
    assert len(batches) < 200


async def test_a_submit_file_names_the_trace_and_no_job() -> None:
    (batch,) = await all_of(CondorFile(CAPTURES / "job-fail" / "simple.cmd"))
    (fact,) = batch.condor
    assert (fact.job, fact.what, fact.values["TraceParent"]) == (
        "",
        "submit_file",
        "212c891717bfbac28a34dec05b616f14",
    )


async def test_what_is_no_file_says_so_in_one_line(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        source = CondorFile(path)
        with pytest.raises(SourceError) as raised:
            await source.poll(None)
        await source.aclose()
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)
