"""`record DIR`: keep what the sources deliver in a bounded file until interrupted; `replay DIR` opens it."""

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from jobtui import __version__
from jobtui.analysis.time_words import parse_duration
from jobtui.backends.recording.recorder import Recorder
from jobtui.backends.recording.tape import FILE_NAME, About, TapeError
from jobtui.backends.recording.writing import TapeWriter
from jobtui.commands.clusters import watch_clusters
from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.commands.reading import configured, no_source, sources_to_watch, warn
from jobtui.commands.streams import complain
from jobtui.model.clock import SystemClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.model.specs import SourceSpec
from jobtui.session import Session

DEFAULT_MB = 1_000
LEAST_MB = 1
SAID_EVERY_S = 1.0


def run(context: Context) -> Exit:
    """Record until interrupted, or for as long as was asked."""
    warn(context)
    megabytes = int(context.flag("limit") or DEFAULT_MB)
    wanted = context.flag("for")
    for_s = parse_duration(wanted) if wanted is not None else None
    if megabytes < LEAST_MB or (wanted is not None and not for_s):
        complain(f"--limit needs at least {LEAST_MB} MB, --for a time such as 8h")
        return Exit.USAGE
    specs = configured(context)
    if not specs:
        return no_source()
    directory = Path(context.words[0])
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        writer = TapeWriter(directory / FILE_NAME, _about(context, specs), megabytes << 20, goes_on=True)
    except (TapeError, OSError, ValueError) as error:  # the last for names that no file can have
        complain(str(error))
        return Exit.NO_SOURCE
    recorder = Recorder(writer, SystemClock(), _details(specs))
    try:
        asyncio.run(_record(context, specs, recorder, for_s))
    finally:
        recorder.close()
        writer.close()
    return _ended(recorder, writer)


def _about(context: Context, specs: Sequence[SourceSpec]) -> About:
    now = SystemClock().now()
    config: object = msgspec.to_builtins(
        context.config._replace(sources=tuple(spec.public for spec in specs))
    )
    return About(version=__version__, made_at=now, at=now, config=config)


async def _record(
    context: Context, specs: Sequence[SourceSpec], recorder: Recorder, for_s: float | None
) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    session = Session(sources_to_watch(context, specs, None), context.clock, witness=recorder)
    watch_clusters(session, [spec.target for spec in specs if spec.setting == "srdb"])
    async with session:
        reading = asyncio.ensure_future(session.run())
        saying = asyncio.ensure_future(_say(recorder))
        with suppress(TimeoutError):
            async with asyncio.timeout(for_s):
                await ended.wait()
        for task in (reading, saying):
            task.cancel()
        await asyncio.gather(reading, saying, return_exceptions=True)


async def _say(recorder: Recorder) -> None:
    """How it goes, on a terminal; what goes wrong, anywhere, once."""
    said: str | None = None
    is_shown = sys.stderr.isatty()
    try:
        while True:
            if recorder.problem != said and (said := recorder.problem) is not None:
                complain(f"{said}; trying on")
            if is_shown:
                sys.stderr.write(f"\r{_words(recorder)} (ctrl+c ends it)\x1b[K")
                sys.stderr.flush()
            await asyncio.sleep(SAID_EVERY_S)
    finally:
        if is_shown:
            sys.stderr.write("\r\x1b[K")


def _words(recorder: Recorder) -> str:
    lost = f", {recorder.lost:,} lost" if recorder.lost else ""
    return f"{recorder.kept:,} records kept{lost}"


def _ended(recorder: Recorder, writer: TapeWriter) -> Exit:
    gone = f", {writer.let_go:,} old entries let go of" if writer.let_go else ""
    gone += f", {writer.refused:,} that cannot be written down" if writer.refused else ""
    complain(f"{writer.path}: {_words(recorder)}, {writer.kept_bytes / 1e6:.1f} MB{gone}")
    return Exit.FINE if not recorder.lost else Exit.NO_SOURCE


def _details(specs: Sequence[SourceSpec]) -> Callable[[str, JobId], JobDetail | None]:
    """What reads the whole record of a job of a database root, to be called on the thread that writes."""
    from jobtui.backends.sirepo_db import read_whole

    roots = {spec.target for spec in specs if spec.setting == "srdb"}
    return lambda name, job_id: read_whole(Path(name), job_id) if name in roots else None
