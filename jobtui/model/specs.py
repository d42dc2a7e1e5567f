"""What names a source: one value of a source setting, split into its parts. Opens nothing."""

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from jobtui.model.numbers import whole
from jobtui.model.patterns import regex

if TYPE_CHECKING:
    from jobtui.model.clock import Nanos

VARIABLES: Mapping[str, str] = {"bearer": "_BEARER", "basic": "_BASIC", "headers": "_HEADERS"}
"""What may be said in the environment, and how the name of the variable ends."""


class Access(NamedTuple):
    """How to ask a server. All but the names of files is secret.

    Files hold what others renew: a token, a password, an API key. `ca_file` is "" for the authorities of
    the system.
    """

    bearer: str = ""
    bearer_file: str = ""
    user: str = ""
    password: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    ca_file: str = ""
    password_file: str = ""
    api_key_file: str = ""

    def __repr__(self) -> str:
        """Without what is secret, which must not get into a traceback."""
        given = [name for name, value in zip(self._fields, self, strict=True) if value]
        return f"Access({', '.join(given)})"


NO_ACCESS = Access()


class LogRole(StrEnum):
    """Which process wrote a log file; `auto` finds out from its lines."""

    AUTO = "auto"
    SERVER = "server"
    SUPERVISOR = "supervisor"
    AGENT = "agent"


class SourceSpec(NamedTuple):
    """One source as configured: the setting that named it, what it reads, and the role of a log.

    `options` is a file of settings, "" for none. `units` are the units of a journal that are wanted, none for
    the usual ones. `label` tells one of several servers from the others, and `access` says how to ask it.
    """

    setting: str
    target: str
    role: LogRole = LogRole.AUTO
    units: tuple[str, ...] = ()
    label: str = ""
    access: Access = NO_ACCESS
    options: str = ""
    profile: str = ""
    """Which of several profiles that are read side by side names it, "" where all of them do."""

    @property
    def public(self) -> "SourceSpec":
        """The same without what is secret, as it may be written down."""
        return self._replace(access=NO_ACCESS)


def parse_path(setting: str, expected: str, text: str) -> SourceSpec:
    """The source that a path names. Raises ValueError when the text is no path."""
    if not text.strip() or "\0" in text:
        raise ValueError(f"expected {expected}")
    return SourceSpec(setting, text)


parse_srdb = partial(parse_path, "srdb", "a directory")
parse_trace_file = partial(parse_path, "trace_file", "a file")
parse_condor_log = partial(parse_path, "condor_log", "a file")


def parse_log(text: str) -> SourceSpec:
    """The source that `--log [ROLE=]FILE` names. Raises ValueError for an unknown role or no file.

    What is before the first `=`, if it has no `/`, is always a role: a file `a=b` is given as `./a=b`.
    """
    head, equals, target = text.partition("=")
    if not equals or "/" in head:
        role, target = LogRole.AUTO, text
    elif head in frozenset(LogRole):
        role = LogRole(head)
    else:
        raise ValueError(f'unknown role "{head}" of a log, expected one of {", ".join(LogRole)}')
    if not target.strip() or "\0" in target:
        raise ValueError("expected a file, or ROLE=FILE")
    return SourceSpec("log", target, role)


LOCAL_JOURNAL = LOCAL_SLURM = "local"
_REMOTE = regex(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<rest>.*)", re.ASCII | re.IGNORECASE | re.DOTALL)
_USER_AND_HOST = r"(?:\w[\w.-]*@)?(?:\[[0-9a-f:.]+\]|\w(?:[\w.-]*\w)?)(?::\d{1,5})?"
"""Neither part begins as an option does."""
_SSH = regex(rf"(?i:ssh)://(?P<address>{_USER_AND_HOST})/*", re.ASCII)
_SSH_TARGET = regex(rf"{_USER_AND_HOST}(?:/.*)?", re.ASCII)
"""A path is a directory of journal files there."""


def parse_journal(text: str) -> SourceSpec:
    """The source that `--journal SPEC` names. Raises ValueError for what is no journal."""
    text, expected = text.strip(), "expected local, a directory, ssh://[user@]host[:port] or http://host:port"
    if not text or "\0" in text:
        raise ValueError(expected)
    remote = _REMOTE.fullmatch(text)
    if remote is None:
        return SourceSpec("journal", text)
    scheme = remote["scheme"].lower()
    if scheme not in ("ssh", "http", "https"):
        raise ValueError(f"{expected}, found {scheme}://")
    if "@" in remote["rest"] and scheme != "ssh":
        raise ValueError(f"{NO_LOGIN}: use a proxy or client certificates")
    if (scheme == "ssh" and not _SSH_TARGET.fullmatch(remote["rest"])) or not remote["rest"].strip("/"):
        raise ValueError(expected)
    return SourceSpec("journal", f"{scheme}://{remote['rest'].rstrip('/')}")


def journal_words(place: str) -> list[str]:
    """The arguments of journalctl that name a directory or a file; none for the journal of this host."""
    if place in ("", LOCAL_JOURNAL):
        return []
    kind = "file" if place.endswith((".journal", ".journal~")) else "directory"
    return [f"--{kind}={os.path.expanduser(place)}"]


