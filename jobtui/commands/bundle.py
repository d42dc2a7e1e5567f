"""`bundle ID`: all that is known about a job in one file, for `replay` elsewhere and later."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from jobtui.analysis.compare import choose
from jobtui.analysis.paths import run_dirs_of
from jobtui.analysis.timeline import states_of
from jobtui.backends.base import DetailSource, TraceSource
from jobtui.commands.context import Context
from jobtui.commands.explain import explained, verdict_body
from jobtui.commands.find import FoundJob, resolve
from jobtui.commands.printing import print_lines
from jobtui.commands.reader import ONCE_S, Reader, in_session
from jobtui.commands.record import about_recording
from jobtui.commands.script import job_of
from jobtui.commands.streams import Exit, complain
from jobtui.commands.trace import look_for
from jobtui.model.commands import Command
from jobtui.model.health import FAULTS, SourceError, SourceState
from jobtui.model.ids import JobId
from jobtui.model.job_reader import LINES_BEHIND, FileKind, Unreadable
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.scripts import ScriptSource
from jobtui.recording.database import Item, RecordingError
from jobtui.recording.recorder import MOST_JOBS, BundleCollector
from jobtui.recording.replay import masked_answer
from jobtui.render.job_files import in_order, is_tailed
from jobtui.render.text import show

SUFFIX = ".jobtui"
_NO_NAME = re.compile(r"[^\w.-]+", re.ASCII)


def run(context: Context) -> Exit:
    gathering = BundleCollector()
    return in_session(context, lambda reader: _bundle(reader, gathering), gathering)


async def _bundle(reader: Reader, gathering: BundleCollector) -> Exit:
    found = await resolve(reader, reader.context.words[0])
    if found.job is None:
        return reader.settle(found.code)
    reader.session.ask_for_nodes(ONCE_S)
    verdict = await explained(reader, found)
    await reader.read_jobs()
    await reader.read_traces()
    await ask_all(reader, found, gathering)
    path = Path(reader.context.flag("output") or _NO_NAME.sub("-", found.job.id) + SUFFIX)
    notes, said = tuple(_left_out(reader, gathering)), verdict_body(reader, found.job, verdict)
    of_job = {"job_id": found.job.id, "notes": notes, "verdict": said}
    about = about_recording(reader.context, reader.specs, reader.now, **of_job)
    try:
        size = gathering.write(path, about, states_of, _wanted(reader, found, gathering))
    except RecordingError as error:
        return complain(str(error), Exit.NO_SOURCE)
    replay = Command("jobtui", "replay", about=[str(path)]) or "jobtui replay FILE"
    print_lines([f"{show(str(path))}: {size / 1e6:.1f} MB; to open it: {replay}"])
    return reader.settle(Exit.FINE)


def _left_out(reader: Reader, gathering: BundleCollector) -> Iterable[str]:
    for source in reader.sources:
        if source.state is SourceState.DOWN:
            yield source.error or f"{source.name}: could not be read"
        elif source.note:
            yield f"{source.name}: {source.note}"
    yield from (fault.line for fault in FAULTS.all())
    if gathering.jobs > MOST_JOBS:
        yield f"most of {gathering.jobs:,} jobs, which have nothing to do with this one"
    if reader.partial:
        yield "what was not yet read when it was interrupted"


def _wanted(reader: Reader, found: FoundJob, gathering: BundleCollector) -> Callable[[JobId], bool]:
    """Which jobs are kept: all if they are few, else this one, the good one, and those in the logs."""
    if gathering.jobs <= MOST_JOBS:
        return lambda job_id: True
    kept = {op.jid for op in reader.session.store.correlation.ops()}
    kept |= {job.id for job in (found.job, good_one(reader, found)) if job is not None}
    return kept.__contains__


MOST_STEPS = 2_000
"""How many steps have their lines kept, with the lines that continue them; the newest."""
MOST_FILES = 30
"""Of how many files of the run directory a part is kept, in the order in which a person opens them."""


async def ask_all(reader: Reader, found: FoundJob, gathering: BundleCollector) -> None:
    """Ask for the record, the lines behind steps, the files, the script and the traces of a job.

    What it would be compared with is asked for, too.
    """
    assert found.job is not None
    await _lines(reader, found.job)
    await _traces(reader, found.job, gathering)
    for one in (found.job, good_one(reader, found)):
        if one is not None:
            detail = await _record(reader, one, gathering)
            await _files(reader, one, detail)
            await _script(reader, one, gathering)


def good_one(reader: Reader, found: FoundJob) -> Job | None:
    assert found.job is not None
    runs = found.detail.runs if found.detail is not None else ()
    jobs = reader.session.store.jobs
    choice = choose(found.job, runs, jobs.values())
    return None if choice is None or choice.job_id == found.job.id else jobs.get(choice.job_id)


async def _record(reader: Reader, job: Job, gathering: BundleCollector) -> JobDetail | None:
    first = None
    for source in reader.session.sources:
        if isinstance(source, DetailSource):
            with suppress(SourceError):
                detail = await source.detail(job.id)
                gathering.answered(source.kind, source.name, Item.DETAIL, job.id, detail)
                first = first or detail
    return first


async def _lines(reader: Reader, job: Job) -> None:
    job_reader, correlation = reader.session.job_reader(), reader.session.store.correlation
    steps = [step for op in correlation.ops_of(job.id) for step in op.steps]
    steps += [loose.step for loose in correlation.unlinked_of(job.id)]
    async with job_reader.holding_logs():
        for step in steps[-MOST_STEPS:]:
            with suppress(Unreadable):
                await job_reader.lines_behind(step, 1 + LINES_BEHIND)  # as `logs` asks for


async def _files(reader: Reader, job: Job, detail: JobDetail | None) -> None:
    """Ask for the parts of files in the run directory that screens show."""
    job_reader = reader.session.job_reader()
    ops = reader.session.store.correlation.ops_of(job.id)
    for directory in run_dirs_of(job, detail, ops, reader.session.reach):
        with suppress(Unreadable):
            listing = await job_reader.list_files(directory)
            files = [file for file in in_order(listing.files) if file.kind is FileKind.FILE]
            for file in files[:MOST_FILES]:
                with suppress(Unreadable):
                    await job_reader.read_file(listing.path, file.name, tail=is_tailed(file.name))
            return


async def _script(reader: Reader, job: Job, gathering: BundleCollector) -> None:
    await reader.open_archives()
    sources = [source for source in reader.session.sources if isinstance(source, ScriptSource)]
    wanted = (await job_of(reader, job.id))[1] if sources else None
    if wanted is None:
        return
    for source in sources:
        with suppress(SourceError):
            answer = masked_answer(await source.find(wanted))
            gathering.answered(source.kind, source.name, Item.SCRIPT, wanted.shown, answer)


async def _traces(reader: Reader, job: Job, gathering: BundleCollector) -> None:
    servers = [source for source in reader.session.sources if isinstance(source, TraceSource)]
    for trace_id in (await look_for(reader, job.id)).ids if servers else ():
        for server in servers:
            with suppress(SourceError):
                telemetry = await server.trace(trace_id)
                gathering.answered(server.kind, server.name, Item.TRACE, trace_id, telemetry)
