"""Files of HTCondor jobs as a source: followed, rewritten, packed, very large, broken."""

import gzip
import json
import lzma
import os
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

from jobtui.backends.base import Batch
from jobtui.backends.condor.source import CondorFile
from jobtui.model.clock import SECOND
from jobtui.model.ids import JobId
from jobtui.model.tables import tables_of
from tests.backends.log_fakes import append
from tests.condor import book_of, event, executing, submitted
from tests.polling import Reading, polled
from tests.rows import table

END = "Fri Nov 20 20:40:14 UTC 2026 a.sh COMPLETED with exit status 3\n"
BEGIN = "Fri Nov 20 20:40:06 UTC 2026 7.0@s.example.org BEGIN EXECUTION a.sh\n"


async def all_of(source: CondorFile) -> list[Batch]:
    batches = await polled(source)
    await source.aclose()
    return batches


def said(batches: list[Batch]) -> list[tuple[str, str]]:
    return [(fact.what, fact.job) for batch in batches for fact in batch.condor]


async def read_after(path: Path, *doings: Callable[[], object]) -> list[Batch]:
    """What a file tells at first, and after each of the things that are done to it."""
    async with aclosing(CondorFile(path)) as source:
        reading = Reading(source)
        await reading.poll()
        for do in doings:
            do()
            await reading.poll()
    return reading.batches


async def test_an_output_is_followed_and_its_job_remembered(tmp_path: Path) -> None:
    path = tmp_path / "job.out"
    path.write_text(BEGIN + "working\nstill working\n")
    batches = await read_after(path, lambda: append(path, END[:20]), lambda: append(path, END[20:]))
    assert said(batches) == [("begin_execution", "7.0@s.example.org"), ("completed", "7.0@s.example.org")]
    assert batches[-1].condor[0].line == 4


def replaced(path: Path, text: str) -> None:
    draft = path.with_suffix(".new")
    draft.write_text(text)
    draft.replace(path)


HELD_LATER = event(12, "2026-11-20 10:05:00Z", "Job was held.", "no room", "Code 34 Subcode 0")


@pytest.mark.parametrize("is_emptied", [False, True], ids=["at once", "empty for a while"])
@pytest.mark.parametrize("is_new", [True, False], ids=["moved", "cut"])
async def test_a_rotated_log_goes_on(tmp_path: Path, *, is_new: bool, is_emptied: bool) -> None:
    path = tmp_path / "a.log"
    path.write_text(submitted() + executing())
    old, released = tmp_path / "a.log.old", event(13, "2026-11-20 10:06:00Z", "Job was released.", "by me")

    def begin(text: str) -> None:
        if is_new and not old.exists():
            path.rename(old)
        path.write_text(text)

    texts = ["", HELD_LATER] if is_emptied else [HELD_LATER]
    doings = [partial(begin, text) for text in texts]
    batches = await read_after(path, *doings, lambda: append(path, released))
    book, _ = book_of(*(batch.condor for batch in batches))
    facts = book.facts_of(JobId("7.0@jobsub02.fnal.gov"))
    assert [fact.what for fact in facts] == ["submit", "execute", "held", "released"]
    detail = book.detail(JobId("7.0@jobsub02.fnal.gov"))
    assert detail is not None
    assert detail.job.native_status == "IDLE"


ENDS = "".join(event(5, "2026-11-20 10:05:00Z", "Job terminated.", job=f"00{n}.000.000") for n in (8, 7))


@pytest.mark.parametrize("is_rotated", [False, True], ids=["a hole at its end", "rotated within an event"])
async def test_an_end_that_may_be_in_a_lost_part_is_missed(tmp_path: Path, *, is_rotated: bool) -> None:
    path, text = tmp_path / "a.log", submitted() + executing() + ENDS
    path.write_text(text[:-3] if is_rotated else text[:-90] + 90 * "\0")
    if is_rotated:
        path.rename(f"{path}.old")
        path.write_text(text[-3:])
    book, _ = book_of(*(batch.condor for batch in await all_of(CondorFile(path))))
    assert book.detail(JobId("7.0@jobsub02.fnal.gov")).job.alert == "a part of its log is missing"  # type: ignore


