"""The effective settings, from flags, environment and configuration file; the sources that they name."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobtui.backends.registry import JOURNAL, of_setting, servers
from jobtui.config.file import PROFILES, ConfigError, ConfigFile, Keys, dotted, leaves, parse_file, read_file
from jobtui.grammar import ENVIRONMENT_PREFIX, SETTING_BY_NAME, SETTINGS, Setting, nearest
from jobtui.model.numbers import MOST_INT64, whole, whole_of
from jobtui.model.patterns import regex
from jobtui.model.settings import AUTO, Alarms, Appearance, parse_alarms
from jobtui.model.specs import VARIABLES, Access, SourceSpec, is_directory, parse_journal, split_cluster


class Effective(NamedTuple):
    """The effective values of a setting, as written, and where they were written."""

    values: tuple[str, ...] = ()
    origin: str = "default"


OTHERS_MAY = 0o066
"""Permissions of others to read or write a file."""
PERSONAL = ("keys", "columns", "colors")
_LOGIN = regex(r"(?<=://).*:.*(?=@)")


def hosts_of(file: ConfigFile, profile: str | None) -> dict[str, str]:
    """The journals of docker hosts and clusters, by their names in Sirepo's lines."""
    found = {}
    for keys, table, holds in file.tables("hosts", profile):
        for host, value in table.items():
            if not isinstance(value, str):
                file.wrong_kind((*keys, host), "a text", value)
                continue
            text = expanded(SETTING_BY_NAME[JOURNAL.setting], value, file.base)
            try:
                target = parse_journal(text).target
            except ValueError as error:
                file.wrong((*keys, host), f"{_LOGIN.sub('***', text)!r}: {error}")
                continue
            if holds:
                found[host] = target
    return found


def mounts_of(file: ConfigFile, profile: str | None) -> dict[str, str]:
    """Directories of this machine, by the directories of clusters that are mounted there."""
    found = {}
    for keys, table, holds in file.tables("mounts", profile):
        for there, here in table.items():
            if not isinstance(here, str) or not here:
                file.wrong_kind((*keys, there), "a directory", here)
            elif not there.startswith("/"):
                file.wrong((*keys, there), "expected a directory that begins with /", is_key=True)
            elif holds:
                found[there] = os.path.join(file.base, os.path.expanduser(here))
    return found


def alarms_of(file: ConfigFile, profile: str | None) -> Alarms:
    """What to do on new trouble; the table of a profile replaces the one at the top."""
    found = Alarms()
    for keys, table, holds in file.tables("alarm", profile):
        wrong = False
        for key, value in table.items():
            try:
                parse_alarms({key: value})
            except ValueError as error:
                is_known, text = key in Alarms._fields, str(error)
                said = text.removeprefix(f"{key}: ") if is_known else text
                file.wrong((*keys, key), said, is_key=not is_known)
                wrong = True
        if holds and not wrong:
            found = parse_alarms(table)
    return found


def accesses_of_file(
    file: ConfigFile, profile: str | None, environ: Mapping[str, str]
) -> tuple[dict[str, Access], tuple[str, ...]]:
    """How to ask servers, by address; and warnings about where secrets are written."""
    found: dict[str, Access] = {}
    has_secrets = False
    for keys, tables, holds in file.tables("servers", profile):
        from jobtui.config.access import access_at, holds_secrets  # few have such a table

        for address, table in tables.items() if holds else ():
            try:
                target, found_there = access_at(address, table, file.base, environ)
            except ValueError as error:
                # Noted at the key with which the error begins, if there is one
                text = str(error)
                key = text.partition(":")[0]
                at = (*keys, address, key)
                is_of_key = at in file.positions.keys
                file.wrong(at if is_of_key else at[:-1], text.removeprefix(f"{key}: ") if is_of_key else text)
            else:
                found[target] = found_there
                has_secrets = has_secrets or holds_secrets(table)
    if not (has_secrets and os.stat(file.path).st_mode & OTHERS_MAY):
        return found, ()
    from jobtui.model.commands import Command  # rarely set

    remedy = Command("chmod", "600", about=[file.path]) or "let nobody else read it"
    return found, (f"{file.path} may be read by others, and holds a login: `{remedy}`",)


