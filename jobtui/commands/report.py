"""`report WHAT`: throughput, utilization, available nodes or jobs per state, as series over time."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from shutil import get_terminal_size

import msgspec

from jobtui.analysis.reports import rates
from jobtui.analysis.reports.charts import Chart, ChartKind, changes_of_job
from jobtui.analysis.reports.curves import Curve, Series
from jobtui.analysis.reports.rates_exact import ReportError
from jobtui.analysis.reports.rates_exact import available_nodes as exact_nodes
from jobtui.analysis.reports.rates_exact import throughput as exact_throughput
from jobtui.analysis.reports.rates_exact import utilization as exact_utilization
from jobtui.backends.balsam.source import Balsam, fetch_allocations, fetch_changes, fetch_nodes
from jobtui.backends.base import Batch
from jobtui.backends.registry import BALSAM as BALSAM_SOURCE
from jobtui.backends.registry import Gives, build, gives
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.explain import explained
from jobtui.commands.find import SHOWN, resolve
from jobtui.commands.printing import Report, lowered, print_lines
from jobtui.commands.reader import Reader, in_session
from jobtui.commands.streams import Exit, complain
from jobtui.model.changes import Allocation, ReportQuery, StateChange
from jobtui.model.clock import SECOND, Nanos, Window, to_rfc3339
from jobtui.model.health import Skip, SourceError
from jobtui.model.ids import LABEL, JobId, answers_to, meant_by, named, numbered, system_job_id
from jobtui.model.specs import SourceSpec
from jobtui.render.chart import HEADS, Frame, chart_lines, draw_chart, legend_lines, time_rows
from jobtui.render.columns import head, table_lines
from jobtui.render.spans import Piece
from jobtui.render.table import paint, painted
from jobtui.render.text import Zone, date_time, show
from jobtui.render.verdicts import page_of, post_mortem_lines
from jobtui.session.evidence import Gatherer
from jobtui.store.store import SKIPS_KEPT

PAGES = frozenset({"markdown", "html"})
"""Flags with which it tells what happened to a job."""
THROUGHPUT, UTILIZATION, NODES = "throughput", "utilization", "nodes"
CSV_COLUMNS = ("series", "unit", "x", "y")
POINT_HEADS = (head("TIME"), head("VALUE", align="right"))


@dataclass(slots=True)
class ReportInput:
    """Changes of jobs' states and allocations, of one system."""

    name: str
    words: rates.Words
    changes: list[StateChange] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    nodes: dict[JobId, float] = field(default_factory=dict)


def run(context: Context) -> Exit:
    return in_session(context, post_mortem if PAGES & context.invocation.flags.keys() else _report)


async def _report(reader: Reader) -> Exit:
    what = reader.context.words[0]
    try:
        query = query_of(reader.context, what, reader.specs)
    except Ambiguous as error:
        return complain(str(error), Exit.NOT_FOUND)
    except ValueError as error:
        return complain(str(error), Exit.USAGE)
    if _plots(reader) and reader.context.format in (OutputFormat.JSON, OutputFormat.CSV):
        return complain("--plot and --svg draw a picture: leave out --json and --csv", Exit.USAGE)
    is_exact = reader.context.flag("exact") is not None
    materials = await gather(reader, what, query, is_exact=is_exact)
    series, times = list[Series](), list[rates.StateTime]()
    try:
        for material in materials:
            of_one, stays = _made(reader, what, query, material)
            suffix = f", {material.name}" if len(materials) > 1 else ""
            series += [one._replace(name=f"{one.name}{suffix}") for one in of_one]
            times += [one._replace(state=f"{one.state}{suffix}") for one in stays]
    except ReportError as error:
        return reader.settle(complain(str(error), Exit.FAILED))
    return Report(
        lambda: {
            "report": what,
            "exact": is_exact,
            "series": [  # y[i] holds from x[i] on
                one._asdict() | {"x": [to_rfc3339(at) for at in one.x]} for one in series
            ],
            "times": [one._asdict() for one in times],
        },
        CSV_COLUMNS,
        lambda: (
            {"series": one.name, "unit": one.unit, "x": to_rfc3339(at), "y": value}
            for one in series
            for at, value in zip(one.x, one.y, strict=True)
        ),
        lambda width: _lines(reader, series, times, width),
    ).answer(reader, Exit.FINE)


