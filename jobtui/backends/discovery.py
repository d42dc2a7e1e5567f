"""Finds sources when none is configured, and further ones that a machine seems to have. Those are only
suggested, and never read without being asked for. Looks at names and variables, at Slurm's configuration and
the login to Balsam, and at nothing else.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobtui.model import specs
from jobtui.model.patterns import regex

SUPERVISOR_DB = "supervisor-job"
DEVELOPMENT_DIR = "run"
CHECKOUT_IN_HOME = os.path.join("src", "radiasoft", "sirepo")
"""Where the developers of Sirepo keep their checkout."""
UNITS = ("sirepo_job_supervisor.service", "sirepo.service")
UNIT_PATHS = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
JOURNAL_DIRECTORIES = ("var/log/journal", "run/log/journal")


class DiscoveryScope(NamedTuple):
    environ: Mapping[str, str]
    directory: str
    home: str
    root: str = os.sep


class DiscoveredSource(NamedTuple):
    spec: specs.SourceSpec
    origin: str


def _database(around: DiscoveryScope) -> DiscoveredSource | None:
    """The one that a variable names, else the nearest: here or above, in a checkout, in the usual place."""
    if root := around.environ.get("SIREPO_SRDB_ROOT", "").strip():
        return DiscoveredSource(specs.SourceSpec("srdb", root), "SIREPO_SRDB_ROOT")
    checkouts = [around.directory]
    while (parent := os.path.dirname(checkouts[-1])) != checkouts[-1]:
        checkouts.append(parent)
    checkouts.append(os.path.join(around.directory, "sirepo"))
    checkouts.append(os.path.join(around.home, CHECKOUT_IN_HOME))
    for directory in checkouts:
        for root in (os.path.join(directory, DEVELOPMENT_DIR), directory):
            if os.path.isdir(os.path.join(root, SUPERVISOR_DB)):
                return DiscoveredSource(specs.SourceSpec("srdb", root), f"found {SUPERVISOR_DB} in {root}")
    return None


def _local_journal(around: DiscoveryScope) -> DiscoveredSource | None:
    """The journal of a machine on which Sirepo's units are installed; it is not opened for that."""
    directories = (os.path.join(around.root, name) for name in UNIT_PATHS)
    units = (os.path.join(directory, unit) for directory in directories for unit in UNITS)
    unit = next(filter(os.path.lexists, units), None)
    if unit is None or not any(os.path.isdir(os.path.join(around.root, d)) for d in JOURNAL_DIRECTORIES):
        return None
    return DiscoveredSource(specs.SourceSpec("journal", specs.LOCAL_JOURNAL), f"found {unit}")


def _balsam_login(around: DiscoveryScope) -> DiscoveredSource | None:
    """The server that Balsam's own client is logged in to. Of its file only the address is read."""
    from jobtui.backends.balsam.login import login_path, read_login  # few have one
    from jobtui.model.health import SourceError

    path = login_path(around.environ, around.home)
    if not os.path.lexists(path):
        return None
    try:
        return DiscoveredSource(specs.parse_balsam(read_login(path).api_root), f"found {path}")
    except (SourceError, ValueError):
        return None


LOOKED_FOR = (
    f"SIREPO_SRDB_ROOT, {SUPERVISOR_DB} or {DEVELOPMENT_DIR}/{SUPERVISOR_DB} here or above, "
    "Sirepo's units on this machine, ~/.balsam/client.yml"
)


def discover(around: DiscoveryScope) -> tuple[DiscoveredSource, ...]:
    return tuple(filter(None, (_database(around), _local_journal(around), _balsam_login(around))))


SLURM_CONF = "etc/slurm/slurm.conf"
ARCHIVES = ("var/lib/sarchive", "srv/sarchive", "var/spool/sarchive")
LARGEST = 1 << 20
_STATE = regex(r"^\s*StateSaveLocation\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)


def suggest(around: DiscoveryScope) -> Iterable[DiscoveredSource]:
    import shutil  # only who is asked pays for it

    if found := shutil.which("squeue", path=around.environ.get("PATH", "")):
        yield DiscoveredSource(specs.parse_slurm("local"), f"found {found}")
    for name in ARCHIVES:
        path = os.path.join(around.root, name)
        if os.path.isdir(path):
            yield DiscoveredSource(specs.parse_archive(path), f"found {path}")
    from jobtui.transport.files import read_small  # only who is asked pays for it

    conf = os.path.join(around.root, SLURM_CONF)
    try:
        said = _STATE.search(read_small(conf, LARGEST).decode("utf-8", "replace"))
    except OSError:
        return
    if said and os.access(said[1], os.R_OK | os.X_OK):
        yield DiscoveredSource(specs.parse_archive(said[1]), f"StateSaveLocation of {conf}")
