"""`replay FILE [COMMAND ...]`: any command on a bundle or a recording in place of the systems themselves."""

from importlib import import_module
from pathlib import Path

import msgspec

from jobtui.backends.recording.stage import TapeStage
from jobtui.backends.recording.tape import TapeError
from jobtui.commands.context import Context, make_context
from jobtui.commands.exits import Exit
from jobtui.commands.streams import complain
from jobtui.config import Config, Effective
from jobtui.grammar import DASHBOARD, SETTINGS, Invocation, Kind, Scope
from jobtui.model.clock import FixedClock

REPLAYED = frozenset(
    {
        DASHBOARD.name, "jobs", "show", "timeline", "explain", "compare", "status", "incidents", "logs",
        "report", "agents", "find", "trace", "script", "doctor", "config",
    }
)  # fmt: skip
"""Commands that only look at what sources deliver."""


def run(context: Context) -> Exit:
    """Run the command behind the file on what it holds."""
    inner = context.invocation.inner or Invocation(DASHBOARD, (), {}, {})
    if inner.command.name not in REPLAYED:
        complain(f"{inner.command.name} is nothing that can be asked of a recording")
        return Exit.USAGE
    if named := sources_named(inner):
        complain(f"{named} is not taken here: what was recorded has its own sources")
        return Exit.USAGE
    try:
        stage = TapeStage(Path(context.words[0]))
    except TapeError as error:
        complain(str(error))
        return Exit.NO_SOURCE
    try:
        return _run_on(stage, context, inner)
    finally:
        stage.close()


def _run_on(stage: TapeStage, context: Context, inner: Invocation) -> Exit:
    if inner.command is DASHBOARD and not inner.words and stage.tape.about.job_id:
        inner = inner._replace(words=(stage.tape.about.job_id,))
    config = replayed_config(stage.tape.about.config, context.config, inner)
    made = make_context(inner, config, context.open_dashboard)
    if isinstance(made.clock, FixedClock):
        stage.clock.set(made.clock.now())
    for note in stage.tape.about.notes:
        complain(f"not in the recording: {note}")
    module = import_module(f"jobtui.commands.{inner.command.name}")
    code = Exit(module.run(made._replace(clock=stage.clock, stage=stage)))
    if damaged := stage.tape.damaged:
        complain(f"{stage.tape.path}: {counted(damaged)} damaged, and left out")
    return code


def counted(entries: int) -> str:
    """So many entries, as the beginning of a sentence."""
    return "1 entry is" if entries == 1 else f"{entries:,} entries are"


def sources_named(invocation: Invocation) -> str:
    """A source that is named behind the file, "" without one."""
    sources = {setting.name: setting.flag for setting in SETTINGS if setting.kind is Kind.SOURCE}
    return next((sources[name] for name in invocation.settings if name in sources), "")


def replayed_config(recorded: object, present: Config, inner: Invocation) -> Config:
    """The settings that held when it was recorded, but times as they are asked for now.

    So sources are called what they were called, and commands to type are those of the place of the recording.
    """
    kept = msgspec.convert(recorded, Config)
    times = {setting.name for setting in SETTINGS if setting.kind is Kind.TIME}
    asked = {
        **{name: given for name, given in present.settings.items() if name in times and given.values},
        **{name: Effective(values, f"--{name}") for name, values in inner.settings.items() if name in times},
    }
    unset = {setting.name: Effective() for setting in SETTINGS if setting.scope is not Scope.NOWHERE}
    return kept._replace(settings={**unset, **kept.settings, **asked})