FORMS = table("condor_logs")
HEADS, TOLD = FORMS["head"], FORMS["event"]


class EventLog:
    """A schedd's own log, rotated as HTCondor does it: the head of the old file is rewritten before."""

    def __init__(self, path: Path, form: str, kept: int) -> None:
        self.path, self._form, self._kept, self._rotations = path, form, kept, 0
        path.write_text(HEADS[form].format(0))

    def write(self, number: int, proc: int, minute: int) -> None:
        head = tables_of("jobtui.model", "condor")["heads"][f"{number:03}"][0]
        append(self.path, TOLD[self._form].format(number=number, proc=proc, minute=minute, head=head))

    def rotate(self) -> None:
        self._rotations += 1
        text = self.path.read_text().replace("size=0", "size=9", 1)
        with self.path.open("r+") as file:
            file.write(text)
        os.utime(self.path, (self._rotations, self._rotations))
        if self._kept == 1:
            self.path.replace(f"{self.path}.old")
        else:
            for number in range(self._kept, 0, -1):
                older = Path(f"{self.path}.{number - 1}") if number > 1 else self.path
                if older.exists():
                    older.replace(f"{self.path}.{number}")
        self.path.write_text(HEADS[self._form].format(self._rotations))


@pytest.mark.parametrize("form", HEADS)
@pytest.mark.parametrize(
    ("kept", "rotations", "missing"),
    [(1, 1, False), (3, 2, False), (3, 3, False), (1, 2, False), (1, 3, True), (2, 5, True)],
)
async def test_a_rotated_log_of_a_schedd_is_read_to_its_end_or_what_is_missing_is_said(
    tmp_path: Path, form: str, kept: int, rotations: int, *, missing: bool
) -> None:
    log = EventLog(tmp_path / "EventLog", form, kept)
    for proc in (0, 1):
        log.write(0, proc, 1)
        log.write(1, proc, 2)
    source = CondorFile(log.path)
    first = await source.poll(None)
    for rotation in range(rotations):
        if rotation == int(missing):
            log.write(9, 0, 3)
        log.rotate()
        log.write(6, 1, 4 + rotation)
    batches = [first, *await polled(source, first.cursor)]
    await source.aclose()
    assert sum(batch.skip_count for batch in batches) == 0
    book, _ = book_of(*(batch.condor for batch in batches))
    jobs = [book.detail(JobId(f"7.{proc}")) for proc in (0, 1)]
    assert [detail and (detail.job.native_status, detail.job.alert) for detail in jobs] == [
        ("RUNNING", "a part of its log is missing") if missing else ("REMOVED", None), ("RUNNING", None)
    ]  # fmt: skip
    told = [fact.what for fact in book.facts_of(JobId("7.0"))]
    assert told[:3] == ["submit", "execute", "log_gap" if missing else "aborted"]


