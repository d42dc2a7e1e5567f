"""Settings: which there are, and the effective value of each with where it came from.

`grammar.SETTINGS` lists them. Precedence: defaults, then the configuration
file, then its chosen profile, then the environment, then flags; a higher one replaces a setting whole.
Reads the configuration file and nothing else; opens no source.
"""

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobtui.grammar import ENVIRONMENT_PREFIX, SETTING_BY_NAME, SETTINGS, Kind, Scope, Setting, nearest
from jobtui.model.access import SERVERS, VARIABLES, Access
from jobtui.model.alarms import Alarms, parse_alarms
from jobtui.model.script_specs import split_cluster
from jobtui.model.specs import SourceSpec, is_directory, parse_journal

FILE_NAME = "config.toml"
PROFILES = "profiles"
HOSTS = "hosts"
"""The table of the journals of docker hosts and clusters, by the names that Sirepo's lines have for them."""
MOUNTS = "mounts"
"""The table of directories of this machine, by those on clusters that are mounted there."""
ALARM = "alarm"
"""The table of what is to happen on new trouble."""
SERVER_TABLES = "servers"
"""The table of tables that say how servers want to be asked, by their addresses."""
TABLES = frozenset({HOSTS, MOUNTS, ALARM, SERVER_TABLES})
JOURNAL = "journal"
LABELLED = "archive"
"""The setting in which any label of a cluster may stand before a path."""
LIST_SEPARATOR = ";"
OTHERS_MAY = 0o066
"""Rights of others to read or write a file."""
FILE_SIZE_LIMIT = 1 << 20
"""A larger configuration file is refused: it is not one."""


class ConfigError(Exception):
    """A setting is wrong. The text is one line that says where and what is right."""


class Effective(NamedTuple):
    """The values that hold for a setting, as written, and where they were written."""

    values: tuple[str, ...] = ()
    origin: str = "default"


