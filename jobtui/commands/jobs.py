"""`jobs [FILTER]`, jobs that need a person first, and `status`: their counts in one line."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING

from jobtui.analysis.counts import profile_states
from jobtui.analysis.flags import LATE, Flag, JobContext, flags_of, needs_person
from jobtui.backends.registry import SIREPO_DB, SLURM
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.printing import Report, first
from jobtui.commands.reader import Reader, in_filtered, in_session
from jobtui.commands.streams import Exit, complain
from jobtui.grammar import nearest
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import FAULTS, contained
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus, last_active
from jobtui.model.numbers import counted
from jobtui.model.patterns import regex
from jobtui.render.sources import profile_line
from jobtui.render.styles import GLYPHS
from jobtui.render.table import paint, painted
from jobtui.render.text import show

if TYPE_CHECKING:
    from jobtui.analysis.filter import Filter
    from jobtui.analysis.late_jobs import LateJobs
    from jobtui.session.evidence import Gatherer


CSV_COLUMNS = (
    "id", "system", "status", "native_status", "owner", "name", "app", "model", "mode", "queued_at",
    "started_at", "updated_at", "ended_at", "runs", "percent", "message", "error", "flags", "source",
)  # fmt: skip


def run(context: Context) -> Exit:
    if not context.words:
        return in_session(context, _all_jobs)
    from jobtui.analysis.filter import parse  # a third of what a start costs

    return in_filtered(context, parse, _chosen_jobs)


async def _all_jobs(reader: Reader) -> Exit:
    await reader.read_jobs()
    return await print_jobs(reader, [job for job in _known(reader) if not job.is_quasi], reads_outputs=False)


async def _chosen_jobs(reader: Reader, chosen: "Filter") -> Exit:
    await reader.read_jobs()
    if chosen.asks_logs and not reader.logs_read:
        await reader.read_logs(None)
    time_of = cache(lambda source: reader.session.store.now_at(source, reader.now))
    look = JobContext(late_of=_late_of(reader), is_disputed=_is_disputed(reader), time_of=time_of)
    return await print_jobs(reader, [*filter(chosen.test(look), _known(reader))])


def _late_of(reader: Reader) -> Callable[[Job], str | None]:
    """Gives how much longer than usual a job takes; learns what is usual at the first call."""

    @cache
    def lateness() -> "LateJobs":
        from jobtui.analysis.late_jobs import LateJobs

        return LateJobs.of(reader.session.store.jobs, reader.now, reader.session.store.now_at)

    def late_of(job: Job) -> str | None:
        as_recorded = reader.session.store.jobs.get(job.id) if job.status.is_live else None
        return lateness().late(as_recorded, reader.now) if as_recorded is not None else None

    return late_of


def _is_disputed(reader: Reader) -> Callable[[Job], bool]:
    @cache
    def gatherer() -> "Gatherer":
        from jobtui.session.evidence import Gatherer  # few ask for it before there are jobs

        return Gatherer.of(reader.session)

    others_tell = reader.logs_read or any(map(SLURM.made, reader.session.sources))

    def is_disputed(job: Job) -> bool:
        # A single record cannot be disputed, and the import would take half of a start
        if not (others_tell or job.others or not job.needs_logs):
            return False
        return gatherer().is_disputed(job.id)

    return is_disputed


def _records(reader: Reader, jobs: Iterable[Job]) -> Iterator[dict[str, object]]:
    late_of, is_disputed = _late_of(reader), _is_disputed(reader)

    def record_of(job: Job) -> dict[str, object]:
        flags = [*flags_of(job, reader.now_of(job)), *((LATE,) if late_of(job) is not None else ())]
        if is_disputed(job) and Flag.CONTRADICTION not in flags:
            flags.insert(0, Flag.CONTRADICTION)
        return {**reader.record_of(job), "flags": flags}

    return FAULTS.each("printing a job", jobs, record_of)


MOST_FAILED = 20
"""For how many failed jobs of a table the output is read."""


async def _failing_lines(reader: Reader, jobs: Sequence[Job]) -> dict[JobId, str]:
    """The lines that say why the first failed jobs failed, if no cluster must be asked."""
    as_records = reader.context.format in (OutputFormat.JSON, OutputFormat.CSV)
    if as_records or all(job.status is not JobStatus.FAILED for job in jobs):
        return {}
    from jobtui.session.evidence import Gatherer  # half of a start

    gatherer, lines = Gatherer.of(reader.session), dict[JobId, str]()
    for job in gatherer.without_cause(jobs)[:MOST_FAILED]:
        with contained("reading what its program wrote"):
            cause = (await gatherer.at_hand(job.id)).cause
            lines |= {job.id: cause.text} if cause is not None else {}
    return lines


async def print_jobs(reader: Reader, jobs: Iterable[Job], *, reads_outputs: bool = True) -> Exit:
    within = FAULTS.each("sorting jobs", jobs, lambda job: job if _within(job, reader) else None)
    picked = first(in_order(filter(None, within), reader.now_of), reader.context)
    failing = await _failing_lines(reader, picked) if reads_outputs else {}
    if not picked and not reader.nothing_read:
        from jobtui.analysis.filter import STATUS_WORDS, STUCK  # most filters have results

        near = nearest(" ".join(reader.context.words), (*STATUS_WORDS, STUCK))
        known = len(_known(reader))
        complain(f"none of {counted(known, 'job')} passes the filter{near}" if known else "no job is known")

    def lines(width: int | None) -> Iterable[str]:
        if reader.nothing_read:
            return ()
        from jobtui.render.columns import RowContext, job_table

        context = RowContext(
            now=reader.now,
            late_of=_late_of(reader),
            is_disputed=_is_disputed(reader),
            cause_of=lambda job: failing.get(job.id),
            now_at=reader.session.store.now_at,
            profile_of=reader.session.store.profile_of,
        )
        return job_table(picked, context, width, has_profiles=bool(reader.session.store.profiles))

    return Report(
        lambda: {"jobs": list(_records(reader, picked))},
        CSV_COLUMNS,
        lambda: _records(reader, picked),
        lines,
        command="jobs",
    ).answer(reader, Exit.FINE)


def _known(reader: Reader) -> list[Job]:
    """Every job, with host and driver from the logs, if these were read."""
    store = reader.session.store
    if not store.jobs:
        from jobtui.commands.find import known_by_logs

        ids = {op.jid for op in store.correlation.ops() if op.jid is not None}
        return [job for job_id in sorted(ids) if (job := known_by_logs(reader, job_id)) is not None]
    return [store.with_agent(job) for job in store.jobs.values()]


def _within(job: Job, reader: Reader) -> bool:
    since, until = reader.context.since, reader.context.until
    last, first = last_active(job, reader.now), job.queued_at or job.updated_at
    too_old = since is not None and (last is None or last < since)
    too_new = until is not None and first is not None and first > until
    return not (too_old or too_new)


def in_order(jobs: Iterable[Job], now_of: Callable[[Job], Nanos]) -> list[Job]:
    """Jobs that need a person first, then live ones, then the newest."""

    def ranked(job: Job) -> tuple[bool, bool, int, JobId, Job]:
        newest = -(job.updated_at or job.queued_at or 0)
        return not needs_person(job, now_of(job)), not job.status.is_live, newest, job.id, job

    return [job for *_, job in sorted(FAULTS.each("sorting jobs", jobs, ranked), key=itemgetter(0, 1, 2, 3))]


NEWEST = 5_000
"""How many of Sirepo's newest records `status` reads, as it is run again and again."""
COUNTS = ("running", "pending", "stuck", "failed_1h", "disputed", "sources_down")


