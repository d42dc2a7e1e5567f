"""Traces of simulated jobs: what the program's own reader makes of them, live and of the history."""

from pathlib import Path

from jobtui.analysis.traces.failures import study_trace
from jobtui.demo.live import LiveDemo
from jobtui.formats.otlp_protobuf import read_telemetry
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.traces import growing
from jobtui.store.traces import TraceBook

NOW = Nanos(1_795_206_870 * SECOND)


def book_of(path: Path) -> TraceBook:
    book = TraceBook()
    for line in path.read_bytes().splitlines():
        told = read_telemetry(line, path.name)
        assert not told.skip_count
        book.add(told.spans, told.logs)
    return book


def test_the_history_has_traces_that_failed_ended_well_and_grow(tmp_path: Path) -> None:
    clock = FixedClock(NOW)
    demo = LiveDemo(tmp_path, clock=clock)
    demo.prepare()
    book = book_of(demo.sources.spans)
    traces = [trace for one in book.ids() if (trace := book.trace(one))]
    found = [study_trace(trace) for trace in traces]
    failed = [one for one in found if one.has_failed]
    assert len(found) > 20
    assert failed
    assert all(one.causes[0].span.name == "step" and one.causes[0].exception for one in failed)
    assert not any(one.skewed or one.tree.doubles for one in found)
    grow = [trace.trace_id for trace in traces if growing(trace, NOW)]
    assert grow
    for _ in range(400):
        clock.advance(0.5)
        demo.step()
    later = book_of(demo.sources.spans)
    assert any(not growing(later.trace(one), Nanos(NOW + 900 * SECOND)) for one in grow)
