"""Every widget, ready to be shown, with hostile text wherever text goes into it.

To add a widget: a function that makes it and says what to tell it once it is there, in CASES. What a widget
asks to be given safe is given so, as screens do; it is still all of it wide, long, joined and marked.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from textual.widget import Widget

from jobtui.actions import Hint
from jobtui.analysis.counts import Counts, ProfileState
from jobtui.analysis.reports.charts import Chart, ChartKind
from jobtui.analysis.reports.curves import Curve, Series
from jobtui.analysis.timeline import JobLine
from jobtui.analysis.traces.failures import study_trace
from jobtui.analysis.traces.filters import ListedTrace, TraceJudgement, TraceState
from jobtui.analysis.traces.layout import ServiceMarks
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.job_reader import RunFile
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.ops import Agent, AgentState, Op, Step
from jobtui.model.pages import Extent, LogLine, Overview, Page
from jobtui.model.traces import Resource, SpanEvent, SpanLog, Trace, summary_of
from jobtui.model.traces import Span as TraceSpan
from jobtui.model.verdicts import Verdict
from jobtui.render.agents import AGENT_COLUMNS
from jobtui.render.columns import JOB_COLUMNS, RowContext, TimeLook
from jobtui.render.spans import Paragraph, Piece
from jobtui.render.text import show
from jobtui.render.traces import TRACE_COLUMNS
from jobtui.render.verdicts import why_parts
from jobtui.render.waterfall import sentence_of, stage_words
from jobtui.screens.text import HelpPane
from jobtui.widgets import filter_bar, frame, record_list
from jobtui.widgets.chart import ChartView
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.job_facts import FileList, JobFacts
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.lines import LineView
from jobtui.widgets.log_view import LogHeader, LogHistogram, LogStatus, LogView
from jobtui.widgets.row_view import PaneGroup, RowView
from jobtui.widgets.text_pane import SpanPane, TextPane, WhyList, WrappedText
from jobtui.widgets.timeline import JobLog, OpList, StepDetail, Timeline
from jobtui.widgets.waterfall import TraceFacts, Waterfall, path_of, picture_of
from tests.conftest import NOW
from tests.hostile.records import hostile
from tests.tracing import TRACE_ID, a_span, span_id

AnyWidget = TypeVar("AnyWidget", bound=Widget)
Case = tuple[Widget, Callable[[], object]]
"""A widget, and what is done to it when it is on a screen."""

BASES: frozenset[type[Widget]] = frozenset(
    {LineView, RowView, record_list.RecordList, WrappedText, PaneGroup}
)
"""What others are made of; by themselves they show nothing."""


def now() -> Nanos:
    return NOW


def case(widget: AnyWidget, tell: Callable[[AnyWidget], object] = id) -> Case:
    return widget, lambda: tell(widget)


def showing(widget: Widget, **values: object) -> Case:
    """One that shows what it is set to."""

    def tell() -> None:
        for name, value in values.items():
            setattr(widget, name, value)

    return widget, tell


@cache
def jobs(text: str) -> list[Job]:
    return [
        msgspec.structs.replace(hostile(Job, text, status=status), id=JobId(f"balsam/{text}{status}"))
        for status in JobStatus
    ]


def sources(text: str) -> list[SourceHealth]:
    return [hostile(SourceHealth, text, state=state) for state in SourceState]


def completing(bar: type[filter_bar.FilterBar], text: str) -> Case:
    """A bar that offers completions, then says that something is wrong."""

    def tell(bar: filter_bar.FilterBar) -> None:
        bar.action_complete()
        bar.set_mistake(filter_bar.Mistake(0, len(text), show(text)))

    return case(bar(text, completer=lambda *_: filter_bar.Completion(0, 0, [text, f"{text}2"])), tell)


def typed_into(bar: AnyWidget, text: str) -> Case:
    return case(bar, lambda bar: bar.query_one(FilterInput).insert_text_at_cursor(text))


class HostileLines:
    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def extent(self) -> Extent:
        return Extent(0, 200)

    async def before(self, position: int, count: int) -> Page:
        stop = position // 10
        return self._page(range(max(0, stop - count), min(20, stop)), stop <= count)

    async def after(self, position: int, count: int) -> Page:
        first = position // 10
        return self._page(range(first, min(20, first + count)), first + count >= 20)

    def _page(self, numbers: Sequence[int], at_edge: bool) -> Page:
        return Page(tuple(map(self._line, numbers)), at_edge)

    def _line(self, number: int) -> LogLine:
        return hostile(LogLine, self._text, position=number * 10, end=number * 10 + 10)


class TraceTable(record_list.RecordTable[ListedTrace]):
    """A table of records, as that of agents is another."""


def a_hostile_trace(text: str) -> Trace:
    """Spans of every kind with hostile words: like ones, one that failed, one whose parent did not come."""
    resource = Resource(text, {text: text})
    event = SpanEvent(Nanos(5), "exception", {"exception.type": text, "exception.stacktrace": text})

    spoken: dict[str, Any] = {"message": text, "attributes": {text: text}, "events": (event,), "scope": text}

    def span(number: int, parent: int | None, **more: Any) -> TraceSpan:
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


def a_chart(text: str) -> Chart:
    series = Series(text, text, [Nanos(NOW - 10**12), Nanos(NOW - 10**11)], [1.0, 2.0], (text,))
    return Chart(ChartKind.STATES, (Curve(series),) * 3, Nanos(NOW - 10**12), NOW)


def job_facts(text: str) -> Case:
    job = hostile(Job, text, status=JobStatus.FAILED)
    return showing(JobFacts(lambda _: now(), job.id), job=job, verdict=hostile(Verdict, text))


def a_job_table(text: str) -> Case:
    table = JobTable(lambda: RowContext(now=NOW))
    table.set_columns(JOB_COLUMNS)
    return case(table, lambda table: table.apply(jobs(text)))


def one_line(text: str) -> Case:
    line = frame.OneLine(lambda _: now())
    line.display = True
    worst = hostile(Job, text, status=JobStatus.FAILED)
    return showing(line, counts=(Piece("✗7 ", "failed"),), worst=worst, is_paused=True)


def some_trace_facts(text: str) -> Case:
    found = study_trace(a_hostile_trace(text))
    return showing(TraceFacts(), sentence=sentence_of(found, text), stages=stage_words(found))


def choices(text: str) -> list[record_list.Choice]:
    return [record_list.Choice(show(text), show(text)), record_list.Choice("plain", "too")]


CASES: Mapping[type[Widget], Callable[[str], Case]] = {
    record_list.RecordTable: lambda text: case(
        record_list.RecordTable[Agent](AGENT_COLUMNS, lambda: TimeLook(now=NOW), lambda agent: agent.agent),
        lambda table: table.set_records([hostile(Agent, text, state=state) for state in AgentState]),
    ),
    TraceTable: lambda text: case(
        TraceTable(TRACE_COLUMNS, lambda: TimeLook(NOW), lambda one: one.summary.trace_id),
        lambda table: table.set_records(
            [
                ListedTrace(
                    summary_of(a_hostile_trace(text), text), TraceJudgement(standing, text, text), (text,)
                )
                for standing in TraceState
            ]
        ),
    ),
    TraceFacts: some_trace_facts,
    Waterfall: a_waterfall,
    SpanPane: lambda text: case(
        SpanPane(),
        lambda pane: pane.set_lines(
            [(Piece(show(text), "warn"),), (Piece(show(text), "warn"), Piece(" = "))]
        ),
    ),
    frame.ProfileLines: lambda text: case(
        frame.ProfileLines(lambda: [ProfileState(text, 1, 2, 3, 4, 1, 0.5, 60.0)] * 2),
        frame.ProfileLines.tick,
    ),
    ChartView: lambda text: case(ChartView(now), lambda view: view.set_chart(a_chart(text))),
    record_list.ChoiceList: lambda text: case(record_list.ChoiceList(choices(text))),
    record_list.ColumnList: lambda text: case(record_list.ColumnList(JOB_COLUMNS, [text, "id"])),
    filter_bar.CommandBar: lambda text: completing(filter_bar.CommandBar, text),
    FileList: lambda text: case(
        FileList(lambda: TimeLook(NOW)), lambda one: one.set_files([hostile(RunFile, text)] * 2, 3)
    ),
    filter_bar.FilterBar: lambda text: completing(filter_bar.FilterBar, text),
    FilterInput: lambda text: typed_into(filter_bar.FilterBar(text), text),
    frame.Header: lambda text: case(
        frame.Header(now, show(text)), lambda one: one.set_counts(Counts(dict.fromkeys(JobStatus, 3), 2), 1)
    ),
    JobFacts: job_facts,
    JobLog: lambda text: case(
        JobLog(),
        lambda log: log.set_lines(
            [hostile(JobLine, text), hostile(JobLine, text, continues=True)], {text: show(text)}
        ),
    ),
    JobTable: a_job_table,
    frame.KeyLine: lambda text: case(frame.KeyLine([Hint(show(text), show(text), 1), Hint("q", "quit", 1)])),
    LogHeader: lambda text: showing(
        LogHeader(now), status=LogStatus((show(text), "other"), 0, ((show(text), "warning"),))
    ),
    LogHistogram: lambda text: showing(LogHistogram(), overview=Overview((), 3, 1, complete=True)),
    filter_bar.LogPrompt: lambda text: typed_into(filter_bar.LogPrompt(), text),
    LogView: lambda text: case(LogView(), lambda view: view.show(HostileLines(text))),
    filter_bar.MistakeLine: lambda text: case(
        filter_bar.MistakeLine(), lambda line: line.set_words(show(text), "error")
    ),
    frame.NoticeLine: lambda text: showing(frame.NoticeLine().add_class("-needed"), words=show(text)),
    frame.OneLine: one_line,
    OpList: lambda text: case(
        OpList(now), lambda one: one.set_ops([hostile(Op, text), hostile(Op, text, key=4)], 2)
    ),
    frame.RuleLine: lambda text: case(frame.RuleLine(show(text))),
    frame.SourceStrip: lambda text: showing(frame.SourceStrip(now), sources=sources(text)),
    StepDetail: lambda text: showing(StepDetail(), step=hostile(Step, text), more=(show(text), show(text))),
    frame.TabLine: lambda text: showing(frame.TabLine(["timeline", "logs"]), words=show(text)),
    TextPane: lambda text: case(TextPane([Paragraph(show(text), "", 4), Paragraph(show(text), "error")])),
    Timeline: lambda text: case(Timeline(now), lambda one: one.set_op(hostile(Op, text))),
    HelpPane: lambda text: case(
        HelpPane([Paragraph(show(text))], (Piece(show(text)),), [Paragraph(show(text))])
    ),
    WhyList: lambda text: case(WhyList(), lambda one: one.set_text(why_parts(hostile(Verdict, text), now()))),
}
