"""What is behind a step: the lines of its record as they stand in the file now."""

from inspect import getmembers, iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest

from jobtui.backends.job_reader import SessionJobReader
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.model.clock import Nanos, SystemClock
from jobtui.model.health import Faults
from jobtui.model.ids import JobId
from jobtui.model.job_reader import Unreadable
from jobtui.model.scripts import Wanted
from jobtui.session import Session
from tests.builders import a_job, a_step, some

LOCAL = Path(__file__).parents[1] / "fixtures" / "sirepo" / "local"
RECORD = (
    "Nov 20 20:34:36  9061     0 job_supervisor.py:10:run _Op(run, pb5u) failed\n"
    "Traceback (most recent call last):\n"
    "  File x\n"
    "Nov 20 20:34:37  9061     0 job_supervisor.py:11:run _Op(run, pb5u) next\n"
)


async def nothing_before(at: Nanos, progress: object = None) -> bool:
    return False


async def test_a_record_with_its_continuation_and_not_the_next_one_or_none(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.log"
    path.write_text(RECORD)
    file = LogFile(path)
    job_reader = SessionJobReader(lambda: (file,), nothing_before)
    step = a_step(text="_Op(run, pb5u) failed", source=str(path), line=1, offset=0)
    lines = await job_reader.lines_behind(step, 10)
    assert [line.text for line in lines] == RECORD.splitlines()[:3]
    assert [line.line for line in lines] == [1, 2, 3]
    assert len(await job_reader.lines_behind(step, 2)) == 2
    path.write_text("x" * 10 + "\n" + RECORD)
    assert await job_reader.lines_behind(step, 10) == ()
    path.unlink()
    with pytest.raises(Unreadable, match="no such file"):
        await job_reader.lines_behind(step, 10)
    await file.aclose()
    assert await SessionJobReader(lambda: (), nothing_before).lines_behind(a_step(), 10) == ()


async def test_every_line_of_a_capture_is_found_again() -> None:
    logs = [LogFile(LOCAL / "supervisor.log"), LogFile(LOCAL / "server.log")]
    async with Session([SirepoDb(LOCAL), *logs], SystemClock()) as session:
        await session.catch_up()
        job_reader = SessionJobReader(lambda: session.sources, session.reach_back)
        steps = [step for op in session.store.correlation.ops() for step in op.steps]
        assert len(steps) > 100
        for step in steps[:: max(1, len(steps) // 60)]:
            first, *_ = await job_reader.lines_behind(step, 5)
            assert (first.line, first.offset) == (step.line, step.offset)


async def test_the_record_of_a_job_or_why_there_is_none(tmp_path: Path) -> None:
    job_id = JobId("DJouDZ9T-4F4EUZjI-heightWeightReport")
    db = SirepoDb(LOCAL)
    detail = some(await SessionJobReader(lambda: (db,), nothing_before).detail(job_id))
    assert detail.path == f"{LOCAL}/supervisor-job/{job_id}.json"
    gone = SirepoDb(tmp_path / "none")
    assert await SessionJobReader(lambda: (gone, db), nothing_before).detail(job_id) == detail
    with pytest.raises(Unreadable, match="none"):
        await SessionJobReader(lambda: (gone,), nothing_before).detail(job_id)
    await db.aclose()
    await gone.aclose()


ASKED: dict[str, tuple[Any, ...]] = {
    "reach_back": (Nanos(0), lambda reached: None),
    "detail": (JobId("a"),),
    "lines_behind": (a_step(), 5),
    "list_files": ("/run",),
    "read_file": ("/run", "a"),
    "noted_on_cluster": (None,),
    "host_messages": ("v4", "", Nanos(0), Nanos(1)),
    "remembered": (a_job(), "x", Nanos(0)),
    "script": (Wanted("1"),),
}


@pytest.mark.parametrize(
    "question", [name for name, _ in getmembers(SessionJobReader, iscoroutinefunction) if name[0] != "_"]
)
async def test_a_fault_in_answering_is_said(question: str, expected_faults: Faults) -> None:
    def fail(*asked: object) -> Any:
        raise LookupError("hunter2")

    job_reader = SessionJobReader(fail, fail, fail, fail)
    named = {"tail": False} if question == "read_file" else {}
    with pytest.raises(Unreadable) as raised:
        await getattr(job_reader, question)(*ASKED[question], **named)
    (fault,) = expected_faults.all()
    assert (str(raised.value), fault.stage) == (fault.words, "answering about a job")
