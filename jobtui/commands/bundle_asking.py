"""What a bundle asks, so that it has the answers: all that a person would ask on the screens of the job."""

from collections.abc import Iterable

from jobtui.analysis.run_dirs import run_dirs_of
from jobtui.backends.archive.finding import in_order as in_order_of_places
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
from jobtui.model.jobs import Job
from jobtui.render.run_files import in_order, is_tailed

MOST_STEPS = 2_000
"""Steps whose lines are kept with what continues them, the newest."""
MOST_FILES = 30
"""Files of the run directory of which a part is kept, those first that a person looks at first."""


async def ask_all(reader: Reader, found: Found, gathering: Gathering) -> None:
    """Ask for the record, the lines behind steps, the files, the script and the traces of a job."""
    assert found.job is not None
    await _record(reader, found.job, gathering)
    await _lines(reader, found.job)
    await _files(reader, found)
    await _script(reader, found.job, gathering)
    await _traces(reader, found.job, gathering)


async def _record(reader: Reader, job: Job, gathering: Gathering) -> None:
    for source in reader.session.sources:
        if isinstance(source, DetailSource):
            try:
                gathering.looked_up(source.kind, source.name, job.id, await source.detail(job.id))
            except SourceError:
                continue


async def _lines(reader: Reader, job: Job) -> None:
    desk, correlation = reader.session.desk(), reader.session.store.correlation
    steps = [step for op in correlation.ops_of(job.id) for step in op.steps]
    steps += [loose.step for loose in correlation.unlinked_of(job.id)]
    for step in steps[-MOST_STEPS:]:
        try:
            await desk.lines_behind(step, RECORD_LINES)
        except Unreadable:
            continue


async def _files(reader: Reader, found: Found) -> None:
    assert found.job is not None
    path = found.detail.path if found.detail is not None else None
    ops = reader.session.store.correlation.ops_of(found.job.id)
    for directory in run_dirs_of(found.job, path, ops, found.job.host):
        if await _files_of(reader.session.desk(), directory):
            return


async def _script(reader: Reader, job: Job, gathering: Gathering) -> None:
    await reader.open_archives()
    places = in_order_of_places(reader.session.sources)
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
