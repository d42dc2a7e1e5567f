"""`report WHAT`: throughput, utilization, available nodes or jobs per state, as series over time."""

from collections.abc import Iterable, Iterator, Sequence

from jobtui.analysis.rates import (
    BALSAM,
    StateTime,
    available_nodes,
    jobs_per_state,
    throughput,
    time_in_states,
    utilization,
)
from jobtui.analysis.rates_exact import ReportError
from jobtui.analysis.rates_exact import available_nodes as exact_nodes
from jobtui.analysis.rates_exact import throughput as exact_throughput
from jobtui.analysis.rates_exact import utilization as exact_utilization
from jobtui.analysis.series import Series, Window
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.post_mortem import post_mortem
from jobtui.commands.printing import print_csv, print_document, print_lines
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.report_material import Ambiguous, Material, gather, query_of
from jobtui.commands.streams import complain
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import to_rfc3339
from jobtui.model.report_query import ReportQuery
from jobtui.render.table import Cell, Head, paint, table_lines
from jobtui.render.text import date_time, duration, show

CSV_COLUMNS = ("series", "unit", "x", "y")
LINES_SHOWN = 20
"""Points of a series that a table shows; the others are counted. All of them are in --json and --csv."""
POINT_HEADS = (Head("TIME"), Head("VALUE", "right"))
STAY_HEADS = (
    Head("STATE"), Head("STAYS", "right"), Head("NOW", "right"), Head("HALF WITHIN", "right"),
    Head("9 OF 10", "right"), Head("LONGEST", "right"),
)  # fmt: skip


def run(context: Context) -> Exit:
    """Print the report; USAGE when it cannot be made."""
    return in_session(context, _report if context.flag("markdown") is None else post_mortem)


async def _report(reader: Reader) -> Exit:
    what = reader.context.words[0]
    try:
        query = query_of(reader.context, what, reader.specs)
    except Ambiguous as error:
        complain(str(error))
        return Exit.NOT_FOUND
    except ValueError as error:
        complain(str(error))
        return Exit.USAGE
    if _plots(reader) and reader.context.format in (OutputFormat.JSON, OutputFormat.CSV):
        complain("--plot draws a picture: leave out --json and --csv")
        return Exit.USAGE
    is_exact = reader.context.flag("exact") is not None
    materials = await gather(reader, what, query, is_exact=is_exact)
    series: list[Series] = []
    times: list[StateTime] = []
    try:
        for material in materials:
            made, stays = _made(reader, what, query, material)
            is_one = len(materials) == 1
            series += made if is_one else (one._replace(name=f"{one.name}, {material.name}") for one in made)
            times += (
                stays if is_one else (one._replace(state=f"{one.state}, {material.name}") for one in stays)
            )
    except ReportError as error:
        complain(str(error))
        return reader.settle(Exit.FAILED)
    _print(reader, what, series, times)
    return reader.settle(Exit.FINE)


def _made(
    reader: Reader, what: str, query: ReportQuery, material: Material
) -> tuple[tuple[Series, ...], tuple[StateTime, ...]]:
    changes = [one for one in material.changes if query.from_state in (None, one.before)]
    if reader.context.flag("exact") is not None:
        return (_exact(reader, what, query, changes, material.allocations),), ()
    window = Window(query.since, query.until)
    words, now = material.words, reader.now
    match what:
        case "throughput":
            return (throughput(changes, window, query.to_state or words.done),), ()
        case "utilization":
            is_weighted = reader.context.flag("unweighted") is None and words is BALSAM
            made = utilization(
                changes, window, now, is_weighted=is_weighted, running=words.running, nodes_of=material.nodes
            )
            if _plots(reader) and material.allocations:
                return (made, available_nodes(material.allocations, window, now)), ()
            return (made,), ()
        case "nodes":
            return (available_nodes(material.allocations, window, now),), ()
    series = jobs_per_state(changes, window, now, unborn=words.unborn)
    return series, time_in_states(changes, now, words.unborn)


def _exact(
    reader: Reader,
    what: str,
    query: ReportQuery,
    changes: Sequence[StateChange],
    allocations: Iterable[Allocation],
) -> Series:
    match what:
        case "throughput":
            return exact_throughput(changes, query.to_state or BALSAM.done)
        case "utilization":
            is_weighted = reader.context.flag("unweighted") is None
            return exact_utilization(changes, is_weighted=is_weighted, closing_state=query.to_state)
        case "nodes":
            return exact_nodes(allocations)
    raise ReportError("Balsam itself has no report of jobs per state: leave out --exact")


def _print(reader: Reader, what: str, series: Sequence[Series], times: Sequence[StateTime]) -> None:
    match reader.context.format:
        case OutputFormat.JSON:
            body = {
                "report": what,
                "exact": reader.context.flag("exact") is not None,
                "series": [series_record(one) for one in series],
                "times": [one._asdict() for one in times],
            }
            print_document("report", body, reader)
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, _csv_rows(series))
        case _:
            print_lines(_lines(reader, series, times))


def _plots(reader: Reader) -> bool:
    return reader.context.flag("plot") is not None


def series_record(series: Series) -> dict[str, object]:
    """A series as the JSON contract has it: y[i] holds from x[i] on."""
    return {
        "name": series.name,
        "unit": series.unit,
        "x": [to_rfc3339(at) for at in series.x],
        "y": list(series.y),
        "notes": list(series.notes),
    }


def _csv_rows(series: Iterable[Series]) -> Iterator[dict[str, object]]:
    for one in series:
        for at, value in zip(one.x, one.y, strict=True):
            yield {"series": one.name, "unit": one.unit, "x": to_rfc3339(at), "y": value}


def _lines(reader: Reader, series: Sequence[Series], times: Sequence[StateTime]) -> Iterator[str]:
    width, colour = reader.context.width, reader.context.colour
    if _plots(reader):
        from jobtui.commands.report_plot import plot_lines  # plotext takes long to load

        window = Window(reader.context.since, reader.context.until)
        yield from plot_lines(series, window, reader.now, colour=colour)
    if times:
        yield from table_lines(STAY_HEADS, [_stay_row(one) for one in times], width, colour)
        return
    for one in () if _plots(reader) else series:
        yield paint(f"{show(one.name)}, {one.unit}", "heading", colour)
        left_out = max(0, len(one.x) - LINES_SHOWN)
        if left_out:
            yield f"{left_out} earlier points are left out: --json or --csv has them"
        points = list(zip(one.x, one.y, strict=True))[left_out:]
        rows = [[Cell(date_time(at)), Cell(f"{value:g}")] for at, value in points]
        yield from table_lines(POINT_HEADS, rows, width, colour)
    notes = dict.fromkeys(note for one in series for note in one.notes)
    for note in notes:
        yield f"note: {show(note)}"


def _stay_row(one: StateTime) -> list[Cell]:
    texts = (
        show(one.state), f"{one.stays}", f"{one.open}", duration(one.p50_s), duration(one.p90_s),
        duration(one.longest_s),
    )  # fmt: skip
    return [Cell(text) for text in texts]