@pytest.mark.parametrize("form", HEADS)
async def test_another_log_in_the_same_file_is_another_log_however_long_its_head_is(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = HEADS[form].replace("size=0", f"size=0 creator={300 * 'x'}")
    monkeypatch.setitem(HEADS, form, head)
    log = EventLog(tmp_path / "EventLog", form, 1)
    log.write(0, 0, 1)
    source = CondorFile(log.path)
    first = await source.poll(None)
    log.path.write_text(head.format(7))
    for minute in range(2, 5):
        log.write(0, minute, minute)
    batches = await polled(source, first.cursor)
    await source.aclose()
    facts = [fact.what for batch in batches for fact in batch.condor if fact.what != "generic"]
    assert facts == ["log_gap", "submit", "submit", "submit"]


async def test_older_files_of_a_schedd_are_read_although_they_are_packed(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "EventLog", "classic", 4)
    for minute, number in enumerate((0, 1, 12)):
        log.write(number, 0, minute)
        log.rotate()
    log.write(13, 0, 9)
    for number, pack in ((3, gzip.compress), (2, lzma.compress)):
        plain = tmp_path / f"EventLog.{number}"
        packed = plain.with_name(plain.name + (".gz" if number == 3 else ".xz"))
        packed.write_bytes(pack(plain.read_bytes()))
        os.utime(packed, (plain.stat().st_mtime,) * 2)
        if number == 3:
            plain.unlink()
    batches = await all_of(CondorFile(log.path))
    assert [what for what, job in said(batches) if job] == ["submit", "execute", "held", "released"]
    assert len({(fact.rotation, fact.part) for batch in batches for fact in batch.condor if fact.job}) == 4
    log.path.write_text(
        event(13, "2026-11-20 10:09:00Z", "Job was released.")
    )  # a job's log has no such head
    broken = [("3.gz", b"\x28\xb5\x2f\xfd."), ("old.zst", b"\x28\xb5\x2f\xfd."), ("7.bz2", b"BZh9.")]
    for count, (name, data) in enumerate(broken, 1):
        (tmp_path / f"EventLog.{name}").write_bytes(data)
        batches = await all_of(CondorFile(log.path))
        assert sum("packed text ends" in skip.why for batch in batches for skip in batch.skipped) == count
        assert ("released", "7.0") in said(batches)


async def test_a_log_that_is_copied_again_as_it_grows_gives_each_event_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(submitted())
    first, second = await read_after(path, lambda: replaced(path, submitted() + executing()))
    book, _ = book_of(first.condor, second.condor)
    assert [fact.what for fact in book.facts_of(JobId("7.0@jobsub02.fnal.gov"))] == ["submit", "execute"]


async def test_rewritten_ads_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text('[{"ClusterId": 7, "ProcId": 0, "JobStatus": 1}]')
    again = '[{"ClusterId": 7, "ProcId": 0, "JobStatus": 2}, {"ClusterId": 7, "Proc'
    batches = await read_after(path, lambda: None, lambda: path.write_text(again))
    assert [fact.values["JobStatus"] for batch in batches for fact in batch.condor] == ["1", "2"]
    assert batches[-1].skip_count == 1


async def test_the_reasons_for_which_a_job_was_seen_to_wait_are_given(tmp_path: Path) -> None:
    path = tmp_path / "queue.json"
    ad = {"MyType": "Job", "ClusterId": 7, "ProcId": 0, "GlobalJobId": "s.org#7.0#1", "QDate": 1_795_000_000}
    idle, held = ad | {"JobStatus": 1}, ad | {"JobStatus": 5, "HoldReason": "no room"}
    rejected = idle | {"LastRejMatchReason": "no match found ", "LastRejMatchTime": 1_795_000_300}
    path.write_text(json.dumps([idle]))
    ads = (rejected, rejected | {"LastRejMatchTime": 1_795_000_600}, held, ad | {"JobStatus": 2}, idle)
    batches = await read_after(path, *(partial(replaced, path, json.dumps([one])) for one in ads))
    told = [[(seen.at // SECOND, seen.reason) for seen in batch.reasons] for batch in batches]
    why = (1_795_000_000, "IDLE"), (1_795_000_300, "IDLE: no match found"), (1_795_000_000, "HELD: no room")
    assert told == [[], [*why[:2]], [], [*why[1:]], [], []]
    assert {seen.job_id for batch in batches for seen in batch.reasons} == {"7.0@s.org"}


async def test_a_huge_output_is_read_at_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "job.out"
    path.write_text(BEGIN)
    os.truncate(path, 1 << 30)  # a hole: it takes no room on the disk
    with path.open("ab") as file:
        file.write(b"\n" + END.encode())
    batches = await all_of(CondorFile(path, most_bytes=2 << 20))
    assert said(batches) == [("begin_execution", "7.0@s.example.org"), ("completed", "7.0@s.example.org")]
    assert "anything earlier was not read" in (batches[0].note or "")
    assert len(batches) < 6


async def test_a_huge_log_goes_on_at_a_whole_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.condor.source.PIECE_BYTES", 20_000)
    path = tmp_path / "a.log"
    path.write_text(submitted() + executing() * 5_000)
    batches = await all_of(CondorFile(path, most_bytes=50_000))
    assert sum(batch.skip_count for batch in batches) == 0
    assert 200 < len(said(batches)) < 1_000
    assert said(batches)[-1] == ("execute", "7.0@jobsub02.fnal.gov")
    assert batches[-1].condor[-1].line == 2 * 5_000 + 1