async def run_status(reader: Reader) -> Exit:
    """Print the line; ATTENTION if a job is stuck, or its sources contradict each other."""
    has_more = await reader.read_jobs(NEWEST)
    counts = _counts(reader)
    newest = NEWEST if has_more else None
    store = reader.session.store
    names, jobs = store.profiles.values(), store.jobs.values()
    states = profile_states(names, jobs, reader.sources, store.profile_of, reader.now_of)

    def lines(width: int | None) -> Iterator[str]:
        if reader.context.flag("prometheus") is not None:  # the text format that its node exporter collects
            about = f"of the newest {newest} records" if newest else "in what is read now"
            yield f"# HELP jobtui_jobs Jobs in each state, {about}."
            yield "# TYPE jobtui_jobs gauge"
            yield from (f'jobtui_jobs{{state="{name}"}} {counts[name]}' for name in COUNTS[:-1])
            yield "# HELP jobtui_sources_down Sources that cannot be read."
            yield "# TYPE jobtui_sources_down gauge"
            yield f"jobtui_sources_down {counts[COUNTS[-1]]}"
            return
        more = f" of the newest {newest:,}" if newest else ""
        yield f"{_line(counts)}{more}"
        for state in states:
            yield painted(profile_line(state)).strip()

    return Report(
        lambda: {**counts, "newest": newest, "profiles": [state._asdict() for state in states]},
        COUNTS,
        lambda: [counts],
        lines,
    ).answer(reader, Exit.ATTENTION if counts["stuck"] or counts["disputed"] else Exit.FINE)


