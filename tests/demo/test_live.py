"""The live demo: history at once, then on in real time, in files as a real site has them."""

import json
import re
from pathlib import Path

import pytest

from jobtui.analysis.traces.failures import study_trace
from jobtui.demo.live import HISTORY_S, SPANS, LiveDemo
from jobtui.demo.messages import Record
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG
from jobtui.formats.otlp_protobuf import read_telemetry
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_seconds
from jobtui.model.ids import TraceId
from jobtui.model.traces import Trace, growing
from jobtui.store.traces import TraceBook

NOW = Nanos(1_795_206_870 * SECOND)


def _demo(directory: Path, **options: object) -> tuple[LiveDemo, FixedClock]:
    clock = FixedClock(NOW)
    demo = LiveDemo(directory, clock=clock, **options)  # type: ignore[arg-type]
    demo.prepare()
    return demo, clock


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> LiveDemo:
    """A demo as it begins, for those who only look."""
    return _demo(tmp_path_factory.mktemp("history"))[0]


def _records(demo: LiveDemo) -> list[Record]:
    files = sorted((demo.directory / "db" / "supervisor-job").iterdir())
    return [json.loads(file.read_bytes()) for file in files]


def _let_pass(demo: LiveDemo, clock: FixedClock, seconds: float) -> None:
    for _ in range(int(seconds / 0.5)):
        clock.advance(0.5)
        demo.step()


def test_history_is_there_at_once(history: LiveDemo) -> None:
    records = _records(history)
    ended = [r for r in records if r["status"] in {"completed", "error", "canceled"}]
    assert len(ended) >= 24
    assert len({r["status"] for r in records}) >= 4
    assert len({r["simulationType"] for r in records}) >= 5
    now = to_seconds(NOW)
    assert all(now - HISTORY_S <= r["computeJobQueued"] <= now for r in ended)
    assert any(r["status"] == "running" for r in records)


def traces_of(demo: LiveDemo) -> dict[TraceId, Trace]:
    book = TraceBook()
    for line in (demo.directory / SPANS).read_bytes().splitlines():
        told = read_telemetry(line, "spans")
        assert not told.skip_count
        book.add(told.spans, told.logs)
    return {one: trace for one in book.ids() if (trace := book.trace(one))}


def test_the_history_has_traces_that_failed_and_ended_well(history: LiveDemo) -> None:
    found = [study_trace(trace) for trace in traces_of(history).values()]
    failed = [one for one in found if one.has_failed]
    assert len(found) > 20
    assert failed
    assert all(one.causes[0].span.name == "step" and one.causes[0].exception for one in failed)
    assert not any(one.skewed or one.tree.doubles for one in found)


def test_life_goes_on(tmp_path: Path) -> None:
    demo, clock = _demo(tmp_path)
    growing_traces = [one for one, trace in traces_of(demo).items() if growing(trace, NOW)]
    before = _records(demo)
    logs = [demo.directory / name for name in (SUPERVISOR_LOG, SERVER_LOG)]
    sizes = [path.stat().st_size for path in logs]
    seen: dict[str, set[float]] = {}
    for _ in range(40):
        _let_pass(demo, clock, 5)
        for record in _records(demo):
            if record["status"] == "running" and record["isParallel"]:
                seen.setdefault(record["computeJid"], set()).add(record["parallelStatus"]["percentComplete"])

    after = _records(demo)
    assert len(after) >= len(before) + 5
    assert all(path.stat().st_size > size for path, size in zip(logs, sizes, strict=True))
    newest = max(r["dbUpdateTime"] for r in after)
    assert to_seconds(clock.now()) - 20 < newest <= to_seconds(clock.now()) + 1
    assert any(len(values) > 3 for values in seen.values())
    assert any(path.stat().st_size > 500 for path in (demo.directory / "db").rglob("run.log"))
    names = [r["simName"] or "" for r in after]
    hostile = [
        name for name in names if re.search(r"[\x00-\x1f\u200b-\u202e]|\[/", name) or not name.isascii()
    ]
    assert 0 < len(hostile) < len(names) / 5
    assert growing_traces
    later = traces_of(demo)
    assert any(not growing(later[one], Nanos(NOW + 900 * SECOND)) for one in growing_traces)


def test_an_unknown_incident_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        LiveDemo(tmp_path, incident="no-such-thing")