def looks_of(file: ConfigFile, profile: str | None, settings: Mapping[str, Effective]) -> Appearance:
    def word(name: str) -> str:
        return "".join(settings[name].values[-1:])

    looks = Appearance(
        theme=word("theme") or AUTO,
        glyphs=word("glyphs") or AUTO,
        clipboard=word("clipboard") or AUTO,
        mouse=word("mouse") or AUTO,
        title=word("title") == "on",
        fps=whole(word("fps")),
    )
    if any(name in section for name in PERSONAL for _, section, _ in file.sections(profile)):
        from jobtui.config.personal import with_personal  # few have one

        return with_personal(looks, file, profile)
    return looks


LIST_SEPARATOR = ";"


def of_environment(environ: Mapping[str, str]) -> dict[str, Effective]:
    found = {}
    for setting in SETTINGS:
        text = environ.get(setting.variable, "")
        if not text.strip():
            continue
        values = text.split(LIST_SEPARATOR) if setting.repeatable else [text]
        given = tuple(expanded(setting, value.strip()) for value in values if value.strip())
        found[setting.name] = Effective(given, setting.variable)
    return found


def wrong_values(given: Mapping[str, Effective]) -> Iterator[str]:
    for setting in SETTINGS:
        effective = given.get(setting.name, Effective())
        for text in effective.values:
            if mistake := mistake_in(setting, text):
                yield f"{effective.origin}: {mistake}"


def mistake_in(setting: Setting, text: str) -> str:
    if setting.parse is not None:
        try:
            setting.parse(text)
        except ValueError as error:
            return f"{_LOGIN.sub('***', text)!r}: {error}"
    if setting.choices and text not in setting.choices:
        near = nearest(text, setting.choices)
        return f"{text!r} is not one of {', '.join(setting.choices)}{near}"
    if setting.most and not (text.isdecimal() and whole(text, MOST_INT64) <= setting.most):
        return f"{text!r} is not a whole number up to {setting.most:,}"
    return ""


def layer_of(file: ConfigFile, keys: Keys, table: Mapping[str, object]) -> dict[str, Effective]:
    known = {one.name: one for one in SETTINGS if one.in_files and (one.in_profiles or not keys)}
    tables = TABLES if keys else (PROFILES, *TABLES)
    found = {}
    for key, value in table.items():
        at = (*keys, key)
        if key in tables:
            continue
        if key not in known or isinstance(value, dict):
            near = nearest(key, tables if isinstance(value, dict) else (*known, *tables))
            if near or key not in known:
                file.wrong(at, f'unknown key "{key}"{near}', is_key=True)
                continue
        values = _checked(file, at, known[key], _values(file, at, known[key], value))
        found[key] = Effective(tuple(values), file.origin(at))
    return found


TABLES = ("hosts", "mounts", "alarm", "servers", "keys", "columns", "colors")
"""The tables of a configuration file, which a profile may have, too."""


def _checked(file: ConfigFile, at: Keys, setting: Setting, values: list[str]) -> Iterator[str]:
    for number, value in enumerate(values):
        text = expanded(setting, value, file.base)
        if mistake := mistake_in(setting, text):
            file.wrong((*at, number), mistake)
        else:
            yield text


def _values(file: ConfigFile, at: Keys, setting: Setting, value: object) -> list[str]:
    if setting.repeatable and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return list(value)
    if setting.is_time and hasattr(value, "isoformat"):
        return [str(value.isoformat())]
    if setting.most and isinstance(value, int) and whole_of(value) is not None:
        return [str(value)]
    if isinstance(value, str):
        return [value]
    of_texts = "a text or a list of texts" if setting.repeatable else "a text"
    file.wrong_kind(at, "a whole number" if setting.most else of_texts, value)
    return []


