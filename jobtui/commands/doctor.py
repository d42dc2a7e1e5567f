"""`doctor`: checks every configured source: is it reachable, readable, fresh, and understood."""

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobtui.backends.base import Source
from jobtui.backends.journal.records import gap_words
from jobtui.backends.journal.source import Journal
from jobtui.backends.registry import AGENT_COPIES, SITE_LOGS, Gives, gives, of_kind, of_setting
from jobtui.commands.printing import Report, SourceNames
from jobtui.commands.reader import Reader
from jobtui.commands.streams import Exit
from jobtui.formats.parser import Survey, survey
from jobtui.logs.catalog import DirectoryLogs
from jobtui.logs.pages import tail_lines
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.health import FAULTS, SEE, SourceError, SourceHealth, SourceState, contained
from jobtui.model.job_reader import Unreadable
from jobtui.model.jobs import Job
from jobtui.model.numbers import and_more, counted
from jobtui.model.specs import LogRole, SourceSpec
from jobtui.render.columns import KEPT, TableColumn, at_least, fixed, printed
from jobtui.render.table import paint
from jobtui.render.text import NONE, age, duration, show
from jobtui.transport.worker import Worker

STREAMS_NAMED = 8
LAST_ENTRIES, SAMPLE_ENTRIES = 1_000, 20_000
"""How many of the last entries of a log engine are read, and of any journal looked at."""


def _journal_faults(journal: Journal) -> Iterator[str]:
    condition = journal.condition
    if condition.unreadable:
        note = f": {condition.note}" if condition.note else ""
        yield f"{condition.unreadable} of its files cannot be read{note}"
    elif not journal.streams and condition.note:
        yield condition.note
    for gap in journal.gaps:
        if not gap.recovered:
            yield gap_words(gap)


def _journal_remarks(journal: Journal, now: Nanos) -> Iterator[str]:
    condition = journal.condition
    if condition.files is not None:
        yield f"{counted(condition.files, 'file')} opened"
    names = list(journal.streams)
    if names:
        yield f"reads {', '.join(names[:STREAMS_NAMED])}{and_more(len(names), STREAMS_NAMED)}"
    else:
        yield "no entry of Sirepo's units or containers in what was read"
    if journal.newest_at is not None:
        yield f"its newest entry is {duration(max(0.0, seconds_between(journal.newest_at, now)))} old"
    for gap in journal.gaps:
        if gap.recovered:
            yield gap_words(gap)


UNKNOWN_SHARE_LIMIT = 0.01
"""The largest share of a log's records that may have no known shape."""
BEHIND_S = 3600
"""A supervisor's log that ends this much before its records do is not the log of that supervisor."""
CSV_COLUMNS = ("source", "kind", "fine", "state", "records", "skipped", "newest_at", "unknown_share", "says")


@dataclass(slots=True)
class Check:
    """The findings about one source: `faults` must be fixed, `remarks` are good to know.

    `newest_at` is the time of its newest news. Shares are from 0 to 1, None if they mean nothing.
    """

    source: SourceHealth
    faults: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    newest_at: Nanos | None = None
    seen: Survey | None = None

    def understood(self, seen: Survey) -> None:
        self.seen = seen
        if seen.unknown_share > UNKNOWN_SHARE_LIMIT:
            self.faults.append(f"{seen.unknown_share:.1%} of its records have no known shape")


async def run(reader: Reader) -> Exit:
    """Print the findings; FAILED if a source is not fine, NO_SOURCE if none could be read."""
    reader.add_job_sources()
    reader.entries = LAST_ENTRIES
    await reader.catch_up()
    await reader.read_logs(None)
    await reader.read_traces(look_at_all=True)
    await reader.open_archives()
    newest_record = _newest_record(reader.session.store.jobs.values(), reader.now)
    by_name = {source.name: source for source in reader.sources}
    findings = []
    for spec in reader.specs:
        finding = Check(by_name[name_of(spec)])
        findings.append(finding)
        await _contained(_examine(spec, finding, newest_record, reader), finding)
    for source in () if reader.context.replay else reader.sources:
        if of_kind(source.kind).found[0]:
            findings.append(Check(source))
            await _contained(_examine_found_logs(findings[-1], reader), findings[-1])
    if (ours := FAULTS.health()) is not None:
        findings.append(Check(ours, [fault.line for fault in FAULTS.all()], [SEE]))
    return Report(
        lambda: {"checks": [_record(finding) for finding in findings]},
        CSV_COLUMNS,
        lambda: map(_record, findings),
        lambda width: view(findings, reader.now, width),
    ).answer(reader, Exit.FAILED if any(finding.faults for finding in findings) else Exit.FINE)


