"""What a bundle asks, so that it has the answers: all that a person would ask on the screens of the job."""

from collections.abc import Iterable

from jobtui.analysis.compare import choose
from jobtui.analysis.run_dirs import run_dirs_of
from jobtui.backends.base import DetailSource, SourceError, TraceSource
from jobtui.backends.recording.asked import masked_answer
from jobtui.backends.recording.bundling import Gathering
from jobtui.backends.recording.codec import What
from jobtui.commands.explain import RECORD_LINES
from jobtui.commands.reading import Reader
from jobtui.commands.resolve import Found
from jobtui.commands.script import meant
from jobtui.commands.trace_ways import look_for
from jobtui.model.job_desk import FileKind, JobDesk, RunFile, Unreadable
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.scripts import ScriptPlace
from jobtui.render.run_files import in_order, is_tailed

MOST_STEPS = 2_000
"""Steps whose lines are kept with what continues them, the newest."""
MOST_FILES = 30
"""Files of the run directory of which a part is kept, those first that a person looks at first."""


async def ask_all(reader: Reader, found: Found, gathering: Gathering) -> None:
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


def good_one(reader: Reader, found: Found) -> Job | None:
    """The job with the last good run, where that is another one."""
    assert found.job is not None
    runs = found.detail.runs if found.detail is not None else ()
    jobs = reader.session.store.jobs
    choice = choose(found.job, runs, ()) or choose(found.job, runs, jobs.values())
    return None if choice is None or choice.job_id == found.job.id else jobs.get(choice.job_id)


async def _record(reader: Reader, job: Job, gathering: Gathering) -> JobDetail | None:
    """Everything stored about a job, by the first source that has it."""
    first = None
    for source in reader.session.sources:
        if isinstance(source, DetailSource):
            try:
                detail = await source.detail(job.id)
            except SourceError:
                continue
            gathering.looked_up(source.kind, source.name, job.id, detail)
            first = first or detail
    return first


async def _lines(reader: Reader, job: Job) -> None:
    desk, correlation = reader.session.desk(), reader.session.store.correlation
    steps = [step for op in correlation.ops_of(job.id) for step in op.steps]
    steps += [loose.step for loose in correlation.unlinked_of(job.id)]
    for step in steps[-MOST_STEPS:]:
        try:
            await desk.lines_behind(step, RECORD_LINES)
        except Unreadable:
            continue


async def _files(reader: Reader, job: Job, detail: JobDetail | None) -> None:
    path = detail.path if detail is not None else None
    ops = reader.session.store.correlation.ops_of(job.id)
    for directory in run_dirs_of(job, path, ops, job.host):
        if await _files_of(reader.session.desk(), directory):
            return


async def _script(reader: Reader, job: Job, gathering: Gathering) -> None:
    await reader.open_archives()
    places = [source for source in reader.session.sources if isinstance(source, ScriptPlace)]
    wanted = (await meant(reader, job.id))[1] if places else None
    if wanted is None:
        return
    for place in places:
        try:
            answer = masked_answer(await place.find(wanted))
        except SourceError:
            continue
        gathering.answered(place.kind, place.name, What.SCRIPT, wanted.shown, answer)


async def _traces(reader: Reader, job: Job, gathering: Gathering) -> None:
    servers = [source for source in reader.session.sources if isinstance(source, TraceSource)]
    for trace_id in (await look_for(reader, job.id)).ids if servers else ():
        for server in servers:
            try:
                telemetry = await server.trace(trace_id)
            except SourceError:
                continue
            gathering.answered(server.kind, server.name, What.TRACE, trace_id, telemetry)


async def _files_of(desk: JobDesk, directory: str) -> bool:
    """Ask for the parts of the files that a person is shown; whether there is such a directory."""
    try:
        listing = await desk.list_files(directory)
    except Unreadable:
        return False
    for file in _first(in_order(listing.files)):
        try:
            await desk.read_file(listing.path, file.name, tail=is_tailed(file.name))
        except Unreadable:
            continue
    return True


def _first(files: Iterable[RunFile]) -> list[RunFile]:
    return [file for file in files if file.kind is FileKind.FILE][:MOST_FILES]
