"""The values of settings: what may stand in file, environment and flags, and the sources that they name."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from jobtui.config.file import PROFILES, ConfigFile
from jobtui.config.mistakes import ConfigError
from jobtui.config.toml_places import Keys
from jobtui.grammar import SETTINGS, Kind, Scope, Setting, nearest
from jobtui.model.script_specs import split_cluster
from jobtui.model.specs import SourceSpec, is_directory

JOURNAL = "journal"
LABELLED = "archive"
"""The setting in which any label of a cluster may stand before a path."""
LIST_SEPARATOR = ";"
NO = frozenset({"0", "false", "no", "off"})
"""What a variable of the environment says that turns a switch off."""


class Effective(NamedTuple):
    """The values that hold for a setting, as written, and where they were written."""

    values: tuple[str, ...] = ()
    origin: str = "default"


def of_environment(environ: Mapping[str, str]) -> dict[str, Effective]:
    """The settings that variables give."""
    found = {}
    for setting in SETTINGS:
        text = environ.get(setting.variable, "")
        if not text.strip():
            continue
        values = text.split(LIST_SEPARATOR) if setting.repeatable else [text]
        found[setting.name] = Effective(
            tuple(expanded(setting, v.strip()) for v in values if v.strip()), setting.variable
        )
    return found


def wrong_values(given: Mapping[str, Effective]) -> Iterator[str]:
    """What is wrong with values of flags and variables."""
    for setting in SETTINGS:
        effective = given.get(setting.name, Effective())
        for text in effective.values:
            if mistake := mistake_in(setting, text):
                yield f"{effective.origin}: {mistake}"


def mistake_in(setting: Setting, text: str) -> str:
    """What is wrong with the text of a value, "" when nothing is."""
    if setting.parse is not None:
        try:
            setting.parse(text)
        except ValueError as error:
            return f"{text!r}: {error}"
    if setting.choices and text not in setting.choices:
        near = nearest(text, setting.choices)
        return f"{text!r} is none of {', '.join(setting.choices)}{near}"
    if setting.most and not (text.isascii() and text.isdecimal() and _is_up_to(text, setting.most)):
        return f"{text!r} is no whole number up to {setting.most:,}"
    if setting.metavar is None and text.lower() in NO:
        return "cannot be turned off: jobtui only reads"
    return ""


def _is_up_to(text: str, most: int) -> bool:
    return len(text.lstrip("0")) <= len(str(most)) and int(text) <= most


def layer_of(file: ConfigFile, keys: Keys, table: Mapping[str, object]) -> dict[str, Effective]:
    """The settings of the top of a file or of a profile in it; what is wrong is noted."""
    scopes = (Scope.ANYWHERE,) if keys else (Scope.ANYWHERE, Scope.FILE)
    known = {setting.name: setting for setting in SETTINGS if setting.scope in scopes}
    found = {}
    for key, value in table.items():
        place = (*keys, key)
        if key in TABLES or (not keys and key == PROFILES):
            continue
        if key not in known:
            file.wrong(place, f'unknown key "{key}"{nearest(key, (*known, *TABLES))}', is_key=True)
            continue
        values = _checked(file, place, known[key], _values(file, place, known[key], value))
        found[key] = Effective(tuple(values), file.origin(place))
    return found


TABLES = ("hosts", "mounts", "alarm", "servers", "keys", "columns", "colors")
"""The tables of a configuration file, which a profile may have, too."""


def _checked(file: ConfigFile, place: Keys, setting: Setting, values: list[str]) -> Iterator[str]:
    for number, value in enumerate(values):
        text = expanded(setting, value, file.base)
        if mistake := mistake_in(setting, text):
            file.wrong((*place, number), mistake)
        else:
            yield text


def _values(file: ConfigFile, place: Keys, setting: Setting, value: object) -> list[str]:
    """A setting's value in the file as texts."""
    if setting.metavar is None and isinstance(value, bool):
        return [str(value).lower()]
    if setting.repeatable and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return list(value)
    if setting.kind is Kind.TIME and hasattr(value, "isoformat"):
        return [str(value.isoformat())]
    if setting.most and isinstance(value, int) and not isinstance(value, bool):
        return [str(value)]
    if isinstance(value, str) and setting.metavar is not None:
        return [value]
    file.wrong_kind(place, _expected(setting), value)
    return []


def _expected(setting: Setting) -> str:
    if setting.metavar is None:
        return "true or false"
    if setting.most:
        return "a whole number"
    return "a text or a list of texts" if setting.repeatable else "a text"


def expanded(setting: Setting, text: str, base: str = "") -> str:
    """A path with `~` resolved and, out of a file, relative to its directory; other texts as they are."""
    if not setting.completes or (setting.name == JOURNAL and not is_directory(SourceSpec(JOURNAL, text))):
        return text
    head, path = split_head(setting.name, text)
    return head + os.path.join(base, os.path.expanduser(path)) if path else text


def split_head(name: str, text: str) -> tuple[str, str]:
    """What stands before the path in the value of a setting, with its `=`, and the path."""
    if name == LABELLED:
        label, path = split_cluster(text)
        return f"{label}=" if label else "", path
    head, equals, path = text.partition("=")
    return (head + equals, path) if equals and head.isidentifier() else ("", text)


def sources_of(settings: Mapping[str, Effective]) -> Iterable[SourceSpec]:
    """Each source once: of one that is named twice, the later naming holds. Raises ConfigError."""
    found: dict[tuple[str, str], SourceSpec] = {}
    for setting in SETTINGS:
        if setting.parse is None:
            continue
        for text in settings[setting.name].values:
            try:
                spec = setting.parse(text)
            except ValueError as error:
                raise ConfigError(f"{settings[setting.name].origin}: {text!r}: {error}") from error
            if setting.name == JOURNAL:
                spec = spec._replace(units=settings["journal_unit"].values)
            if setting.name == "balsam":
                spec = spec._replace(kept=int("".join(settings["balsam_cache"].values[-1:]) or 0))
            if setting.name == "kafka":
                spec = spec._replace(options="".join(settings["kafka_config"].values[-1:]))
            found[setting.name, os.path.normpath(spec.target)] = spec
    return found.values()