async def _contained(examining: Awaitable[None], finding: Check) -> None:
    with contained("examining a source") as done:
        await examining
    if done.fault is not None:
        finding.faults.append(done.words)


async def _examine_found_logs(finding: Check, reader: Reader) -> None:
    source, (what, none) = finding.source, of_kind(finding.source.kind).found
    found = _source_of(finding, reader)
    count = len(found.directories) if isinstance(found, DirectoryLogs) else 0
    _note_skips(finding)
    finding.remarks.insert(0, f"{counted(count, what)}, {source.records:,} lines" if count else none)
    if AGENT_COPIES.made(source) and count and isinstance(found, DirectoryLogs):
        from jobtui.backends.agent_copies import sample_lines

        directories = [Path(directory) for directory in found.directories]
        with closing(Worker(f"doctor on {source.name}")) as worker:
            finding.understood(await worker.run(lambda: survey(sample_lines(directories))))


def _source_of(finding: Check, reader: Reader) -> Source:
    return next(one for one in reader.session.sources if one.name == finding.source.name)


def name_of(spec: SourceSpec) -> str:
    """The name of a source as it is shown: a path in its shortest form, an address as it is."""
    return spec.target if of_setting(spec.setting).addressed else str(Path(spec.target))


def _newest_record(jobs: Iterable[Job], now: Nanos) -> Nanos | None:
    times = (job.updated_at for job in jobs)
    return max((at for at in times if at is not None and at <= now), default=None)


async def _examine(spec: SourceSpec, finding: Check, newest_record: Nanos | None, reader: Reader) -> None:
    source = finding.source
    if source.state is SourceState.DOWN:
        finding.faults.append(source.reason or "cannot be read")
        return
    finding.faults += [part.words for part in source.failing]
    _note_skips(finding)
    if reader.context.replay is not None:  # the files here are not those that were read
        finding.remarks.insert(0, "as recorded")
    elif gives(spec, Gives.JOBS):
        of_it = [
            job
            for job in reader.session.store.jobs.values()
            if source.name in {one.source for one in (job, *job.others)}
        ]
        finding.remarks.insert(0, counted(len(of_it), "job"))
        finding.remarks += _unreached(source, reader)
        finding.newest_at = _newest_record(of_it, reader.now)
    elif gives(spec, Gives.SPANS):
        if not of_kind(source.kind).is_asked:
            finding.remarks.insert(0, f"spans and log records: {source.records}")
    elif of_setting(spec.setting).is_journal:
        await _examine_journal(finding, reader)
    elif gives(spec, Gives.FILES):
        await _examine_files(finding, reader)
    elif not gives(spec, Gives.SCRIPTS):
        await _examine_log(spec, finding, newest_record)


def _unreached(source: SourceHealth, reader: Reader) -> Iterator[str]:
    if any(SITE_LOGS.made(one) for one in reader.sources):
        return
    for site in reader.session.store.sites():
        if site.source == source.name:
            yield f"the logs of {site.name} are not read: no {site.path} here; name its mount under [mounts]"


def _note_skips(finding: Check) -> None:
    source = finding.source
    finding.faults += filter(None, (source.skipped_words,))
    finding.remarks += [f"skipped {skip.where}: {skip.why}" for skip in source.last_skips[-3:]]
    finding.remarks += filter(None, (source.note,))


async def _examine_files(finding: Check, reader: Reader) -> None:
    """Ask for the files of the job that ended last: what is wrong with the login tells only that."""
    server: Any = _source_of(finding, reader)
    jobs = [job for job in reader.session.store.jobs.values() if job.ended_at and server.directory_of(job.id)]
    for job in sorted(jobs, key=lambda job: job.ended_at or 0)[-1:]:
        try:
            listing = await server.list_files(server.directory_of(job.id))
            files = f"{counted(len(listing.files), 'file')} of {job.id}, which ended last"
            finding.remarks.append("; ".join(filter(None, (files, listing.note))))
        except (SourceError, Unreadable) as error:
            finding.faults.append(str(error))