class Config(NamedTuple):
    """The effective settings, as written; `sources` are those they name, `hosts` journals by host.

    `mounts` are directories of this machine by those on clusters that are mounted there, `alarms` what is to
    happen when a job newly needs a person.
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


def load(flags: Mapping[str, tuple[str, ...]], environ: Mapping[str, str]) -> Config:
    """The settings that hold, out of flags, environment and configuration file. Raises ConfigError."""
    given = _of_environment(environ) | {
        name: Effective(values, SETTING_BY_NAME[name].flag) for name, values in flags.items()
    }
    path, document = _read_file(given.get("config"))
    profile, layers = _of_file(path, document, given.get("profile"))
    settings = {setting.name: Effective() for setting in SETTINGS} | layers | given
    accesses, warnings = _accesses(path, document or {}, profile, environ)
    return Config(
        settings=settings,
        sources=_with_access(tuple(_sources(settings)), settings, accesses, environ),
        file=path if document is not None else None,
        profile=profile,
        profiles=tuple(_profiles(document or {}, path)),
        warnings=(*_unknown_variables(environ), *warnings),
        hosts=_tables(HOSTS, path, document or {}, profile),
        mounts=_tables(MOUNTS, path, document or {}, profile),
        alarms=_alarms(path, document or {}, profile),
    )


def user_file() -> str:
    """Where the configuration file of this user is, whether it exists or not."""
    from platformdirs import user_config_path  # costs 20 ms

    return str(user_config_path("jobtui") / FILE_NAME)


def _of_environment(environ: Mapping[str, str]) -> dict[str, Effective]:
    found = {}
    for setting in SETTINGS:
        text = environ.get(setting.variable, "")
        if not text.strip():
            continue
        values = text.split(LIST_SEPARATOR) if setting.repeatable else [text]
        found[setting.name] = Effective(
            tuple(_expanded(setting, v.strip()) for v in values if v.strip()), setting.variable
        )
    return found


def _unknown_variables(environ: Mapping[str, str]) -> Iterable[str]:
    known = {setting.variable for setting in SETTINGS} | set(_access_variables())
    for name in sorted(environ):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known:
            yield f"the environment variable {name} is unknown and ignored{nearest(name, known)}"


def _access_variables() -> Iterable[str]:
    return (f"{SETTING_BY_NAME[name].variable}{end}" for name in SERVERS for end in VARIABLES.values())


def _read_file(given: Effective | None) -> tuple[str, dict[str, object] | None]:
    """The configuration file and its content, None when there is none and none was asked for."""
    path = os.path.expanduser(given.values[-1]) if given else user_file()
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_SIZE_LIMIT + 1)
    except FileNotFoundError:
        if given:
            raise ConfigError(f"{path}: no such configuration file ({given.origin})") from None
        return path, None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > FILE_SIZE_LIMIT:
        raise ConfigError(f"{path}: larger than {FILE_SIZE_LIMIT} bytes, not a configuration file")
    return path, _parse_toml(path, content)


def _parse_toml(path: str, content: bytes) -> dict[str, object]:
    import tomllib  # costs 20 ms, and most have no configuration file

    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not TOML: {error or 'nested too deeply'}") from error


def _of_file(
    path: str, document: dict[str, object] | None, given: Effective | None
) -> tuple[str | None, dict[str, Effective]]:
    """The chosen profile and the settings of the file, those of the profile over those at its top."""
    document = document or {}
    profiles = _profiles(document, path)
    tables = {name: _layer(f"{path} [{PROFILES}.{name}]", table, path) for name, table in profiles.items()}
    top = _layer(path, document, path, top=True)
    chosen = given or top.get("profile")
    if chosen is None:
        return None, top
    name = chosen.values[-1]
    if name not in tables:
        known = ", ".join(tables) or "none"
        raise ConfigError(
            f'{path}: no profile "{name}" ({chosen.origin}), there is {known}{nearest(name, tables)}'
        )
    return name, top | tables[name]


def _profiles(document: Mapping[str, object], path: str) -> dict[str, dict[str, object]]:
    profiles = document.get(PROFILES, {})
    if not isinstance(profiles, dict):
        raise ConfigError(f"{path}: {PROFILES}: expected tables [{PROFILES}.NAME]")
    for name, table in profiles.items():
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {PROFILES}.{name}: expected a table")
    return profiles


def _tables(key: str, path: str, document: Mapping[str, object], profile: str | None) -> dict[str, str]:
    """A table of names and texts: that of the chosen profile over that at the top of the file."""
    read = _host_table if key == HOSTS else _mount_table
    tables = _profiles(document, path)
    found = read(f"{path} [{key}]", document.get(key, {}), path)
    for name, table in tables.items():
        of_profile = read(f"{path} [{PROFILES}.{name}.{key}]", table.get(key, {}), path)
        found |= of_profile if name == profile else {}
    return found


def _alarms(path: str, document: Mapping[str, object], profile: str | None) -> Alarms:
    """What is to happen on new trouble: as the chosen profile says, else as the top of the file does."""
    found = _alarm_table(f"{path} [{ALARM}]", document.get(ALARM, {}))
    for name, table in _profiles(document, path).items():
        if ALARM in table:
            of_profile = _alarm_table(f"{path} [{PROFILES}.{name}.{ALARM}]", table[ALARM])
            found = of_profile if name == profile else found
    return found


def _alarm_table(where: str, table: object) -> Alarms:
    try:
        return parse_alarms(table)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _accesses(
    path: str, document: Mapping[str, object], profile: str | None, environ: Mapping[str, str]
) -> tuple[dict[str, Access], tuple[str, ...]]:
    """How servers want to be asked, by address, as the file says; and what is odd about it."""
    tables = [(f"{path} [{SERVER_TABLES}]", document.get(SERVER_TABLES))]
    for name, table in _profiles(document, path).items():
        if name == profile:
            tables.append((f"{path} [{PROFILES}.{name}.{SERVER_TABLES}]", table.get(SERVER_TABLES)))
    tables = [(where, table) for where, table in tables if table is not None]
    if not tables:
        return {}, ()
    from jobtui.model.access_reading import accesses_of, holds_secrets  # few have such a table

    try:
        found = [accesses_of(where, table, os.path.dirname(path), environ) for where, table in tables]
    except ValueError as error:
        raise ConfigError(str(error)) from None
    is_open = os.stat(path).st_mode & OTHERS_MAY and any(holds_secrets(table) for _, table in tables)
    warning = f"{path} may be read by others, and holds a login: `chmod 600 {path}`"
    return {address: access for one in found for address, access in one.items()}, (warning,) * bool(is_open)


def _with_access(
    sources: tuple[SourceSpec, ...],
    settings: Mapping[str, Effective],
    accesses: Mapping[str, Access],
    environ: Mapping[str, str],
) -> tuple[SourceSpec, ...]:
    """The same sources; servers with how they want to be asked. Raises ConfigError."""
    if not any(spec.setting in SERVERS for spec in sources):
        return sources
    from jobtui.model.access_reading import with_access

    authority = Access(ca_file="".join(settings["ca_file"].values[-1:]))
    try:
        return with_access(sources, authority, accesses, environ, ENVIRONMENT_PREFIX)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _mount_table(where: str, table: object, path: str) -> dict[str, str]:
    if not isinstance(table, dict):
        raise ConfigError(f'{where}: expected a table of "/DIRECTORY/THERE" = "DIRECTORY"')
    found = {}
    for there, here in table.items():
        if not isinstance(here, str) or not here:
            raise ConfigError(f"{where}: {there}: expected a directory, found {_kind_of(here)}")
        if not there.startswith("/"):
            raise ConfigError(f"{where}: {there}: expected a directory that begins with /")
        found[there] = os.path.join(os.path.dirname(path), os.path.expanduser(here))
    return found


def _host_table(where: str, table: object, path: str) -> dict[str, str]:
    if not isinstance(table, dict):
        raise ConfigError(f'{where}: expected a table of HOST = "JOURNAL"')
    found = {}
    for host, value in table.items():
        if not isinstance(value, str):
            raise ConfigError(f"{where}: {host}: expected a text, found {_kind_of(value)}")
        text = _expanded(SETTING_BY_NAME[JOURNAL], value, os.path.dirname(path))
        try:
            found[host] = parse_journal(text).target
        except ValueError as error:
            raise ConfigError(f"{where}: {host}: {text!r}: {error}") from error
    return found


def _layer(where: str, table: Mapping[str, object], path: str, *, top: bool = False) -> dict[str, Effective]:
    allowed = (Scope.ANYWHERE, Scope.FILE) if top else (Scope.ANYWHERE,)
    known = [setting.name for setting in SETTINGS if setting.scope in allowed]
    found = {}
    for key, value in table.items():
        if key in TABLES or (top and key == PROFILES):
            continue
        if key not in known:
            raise ConfigError(f'{where}: unknown key "{key}"{nearest(key, known)}')
        setting = SETTING_BY_NAME[key]
        values = _values(where, setting, value)
        found[key] = Effective(
            tuple(_expanded(setting, text, os.path.dirname(path)) for text in values), where
        )
    return found


def _values(where: str, setting: Setting, value: object) -> tuple[str, ...]:
    """A setting's value in the file as texts."""
    if setting.metavar is None:
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: {setting.name}: expected true or false, found {_kind_of(value)}")
        return ("true",) if value else ()
    if setting.repeatable and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if setting.kind is Kind.TIME and hasattr(value, "isoformat"):
        return (str(value.isoformat()),)
    if isinstance(value, str):
        return (value,)
    expected = "a text or a list of texts" if setting.repeatable else "a text"
    raise ConfigError(f"{where}: {setting.name}: expected {expected}, found {_kind_of(value)}")


