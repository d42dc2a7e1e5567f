"""The sources of a session as words of a command line, so that another jobtui reads the same."""

import os
from collections.abc import Iterator, Sequence

from jobtui.config import LABELLED, Config, split_head
from jobtui.grammar import SETTING_BY_NAME, SETTINGS, Setting
from jobtui.model.specs import LogRole, SourceSpec


def spelled(config: Config, specs: Sequence[SourceSpec]) -> tuple[str, ...]:
    """The flags with which jobtui has these settings anywhere; paths are absolute.

    What stands in the configuration file is found there again. `specs` are spelled where no setting names
    them.
    """
    words: list[str] = []
    for setting in SETTINGS:
        effective = config.settings[setting.name]
        if effective.origin in (setting.flag, setting.variable):
            values = effective.values if setting.repeatable else effective.values[-1:]
            for value in values:
                words += [setting.flag, *([_absolute(setting, value)] if setting.metavar else [])]
    return (*words, *(() if config.sources else of_specs(specs)))


def of_specs(specs: Sequence[SourceSpec]) -> tuple[str, ...]:
    """The flags that name these sources."""
    return tuple(_words(specs))


def _words(specs: Sequence[SourceSpec]) -> Iterator[str]:
    for spec in specs:
        setting = SETTING_BY_NAME[spec.setting]
        label = spec.label if spec.setting == LABELLED else ""
        head = label or ("" if spec.role is LogRole.AUTO else spec.role)
        yield from (setting.flag, _absolute(setting, f"{head}={spec.target}" if head else spec.target))


def _absolute(setting: Setting, value: str) -> str:
    """A path as it is from anywhere; other values as they are."""
    if not setting.completes:
        return value
    head, path = split_head(setting.name, value)
    return head + os.path.abspath(path)
