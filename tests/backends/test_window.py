"""A source that ends at a time."""

import pytest

from jobtui.backends.base import Batch, SourceUnreachable
from jobtui.backends.window import Until
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import Skip
from jobtui.model.logs import LogRecord
from tests.fakes import ScriptedSource


def records(*seconds: int | None) -> tuple[LogRecord, ...]:
    return tuple(
        LogRecord("a.log", n, n, None if at is None else Nanos(at * SECOND), 1, "shape", {}, "text")
        for n, at in enumerate(seconds)
    )


def times(batch: Batch) -> list[int | None]:
    return [None if record.at is None else record.at // SECOND for record in batch.records]


async def test_what_is_later_is_left_out_and_said_to_be() -> None:
    first = Batch(cursor="1", records=records(1, None, 2), count=9, more=True)
    second = Batch(
        cursor="2", records=records(3, None, 4, 2), skipped=(Skip("a", "b"),), skip_count=1, more=True
    )
    source = Until(ScriptedSource([first, second, first], name="a.log", kind="logfile"), Nanos(3 * SECOND))
    assert (source.name, source.kind) == ("a.log", "logfile")
    assert await source.poll(None) == first
    cut = await source.poll("1")
    assert times(cut) == [3, None]
    assert (cut.more, cut.skip_count, cut.note) == (False, 1, "nothing after 1970-01-01T00:00:03Z was read")
    after = await source.poll("2")
    assert (after.records, after.more, after.skip_count) == ((), False, 0)


async def test_the_notes_of_the_source_are_kept() -> None:
    batch = Batch(cursor="1", records=records(9), note="tail only")
    source = Until(ScriptedSource([batch]), Nanos(0))
    assert (await source.poll(None)).note == "tail only; nothing after 1970-01-01T00:00:00Z was read"


async def test_errors_pass_and_closing_is_passed_on() -> None:
    inner = ScriptedSource([SourceUnreachable("gone")])
    source = Until(inner, Nanos(0))
    with pytest.raises(SourceUnreachable):
        await source.poll(None)
    await source.aclose()
    await source.aclose()
    assert inner.closed == 2
