"""`jobs [FILTER]`: the job table, what needs a person first, then what lives, then the newest."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from jobtui.analysis.flags import LATE, flags_of, needs_person
from jobtui.analysis.job_times import last_active
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_csv, print_document, print_lines
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.streams import complain, marked
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job
from jobtui.render.json_output import job_record

if TYPE_CHECKING:
    from jobtui.analysis.filter import Filter
    from jobtui.analysis.lateness import Lateness

CSV_COLUMNS = (
    "id", "system", "status", "native_status", "owner", "name", "app", "model", "mode", "queued_at",
    "started_at", "updated_at", "ended_at", "runs", "percent", "message", "error", "flags", "source",
)  # fmt: skip


def run(context: Context) -> Exit:
    """Print the jobs that pass the filter; USAGE for a filter that makes no sense."""
    if not context.words:
        return in_session(context, _all_jobs)
    from jobtui.analysis.filter import FilterError, parse  # a third of what a start costs

    text = " ".join(context.words)
    try:
        chosen = parse(text)
    except FilterError as error:
        complain(f"filter: {error}: {marked(text, error.start, error.end)}")
        return Exit.USAGE
    return in_session(context, lambda reader: _chosen_jobs(reader, chosen))


async def _all_jobs(reader: Reader) -> Exit:
    await reader.read_jobs()
    return _print(reader, [job for job in _known(reader) if not job.is_quasi])


async def _chosen_jobs(reader: Reader, chosen: "Filter") -> Exit:
    from jobtui.analysis.filter import FilterContext

    await reader.read_jobs()
    if not reader.logs_read and _needs_logs(chosen, _known(reader), reader.now):
        await reader.read_logs(None)
    late_of = _late_of(reader)
    context = FilterContext(is_late=lambda job: late_of(job) is not None)
    return _print(reader, chosen.select(_known(reader), reader.now, context))


def _late_of(reader: Reader) -> Callable[[Job], str | None]:
    """What tells how much longer than usual a job takes; learns what is usual when it is first asked."""

    @cache
    def lateness() -> "Lateness":
        from jobtui.analysis.lateness import Lateness

        return Lateness.of(reader.session.store.jobs, reader.now)

    def late_of(job: Job) -> str | None:
        as_recorded = reader.session.store.jobs.get(job.id) if job.status.is_live else None
        late = lateness().late(as_recorded, reader.now) if as_recorded is not None else None
        return late.words if late is not None else None

    return late_of


def _records(reader: Reader, jobs: Iterable[Job]) -> Iterator[dict[str, object]]:
    """Jobs as documents, with the flag of those that are late."""
    late_of = _late_of(reader)
    for job in jobs:
        record = job_record(job, reader.now)
        if late_of(job) is not None:
            record["flags"] = [*flags_of(job, reader.now), LATE]
        yield record


def _needs_logs(chosen: "Filter", jobs: Iterable[Job], now: Nanos) -> bool:
    """Whether the filter asks for what only logs know: where a job runs, and what started its agent."""
    from jobtui.analysis.filter import FilterContext

    asked = False

    def ask(job: Job) -> None:
        nonlocal asked
        asked = True

    chosen.select(jobs, now, FilterContext(host_of=ask, driver_of=ask))
    return asked


def _print(reader: Reader, jobs: Iterable[Job]) -> Exit:
    now = reader.now
    picked = in_order((job for job in jobs if _within(job, reader)), now)
    match reader.context.format:
        case OutputFormat.JSON:
            print_document("jobs", {"jobs": list(_records(reader, picked))}, reader)
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, _records(reader, picked))
        case _ if not reader.nothing_read:
            from jobtui.commands.jobs_view import view

            print_lines(view(picked, now, reader.context.width, reader.context.colour, _late_of(reader)))
    return reader.settle(Exit.FINE)


def _known(reader: Reader) -> list[Job]:
    """Every job, with host and driver as the logs tell, as far as logs were read."""
    store = reader.session.store
    if not reader.logs_read:
        return list(store.jobs.values())
    if not store.jobs:
        from jobtui.commands.resolve import jobs_known_by_logs

        return jobs_known_by_logs(reader)
    return [with_agent(reader, job) for job in store.jobs.values()]


def with_agent(reader: Reader, job: Job) -> Job:
    """The job with host and driver as the logs tell them, where its record does not."""
    agent = reader.session.store.correlation.agent_of(job.id)
    if agent is None:
        return job
    return msgspec.structs.replace(job, host=job.host or agent.host, driver=job.driver or agent.driver)


def _within(job: Job, reader: Reader) -> bool:
    """Whether the job lived in the time that was asked for."""
    since, until = reader.context.since, reader.context.until
    last, first = last_active(job, reader.now), job.queued_at or job.updated_at
    too_old = since is not None and (last is None or last < since)
    too_new = until is not None and first is not None and first > until
    return not (too_old or too_new)


def in_order(jobs: Iterable[Job], now: Nanos) -> list[Job]:
    """What needs a person first, then what lives, then the newest."""
    return sorted(
        jobs,
        key=lambda job: (
            not needs_person(job, now),
            not job.status.is_live,
            -(job.updated_at or job.queued_at or 0),
            job.id,
        ),
    )
