import gzip
import os
from pathlib import Path

import pytest

from jobtui.backends.base import Batch
from jobtui.backends.traces.files import TraceFile
from jobtui.model.health import SourceError, SourceMissing
from tests.polling import polled
from tests.tracing import CAPTURES


async def read(source: TraceFile, cursor: str | None = None) -> tuple[list[Batch], str]:
    batches = await polled(source, cursor)
    return batches, batches[-1].cursor


async def whole(path: Path) -> list[Batch]:
    source = TraceFile(path)
    batches, _ = await read(source)
    await source.aclose()
    return batches


@pytest.mark.parametrize("name", ["job-fail.otlp.pb", "job-fail.otlp.json", "job-fail.jaeger.json"])
async def test_a_file_of_any_kind_is_read_once_until_it_changes(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes((CAPTURES / name).read_bytes())
    source = TraceFile(path)
    (batch,), cursor = await read(source)
    assert (len(batch.spans), batch.count, batch.skip_count) == (29, 29, 0)
    (again,), cursor = await read(source, cursor)
    assert (again.spans, again.count) == ((), 0)
    os.utime(path, ns=(1, 1))
    (changed,), _ = await read(source, cursor)
    await source.aclose()
    assert len(changed.spans) == 29


@pytest.mark.parametrize("piece_bytes", [1, 100, 1_000, 1 << 20])
@pytest.mark.parametrize("end", [b"", b"\n", b'\n{"resourceSpans": [{"sc'])
async def test_lines_are_read_in_pieces_of_any_size(piece_bytes: int, end: bytes, tmp_path: Path) -> None:
    document = (CAPTURES / "node-sdk.otlp.json").read_bytes().strip()
    path = tmp_path / "spans.jsonl"
    path.write_bytes(b"\n".join([document] * 7) + end)
    source = TraceFile(path, piece_bytes)
    batches, cursor = await read(source)
    assert sum(len(batch.spans) for batch in batches) == 21
    assert sum(batch.skip_count - batch.recovered for batch in batches) == (len(end) > 1)
    (again,), _ = await read(source, cursor)
    await source.aclose()
    assert (again.spans, again.skip_count, again.recovered) == ((), 0, 0)


async def test_what_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceMissing, match="no such file"):
        await whole(tmp_path / "none")
    with pytest.raises(SourceError, match="is a directory"):
        await whole(tmp_path)
    monkeypatch.setattr("jobtui.backends.traces.files.LARGEST_BYTES", 10)
    with pytest.raises(SourceError, match="is larger than"):
        await whole(CAPTURES / "job-fail.otlp.json")


def lines_of_spans(count: int, name: str = "") -> bytes:
    span = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%s","spanId":"%016x","name":"%s"}]}]}]}'
    return "".join(f"{span % ('ab' * 16, number, name)}\n" for number in range(1, count + 1)).encode()


async def test_a_packed_file_is_read_in_pieces_and_a_torn_one_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl.gz"
    packed = gzip.compress(lines_of_spans(300)) + gzip.compress(lines_of_spans(400))
    path.write_bytes(packed)
    file = TraceFile(path, piece_bytes=2_000)
    batch = await file.poll(None)
    await file.aclose()
    assert (len(batch.spans), batch.skip_count, batch.more) == (700, 0, False)
    path.write_bytes(packed[: len(packed) // 3])
    (torn,) = await whole(path)
    assert 0 < len(torn.spans) < 400
    assert "the rest is left out" in torn.skipped[0].why


@pytest.mark.parametrize("text", [lines_of_spans(300, "x" * 9_000), b" " * (3 << 20) + lines_of_spans(1)])
async def test_what_unpacks_to_too_much(text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.traces.files.PACKED_BYTES", 1 << 20)
    path = tmp_path / "spans.jsonl.gz"
    path.write_bytes(gzip.compress(text))
    (batch,) = await whole(path)
    assert "unpacks to more than 1 MiB: the rest is left out; unpack it" in batch.skipped[0].why
    assert len(batch.spans) < 250