def _counts(reader: Reader) -> dict[str, int]:
    jobs = [job for job in reader.session.store.jobs.values() if not job.is_quasi]
    by_status = Counter(job.status for job in jobs)
    lately = reader.now - 3600 * SECOND
    failed = (job for job in jobs if job.status is JobStatus.FAILED)
    return {
        "running": by_status[JobStatus.RUNNING],
        "pending": by_status[JobStatus.PENDING],
        "stuck": sum(1 for job in jobs if job.status.is_live and needs_person(job, reader.now_of(job))),
        "failed_1h": sum(1 for job in failed if (job.ended_at or 0) >= lately),
        "disputed": sum(map(_is_disputed(reader), jobs)),
        "sources_down": sum(source.is_unread for source in reader.sources),
    }


def _line(counts: dict[str, int]) -> str:
    """The counts, with the glyphs of the job table; those that are 0 are left out except the first two."""
    parts = [f"{GLYPHS[one]}{counts[one]}" for one in (JobStatus.RUNNING, JobStatus.PENDING)]
    for name, sign, style in (
        ("stuck", "!", "warning"),
        ("failed_1h", GLYPHS[JobStatus.FAILED], "error"),
        ("disputed", "disputed ", "warning"),
        ("sources_down", "down ", "error"),
    ):
        if counts[name]:
            parts.append(paint(f"{sign}{counts[name]}", style))
    return " ".join(parts)


_PLAIN = regex(r"[\w./@#:,+-]+", re.ASCII)
"""An id that needs no quotes in any shell."""


async def list_for_shell(reader: Reader, newest: int, within_s: float, rows: list[str]) -> Exit:
    """Add to `rows` the id of each job with words about it, the failed ones first, then the newest."""
    from jobtui.backends.sirepo.files import DIRECTORY, listed  # only this needs names without records

    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await reader.read_jobs(newest)
    known = reader.session.store.jobs
    own = [job for job in known.values() if _PLAIN.fullmatch(job.id)]
    own.sort(key=lambda job: (job.status is not JobStatus.FAILED, -(job.updated_at or job.queued_at or 0)))
    rows += (f"{job.id}\t{show(f'{job.status.value} {job.owner} {job.name}')}" for job in own)
    for spec in filter(SIREPO_DB.names, reader.specs):
        with suppress(OSError):
            older = sorted(listed(os.path.join(spec.target, DIRECTORY)))
            rows += (f"{job_id}\t" for job_id in older if job_id not in known)
    return Exit.FINE
