"""Recordings as files: written of noise or of given entries, and read again."""

import asyncio
import random
import string
from contextlib import closing
from pathlib import Path

from jobtui.backends.base import Batch
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord
from jobtui.recording.database import About, Item, Recording
from jobtui.recording.recorder import RecordingWriter
from jobtui.recording.replay import OpenRecording, ReplayClock, ReplayedSource
from jobtui.transport.worker import Worker
from tests.polling import polled

NOW = Nanos(1_795_206_870 * SECOND)
MB = 1 << 20


def about() -> About:
    return About(version="0", made_at=NOW, at=NOW, config=None)


def record(number: int, text: str = "a line") -> LogRecord:
    return LogRecord("a.log", number, number * 10, Nanos(NOW + number), 1, "op", {"op": "abcd"}, text)


def noise(seed: int, length: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=length))


def lines(*numbers: int, text: str = "a line") -> Batch:
    records = tuple(record(number, text) for number in numbers)
    return Batch(records=records, count=len(records))


def written(path: Path, *entries: tuple[Item, object, int], most_bytes: int = MB) -> Path:
    writer = RecordingWriter(path, about(), most_bytes)
    with writer.together():
        for what, value, second in entries:
            writer.put("logfile", "a.log", what, value, Nanos(NOW + second * SECOND))
    writer.close()
    return path


def replayed_source(recording: Recording, worker: Worker, second: int) -> ReplayedSource:
    source = OpenRecording(recording, worker, ReplayClock(Nanos(NOW + second * SECOND)))
    return ReplayedSource(source, "logfile", "a.log", recording.source("logfile", "a.log"))


def replayed(path: Path, second: int = 0) -> list[Batch]:
    with closing(Recording(path)) as recording, closing(Worker("test")) as worker:
        return asyncio.run(polled(replayed_source(recording, worker, second)))


def numbers(path: Path, second: int = 0) -> list[int]:
    return [one.line for batch in replayed(path, second) for one in batch.records]
