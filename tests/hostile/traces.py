"""The widgets that show traces, with hostile text wherever text goes into them."""

from collections.abc import Callable, Mapping
from typing import Any

from textual.widget import Widget

from jobtui.analysis.traces.failures import study_trace
from jobtui.analysis.traces.filters import Judged, ListedTrace, Standing
from jobtui.analysis.traces.layout import ServiceMarks
from jobtui.model.clock import Nanos
from jobtui.model.traces import Resource, Span, SpanEvent, SpanLog, Trace, summary_of
from jobtui.render.columns import TimeLook
from jobtui.render.spans import Span as Part
from jobtui.render.text import show
from jobtui.render.traces import TRACE_COLUMNS
from jobtui.render.waterfall import sentence_of, stage_words
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import SpanPane
from jobtui.widgets.waterfall import TraceFacts, Waterfall, path_of, picture_of
from tests.conftest import NOW
from tests.tracing import TRACE_ID, a_span, span_id

Case = tuple[Widget, Callable[[], object]]


class TraceTable(RecordTable[ListedTrace]):
    """A table of records, as that of agents is another."""


def a_hostile_trace(text: str) -> Trace:
    """Spans of every kind with hostile words: like ones, one that failed, one whose parent did not come."""
    resource = Resource(text, {text: text})
    event = SpanEvent(Nanos(5), "exception", {"exception.type": text, "exception.stacktrace": text})

    spoken: dict[str, Any] = {"message": text, "attributes": {text: text}, "events": (event,), "scope": text}

    def span(number: int, parent: int | None, **more: Any) -> Span:
        return a_span(number, parent, name=text, service=resource, warnings=(text,), **(spoken | more))

    logs = (SpanLog(TRACE_ID, span_id(3), Nanos(6), text, text, resource),)
    like = [span(number, 1, start=10**10 * number, end=10**10 * number + 9) for number in range(10, 20)]
    spans = (span(1, None), span(2, 1, end=None), span(3, 1, error=True), span(4, 99), *like)
    return Trace(trace_id=TRACE_ID, spans=spans, logs=logs)


def a_waterfall(text: str) -> Case:
    waterfall = Waterfall(ServiceMarks())

    def tell() -> None:
        waterfall.set_trace(picture_of(study_trace(a_hostile_trace(text))))
        waterfall.toggle_path()
        assert waterfall.found is not None
        waterfall.set_path(waterfall.found, path_of(waterfall.found))

    return waterfall, tell


def a_trace_table(text: str) -> Case:
    table = TraceTable(TRACE_COLUMNS, lambda: TimeLook(NOW), lambda one: one.told.trace_id)
    told = summary_of(a_hostile_trace(text), text)
    return table, lambda: table.set_records(
        [ListedTrace(told, Judged(standing, text, text), (text,)) for standing in Standing]
    )


def trace_facts(text: str) -> Case:
    facts = TraceFacts()
    found = study_trace(a_hostile_trace(text))
    return facts, lambda: facts.set_facts(sentence_of(found, text), stage_words(found))


def span_pane(text: str) -> Case:
    pane = SpanPane()
    safe = Part(show(text), "warn")
    return pane, lambda: pane.set_lines([(safe,), (safe, Part(" = ", "dim"), safe)])


TRACE_CASES: Mapping[type[Widget], Callable[[str], Case]] = {
    SpanPane: span_pane,
    TraceTable: a_trace_table,
    TraceFacts: trace_facts,
    Waterfall: a_waterfall,
}
"""The case of each widget that shows traces."""
