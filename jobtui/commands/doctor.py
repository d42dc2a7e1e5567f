"""`doctor`: what every configured source is worth: reachable, readable, fresh, and understood."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jobtui.backends.base import SourceError
from jobtui.backends.log_book import NamesLogs
from jobtui.backends.log_sample import newest_time, tail_lines
from jobtui.backends.registry import TOLD_KINDS, TRACE_KINDS, gives_jobs, gives_spans, keeps_scripts
from jobtui.backends.worker import a_worker
from jobtui.commands.clusters import KIND as COPIES_KIND
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_csv, print_document, print_lines
from jobtui.commands.reading import JOURNAL, Reader, in_session
from jobtui.commands.sites import KIND as SITE_LOGS
from jobtui.formats.survey import Survey, survey
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.specs import LogRole, SourceSpec
from jobtui.model.words import counted

UNKNOWN_SHARE_LIMIT = 0.01
"""Which part of a log's records may be of no known shape."""
SKIPPED_SHARE_LIMIT = 0.01
"""Which part of a source may have been skipped."""
ADDRESSED = frozenset({JOURNAL, "balsam", "slurm", "elastic", "kafka", "jaeger", "tempo", "otlp_listen"})
"""Settings whose sources may be named by an address."""
BEHIND_S = 3600
"""A supervisor's log that ends this much before its records do is not the log of that supervisor."""
FOUND_LOGS = {
    SITE_LOGS: ("file", "no site can be reached"),
    COPIES_KIND: ("cluster agent", "no cluster agent's log was copied"),
}
"""Kinds of sources that no setting names: what their logs are called, and what is said when there is none."""
CSV_COLUMNS = ("source", "kind", "fine", "state", "records", "skipped", "newest_at", "unknown_share", "says")


class Finding(NamedTuple):
    """What was found out about one source. `faults` say what is not fine, `remarks` what else to know.

    `newest_at` is the time of its newest news. Shares are of 1, None where they say nothing.
    """

    source: SourceHealth
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    newest_at: Nanos | None = None
    unknown_share: float | None = None
    lines: int | None = None
    continuations: int | None = None
    examples: tuple[str, ...] = ()


def run(context: Context) -> Exit:
    """Print what was found; FAILED when a source is not fine, NO_SOURCE when none could be read."""
    return in_session(context, _doctor)


async def _doctor(reader: Reader) -> Exit:
    reader.add_job_sources()
    await reader.watched(reader.session.catch_up())
    await reader.read_logs(None)
    await reader.read_traces(look_at_all=True)
    await reader.open_archives()
    newest_record = _newest_record(reader)
    by_name = {source.name: source for source in reader.sources}
    findings = [await _examine(spec, by_name[name_of(spec)], newest_record, reader) for spec in reader.specs]
    findings += [
        await _of_found_logs(source, reader) for source in reader.sources if source.kind in FOUND_LOGS
    ]
    match reader.context.format:
        case OutputFormat.JSON:
            print_document("doctor", {"checks": [_record(finding) for finding in findings]}, reader)
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, map(_record, findings))
        case _:
            from jobtui.commands.doctor_view import view

            print_lines(view(findings, reader.now, reader.context.width, reader.context.colour))
    faulty = any(finding.faults for finding in findings)
    return reader.settle(Exit.FAILED if faulty else Exit.FINE)


async def _of_found_logs(source: SourceHealth, reader: Reader) -> Finding:
    """Logs that no setting names, as they are found where jobs are."""
    what, none = FOUND_LOGS[source.kind]
    found = next(one for one in reader.session.sources if one.name == source.name)
    count = len(found.directories) if isinstance(found, NamesLogs) else 0
    known = f"{counted(count, what)}, {source.records:,} lines" if count else none
    finding = Finding(source, tuple(_skip_faults(source)), (known, *_skip_remarks(source)))
    if source.kind != COPIES_KIND or not count or not isinstance(found, NamesLogs):
        return finding
    from jobtui.backends.copied_log import sample_lines

    directories = [Path(directory) for directory in found.directories]
    with a_worker(f"doctor on {source.name}") as worker:
        return _understood(finding, await worker.run(lambda: survey(sample_lines(directories))))


def name_of(spec: SourceSpec) -> str:
    """What the source of this name is called: a path in its shortest form, an address as it is."""
    return spec.target if spec.setting in ADDRESSED else str(Path(spec.target))


def _newest_record(reader: Reader) -> Nanos | None:
    times = (job.updated_at for job in reader.session.store.jobs.values())
    return max((at for at in times if at is not None and at <= reader.now), default=None)


