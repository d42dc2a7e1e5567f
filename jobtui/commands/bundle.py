"""`bundle ID`: all that is known of a job in one file, to be looked at elsewhere and later with `replay`."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from jobtui import __version__
from jobtui.analysis.as_of import states_of
from jobtui.analysis.explain.study import Study
from jobtui.backends.recording.bundling import MOST_JOBS, Gathering
from jobtui.backends.recording.tape import About, TapeError
from jobtui.commands.bundle_asking import ask_all, good_one
from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.commands.explain import explained, verdict_body
from jobtui.commands.printing import print_lines
from jobtui.commands.reading import Reader, configured, no_source, warn, within
from jobtui.commands.resolve import Found, resolve
from jobtui.commands.streams import complain
from jobtui.model.clock import SystemClock
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.render.text import show

SUFFIX = ".jobtui"
_NO_NAME = re.compile(r"[^\w.-]+", re.ASCII)


def run(context: Context) -> Exit:
    """Make the bundle and say what is in it."""
    import asyncio

    warn(context)
    specs = configured(context)
    if not specs:
        return no_source()
    gathering = Gathering()
    return asyncio.run(within(context, specs, lambda reader: _bundle(reader, gathering), gathering))


async def _bundle(reader: Reader, gathering: Gathering) -> Exit:
    found = await resolve(reader, reader.context.words[0])
    if found.job is None:
        return reader.settle(found.code)
    studied = await explained(reader, found)
    await reader.read_jobs()
    await reader.read_traces()
    await ask_all(reader, found, gathering)
    path = Path(reader.context.flag("output") or _NO_NAME.sub("-", found.job.id) + SUFFIX)
    about = _about(reader, found.job, studied, gathering)
    try:
        size = gathering.write(path, about, states_of, _wanted(reader, found, gathering))
    except TapeError as error:
        complain(str(error))
        return Exit.NO_SOURCE
    print_lines(
        [f"{show(str(path))}: {size / 1e6:.1f} MB, to be looked at with: jobtui replay {show(str(path))}"]
    )
    return reader.settle(Exit.FINE)


def _about(reader: Reader, job: Job, studied: Study, gathering: Gathering) -> About:
    config: object = msgspec.to_builtins(
        reader.context.config._replace(sources=tuple(spec.public for spec in reader.specs))
    )
    return About(
        version=__version__,
        made_at=SystemClock().now(),
        at=reader.now,
        config=config,
        job_id=job.id,
        notes=tuple(_left_out(reader, gathering)),
        verdict=verdict_body(reader, job, studied),
    )


def _left_out(reader: Reader, gathering: Gathering) -> Iterable[str]:
    """What could not be read, or was not kept."""
    for source in reader.sources:
        if source.state is SourceState.DOWN:
            yield source.error or f"{source.name}: could not be read"
        elif source.note:
            yield f"{source.name}: {source.note}"
    if gathering.jobs > MOST_JOBS:
        yield f"most of {gathering.jobs:,} jobs, which have nothing to do with this one"
    if reader.partial:
        yield "what was not yet read when it was interrupted"


def _wanted(reader: Reader, found: Found, gathering: Gathering) -> Callable[[JobId], bool]:
    """Which jobs are kept: all when they are few, else this one, the good one, and those in the logs."""
    if gathering.jobs <= MOST_JOBS:
        return lambda job_id: True
    kept = {op.jid for op in reader.session.store.correlation.ops()}
    kept |= {job.id for job in (found.job, good_one(reader, found)) if job is not None}
    return kept.__contains__
