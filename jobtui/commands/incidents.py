"""`incidents`: what went wrong in a window, grouped by how it went and by what it shares."""

from collections.abc import Iterator

from jobtui.analysis.explain.survey import survey_turns
from jobtui.analysis.incidents import Incident, Incidents
from jobtui.analysis.turns import at_once
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_csv, print_document, print_lines
from jobtui.commands.reading import Reader, in_session
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.words import counted
from jobtui.render.incidents import CSV_COLUMNS, incident_lines, incident_record

WINDOW_S = 24 * 3600
"""How far back is looked when nothing else is said."""


def run(context: Context) -> Exit:
    """Print the groups; ATTENTION when there are any."""
    return in_session(context, _incidents)


async def _incidents(reader: Reader) -> Exit:
    await reader.read_jobs()
    await reader.read_logs(None)
    found = _found(reader)
    match reader.context.format:
        case OutputFormat.JSON:
            body = {
                "looked_at": found.looked_at,
                "incidents": [incident_record(one) for one in found.groups],
                "alone": [incident_record(one) for one in found.alone],
            }
            print_document("incidents", body, reader)
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, map(incident_record, (*found.groups, *found.alone)))
        case _:
            print_lines(_lines(reader, found))
    return reader.settle(Exit.ATTENTION if found.groups or found.alone else Exit.FINE)


def _found(reader: Reader) -> Incidents:
    store, now = reader.session.store, reader.now
    since = reader.context.since
    begin = since if since is not None else Nanos(now - WINDOW_S * SECOND)
    end = reader.context.until or now
    return at_once(survey_turns(store, begin, end, now))


def _lines(reader: Reader, found: Incidents) -> Iterator[str]:
    shown: tuple[Incident, ...] = (*found.groups, *found.alone)
    if not shown:
        yield f"nothing went wrong with {counted(found.looked_at, 'job')}"
    for one in shown:
        yield from incident_lines(one, reader.now, reader.context.colour)
