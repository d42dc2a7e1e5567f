"""Files of jobs and of spans tell when they changed, without being read again and again."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from jobtui.backends.condor_files import CondorFile
from jobtui.backends.trace_files import TraceFile
from tests.waiting import LONG_S


@pytest.mark.parametrize("kind", [CondorFile, TraceFile])
async def test_a_line_that_is_added_is_told_of(
    kind: Callable[[Path], CondorFile | TraceFile], tmp_path: Path
) -> None:
    path = tmp_path / "told"
    path.write_text("{}\n")
    source = kind(path)
    cursor = (await source.poll(None)).cursor
    waiting = asyncio.ensure_future(source.changed(LONG_S))
    await asyncio.sleep(0)
    with path.open("a") as file:
        file.write("{}\n")
    await asyncio.wait_for(waiting, LONG_S / 2)
    assert (await source.poll(cursor)).cursor != cursor
    await source.aclose()
    await source.changed(LONG_S)
