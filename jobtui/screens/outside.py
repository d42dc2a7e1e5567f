"""Programs of the user on a file, with the dashboard set aside: a pager, or an editor that only reads.

They run without a shell, with arguments that are fixed. Of pagers only those are started that show control
characters instead of sending them; of editors those that can be told not to write.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobtui.actions import key_of

PAGERS: Mapping[str, tuple[str, ...]] = {"less": ("-+r", "-+R"), "most": ()}
"""Safe pagers, with what makes them so."""
EDITORS: Mapping[str, tuple[str, ...]] = {
    "vi": ("-R",),
    "vim": ("-R",),
    "nvim": ("-R",),
    "view": (),
    "nano": ("-v",),
    "pico": ("-v",),
    "kak": ("-ro",),
    "micro": ("-readonly", "true"),
}
"""Editors, with what keeps them from writing."""
GUARDS = {"LESSSECURE": "1", "LESSOPEN": "", "LESSCLOSE": ""}
"""Keeps `less` from starting other programs."""


class NotStarted(Exception):
    """A program cannot be started. The text says why, and what to do."""


class Call(NamedTuple):
    """A program and its arguments."""

    words: tuple[str, ...]


def pager_call(environ: Mapping[str, str], path: str, line: int = 0) -> Call:
    """The user's pager on a file at a line; `less` when it is one that sends on what is in a file."""
    chosen = _words(environ.get("PAGER", ""))
    if not chosen or os.path.basename(chosen[0]) not in PAGERS:
        chosen = ["less"]
    return _call(chosen, PAGERS[os.path.basename(chosen[0])], path, line)


def editor_call(environ: Mapping[str, str], path: str, line: int = 0) -> Call:
    """The user's editor on a file at a line, told not to write. Raises NotStarted."""
    chosen = _words(environ.get("VISUAL") or environ.get("EDITOR") or "vi")
    name = os.path.basename(chosen[0]) if chosen else ""
    if name not in EDITORS:
        raise NotStarted(
            f"{name} is not known to open a file without writing to it; {key_of('app.page')} opens the pager"
        )
    return _call(chosen, EDITORS[name], path, line)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _call(chosen: Sequence[str], options: Sequence[str], path: str, line: int) -> Call:
    at = (f"+{line}",) if line else ()
    return Call((*chosen, *options, *at, os.path.abspath(path)))


def check(path: str) -> None:
    """Whether a path is a file that can be opened. Raises NotStarted."""
    if not os.path.isfile(path):
        raise NotStarted(f"{path}: no such file here")
    if not os.access(path, os.R_OK):
        raise NotStarted(f"{path}: may not be read")


def run(call: Call, environ: Mapping[str, str]) -> None:
    """Run a program until it ends; ctrl+c is for it alone meanwhile. Raises NotStarted."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGQUIT)}
    for number in before:
        signal.signal(number, lambda *_: None)  # not SIG_IGN, which the program would inherit
    try:
        subprocess.run(call.words, check=False, env={**environ, **GUARDS})
    except OSError as error:
        raise NotStarted(f"{call.words[0]}: {error.strerror}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
