"""The tables of a configuration file: hosts, mounts, the alarm, logins, keys, columns and colours.

Of each, what the chosen profile says stands over what the top of the file says. What is wrong is noted, also
in profiles that are not chosen.
"""

import os
from collections.abc import Mapping

from jobtui.config.file import ConfigFile
from jobtui.config.toml_places import Keys
from jobtui.config.values import JOURNAL, Effective, expanded
from jobtui.grammar import SETTING_BY_NAME
from jobtui.model.access import Access
from jobtui.model.alarms import Alarms, parse_alarms
from jobtui.model.looks import AUTO, Looks
from jobtui.model.specs import parse_journal

PERSONAL = ("keys", "columns", "colors")


def hosts_of(file: ConfigFile, profile: str | None) -> dict[str, str]:
    """The journals of docker hosts and clusters, by the names that Sirepo's lines have for them."""
    found = {}
    for keys, table, holds in file.tables("hosts", profile):
        for host, value in table.items():
            if not isinstance(value, str):
                file.wrong_kind((*keys, host), "a text", value)
                continue
            text = expanded(SETTING_BY_NAME[JOURNAL], value, file.base)
            try:
                target = parse_journal(text).target
            except ValueError as error:
                file.wrong((*keys, host), f"{text!r}: {error}")
                continue
            if holds:
                found[host] = target
    return found


def mounts_of(file: ConfigFile, profile: str | None) -> dict[str, str]:
    """Directories of this machine, by those on clusters that are mounted there."""
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
    """What is to happen on new trouble; a profile's table stands for the whole."""
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
    """How servers want to be asked, by address; and what is odd about where that is written."""
    found: dict[str, Access] = {}
    has_secrets = False
    for keys, tables, holds in file.tables("servers", profile):
        from jobtui.model.access_reading import accesses_of, holds_secrets  # few have such a table

        for address, table in tables.items() if holds else ():
            try:
                found |= accesses_of({address: table}, file.base, environ)
            except ValueError as error:
                _wrong_server(file, (*keys, address), str(error))
            else:
                has_secrets = has_secrets or holds_secrets({address: table})
    if not (has_secrets and file.is_open_to_others()):
        return found, ()
    return found, (f"{file.path} may be read by others, and holds a login: `chmod 600 {file.path}`",)


def _wrong_server(file: ConfigFile, keys: Keys, error: str) -> None:
    """Note what is wrong with a server, at the key that the error begins with if there is one."""
    text = error.split(": ", 1)[-1] if ": " in error else error
    key = text.partition(":")[0]
    place = (*keys, key) if (*keys, key) in file.places.keys else keys
    file.wrong(place, text.removeprefix(f"{key}: ") if place != keys else text)


def looks_of(file: ConfigFile, profile: str | None, settings: Mapping[str, Effective]) -> Looks:
    """How the dashboard is to look and be handled."""

    def word(name: str) -> str:
        return "".join(settings[name].values[-1:])

    looks = Looks(
        theme=word("theme") or AUTO,
        glyphs=word("glyphs") or AUTO,
        clipboard=word("clipboard") or AUTO,
        mouse=word("mouse") or AUTO,
        title=word("title") == "on",
        fps=int(word("fps")) if word("fps") else None,
    )
    if any(name in section for name in PERSONAL for _, section, _ in file.sections(profile)):
        from jobtui.config.personal import with_personal  # few have one

        return with_personal(looks, file, profile)
    return looks
