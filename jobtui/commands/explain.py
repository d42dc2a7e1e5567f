"""`explain ID` and `incidents`: what is wrong with a job, or with all jobs of a time, and the evidence."""

from collections.abc import Iterator

from jobtui.analysis.explain.next_steps import on_sources
from jobtui.analysis.incidents import EarlierFailures, Grouping, Incidents, failed_before
from jobtui.backends.registry import Gives, gives
from jobtui.commands.find import FoundJob, print_not_found, resolve
from jobtui.commands.printing import Report, first
from jobtui.commands.reader import Reader
from jobtui.commands.show import exit_of, headline, judged
from jobtui.commands.streams import Exit
from jobtui.model.clock import SECOND, Nanos, seconds_between, to_rfc3339
from jobtui.model.health import contained
from jobtui.model.jobs import Job
from jobtui.model.numbers import and_more, counted
from jobtui.model.secrets import mask_text
from jobtui.model.verdicts import Verdict
from jobtui.render import incidents as rendered
from jobtui.render import verdicts
from jobtui.render.text import show
from jobtui.session.evidence import Gatherer, with_steps_here

CSV_COLUMNS = ("id", "verdict", "confidence", "concern", "sentence", "last_step", "missing_step")


async def run(reader: Reader) -> Exit:
    found = await resolve(reader, reader.context.words[0])
    if found.job is None:
        return print_not_found({"job": None, "verdict": None}, found, reader)
    verdict, job = await explained(reader, found), reader.session.store.with_agent(found.job)

    def lines(width: int | None) -> Iterator[str]:
        if reader.context.flag("brief"):
            yield from verdicts.brief_lines(job, verdict)
            return
        whole = (headline(job), *verdicts.verdict_lines(verdict, reader.now, width))
        yield from first("\n".join(whole).split("\n"), reader.context)

    return Report(
        lambda: verdict_body(reader, job, verdict),
        CSV_COLUMNS,
        lambda: [{"id": job.id, **verdicts.verdict_record(verdict)}],
        lines,
    ).answer(reader, exit_of(verdict))


async def explained(reader: Reader, found: FoundJob) -> Verdict:
    verdict = await judged(reader, found)
    flags = reader.flags
    if flags[:1] == ("demo",):  # its files go away once this is printed
        return on_sources(verdict, flags, lambda path: None)
    with contained("explaining"):
        stated = Gatherer.of(reader.session).stated(verdict.job_id, found.detail)
        has_traces = any(gives(spec, Gives.SPANS) for spec in reader.specs)
        return await with_steps_here(verdict, flags, stated, reader.session.reach, has_traces=has_traces)
    return verdict


def verdict_body(reader: Reader, job: Job, verdict: Verdict) -> dict[str, object]:
    return {
        "job": reader.record_of(reader.session.store.with_agent(job)),
        **verdicts.verdict_record(verdict),
        "waits": verdicts.chain_record(verdict.waits) if verdict.waits.waits else None,
        "contradictions": list(map(verdicts.contradiction_record, verdict.contradictions)),
    }


WINDOW_S = 24 * 3600
"""How far back failures are searched by default."""


async def run_incidents(reader: Reader) -> Exit:
    """Print the groups; ATTENTION if there are any in the requested time, or may be.

    If nothing failed in the usual window, earlier failures are printed, too.
    """
    await reader.read_jobs()
    await reader.read_logs(None)
    now, since, jobs = reader.now, reader.context.since, reader.session.store.jobs
    begin = since if since is not None else Nanos(now - WINDOW_S * SECOND)
    end = reader.context.until or now
    asked = found = await _survey(reader, begin, end)
    earlier = None if found.groups or found.alone else failed_before(jobs.values(), begin, now)
    if earlier is not None and since is None:
        wide = 0 if earlier.window_s is None else now - earlier.window_s * SECOND
        found = await _survey(reader, Nanos(wide), end)
    report = _incidents_report(reader, asked, found, earlier, begin, end)
    return report.answer(reader, Exit.FINE if asked.is_well else Exit.ATTENTION)


def _incidents_report(
    reader: Reader,
    asked: Incidents,
    found: Incidents,
    earlier: EarlierFailures | None,
    begin: Nanos,
    end: Nanos,
) -> Report:
    """The report on the requested time or, if `earlier` is set, on the time before."""
    shown = first((*found.groups, *found.alone), reader.context)
    groups, alone = shown[: len(found.groups)], shown[len(found.groups) :]

    def lines(width: int | None) -> Iterator[str]:
        yield from (f"not known: {show(spot)}" for spot in found.blind_spots)
        if earlier is not None:
            yield rendered.earlier_words(seconds_between(begin, end), earlier, (*found.groups, *found.alone))
        elif not found.groups and not found.alone:
            yield rendered.none_words(asked, f"with {counted(asked.looked_at, 'job')}")
        for one in shown:
            yield from rendered.incident_lines(one, end)
        if found.doubtful:
            more = and_more(len(found.doubtful), 1)
            yield f"not sure of {show(found.doubtful[0])}{more}: see jobtui explain"

    return Report(
        lambda: {
            "looked_at": found.looked_at,
            "since": to_rfc3339(begin),
            "well": asked.is_well,
            "failed_before": earlier.jobs if earlier is not None else 0,
            "incidents": [rendered.incident_record(one, end) for one in groups],
            "alone": [rendered.incident_record(one, end) for one in alone],
            "doubtful": list(found.doubtful),
            "blind_spots": list(map(mask_text, found.blind_spots)),
        },
        rendered.INCIDENT_COLUMNS,
        lambda: (rendered.incident_record(one, end) for one in shown),
        lines,
    )


async def _survey(reader: Reader, begin: Nanos, end: Nanos) -> Incidents:
    gatherer, grouping = Gatherer.of(reader.session), Grouping()
    found = await reader.watched(gatherer.survey(begin, end, grouping))
    return found or grouping.found(gatherer.blind_spots(), min(end, reader.now))
