"""Where sources are found when none is configured. Looks at names only; opens and reads nothing."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from jobtui.model.specs import SourceSpec

SUPERVISOR_DB = "supervisor-job"
DEVELOPMENT_DIR = "run"
CHECKOUT_IN_HOME = os.path.join("src", "radiasoft", "sirepo")
"""Where the developers of Sirepo keep their checkout."""


class Surroundings(NamedTuple):
    """What discovery may look at."""

    environ: Mapping[str, str]
    directory: str
    home: str


class Finding(NamedTuple):
    """A source that was found, and by what."""

    spec: SourceSpec
    origin: str


class Rule(NamedTuple):
    """One place where a source may be: how it is called in a message, and how it is looked for."""

    looked_for: str
    look: Callable[[Surroundings], Finding | None]


def _by_variable(around: Surroundings) -> Finding | None:
    root = around.environ.get("SIREPO_SRDB_ROOT", "").strip()
    return Finding(SourceSpec("srdb", root), "SIREPO_SRDB_ROOT") if root else None


def _beside_checkout(around: Surroundings) -> Finding | None:
    for directory in _checkouts(around):
        root = os.path.join(directory, DEVELOPMENT_DIR)
        if os.path.isdir(os.path.join(root, SUPERVISOR_DB)):
            return Finding(SourceSpec("srdb", root), f"found in {directory}")
    return None


def _checkouts(around: Surroundings) -> Iterable[str]:
    """This directory and those above it, a checkout in it, and the usual one."""
    directory = around.directory
    while True:
        yield directory
        parent = os.path.dirname(directory)
        if parent == directory:
            break
        directory = parent
    yield os.path.join(around.directory, "sirepo")
    yield os.path.join(around.home, CHECKOUT_IN_HOME)


RULES: tuple[Rule, ...] = (
    Rule("SIREPO_SRDB_ROOT", _by_variable),
    Rule(f"{DEVELOPMENT_DIR}/{SUPERVISOR_DB} of a Sirepo checkout here or above", _beside_checkout),
)


def discover(around: Surroundings) -> tuple[Finding, ...]:
    """The sources of the first rule that finds something."""
    for rule in RULES:
        if found := rule.look(around):
            return (found,)
    return ()


def looked_for() -> str:
    """What `discover` looks for, in words."""
    return ", ".join(rule.looked_for for rule in RULES)
