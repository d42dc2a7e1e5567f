"""How to ask servers, by the configuration file and the environment. Errors hold no values."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jobtui.backends.registry import servers
from jobtui.config.file import ConfigError
from jobtui.grammar import ENVIRONMENT_PREFIX
from jobtui.model.specs import VARIABLES, Access, SourceSpec, parse_server

FILES = ("bearer_file", "password_file", "api_key_file", "ca_file")
KEYS = ("bearer", "user", "password", *FILES, "headers")
"""The keys of the table of a server."""
WAYS = ("bearer", "bearer_file", "user", "api_key_file")
"""The ways to log in; only one can be sent."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?", re.ASCII)


def access_of_table(table: object, environ: Mapping[str, str]) -> Access:
    """The access that a table of the configuration file gives; `$NAME` is a variable of the environment.

    Raises ValueError, in words without the values.
    """
    if not isinstance(table, dict):
        raise ValueError(f"expected a table with {', '.join(KEYS)}")
    unknown = next((key for key in table if key not in KEYS), None)
    if unknown is not None:
        raise ValueError(f'unknown key "{unknown}"; expected one of {", ".join(KEYS)}')
    named = {key: _text(key, table[key], environ) for key in KEYS if key in table and key != "headers"}
    headers = table.get("headers", {})
    if not isinstance(headers, dict):
        raise ValueError("headers: expected a table")
    pairs = tuple(_header(name, _text(name, value, environ)) for name, value in headers.items())
    return _checked(Access(**named, headers=pairs))


def access_at(address: str, table: object, base: str, environ: Mapping[str, str]) -> tuple[str, Access]:
    """The server of an address, and the access that a table gives; files are relative to `base`.

    Raises ValueError, as `access_of_table`.
    """
    access = access_of_table(table, environ)
    for key in FILES:
        if path := getattr(access, key):
            found: Any = os.path.join(base, os.path.expanduser(path))
            access = access._replace(**{key: found})
    return parse_server("", address).target, access


def holds_secrets(table: Any) -> bool:
    """Whether a secret is in the table itself, and not in a variable or file that it names."""
    said = [table.get("bearer"), table.get("password"), *table.get("headers", {}).values()]
    return any(isinstance(one, str) and not one.startswith("$") for one in said)


def with_access(
    sources: Sequence[SourceSpec],
    ca_files: Sequence[str],
    accesses: Mapping[str, Access],
    environ: Mapping[str, str],
) -> tuple[SourceSpec, ...]:
    """The same sources; servers with the access of tables, which variables replace.

    Variables do not say which server they are for. Raises ConfigError if there are several.
    """
    found = []
    for spec in sources:
        if spec.setting in servers():
            name = f"{ENVIRONMENT_PREFIX}{spec.setting.upper()}"
            try:
                said = access_of_environment(name, environ)
            except ValueError as error:
                raise ConfigError(str(error)) from None
            has_login = any((said.bearer, said.bearer_file, said.user, said.headers, said.api_key_file))
            if has_login and sum(one.setting == spec.setting for one in sources) > 1:
                raise ConfigError(f"{name}_*: there are several servers; put each login in [servers]")
            authority = Access(ca_file="".join(ca_files[-1:]))
            of_tables = merged(authority, accesses.get(spec.target.partition("?")[0], Access()))
            spec = spec._replace(access=merged(of_tables, said))
        found.append(spec)
    return tuple(found)


def access_of_environment(prefix: str, environ: Mapping[str, str]) -> Access:
    """The access that variables with this beginning give. Raises ValueError, in words without the values."""
    said = {key: environ.get(prefix + end, "").strip() for key, end in VARIABLES.items()}
    user, colon, password = said["basic"].partition(":")
    if said["basic"] and not (colon and user):
        raise ValueError(f"{prefix}{VARIABLES['basic']}: expected USER:PASSWORD")
    try:
        headers = []
        for part in filter(None, map(str.strip, said["headers"].split(";"))):
            name, colon, value = part.partition(":")
            if not colon:
                raise ValueError("expected NAME: VALUE, several separated by ;")
            headers.append(_header(name.strip(), value.strip()))
        return _checked(Access(said["bearer"], "", user, password, tuple(headers)))
    except ValueError as error:
        raise ValueError(f"{prefix}_*: {error}") from error


def merged(under: Access, over: Access) -> Access:
    """`over`, with values of `under` where it has none; only one login."""
    if any(getattr(over, way) for way in WAYS):
        under = Access(headers=under.headers, ca_file=under.ca_file)
    return Access._make(mine or theirs for mine, theirs in zip(over, under, strict=True))


def _checked(access: Access) -> Access:
    ways = [name for name in WAYS if getattr(access, name)]
    if len(ways) > 1:
        raise ValueError(f"{' and '.join(ways)} are given; only one can be sent")
    for name in ("bearer", "user"):
        if value := getattr(access, name):
            _fit(name, value)
    if ":" in access.user:
        raise ValueError("user: contains a colon")
    return access


def _text(key: str, value: object, environ: Mapping[str, str]) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key}: expected a text")
    if not value.startswith("$"):
        return value
    found = environ.get(value[1:], "")
    if not found:
        raise ValueError(f"{key}: the environment variable {value[1:]} is not set")
    return found


def _header(name: str, value: str) -> tuple[str, str]:
    if not _NAME.fullmatch(name):
        raise ValueError("a header has an invalid name")
    _fit(name, value)
    return name, value


def _fit(name: str, value: str) -> None:
    if not _VALUE.fullmatch(value):
        raise ValueError(f"{name}: has characters that cannot be sent")
