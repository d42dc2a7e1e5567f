"""What names a source: one value of a source setting, split into its parts. Opens nothing."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from jobtui.model.access import NO_ACCESS, Access
from jobtui.model.servers import labels_of


class LogRole(StrEnum):
    """Which process wrote a log file; `auto` finds out from its lines."""

    AUTO = "auto"
    SERVER = "server"
    SUPERVISOR = "supervisor"
    AGENT = "agent"


class SourceSpec(NamedTuple):
    """One source as configured: the setting that named it, what it reads, and the role of a log.

    `options` is a file of settings, "" for none. `units` are the units of a journal that are wanted, none for
    the usual ones. `label` tells one of several servers from the others, `access` is how one wants to be
    asked, and `kept` is how many of its events are kept between runs.
    """

    setting: str
    target: str
    role: LogRole = LogRole.AUTO
    units: tuple[str, ...] = ()
    label: str = ""
    access: Access = NO_ACCESS

    @property
    def public(self) -> "SourceSpec":
        """The same without what is secret, as it may be written down."""
        return self._replace(access=NO_ACCESS)

    options: str = ""
    kept: int = 0


def parse_srdb(text: str) -> SourceSpec:
    """The source that `--srdb DIR` names. Raises ValueError when there is no directory in it."""
    if not text.strip() or "\0" in text:
        raise ValueError("expected a directory")
    return SourceSpec("srdb", text)


def parse_log(text: str) -> SourceSpec:
    """The source that `--log [ROLE=]FILE` names. Raises ValueError for an unknown role or no file.

    A word before the first `=` is always a role: a file whose own name has that form is given as `./a=b`.
    """
    head, equals, target = text.partition("=")
    if not equals or not head.isidentifier():
        role, target = LogRole.AUTO, text
    elif head in frozenset(LogRole):
        role = LogRole(head)
    else:
        raise ValueError(f'unknown role "{head}" of a log, expected one of {", ".join(LogRole)}')
    if not target.strip() or "\0" in target:
        raise ValueError("expected a file, or ROLE=FILE")
    return SourceSpec("log", target, role)


LOCAL_JOURNAL = "local"
JOURNAL_EXPECTED = "expected local, a directory, ssh://[user@]host[:port] or http://host:port"
_REMOTE = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<rest>.*)", re.ASCII | re.IGNORECASE | re.DOTALL)
_USER_AND_HOST = re.compile(
    r"(?:\w[\w.-]*@)?(?:\[[0-9a-f:.]+\]|\w(?:[\w.-]*\w)?)(?::\d{1,5})?(?:/.*)?", re.ASCII
)
"""Neither part begins as an option does. A path is a directory of journal files there."""


def parse_journal(text: str) -> SourceSpec:
    """The source that `--journal SPEC` names. Raises ValueError for what is no journal."""
    text = text.strip()
    if not text or "\0" in text:
        raise ValueError(JOURNAL_EXPECTED)
    remote = _REMOTE.fullmatch(text)
    if remote is None:
        return SourceSpec("journal", text)
    scheme = remote["scheme"].lower()
    if scheme not in ("ssh", "http", "https"):
        raise ValueError(f"{JOURNAL_EXPECTED}, found {scheme}://")
    if "@" in remote["rest"] and scheme != "ssh":
        raise ValueError("a name or password in the address is not taken: use a proxy or client certificates")
    if (scheme == "ssh" and not _USER_AND_HOST.fullmatch(remote["rest"])) or not remote["rest"].strip("/"):
        raise ValueError(JOURNAL_EXPECTED)
    return SourceSpec("journal", f"{scheme}://{remote['rest'].rstrip('/')}")


def parse_trace_file(text: str) -> SourceSpec:
    """The source that `--trace-file FILE` names. Raises ValueError when there is no file in it."""
    if not text.strip() or "\0" in text:
        raise ValueError("expected a file")
    return SourceSpec("trace_file", text)


def parse_condor_log(text: str) -> SourceSpec:
    """The source that `--condor-log FILE` names. Raises ValueError when there is no file in it."""
    if not text.strip() or "\0" in text:
        raise ValueError("expected a file")
    return SourceSpec("condor_log", text)


_SERVER = re.compile(r"(?!/)(?:(?![?#])[!-~])+")
"""A host, a port and a path, in what ASCII prints."""


def parse_balsam(text: str) -> SourceSpec:
    """The source that `--balsam URL` names. Raises ValueError for what is no address of a server."""
    found = _REMOTE.fullmatch(text.strip())
    is_address = found is not None and _SERVER.fullmatch(found["rest"])
    if found is None or not is_address or found["scheme"].lower() not in ("http", "https"):
        raise ValueError("expected http://host:port or https://host")
    if "@" in found["rest"]:
        raise ValueError(
            "a name or password in the address is not taken: the login of `balsam login` is used"
        )
    return SourceSpec("balsam", f"{found['scheme'].lower()}://{found['rest'].rstrip('/')}")


NUMBERING = ("balsam", "slurm")
"""Settings whose systems give their jobs mere numbers."""

LOCAL_SLURM = "local"
SLURM_EXPECTED = "expected local or ssh://[user@]host[:port]"


def parse_slurm(text: str) -> SourceSpec:
    """The source that `--slurm SPEC` names. Raises ValueError for what is no cluster."""
    text = text.strip()
    remote = _REMOTE.fullmatch(text)
    if remote is None and text == LOCAL_SLURM:
        return SourceSpec("slurm", LOCAL_SLURM)
    rest = remote["rest"].rstrip("/") if remote is not None else ""
    if (
        remote is None
        or remote["scheme"].lower() != "ssh"
        or "/" in rest
        or not _USER_AND_HOST.fullmatch(rest)
    ):
        raise ValueError(SLURM_EXPECTED)
    return SourceSpec("slurm", f"ssh://{rest}")


def told_apart(specs: Iterable[SourceSpec]) -> tuple[SourceSpec, ...]:
    """The same sources, none twice; where there are several servers or clusters, each with a label."""
    found = tuple(dict.fromkeys(specs))
    labels = {
        setting: labels_of([spec.target for spec in found if spec.setting == setting])
        for setting in NUMBERING
    }
    return tuple(
        spec._replace(label=labels[spec.setting][spec.target]) if spec.setting in NUMBERING else spec
        for spec in found
    )


def is_directory(spec: SourceSpec) -> bool:
    """Whether a journal is a directory of files."""
    return spec.target != LOCAL_JOURNAL and _REMOTE.fullmatch(spec.target) is None