def _made(
    reader: Reader, what: str, query: ReportQuery, material: ReportInput
) -> tuple[tuple[Series, ...], tuple[rates.StateTime, ...]]:
    changes = [one for one in material.changes if query.from_state in (None, one.before)]
    if reader.context.flag("exact") is not None:
        return (_exact(reader, what, query, changes, material.allocations),), ()
    window, histories = Window(query.since, query.until), rates.by_job(changes)
    words, now = material.words, reader.now
    match what:
        case "throughput":
            return (rates.throughput(histories, window, query.to_state or words.done),), ()
        case "utilization":
            is_weighted = reader.context.flag("unweighted") is None and words is rates.BALSAM
            nodes_of = material.nodes if is_weighted else None
            made = rates.utilization(histories, window, now, words.running, nodes_of)
            if _plots(reader) and material.allocations:
                return (made, rates.available_nodes(material.allocations, window, now)), ()
            return (made,), ()
        case "nodes":
            return (rates.available_nodes(material.allocations, window, now),), ()
    series = rates.jobs_per_state(histories, window, now, words.unborn)
    return series, rates.time_in_states(histories, now, words.unborn)


def _exact(
    reader: Reader,
    what: str,
    query: ReportQuery,
    changes: Sequence[StateChange],
    allocations: Iterable[Allocation],
) -> Series:
    match what:
        case "throughput":
            return exact_throughput(changes, query.to_state or rates.BALSAM.done)
        case "utilization":
            is_weighted = reader.context.flag("unweighted") is None
            return exact_utilization(changes, is_weighted=is_weighted, closing_state=query.to_state)
        case "nodes":
            return exact_nodes(allocations)
    raise ReportError("Balsam itself has no report of jobs per state: leave out --exact")


def _plots(reader: Reader) -> bool:
    return bool({"plot", "svg"} & reader.context.invocation.flags.keys())


def _lines(
    reader: Reader, series: Sequence[Series], times: Sequence[rates.StateTime], width: int | None
) -> Iterator[str]:
    window = Window(reader.context.since, reader.context.until)
    if reader.context.flag("svg") is not None:
        from jobtui.render.chart_svg import chart_svg

        alike = [one for one in series if one.unit == series[0].unit and one.x]
        if alike:
            chart, frame = _chart(alike, window, reader.now)
            yield from chart_svg(chart, frame.since, frame.until)
        return
    if _plots(reader):
        yield from lowered(plot_lines(series, window, reader.now), reader.context)
    if times:
        rows = [list(map(Piece, row)) for row in time_rows(times)]
        yield from lowered(table_lines(HEADS, rows, width), reader.context)
        return
    for one in () if _plots(reader) else series:
        yield paint(f"{show(one.name)}, {one.unit}", "heading")
        left_out = max(0, len(one.x) - SHOWN)
        if left_out:
            yield f"{left_out} earlier points are left out: see --json or --csv"
        points = list(zip(one.x, one.y, strict=True))[left_out:]
        rows = [[Piece(date_time(at)), Piece(f"{value:g}")] for at, value in points]
        yield from table_lines(POINT_HEADS, rows, width)
    notes = dict.fromkeys(note for one in series for note in one.notes)
    for note in notes:
        yield f"note: {show(note)}"


def query_of(context: Context, what: str, specs: Sequence[SourceSpec]) -> ReportQuery:
    """The query that the flags ask for. Raises ValueError if no source can answer it."""
    to_state = context.flag("to-state")
    tags = [text.partition(":") for text in _list(context.flag("tag"))]
    for name, colon, _ in tags:
        if not colon:
            raise ValueError(f'"{name}" is not a tag: expected KEY:VALUE')
    query = ReportQuery(
        since=context.since,
        until=context.until,
        jobs=tuple(_list(context.flag("job"))),
        batch_job=context.flag("batch-job"),
        scheduler_id=context.flag("scheduler-id"),
        tags=tuple((name, value) for name, _, value in tags),
        from_state=context.flag("from-state"),
        to_state=None if what == NODES else to_state,
        allocation_state=to_state if what == NODES else None,
    )
    _check(query, specs)
    return query


