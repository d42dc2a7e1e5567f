"""`record DIR` keeps what the sources deliver; `replay FILE [COMMAND ...]` runs any command on it."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from jobtui import __version__
from jobtui.backends.registry import SIREPO_DB
from jobtui.commands import runner
from jobtui.commands.context import Context, make_context
from jobtui.commands.reader import configured, limits_of, session_to_watch, until_ended
from jobtui.commands.remember import REMEMBERED, kept_reading, open_memory, runs_of, say, with_memory
from jobtui.commands.streams import Exit, complain
from jobtui.config import Config, Effective
from jobtui.grammar import DASHBOARD, SETTINGS, Invocation
from jobtui.memory.writer import MemoryThread
from jobtui.model.clock import FixedClock, Nanos, SystemClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.model.numbers import counted
from jobtui.model.specs import SourceSpec
from jobtui.recording.database import FILE_NAME, About, RecordingError
from jobtui.recording.recorder import Recorder, RecordingWriter
from jobtui.recording.replay import RecordingReplay

DEFAULT_MB = 1_000
LEAST_MB = 1


def run(context: Context) -> Exit:
    not_at = "record keeps what comes from now on, so --at cannot be used; use it with replay"
    limits = limits_of(context, DEFAULT_MB, LEAST_MB, not_at)
    if isinstance(limits, Exit):
        return limits
    (megabytes, for_s), specs = limits, configured(context)
    directory = Path(context.words[0])
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = about_recording(context, specs, SystemClock().now())
        writer = RecordingWriter(directory / FILE_NAME, about, megabytes << 20, goes_on=True)
    except OSError as error:
        complain(f"{directory}: cannot record there: {error.strerror}; name another directory")
        return Exit.NO_SOURCE
    except (RecordingError, ValueError) as error:  # the last for names that no file can have
        return complain(str(error), Exit.NO_SOURCE)
    recorder, memory = Recorder(writer, SystemClock(), _details(specs)), _memory()
    with closing(memory) if memory is not None else nullcontext(), closing(writer), closing(recorder):
        asyncio.run(_record(context, specs, recorder, memory, for_s))
    gone = f", {writer.let_go:,} old entries dropped" if writer.let_go else ""
    gone += f", {writer.refused:,} could not be stored" if writer.refused else ""
    complain(f"{writer.path}: {_words(recorder)}, {writer.kept_bytes / 1e6:.1f} MB{gone}")
    return Exit.FINE if not recorder.lost else Exit.NO_SOURCE


def about_recording(context: Context, specs: Iterable[SourceSpec], at: Nanos, **of_job: Any) -> About:
    """What a recording says of itself, with the settings that hold now; `of_job` is about a job."""
    sources = tuple(spec.public for spec in specs)
    config: object = msgspec.to_builtins(context.config._replace(sources=sources))
    return About(version=__version__, made_at=SystemClock().now(), at=at, config=config, **of_job)


def _memory() -> MemoryThread | None:
    """The writer of the memory for runs that end while recording; None if there can be none."""
    try:
        return open_memory()
    except (RecordingError, OSError) as error:
        complain(f"{error}; everything is recorded, but not remembered")
        return None


async def _record(
    context: Context,
    specs: Sequence[SourceSpec],
    recorder: Recorder,
    memory: MemoryThread | None,
    for_s: float | None,
) -> None:
    session = session_to_watch(context, specs, observer=recorder)
    session.ask_for_nodes(NODES_EVERY_S)
    async with session:
        follow = (runs_of(session, memory).follow(),) if memory is not None else ()
        telling = say(recorder, lambda: _words(recorder))
        await until_ended(kept_reading(session), telling, *follow, for_s=for_s)


def _words(recorder: Recorder) -> str:
    lost = f", {recorder.lost:,} lost" if recorder.lost else ""
    return f"{counted(recorder.kept, 'record')} kept{lost}"


def _details(specs: Sequence[SourceSpec]) -> Callable[[str, JobId], JobDetail | None]:
    """A function that reads the whole record of a job of a database root, for the thread that writes."""
    from jobtui.backends.sirepo.source import SirepoDb

    roots = {spec.target for spec in specs if SIREPO_DB.names(spec)}
    return lambda name, job_id: SirepoDb(Path(name)).read_record(job_id) if name in roots else None


NODES_EVERY_S = 300.0
REPLAYED = frozenset(
    {
        DASHBOARD.name, "jobs", "show", "timeline", "explain", "compare", "status", "incidents", "logs",
        "report", "agents", "nodes", "find", "trace", "script", "doctor", "config",
    }
)  # fmt: skip
"""Commands that only read what sources give."""


def run_replay(context: Context) -> Exit:
    inner = context.invocation.inner or Invocation(DASHBOARD, (), {}, {})
    if inner.command.name not in REPLAYED | REMEMBERED | {"remember"}:
        return complain(f"a recording cannot answer {inner.command.name}", Exit.USAGE)
    sources = {setting.name: setting.flag for setting in SETTINGS if setting.parse}
    if named := next((sources[name] for name in inner.settings if name in sources), ""):
        return complain(f"{named} cannot be used here: a recording has its own sources", Exit.USAGE)
    try:
        with closing(RecordingReplay(Path(context.words[0]))) as replay:
            return _run_on(replay, context, inner)
    except RecordingError as error:
        return complain(str(error), Exit.NO_SOURCE)


def _run_on(replay: RecordingReplay, context: Context, inner: Invocation) -> Exit:
    if inner.command is DASHBOARD and not inner.words and replay.recording.about.job_id:
        inner = inner._replace(words=(replay.recording.about.job_id,))
    config = replayed_config(replay.recording.about.config, context.config, inner)
    made = make_context(inner, config, context.open_dashboard)
    if isinstance(made.clock, FixedClock):
        replay.clock.set(made.clock.now())
    for note in replay.recording.about.notes:
        complain(f"not in the recording: {note}")
    made = made._replace(clock=replay.clock, replay=replay, remembers=False)
    with with_memory(made) if inner.command.name in REMEMBERED else nullcontext(made) as asked:
        code = Exit(runner(inner.command.name)(asked))
    for said in replay.recording.left_out():
        complain(f"{replay.recording.path}: {said}")
    return code


def replayed_config(recorded: object, present: Config, inner: Invocation) -> Config:
    """The settings of the recording, except times, which are those of this command line.

    So sources keep their names, and commands to type are for the place of the recording.
    """
    try:
        kept = msgspec.convert(recorded, Config)
    except msgspec.ValidationError as error:
        raise RecordingError(f"the recording is damaged: its settings cannot be read: {error}") from error
    times = {setting.name for setting in SETTINGS if setting.is_time}
    asked = {
        **{name: given for name, given in present.settings.items() if name in times and given.values},
        **{name: Effective(values, f"--{name}") for name, values in inner.settings.items() if name in times},
    }
    return kept._replace(settings={one.name: Effective() for one in SETTINGS} | {**kept.settings, **asked})
