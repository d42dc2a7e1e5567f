"""`status`: how things stand in one line, for the status bar of a terminal multiplexer."""

from collections import Counter

from jobtui.analysis.flags import needs_person
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_csv, print_document, print_lines
from jobtui.commands.reading import Reader, in_session
from jobtui.model.clock import SECOND
from jobtui.model.health import SourceState
from jobtui.model.jobs import JobStatus
from jobtui.render.status import glyph
from jobtui.render.table import paint

LATELY_S = 3600
CSV_COLUMNS = ("running", "pending", "stuck", "failed_1h", "sources_down")


def run(context: Context) -> Exit:
    """Print the line; ATTENTION when a job is stuck."""
    return in_session(context, _status)


async def _status(reader: Reader) -> Exit:
    await reader.read_jobs()
    counts = _counts(reader)
    match reader.context.format:
        case OutputFormat.JSON:
            print_document("status", counts, reader)
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, [counts])
        case _:
            print_lines([_line(counts, reader.context.colour)])
    return reader.settle(Exit.ATTENTION if counts["stuck"] else Exit.FINE)


def _counts(reader: Reader) -> dict[str, int]:
    now = reader.now
    jobs = [job for job in reader.session.store.jobs.values() if not job.is_quasi]
    by_status = Counter(job.status for job in jobs)
    lately = now - LATELY_S * SECOND
    failed = (job for job in jobs if job.status is JobStatus.FAILED)
    return {
        "running": by_status[JobStatus.RUNNING],
        "pending": by_status[JobStatus.PENDING],
        "stuck": sum(1 for job in jobs if needs_person(job, now)),
        "failed_1h": sum(1 for job in failed if (job.ended_at or 0) >= lately),
        "sources_down": sum(1 for source in reader.sources if source.state is SourceState.DOWN),
    }


def _line(counts: dict[str, int], colour: bool) -> str:
    """The counts, with the glyphs of the job table; what is nothing is left out but for the first two."""
    parts = [
        f"{glyph(JobStatus.RUNNING)}{counts['running']}",
        f"{glyph(JobStatus.PENDING)}{counts['pending']}",
    ]
    for name, sign, style in (
        ("stuck", "!", "warning"),
        ("failed_1h", glyph(JobStatus.FAILED), "error"),
        ("sources_down", "down ", "error"),
    ):
        if counts[name]:
            parts.append(paint(f"{sign}{counts[name]}", style, colour))
    return " ".join(parts)