class Ambiguous(ValueError):
    """A number that several servers may have."""


def _check(query: ReportQuery, specs: Sequence[SourceSpec]) -> None:
    """Raises ValueError for what is no id, Ambiguous for one that does not say of which server."""
    for text, what in ((query.batch_job, "allocation's id"), (query.scheduler_id, "scheduler id")):
        if text is not None and _NUMBER.fullmatch(text) is None:
            raise ValueError(f'"{text}" is not a valid {what}: expected a number')
    if all(BALSAM_SOURCE.names(spec) for spec in specs if gives(spec, Gives.JOBS)):
        for job in query.jobs:
            if numbered(_full(job)) is None:
                raise ValueError(f'"{job}" is not a job of Balsam: expected a number, or balsam/NUMBER')
    labels = [spec.label for spec in specs if BALSAM_SOURCE.names(spec) and spec.label]
    for text in filter(None, (query.batch_job, query.scheduler_id, *query.jobs)):
        number = text.removeprefix(f"{BALSAM_SOURCE.setting}/")
        if labels and number.isdecimal():
            raise Ambiguous(f'"{text}" is ambiguous: {", ".join(f"{number}@{label}" for label in labels)}')


_NUMBER = re.compile(rf"(\d{{1,18}})(?:@({LABEL}))?", re.ASCII)


def _full(job: str) -> str:
    """The id of a job of which a person may have written the number, and the server's label."""
    written = _NUMBER.fullmatch(job)
    if written is None:
        return job
    return system_job_id(named(BALSAM_SOURCE.setting, written[2] or ""), written[1])


def for_server(query: ReportQuery, spec: SourceSpec) -> ReportQuery | None:
    """The query for one server, in its own numbers; None if the query is about others."""
    for text in filter(None, (query.batch_job, query.scheduler_id)):
        label = text.partition("@")[2]
        if label and label != spec.label and not answers_to(spec.target, label):
            return None
    system, server = named(BALSAM_SOURCE.setting, spec.label), {spec.target: spec.label}
    every = [job for text in query.jobs for job in meant_by(_full(text), server, BALSAM_SOURCE.setting)]
    own = tuple(job for job in every if job.startswith(f"{system}/"))
    if query.jobs and not own:
        return None
    return msgspec.structs.replace(
        query,
        jobs=own,
        batch_job=query.batch_job and query.batch_job.partition("@")[0],
        scheduler_id=query.scheduler_id and query.scheduler_id.partition("@")[0],
    )


def _list(text: str | None) -> list[str]:
    return [part for part in (text or "").split(",") if part]


async def gather(reader: Reader, what: str, query: ReportQuery, *, is_exact: bool) -> list[ReportInput]:
    """One material for each Balsam server, and one for all systems that only have records of jobs."""
    found: list[ReportInput] = []
    for spec in reader.specs:
        if not gives(spec, Gives.JOBS):
            continue
        source = build(spec)
        reader.session.add(source)
        own = for_server(query, spec)
        if isinstance(source, Balsam) and own is not None:
            material = ReportInput(spec.label or source.name, rates.BALSAM)
            found.append(material)
            await reader.watched(_ask(reader, source, what, own, material, is_exact=is_exact))
    others = {source.kind for source in reader.sources} - {BALSAM_SOURCE.kind}
    if others:
        material = ReportInput("sirepo", rates.SIREPO)
        await reader.catch_up(others)
        wanted = set(query.jobs)
        jobs = (job for job in reader.session.store.jobs.values() if not wanted or job.id in wanted)
        material.changes += (change for job in jobs if not job.is_quasi for change in changes_of_job(job))
        found.append(material)
    return found


