"""The input of a command: the command line, the settings, the clock, and where its output goes."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from jobtui.backends.registry import of_setting
from jobtui.config import Config, ConfigError, split_head
from jobtui.grammar import SETTING_BY_NAME, SETTINGS, Invocation, Setting
from jobtui.model.clock import SECOND, Clock, FixedClock, Nanos, SystemClock
from jobtui.model.ids import JobFilter, JobId, TraceRef
from jobtui.model.numbers import whole
from jobtui.model.specs import LogRole, SourceSpec

if TYPE_CHECKING:
    from pathlib import Path

    from jobtui.recording.replay import RecordingReplay
    from jobtui.session import Session


OpenDashboard = Callable[["Session", JobId | TraceRef | JobFilter | None, str, Sequence[str]], None]
"""Runs the dashboard at a job, a trace or the table of all, until it is left.

The text is its title, the last words the flags with which another jobtui watches the same.
"""


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PLAIN = "plain"


class Context(NamedTuple):
    """A command line and its environment. `since` and `until` bound what is read, None for no bound."""

    invocation: Invocation
    config: Config
    open_dashboard: OpenDashboard
    clock: Clock
    since: Nanos | None = None
    until: Nanos | None = None
    write: Callable[[Iterable[str]], object] | None = None
    """A function that takes the lines of the answer; None prints them."""
    replay: "RecordingReplay | None" = None
    """The session that stands in for the systems, such as a recording."""
    remembers: bool = True
    """Whether this user's memory is about the systems read here."""
    memory: "Path | None" = None
    """The file of the memory that is written and asked; None is that of this user."""

    @property
    def words(self) -> tuple[str, ...]:
        return self.invocation.words

    def flag(self, name: str) -> str | None:
        return self.invocation.flags.get(name)

    @property
    def most(self) -> int | None:
        """The most rows or lines that are wanted, None for all."""
        return whole(self.flag("lines"))

    @property
    def format(self) -> OutputFormat:
        for name in (OutputFormat.JSON, OutputFormat.CSV, OutputFormat.PLAIN):
            if name in self.invocation.flags:
                return name
        return OutputFormat.TABLE

    @property
    def width(self) -> int | None:
        """How many cells a line may take; None for no limit, as without a terminal."""
        if self.format is not OutputFormat.TABLE or not sys.stdout.isatty():
            return None
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns or None
        except OSError:
            return None

    @property
    def colour(self) -> bool:
        """Whether to print in colour: on a terminal that can, unless NO_COLOR or --plain say otherwise."""
        return (
            self.format is OutputFormat.TABLE
            and sys.stdout.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM", "dumb") != "dumb"
        )


LATEST = 253_402_300_799 * SECOND
"""The end of the year 9999, the last one of calendar dates."""
TIME_EXPECTED = "expected a UTC time such as 2026-11-20T20:34:30Z or 20:34, or an age such as 2h or 15m"


def make_context(invocation: Invocation, config: Config, open_dashboard: OpenDashboard) -> Context:
    """The context of a command. Raises ConfigError for an invalid time."""
    clock: Clock = SystemClock()
    at = _moment(config, "at", clock.now())
    if at is not None:
        clock = FixedClock(at)
    own = {one.name for one in invocation.command.reads}
    since, until = (None if one in own else _moment(config, one, clock.now()) for one in ("since", "until"))
    if since is not None and until is not None and since > until:
        raise ConfigError("since is later than until: nothing is between them")
    return Context(invocation, config, open_dashboard, clock, since, at if until is None else until)


def _moment(config: Config, name: str, now: Nanos) -> Nanos | None:
    written = config.settings[name]
    if not written.values:
        return None
    text = written.values[-1]
    from jobtui.analysis.times import parse_moment  # few commands are given a time

    moment = parse_moment(text.strip())
    if moment is None:
        where = written.origin if written.origin.endswith(name) else f"{written.origin}: {name}"
        raise ConfigError(f'{where}: "{text}" is not a time; {TIME_EXPECTED}')
    return Nanos(min(max(0, moment.span(now).start), LATEST))


def spelled(config: Config, specs: Sequence[SourceSpec] | None, *, looks: bool = False) -> tuple[str, ...]:
    """The flags with which jobtui reads the same anywhere, with `looks` also looks the same; paths absolute.

    Settings in the configuration file are left out, as they are read there again. `specs` are spelled where
    no setting names them. None: for the same shell, which has the same variables and finds the same sources.
    """
    words = [*config.begins]
    for setting in (one for one in SETTINGS if looks or not (one.choices or one.most)):
        effective = config.settings[setting.name]
        if effective.origin == setting.flag or (specs is not None and effective.origin == setting.variable):
            values = effective.values if setting.repeatable else effective.values[-1:]
            for value in values:
                words += [setting.flag, *([_absolute(setting, value)] if setting.metavar else [])]
    return (*words, *(() if config.sources or specs is None else of_specs(specs)))


def of_specs(specs: Sequence[SourceSpec]) -> tuple[str, ...]:
    words = []
    for spec in specs:
        setting = SETTING_BY_NAME[spec.setting]
        label = spec.label if of_setting(spec.setting).is_labelled else ""
        head = label or ("" if spec.role is LogRole.AUTO else spec.role)
        words += [setting.flag, _absolute(setting, f"{head}={spec.target}" if head else spec.target)]
    return tuple(words)


def _absolute(setting: Setting, value: str) -> str:
    if not setting.completes:
        return value
    head, path = split_head(setting.name, value)
    return head + os.path.abspath(path)
