"""The settings that hold, out of flags, environment and configuration file."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobtui.config.file import PROFILES, ConfigFile, read_file
from jobtui.config.mistakes import ConfigError
from jobtui.config.tables import accesses_of_file, alarms_of, hosts_of, looks_of, mounts_of
from jobtui.config.values import Effective, layer_of, of_environment, sources_of, wrong_values
from jobtui.grammar import ENVIRONMENT_PREFIX, SETTING_BY_NAME, SETTINGS, nearest
from jobtui.model.access import SERVERS, VARIABLES, Access
from jobtui.model.alarms import Alarms
from jobtui.model.looks import Looks
from jobtui.model.specs import SourceSpec


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
    looks: Looks = Looks()

    def values_of(self, setting: str) -> tuple[str, ...]:
        """The values that hold for a setting."""
        return self.settings[setting].values

    @property
    def job_attributes(self) -> tuple[str, ...]:
        """The attributes in which spans name their job, as configured; none where the usual ones do."""
        return self.settings.get("job_attribute", Effective()).values


def load(flags: Mapping[str, tuple[str, ...]], environ: Mapping[str, str]) -> Config:
    """The settings that hold. Raises ConfigError, with all that is wrong."""
    given = of_environment(environ) | {
        name: Effective(values, SETTING_BY_NAME[name].flag) for name, values in flags.items()
    }
    asked = given.get("config", Effective())
    file = read_file(asked.values[-1] if asked.values else None, asked.origin)
    return resolved(file, given, environ)


def resolved(file: ConfigFile, given: Mapping[str, Effective], environ: Mapping[str, str]) -> Config:
    """The settings that hold out of a file, and what flags and variables give. Raises ConfigError."""
    file.check_profiles()
    layers = {keys: layer_of(file, keys, table) for keys, table, _ in file.sections(None)}
    profile = _chosen(file, given.get("profile"), layers[()])
    of_profile = layers[PROFILES, profile] if profile is not None else {}
    settings = {setting.name: Effective() for setting in SETTINGS} | layers[()] | of_profile | dict(given)
    accesses, warnings = accesses_of_file(file, profile, environ)
    hosts, mounts = hosts_of(file, profile), mounts_of(file, profile)
    alarms = alarms_of(file, profile)
    wrong = tuple(wrong_values(given))
    looks = Looks() if wrong else looks_of(file, profile, settings)
    if wrong := (*file.mistakes(), *wrong):
        raise ConfigError(*wrong)
    return Config(
        settings=settings,
        sources=_with_access(tuple(sources_of(settings)), settings, accesses, environ),
        file=file.path if file.document is not None else None,
        profile=profile,
        profiles=tuple(file.profiles()),
        warnings=(*_unknown_variables(environ), *warnings),
        hosts=hosts,
        mounts=mounts,
        alarms=alarms,
        looks=looks,
    )


def _chosen(file: ConfigFile, given: Effective | None, top: Mapping[str, Effective]) -> str | None:
    """The name of the profile that holds; one that is not there is a mistake. Raises ConfigError."""
    chosen = given or top.get("profile")
    if chosen is None or not chosen.values:
        return None
    name, known = chosen.values[-1], file.profiles()
    if name in known:
        return name
    text = f'no profile "{name}", there is {", ".join(known) or "none"}{nearest(name, known)}'
    if given:
        raise ConfigError(*file.mistakes(), f"{chosen.origin}: {file.path}: {text}")
    file.wrong(("profile",), text)
    return None


def _unknown_variables(environ: Mapping[str, str]) -> Iterable[str]:
    known = {setting.variable for setting in SETTINGS} | set(_access_variables())
    for name in sorted(environ):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known:
            yield f"the environment variable {name} is unknown and ignored{nearest(name, known)}"


def _access_variables() -> Iterable[str]:
    return (f"{SETTING_BY_NAME[name].variable}{end}" for name in SERVERS for end in VARIABLES.values())


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
