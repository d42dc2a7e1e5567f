"""Where sources are found when none is configured. Looks at names only, but for the login to Balsam."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from jobtui.model.specs import LOCAL_JOURNAL, SourceSpec, parse_balsam

SUPERVISOR_DB = "supervisor-job"
DEVELOPMENT_DIR = "run"
CHECKOUT_IN_HOME = os.path.join("src", "radiasoft", "sirepo")
"""Where the developers of Sirepo keep their checkout."""
UNITS = ("sirepo_job_supervisor.service", "sirepo.service")
UNIT_DIRECTORIES = (
    "etc/systemd/system",
    "run/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
)
JOURNAL_DIRECTORIES = ("var/log/journal", "run/log/journal")


class Surroundings(NamedTuple):
    """What discovery may look at."""

    environ: Mapping[str, str]
    directory: str
    home: str
    root: str = os.sep


class Discovered(NamedTuple):
    """A source that was found, and by what."""

    spec: SourceSpec
    origin: str


def _database(around: Surroundings) -> Discovered | None:
    """The one that a variable names, else one of a checkout: here or above, in this directory, the usual."""
    if root := around.environ.get("SIREPO_SRDB_ROOT", "").strip():
        return Discovered(SourceSpec("srdb", root), "SIREPO_SRDB_ROOT")
    checkouts = [around.directory]
    while (parent := os.path.dirname(checkouts[-1])) != checkouts[-1]:
        checkouts.append(parent)
    checkouts.append(os.path.join(around.directory, "sirepo"))
    checkouts.append(os.path.join(around.home, CHECKOUT_IN_HOME))
    for directory in checkouts:
        root = os.path.join(directory, DEVELOPMENT_DIR)
        if os.path.isdir(os.path.join(root, SUPERVISOR_DB)):
            return Discovered(SourceSpec("srdb", root), f"found in {directory}")
    return None


def _local_journal(around: Surroundings) -> Discovered | None:
    """The journal of a machine on which Sirepo's units are installed: it is not opened to find that out."""
    directories = (os.path.join(around.root, name) for name in UNIT_DIRECTORIES)
    units = (os.path.join(directory, unit) for directory in directories for unit in UNITS)
    unit = next(filter(os.path.lexists, units), None)
    if unit is None or not any(os.path.isdir(os.path.join(around.root, d)) for d in JOURNAL_DIRECTORIES):
        return None
    return Discovered(SourceSpec("journal", LOCAL_JOURNAL), f"found {unit}")


def _balsam_login(around: Surroundings) -> Discovered | None:
    """The server that Balsam's own client is logged in to. Of its file only the address is read."""
    from jobtui.backends.balsam.login import login_path, read_login  # few have one
    from jobtui.model.source_errors import SourceError

    path = login_path(around.environ, around.home)
    if not os.path.lexists(path):
        return None
    try:
        return Discovered(parse_balsam(read_login(path).api_root), f"found {path}")
    except (SourceError, ValueError):
        return None


LOOKED_FOR = (
    f"SIREPO_SRDB_ROOT, {DEVELOPMENT_DIR}/{SUPERVISOR_DB} of a Sirepo checkout here or above, "
    "Sirepo's units on this machine, ~/.balsam/client.yml"
)


def discover(around: Surroundings) -> tuple[Discovered, ...]:
    return tuple(filter(None, (_database(around), _local_journal(around), _balsam_login(around))))
