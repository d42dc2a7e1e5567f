"""The commands: what each reads and finds out. Printing is for `printing`, texts are made in `render`."""

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobtui.commands.context import Context

_MODULES: Mapping[str, str] = {
    "changed": "remember", "incidents": "explain", "init": "config", "nodes": "agents",
    "replay": "record", "seen": "remember", "serve": "open", "status": "jobs", "wait": "watch",
}  # fmt: skip
"""Commands whose code is in the module of another one."""


def runner(name: str) -> "Callable[[Context], int]":
    """The function that runs a command: `run` of its module, or `run_NAME` in that of another command.

    One that is a coroutine is run with a reader over the configured sources.
    """
    from inspect import iscoroutinefunction  # --version and --help do without

    module = import_module(f"jobtui.commands.{_MODULES.get(name, name)}")
    run = getattr(module, f"run_{name}" if name in _MODULES else "run")
    if iscoroutinefunction(run):
        from jobtui.commands.reader import in_session

        return wraps(run)(lambda context: in_session(context, run))
    found: Callable[[Context], int] = run
    return found