def parse_slurm(text: str) -> SourceSpec:
    """The source that `--slurm SPEC` names. Raises ValueError for what is no cluster."""
    text = text.strip()
    remote = _SSH.fullmatch(text)
    if remote is None and text != LOCAL_SLURM:
        raise ValueError("expected local or ssh://[user@]host[:port]")
    return SourceSpec("slurm", f"ssh://{remote['address']}" if remote else LOCAL_SLURM)


def is_directory(spec: SourceSpec) -> bool:
    return spec.target != LOCAL_JOURNAL and _REMOTE.fullmatch(spec.target) is None


OTLP_PORT = 4318
LOOPBACK = "127.0.0.1"
_URL = regex(r"(?P<scheme>https?)://(?P<rest>(?![/:])(?:(?![?#])[!-~])+)", re.IGNORECASE)
_LISTEN = regex(r"(?:(?P<host>\[[0-9a-f:.]+\]|[\w.-]+|\*)?:)?(?P<port>\d{1,5})?", re.ASCII | re.I)

NO_LOGIN = "a name or password in the address is not accepted"


def parse_server(setting: str, text: str, instead: str = "", part: str = "") -> SourceSpec:
    """The source that an address of a server names. Raises ValueError for what is none.

    `instead` says where its login comes from, if not from the configuration. `part` says what the last part
    of its path names; with it a path is required.
    """
    from urllib.parse import urlsplit  # few have a server

    expected = "expected http://host:port or https://host, perhaps with the path it is served at"
    found = _URL.fullmatch(text.strip())
    if found is None:
        raise ValueError(expected)
    try:
        urlsplit(found[0]).port  # noqa: B018 - it raises for what is none
    except ValueError as error:
        raise ValueError(expected) from error
    if "@" in found["rest"]:
        variable = f"JOBTUI_{setting.upper()}_BASIC"
        usual = f"everybody can see it: put it in [servers] of the configuration file, or in {variable}"
        raise ValueError(f"{NO_LOGIN}: {instead or usual}")
    if part and "/" not in found["rest"].rstrip("/"):
        raise ValueError(f"the {part} is missing: expected http://host:port/{part}")
    return SourceSpec(setting, f"{found['scheme'].lower()}://{found['rest'].rstrip('/')}")


parse_jaeger = partial(parse_server, "jaeger")
parse_tempo = partial(parse_server, "tempo")
parse_balsam = partial(parse_server, "balsam", instead="the login of `balsam login` is used")


def parse_otlp_listen(text: str) -> SourceSpec:
    """The source that `--otlp-listen HOST:PORT` names; without a host it is this machine alone.

    Raises ValueError for what is no address.
    """
    found = _LISTEN.fullmatch(text.strip()) if text.strip() else None
    port = whole(found["port"], OTLP_PORT) if found else 0
    if found is None or port > 65_535:
        raise ValueError("expected HOST:PORT, such as 127.0.0.1:4318, or only a port")
    return SourceSpec("otlp_listen", f"{found['host'] or LOOPBACK}:{port}")


def listen_host(target: str) -> tuple[str, int]:
    """The host and port of an address to listen at. Raises ValueError for what is none."""
    host, _, port = target.rpartition(":")
    number = whole(port)
    if number is None:
        raise ValueError(f"{port!r} is not a port")
    return host.strip("[]"), number


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){1,3}", host) is not None


_CLUSTER = regex(r"(?P<cluster>\w[\w.-]*)=(?P<path>.*)", re.ASCII | re.DOTALL)
_BROKERS = regex(r"[\w.:\[\]-]+(?:,[\w.:\[\]-]+)*/[\w.-]{1,249}", re.ASCII)


def split_cluster(text: str) -> tuple[str, str]:
    """The label of a cluster and the path after it; a path that has that form is given as `./a=b`."""
    found = _CLUSTER.fullmatch(text)
    return (found["cluster"], found["path"]) if found else ("", text)


def parse_archive(text: str) -> SourceSpec:
    """The source that `--archive [CLUSTER=]DIR` names. Raises ValueError when there is no directory in it."""
    label, path = split_cluster(text)
    if not path.strip() or "\0" in path:
        raise ValueError("expected a directory, or CLUSTER=DIR")
    return SourceSpec("archive", path, label=label)


def parse_kafka(text: str) -> SourceSpec:
    """The source that `--kafka BROKERS/TOPIC` names. Raises ValueError for what is none."""
    text = text.strip()
    if not _BROKERS.fullmatch(text):
        raise ValueError("expected host:port[,host:port...]/topic")
    return SourceSpec("kafka", text)


class ReadWindow(NamedTuple):
    """Which part of a source to read. None leaves the beginning to it, and the end to the present.

    `whole`: all of a file, and of those that were rotated away what was written since `since`.
    Only logs and searches for traces end before that at `until`. Of the records of Sirepo, and of the rows
    of an engine of logs, about `most` are read, the newest, with `about` those about it, and with `agents`
    those about its agents and starts of the supervisor.
    """

    since: "Nanos | None" = None
    whole: bool = False
    until: "Nanos | None" = None
    most: int | None = None
    about: str = ""
    agents: bool = False