def expanded(setting: Setting, text: str, base: str = "") -> str:
    """A path with `~` resolved and, from a file, relative to its directory; other texts unchanged."""
    is_address = of_setting(setting.name).addressed and not is_directory(SourceSpec(setting.name, text))
    if not setting.completes or is_address:
        return text
    head, path = split_head(setting.name, text)
    return head + os.path.join(base, os.path.expanduser(path)) if path else text


def split_head(name: str, text: str) -> tuple[str, str]:
    """The words before the path in the value of a setting, with their `=`, and the path."""
    if of_setting(name).is_labelled:
        label, path = split_cluster(text)
        return f"{label}=" if label else "", path
    head, equals, path = text.partition("=")
    return (head + equals, path) if equals and "/" not in head and of_setting(name).heads else ("", text)


def sources_of(settings: Mapping[str, Effective]) -> Iterable[SourceSpec]:
    """Each source once; if it is named twice, the later one counts. Raises ConfigError."""
    found: dict[tuple[str, str], SourceSpec] = {}
    for setting in SETTINGS:
        if setting.parse is None:
            continue
        for text in settings[setting.name].values:
            if mistake := mistake_in(setting, text):
                raise ConfigError(f"{settings[setting.name].origin}: {mistake}")
            spec = setting.parse(text)
            if (with_others := of_setting(setting.name).with_others) is not None:
                spec = with_others(spec, lambda name: settings[name].values)
            found[setting.name, os.path.normpath(spec.target)] = spec
    return found.values()


class Config(NamedTuple):
    """The effective settings, as written; `sources` are those they name, `hosts` journals by host.

    `mounts` are directories of this machine by those on clusters that are mounted there, `alarms` what is to
    happen when a job newly needs a person, `looks` how the dashboard is to look.
    """

    settings: Mapping[str, Effective]
    sources: tuple[SourceSpec, ...] = ()
    file: str | None = None
    profile: str | None = None
    profiles: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    hosts: Mapping[str, str] = {}
    mounts: Mapping[str, str] = {}
    alarms: Alarms = Alarms()
    looks: Appearance = Appearance()
    begins: tuple[str, ...] = ()
    """The beginning of a command line on these sources if no flags name them, such as `demo`."""

    @property
    def profile_of_source(self) -> Mapping[str, str]:
        from pathlib import Path  # most read one profile

        named = [spec for spec in self.sources if spec.profile]
        names = (one.target if of_setting(one.setting).addressed else str(Path(one.target)) for one in named)
        return {name: spec.profile for name, spec in zip(names, named, strict=True)}

    @property
    def job_attributes(self) -> tuple[str, ...]:
        """The configured attributes in which spans name their job; none for the usual ones."""
        return self.settings.get("job_attribute", Effective()).values


def load(flags: Mapping[str, tuple[str, ...]], environ: Mapping[str, str]) -> Config:
    """The effective settings. Raises ConfigError, with all that is wrong."""
    of_flags = {name: Effective(values, SETTING_BY_NAME[name].flag) for name, values in flags.items()}
    given = of_environment(environ) | of_flags
    asked = given.get("config", Effective())
    file = read_file(asked.values[-1] if asked.values else None, asked.origin)
    return resolved(file, given, environ)


def resolved(file: ConfigFile, given: Mapping[str, Effective], environ: Mapping[str, str]) -> Config:
    """The effective settings by a file, flags and variables. Raises ConfigError."""
    file.check_profiles()
    layers = {keys: layer_of(file, keys, table) for keys, table, _ in file.sections(None)}
    asked = given.get("profile") or layers[()].get("profile") or Effective()
    names = [name.strip() for value in asked.values[-1:] for name in value.split(",")]
    if len(names) > 1 and asked.values[-1] not in file.profiles():
        each = [{**given, "profile": Effective((name,), asked.origin)} for name in dict.fromkeys(names)]
        found = _side_by_side([resolved(file, one, environ) for one in each])
        return found._replace(settings={**found.settings, "profile": asked})
    profile = _chosen(file, given.get("profile"), layers[()])
    of_profile = layers[PROFILES, profile] if profile is not None else {}
    settings = {setting.name: Effective() for setting in SETTINGS} | layers[()] | of_profile | dict(given)
    accesses, warnings = accesses_of_file(file, profile, environ)
    hosts, mounts = hosts_of(file, profile), mounts_of(file, profile)
    alarms = alarms_of(file, profile)
    wrong = tuple(wrong_values(given))
    looks = Appearance() if wrong else looks_of(file, profile, settings)
    if wrong := (*file.mistakes(), *wrong):
        raise ConfigError(*wrong)
    sources = tuple(sources_of(settings))
    if any(spec.setting in servers() for spec in sources):
        from jobtui.config.access import with_access  # few have servers

        sources = with_access(sources, settings["ca_file"].values, accesses, environ)
    return Config(
        settings=settings,
        sources=sources,
        file=file.path if file.document is not None else None,
        profile=profile,
        profiles=tuple(file.profiles()),
        warnings=(*_unknown_variables(environ), *warnings),
        hosts=hosts,
        mounts=mounts,
        alarms=alarms,
        looks=looks,
    )


