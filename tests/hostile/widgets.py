"""Every widget, ready to be shown, with hostile text wherever text goes into it.

To add a widget: a function that makes it and says what to tell it once it is there, in CASES. What a widget
asks to be given safe is given so, as screens do; it is still all of it wide, long, joined and marked.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
from textual.widget import Widget

from jobtui.actions import Hint
from jobtui.analysis.counts import Counts
from jobtui.analysis.incidents import Incident
from jobtui.analysis.reports.charts import Chart, ChartKind
from jobtui.analysis.reports.cooperative import at_once
from jobtui.analysis.reports.curves import Series, curve_turns
from jobtui.analysis.timeline import JobLine
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.job_reader import RunFile
from jobtui.model.jobs import Job, JobStatus, Run
from jobtui.model.ops import Agent, AgentState, Op, Step
from jobtui.model.pages import Extent, LogLine, Overview, Page, Place
from jobtui.model.verdicts import Verdict
from jobtui.render.agents import AGENT_COLUMNS, AgentLook
from jobtui.render.columns import JOB_COLUMNS, RowContext
from jobtui.render.spans import Span
from jobtui.render.text import show
from jobtui.render.verdicts import why_parts
from jobtui.screens.agents import key_of
from jobtui.widgets.chart import ChartView
from jobtui.widgets.filter_bar import (
    CommandBar,
    Completion,
    FilterBar,
    LogPrompt,
    Mistake,
    MistakeLine,
    Prompt,
)
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.frame import Header, KeyLine, NoticeLine, OneLine, RuleLine, SourceStrip, TabLine
from jobtui.widgets.job_facts import JobFacts
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.lines import LineView
from jobtui.widgets.log_header import LogHeader, LogHistogram, LogStatus
from jobtui.widgets.log_view import LogView
from jobtui.widgets.record_list import (
    Choice,
    ChoiceList,
    ColumnList,
    FileList,
    IncidentList,
    JobLog,
    MarkedList,
    RecordList,
    RecordTable,
    RunList,
    SourceList,
    TimedList,
)
from jobtui.widgets.row_view import RowView
from jobtui.widgets.text_pane import Paragraph, TextPane, WhyList
from jobtui.widgets.timeline import OpList, StepDetail, Timeline
from tests.conftest import NOW
from tests.hostile.records import hostile
from tests.hostile.traces import TRACE_CASES

Case = tuple[Widget, Callable[[], object]]
"""A widget, and what is done to it when it is on a screen."""

BASES: frozenset[type[Widget]] = frozenset({LineView, RowView, RecordList, TimedList})
"""What others are made of; by themselves they show nothing."""


def now() -> Nanos:
    return NOW


def nothing() -> None:
    """There is nothing more to tell."""


def jobs(text: str) -> list[Job]:
    return [
        msgspec.structs.replace(hostile(Job, text, status=status), id=JobId(f"balsam/{text}{status}"))
        for status in JobStatus
    ]


def complete_and_mistake(bar: FilterBar, text: str) -> None:
    """Offer completions, then say that something is wrong."""
    bar.action_complete()
    bar.set_mistake(Mistake(0, len(text), show(text)))


def an_agent_table(text: str) -> Case:
    table = RecordTable[Agent](AGENT_COLUMNS, lambda: AgentLook(now=NOW), key_of)
    agents = [hostile(Agent, text, state=state) for state in AgentState]
    return table, lambda: table.set_records(agents)


def a_chart_view(text: str) -> Case:
    view = ChartView(now)
    series = Series(text, text, [Nanos(NOW - 10**12), Nanos(NOW - 10**11)], [1.0, 2.0], (text,))
    curves = (at_once(curve_turns(series)),) * 3
    return view, lambda: view.set_chart(Chart(ChartKind.STATES, curves, Nanos(NOW - 10**12), NOW))


def a_command_bar(text: str) -> Case:
    bar = CommandBar(text, completer=lambda *_: Completion(0, 0, [text, f"{text}2"]))
    return bar, partial(complete_and_mistake, bar, text)


def a_file_list(text: str) -> Case:
    files = FileList(now)
    return files, lambda: files.set_files([hostile(RunFile, text)] * 2, 3)


def a_filter_bar(text: str) -> Case:
    bar = FilterBar(text, completer=lambda *_: Completion(0, 0, [text, f"{text}2"]))
    return bar, partial(complete_and_mistake, bar, text)


def a_filter_input(text: str) -> Case:
    bar = FilterBar(text)
    return bar, lambda: bar.query_one(FilterInput).insert_text_at_cursor(text)


def a_marked_list(text: str) -> Case:
    return MarkedList([Choice(show(text), show(text)), Choice("plain", "too")], [0]), nothing


def a_mistake_line(text: str) -> Case:
    line = MistakeLine()
    return line, lambda: line.set_words(show(text), "error")


def a_header(text: str) -> Case:
    header = Header(now, show(text))
    return header, lambda: header.set_counts(Counts(dict.fromkeys(JobStatus, 3), 2), 1)


def job_facts(text: str) -> Case:
    job = hostile(Job, text, status=JobStatus.FAILED)
    facts = JobFacts(lambda _: now(), job.id)

    def told() -> None:
        facts.set_job(job, absolute=False)
        facts.verdict = hostile(Verdict, text)

    return facts, told


def an_incident_list(text: str) -> Case:
    incidents = IncidentList(now)
    return incidents, lambda: incidents.set_records([hostile(Incident, text)] * 2)


def a_job_log(text: str) -> Case:
    log = JobLog()
    lines = [hostile(JobLine, text), hostile(JobLine, text, continues=True)]
    return log, lambda: log.set_lines(lines, {text: show(text)})


def a_job_table(text: str) -> Case:
    table = JobTable(lambda: RowContext(now=NOW))
    table.set_columns(JOB_COLUMNS)
    return table, lambda: table.apply(jobs(text))


def a_log_header(text: str) -> Case:
    header = LogHeader(now)
    status = LogStatus((show(text), "other"), 0, ((show(text), "warning"),))
    return header, lambda: setattr(header, "status", status)


def a_log_histogram(text: str) -> Case:
    histogram = LogHistogram()
    return histogram, lambda: setattr(histogram, "overview", Overview((), 3, 1, complete=True))


def a_log_prompt(text: str) -> Case:
    prompt = LogPrompt()
    return prompt, lambda: prompt.query_one(FilterInput).insert_text_at_cursor(text)


class HostileLines:
    """A log of one line, again and again."""

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def extent(self) -> Extent:
        return Extent(0, 200)

    async def before(self, place: Place, count: int) -> Page:
        return self._page(range(max(0, place // 10 - count), min(20, place // 10)), place // 10 <= count)

    async def after(self, place: Place, count: int) -> Page:
        first = place // 10
        return self._page(range(first, min(20, first + count)), first + count >= 20)

    def _page(self, numbers: Sequence[int], at_edge: bool) -> Page:
        return Page(tuple(map(self._line, numbers)), at_edge)

    def _line(self, number: int) -> LogLine:
        return hostile(LogLine, self._text, place=number * 10, end=number * 10 + 10)


def a_log_view(text: str) -> Case:
    view = LogView()
    return view, lambda: view.show(HostileLines(text))


def one_line(text: str) -> Case:
    line = OneLine(lambda _: now())
    line.display = True
    worst = hostile(Job, text, status=JobStatus.FAILED)
    return line, lambda: line.set_state((Span("✗7 ", "failed"),), worst, is_paused=True)


def an_op_list(text: str) -> Case:
    ops = OpList(now)
    return ops, lambda: ops.set_ops([hostile(Op, text), hostile(Op, text, key=4)], 2)


def a_run_list(text: str) -> Case:
    runs = RunList(now)
    return runs, lambda: runs.set_runs([hostile(Run, text, status=status) for status in JobStatus], 3)


def sources(text: str) -> list[SourceHealth]:
    return [hostile(SourceHealth, text, state=state) for state in SourceState]


def a_source_list(text: str) -> Case:
    shown = SourceList(now)
    return shown, lambda: shown.set_sources(sources(text))


def a_source_strip(text: str) -> Case:
    strip = SourceStrip(now)
    return strip, lambda: setattr(strip, "sources", sources(text))


def a_step_detail(text: str) -> Case:
    detail = StepDetail()

    def tell() -> None:
        detail.set_step(hostile(Step, text))
        detail.set_more([show(text)] * 2)

    return detail, tell


def a_tab_line(text: str) -> Case:
    tabs = TabLine(["timeline", "logs"])
    return tabs, lambda: setattr(tabs, "words", show(text))


def a_text_pane(text: str) -> Case:
    return TextPane([Paragraph(show(text), "", 4), Paragraph(show(text), "error")]), nothing


def a_why_list(text: str) -> Case:
    parts = WhyList()
    return parts, lambda: parts.set_parts(why_parts(hostile(Verdict, text)))


def a_timeline(text: str) -> Case:
    timeline = Timeline(now)
    return timeline, lambda: timeline.set_op(hostile(Op, text))


CASES: Mapping[type[Widget], Callable[[str], Case]] = {
    RecordTable: an_agent_table,
    ChartView: a_chart_view,
    ChoiceList: lambda text: (ChoiceList([Choice(show(text), show(text)), Choice("plain", "too")]), nothing),
    ColumnList: lambda text: (ColumnList(JOB_COLUMNS, [text, "id"]), nothing),
    CommandBar: a_command_bar,
    FileList: a_file_list,
    FilterBar: a_filter_bar,
    FilterInput: a_filter_input,
    Header: a_header,
    IncidentList: an_incident_list,
    JobFacts: job_facts,
    JobLog: a_job_log,
    JobTable: a_job_table,
    KeyLine: lambda text: (KeyLine([Hint(show(text), show(text), 1), Hint("q", "quit", 1)]), nothing),
    LogHeader: a_log_header,
    LogHistogram: a_log_histogram,
    LogPrompt: a_log_prompt,
    LogView: a_log_view,
    MarkedList: a_marked_list,
    MistakeLine: a_mistake_line,
    NoticeLine: lambda text: (NoticeLine(show(text)), nothing),
    OneLine: one_line,
    OpList: an_op_list,
    Prompt: lambda text: (Prompt(":"), nothing),
    RuleLine: lambda text: (RuleLine(show(text)), nothing),
    RunList: a_run_list,
    SourceList: a_source_list,
    SourceStrip: a_source_strip,
    StepDetail: a_step_detail,
    TabLine: a_tab_line,
    TextPane: a_text_pane,
    Timeline: a_timeline,
    WhyList: a_why_list,
    **TRACE_CASES,
}
"""The case of each widget."""