_KINDS: Mapping[type, str] = {
    bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a table",
}  # fmt: skip


def _kind_of(value: object) -> str:
    if isinstance(value, list):
        odd = next((item for item in value if not isinstance(item, str)), None)
        return "a list" if odd is None else f"a list with {_kind_of(odd)}"
    return _KINDS.get(type(value), type(value).__name__)


def _expanded(setting: Setting, text: str, base: str = "") -> str:
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


MOST_KEPT = 5_000_000
"""Events of one server that may be kept between runs: about 100 bytes each."""


def _kept(cache: Effective) -> int:
    """How many events are kept; none where that is not asked for. Raises ConfigError."""
    text = "".join(cache.values[-1:]) or "0"
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) <= MOST_KEPT):
        raise ConfigError(f"{cache.origin}: {text!r} is no number of events up to {MOST_KEPT:,}")
    return int(text)


def _sources(settings: Mapping[str, Effective]) -> Iterable[SourceSpec]:
    """Each source once: of one that is named twice, the later naming holds."""
    found: dict[tuple[str, str], SourceSpec] = {}
    for setting in SETTINGS:
        if setting.parse is None:
            continue
        effective = settings[setting.name]
        for text in effective.values:
            try:
                spec = setting.parse(text)
            except ValueError as error:
                raise ConfigError(f"{effective.origin}: {text!r}: {error}") from error
            if setting.name == JOURNAL:
                spec = spec._replace(units=settings["journal_unit"].values)
            if setting.name == "balsam":
                spec = spec._replace(kept=_kept(settings["balsam_cache"]))
            if setting.name == "kafka":
                spec = spec._replace(options="".join(settings["kafka_config"].values[-1:]))
            found[setting.name, os.path.normpath(spec.target)] = spec
    return found.values()