async def _examine(
    spec: SourceSpec, source: SourceHealth, newest_record: Nanos | None, reader: Reader
) -> Finding:
    if source.state is SourceState.DOWN:
        return Finding(source, faults=(source.reason or "cannot be read",))
    faults, remarks = tuple(_skip_faults(source)), tuple(_skip_remarks(source))
    if gives_jobs(spec):
        told = (counted(len(reader.session.store.jobs), "job"), *remarks, *await _of_ads(source, reader))
        return Finding(source, faults, (*told, *_unreached(source, reader)), newest_record)
    if gives_spans(spec):
        told = (f"{source.records} spans and log records",) if source.kind in TRACE_KINDS else ()
        return Finding(source, faults, (*told, *remarks))
    if keeps_scripts(spec):
        return Finding(source, faults, remarks)
    if spec.setting == JOURNAL:
        return await _examine_journal(Finding(source, faults, remarks), reader)
    return await _examine_log(spec, Finding(source, faults, remarks), newest_record)


async def _of_ads(source: SourceHealth, reader: Reader) -> tuple[str, ...]:
    if source.kind not in TOLD_KINDS:
        return ()
    from jobtui.commands.doctor_ads import ad_remarks

    return await ad_remarks(source.name, reader)


def _unreached(source: SourceHealth, reader: Reader) -> Iterator[str]:
    """Sites of a Balsam server whose logs are not read, and what would change that."""
    if any(one.kind == SITE_LOGS for one in reader.sources):
        return
    for site in reader.session.store.sites():
        if site.source == source.name:
            yield (
                f"the logs of {site.name} are not read: {site.path} cannot be reached from here; where it is "
                "mounted elsewhere, name that under [mounts]"
            )


def _skip_faults(source: SourceHealth) -> Iterator[str]:
    looked_at = max(source.records, source.skipped)
    if source.skipped > SKIPPED_SHARE_LIMIT * looked_at:
        yield f"{source.skipped} of {looked_at} skipped"


def _skip_remarks(source: SourceHealth) -> Iterator[str]:
    for skip in source.last_skips[-3:]:
        yield f"skipped {skip.where}: {skip.why}"
    if source.note:
        yield source.note


async def _examine_log(spec: SourceSpec, finding: Finding, newest_record: Nanos | None) -> Finding:
    path = Path(spec.target)
    try:
        with a_worker(f"doctor on {path}") as worker:
            seen = await worker.run(lambda: survey(tail_lines(path)))
            newest_at = await worker.run(lambda: newest_time(path, spec.role.value))
    except SourceError as error:
        return finding._replace(faults=(*finding.faults, str(error)))
    finding = _understood(finding, seen)
    return finding._replace(
        faults=(*finding.faults, *_log_faults(spec, seen, newest_at, newest_record)),
        remarks=(*finding.remarks, *([] if seen.lines else ["empty"])),
        newest_at=newest_at,
    )


async def _examine_journal(finding: Finding, reader: Reader) -> Finding:
    from jobtui.backends.journal.sample import sample_lines
    from jobtui.commands.doctor_journal import examine_journal, journal_of

    found = next(s for s in reader.session.sources if s.name == finding.source.name)
    more, newest_at = examine_journal(found, reader.now)
    finding = finding._replace(
        faults=(*finding.faults, *more.faults),
        remarks=(*more.remarks, *finding.remarks),
        newest_at=newest_at,
    )
    if (journal := journal_of(found)) is None:
        return finding
    try:
        lines = await sample_lines(journal, None if found is journal else reader.now)
    except SourceError as error:
        return finding._replace(faults=(*finding.faults, str(error)))
    with a_worker(f"doctor on {journal.name}") as worker:
        return _understood(finding, await worker.run(lambda: survey(lines)))


def _understood(finding: Finding, seen: Survey) -> Finding:
    """What was found out about a log, and how much of it is understood."""
    share = seen.unknown_share
    fault = [f"{share:.1%} of its records have no known shape"] if share > UNKNOWN_SHARE_LIMIT else []
    return finding._replace(
        faults=(*finding.faults, *fault),
        unknown_share=share,
        lines=seen.lines,
        continuations=seen.continuations,
        examples=seen.examples,
    )


def _log_faults(
    spec: SourceSpec, seen: Survey, newest_at: Nanos | None, newest_record: Nanos | None
) -> Iterator[str]:
    if seen.lines and not seen.records:
        yield "not a single line looks like one of Sirepo's"
    if spec.role is LogRole.SUPERVISOR and newest_at is not None and newest_record is not None:
        behind_s = (newest_record - newest_at) / SECOND
        if behind_s > BEHIND_S:
            yield f"ends {behind_s / 3600:.0f} h before the newest record: it may be another file by now"


def _record(finding: Finding) -> dict[str, object]:
    from jobtui.model.secrets import mask_text
    from jobtui.render.json_output import time_or_null

    return {
        "source": mask_text(finding.source.name),
        "kind": finding.source.kind,
        "fine": not finding.faults,
        "state": finding.source.state.value,
        "records": finding.source.records,
        "skipped": finding.source.skipped,
        "newest_at": time_or_null(finding.newest_at),
        "unknown_share": finding.unknown_share,
        "lines": finding.lines,
        "continuations": finding.continuations,
        "examples": [mask_text(text) for text in finding.examples],
        "says": [mask_text(text) for text in (*finding.faults, *finding.remarks)],
    }