async def _ask(
    reader: Reader, source: Balsam, what: str, query: ReportQuery, material: ReportInput, *, is_exact: bool
) -> None:
    """Ask a Balsam server for what the report is made of; a fault is one of that source."""
    count, store = 0, reader.session.store
    skips: tuple[Skip, ...] = ()
    try:
        if what == NODES:
            material.allocations, skips = await fetch_allocations(source.client, query)
            count = len(material.allocations)
        else:
            state = (query.to_state or rates.BALSAM.done) if what == THROUGHPUT else None
            changes = fetch_changes(source.client, query, exact=is_exact, to_state=state)
            material.changes, skips = await changes
            count = len(material.changes)
            if _plots(reader) and what == UTILIZATION and not is_exact:
                material.allocations, more = await fetch_allocations(source.client, query)
                skips += more
            silent = {
                one.job_id
                for one in material.changes
                if one.after in rates.BALSAM.running and one.nodes is None
            }
            material.nodes.update(await fetch_nodes(source.client, silent))
    except SourceError as error:
        store.fail(source.name, str(error))
        return
    store.apply(source.name, Batch(count=count, skipped=skips[:SKIPS_KEPT], skip_count=len(skips)))


ROWS = 22
USUAL_COLUMNS, FEWEST_COLUMNS, MOST_COLUMNS = 80, 20, 500
"""Cells of a line where there is no terminal, and at least and at most."""
OUTLINE = "available nodes"


def plot_lines(series: Sequence[Series], window: Window, now: Nanos) -> Iterator[str]:
    """One picture for all series of one unit, each below its names."""
    if not series:
        yield paint("no points", "heading")
    for unit in dict.fromkeys(one.unit for one in series):
        alike = [one for one in series if one.unit == unit]
        if any(one.x for one in alike):
            yield from _picture(alike, window, now)
        else:
            yield paint(f"{', '.join(show(one.name) for one in alike)}: no points", "heading")


def _picture(series: Sequence[Series], window: Window, now: Nanos) -> Iterator[str]:
    chart, frame = _chart(series, window, now)
    *names, last = legend_lines(chart, None, frame.cells, len(series))
    yield from map(painted, names)
    yield f"{painted(last)}   ({series[0].unit})"
    for line in chart_lines(draw_chart(chart, frame)):
        yield painted(line)
    times = f"{date_time(frame.since)} to {date_time(frame.until)}{Zone.mark()}"
    yield paint(times, "dim")
    if (low := min(curve.step(frame.since, frame.until).low for curve in chart.curves)) < 0:
        yield f"note: the lowest value is {low:g}; values below 0 are drawn at 0"


def _chart(series: Sequence[Series], window: Window, now: Nanos) -> tuple[Chart, Frame]:
    columns = max(FEWEST_COLUMNS, min(MOST_COLUMNS, get_terminal_size((USUAL_COLUMNS, ROWS)).columns))
    first = min(one.x[0] for one in series if one.x)
    since = first if window.since is None else window.since
    until = now if window.until is None else min(now, window.until)
    frame = Frame(since, Nanos(max(until, since + SECOND)), columns, ROWS)
    outlines = [one for one in series if one.name.startswith(OUTLINE)] if len(series) > 1 else []
    curves = tuple(Curve(one) for one in series if one not in outlines)
    outline = Curve(outlines[0]) if outlines else None
    kind = ChartKind.STATES if len(curves) > 1 else ChartKind.UTILIZATION
    return Chart(kind, curves, frame.since, min(now, frame.until), outline), frame


async def post_mortem(reader: Reader) -> Exit:
    found = await resolve(reader, reader.context.words[0])
    if found.job is None:
        return reader.settle(found.code)
    verdict = await explained(reader, found)
    job, stated = reader.session.store.with_agent(found.job), Gatherer.of(reader.session).stated
    lines = post_mortem_lines(job, verdict, stated(job.id, found.detail))
    if reader.context.flag("html") is None:
        print_lines(lines)
    else:
        sys.stdout.write(page_of(job.id, lines))
    return reader.settle(Exit.FINE)