def _side_by_side(configs: Sequence[Config]) -> Config:
    """Several profiles as one: the sources of all, each with its profile; other settings from the first."""
    named = Counter((spec.setting, spec.target) for config in configs for spec in config.sources)
    sources = {
        (spec.setting, spec.target): spec._replace(
            profile=config.profile or "" if named[spec.setting, spec.target] == 1 else ""
        )
        for config in configs
        for spec in config.sources
    }
    return configs[0]._replace(
        sources=tuple(sources.values()),
        profile=",".join(config.profile or "" for config in configs),
        warnings=tuple(dict.fromkeys(one for config in configs for one in config.warnings)),
        hosts={host: spec for config in reversed(configs) for host, spec in config.hosts.items()},
        mounts={there: here for config in reversed(configs) for there, here in config.mounts.items()},
    )


def _chosen(file: ConfigFile, given: Effective | None, top: Mapping[str, Effective]) -> str | None:
    """The name of the chosen profile; an unknown one is a mistake. Raises ConfigError."""
    chosen = given or top.get("profile")
    if chosen is None or not chosen.values:
        return None
    name, known = chosen.values[-1], file.profiles()
    if name in known:
        return name
    text = f'no profile "{name}"; expected one of {", ".join(known) or "none"}{nearest(name, known)}'
    if given:
        raise ConfigError(*file.mistakes(), f"{chosen.origin}: {file.path}: {text}")
    file.wrong(("profile",), text)
    return None


def _unknown_variables(environ: Mapping[str, str]) -> Iterable[str]:
    known = {setting.variable for setting in SETTINGS}
    known |= {f"{SETTING_BY_NAME[name].variable}{end}" for name in servers() for end in VARIABLES.values()}
    for name in sorted(environ):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known:
            yield f"the environment variable {name} is unknown and ignored{nearest(name, known)}"


class WrittenSetting(NamedTuple):
    """A setting or an entry of a table: its value or values in words, and the file and line that set it."""

    name: str
    value: list[str] | str | None
    origin: str


def written_tables(path: str, profile: str | None) -> Iterator[WrittenSetting]:
    """The entries of all tables in effect with this profile. Raises ConfigError if it cannot be read."""
    from jobtui.model.secrets import mask_text  # only printing needs it

    file = read_file(path, "")
    for name in TABLES:
        for keys, table, holds in file.tables(name, profile):
            for at, value in leaves(keys, table) if holds else ():
                named = at[len(keys) - 1 :]
                is_open = name != "servers" or str(at[-1]).endswith(("user", "_file"))
                words = "given"
                if is_open and isinstance(value, bool):
                    words = str(value).lower()
                elif is_open and isinstance(value, list):
                    words = " ".join(map(str, value))
                elif is_open:
                    is_too_long = isinstance(value, int) and whole_of(value) is None
                    words = hex(value) if isinstance(value, int) and is_too_long else str(value)
                yield WrittenSetting(*map(mask_text, (dotted(named), words, file.origin(at))))


def check_text(path: str, text: str) -> None:
    """Check this text as the configuration file at a path. Raises ConfigError."""
    resolved(parse_file(path, text.encode()), {}, {})