async def _examine_log(spec: SourceSpec, finding: Check, newest_record: Nanos | None) -> None:
    path, finding.newest_at = Path(spec.target), finding.source.newest_at
    try:
        with closing(Worker(f"doctor on {path}")) as worker:
            seen = await worker.run(lambda: survey(tail_lines(path)))
    except SourceError as error:
        finding.faults.append(str(error))
        return
    finding.understood(seen)
    if seen.lines and not seen.records:
        finding.faults.append("no line looks like one of Sirepo's")
    if spec.role is LogRole.SUPERVISOR and finding.newest_at is not None and newest_record is not None:
        behind_s = (newest_record - finding.newest_at) / SECOND
        if behind_s > BEHIND_S:
            hours = f"{behind_s / 3600:.0f} h"
            finding.faults.append(f"ends {hours} before the newest record: it may be another file now")
    if not seen.lines:
        finding.remarks.append("empty")


async def _examine_journal(finding: Check, reader: Reader) -> None:
    found = _source_of(finding, reader)
    if not isinstance(journal := found, Journal) or reader.partial:
        return
    finding.faults += _journal_faults(journal)
    finding.remarks[:0] = _journal_remarks(journal, reader.now)
    finding.remarks += filter(None, (of_kind(finding.source.kind).misses,))
    finding.newest_at = journal.newest_at
    try:
        most = min(SAMPLE_ENTRIES, finding.source.records)
        lines = await journal.sample_lines(None if journal.until is None else reader.now, most)
    except SourceError as error:
        finding.faults.append(str(error))
        return
    with closing(Worker(f"doctor on {journal.name}")) as worker:
        finding.understood(await worker.run(lambda: survey(lines)))


def _record(finding: Check) -> dict[str, object]:
    from jobtui.model.secrets import mask_text
    from jobtui.render.json_output import fields_of

    of_lines = "unknown_share lines continuations"
    return {
        **fields_of(finding.source, "source=name kind"),
        "fine": not finding.faults,
        **fields_of(finding.source, "state records skipped"),
        **fields_of(finding, "newest_at"),
        **(fields_of(finding.seen, of_lines) if finding.seen else dict.fromkeys(of_lines.split())),
        "examples": [mask_text(text) for text in finding.seen.examples] if finding.seen else [],
        "says": [mask_text(text) for text in (*finding.faults, *finding.remarks)],
    }


FINDING_COLUMNS: tuple[TableColumn[Check, Nanos], ...] = (
    TableColumn("fine", "", lambda one, now: "✗" if one.faults else "✓", fixed(1), KEPT,
                style=lambda one, now: "error" if one.faults else ""),
    TableColumn("source", "SOURCE", lambda one, now: show(": ".join(filter(None, (one.source.profile,
                one.source.name)))), at_least(12), KEPT, keeps_ends=True),
    TableColumn("kind", "KIND", lambda one, now: one.source.kind, at_least(7), 60),
    TableColumn("state", "STATE", lambda one, now: one.source.state.value, at_least(7), KEPT,
                style=lambda one, now: "error" if one.faults else ""),
    TableColumn("records", "RECORDS", lambda one, now: f"{one.source.records}", at_least(7), 75, "right"),
    TableColumn("skipped", "SKIPPED", lambda one, now: f"{one.source.skipped}", at_least(7), KEPT, "right",
                style=lambda one, now: "warning" if one.source.skipped else ""),
    TableColumn("unknown", "UNKNOWN", lambda one, now: f"{one.seen.unknown_share:.2%}" if one.seen else NONE,
                at_least(7), KEPT, "right"),
    TableColumn("newest", "NEWEST",
                lambda one, now: NONE if one.newest_at is None else age(seconds_between(one.newest_at, now)),
                at_least(6), 70, "right"),
)  # fmt: skip


def view(findings: Sequence[Check], now: Nanos, width: int | None) -> Iterator[str]:
    yield from printed(FINDING_COLUMNS, findings, now, width)
    names = SourceNames([finding.source for finding in findings])
    for finding in findings:
        name = names.short(finding.source.name)
        for fault in finding.faults:
            yield f"{paint('✗', 'error')} {name}: {show(fault)}"
        for remark in finding.remarks:
            yield f"  {name}: {show(remark)}"
        for example in finding.seen.examples if finding.seen else ():
            yield f"  {name}: of unknown shape: {show(example)}"
