"""Copies text and commands to the clipboard, and opens files in a pager or editor.

Pagers and editors run without a shell, with arguments that are fixed. Only pagers that show control
characters instead of sending them are started, and only editors that have a read-only mode.
"""

import asyncio
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from textual.app import App
from textual.screen import Screen

from jobtui.actions import key_of
from jobtui.backends.registry import LOG_FILE
from jobtui.model.commands import Command
from jobtui.model.ids import JobId
from jobtui.model.job_reader import Unreadable
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.ops import Step
from jobtui.render.columns import JOB_COLUMNS, RowContext
from jobtui.render.terminal import CopyWay, TooLong, clipboard_sequence, way_for
from jobtui.render.text import fit, safe, show
from jobtui.screens.shared import CopyTarget, Shared
from jobtui.widgets.timeline import where

COPIED_CELLS = 40
"""How many cells of a copied text are shown in the notice."""
TMUX_S = 5.0


def copy(screen: Screen[None], wish: str, text: str) -> None:
    match way_for(wish, os.environ):
        case CopyWay.OFF:
            screen.notify("copying is off: --clipboard off", severity="warning")
        case CopyWay.FILE:
            write_file(screen, text)
        case CopyWay.TMUX:
            screen.run_worker(_through_tmux(screen, text), group="copy")
        case CopyWay.OSC52:
            _through_terminal(screen, text)


def _through_terminal(screen: Screen[None], text: str) -> None:
    try:
        sequence = clipboard_sequence(text, os.environ)
    except TooLong as error:
        write_file(screen, text, f", as {error}")
        return
    write_sequence(screen.app, sequence)
    _say_copied(screen, text)


def write_sequence(app: App[Any], sequence: str) -> None:
    if app._driver is not None:
        app._driver.write(sequence)


async def _through_tmux(screen: Screen[None], text: str) -> None:
    """Make it the newest buffer of tmux, which passes it to its terminal without any setting."""
    load = ("tmux", "load-buffer", "-w", "-")
    if await run_quietly(load, {}, TMUX_S, text.encode("utf-8", "replace")) is None:
        _say_copied(screen, text)
    else:
        _through_terminal(screen, text)


async def run_quietly(
    command: Sequence[str], facts: Mapping[str, str], timeout_s: float, typed: bytes = b""
) -> str | None:
    """Run a command with these variables added to the environment; how it failed, if it did."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, **facts},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    try:
        async with asyncio.timeout(timeout_s):
            await process.communicate(typed)
    except TimeoutError:
        return f"was stopped after {timeout_s:g} s"
    finally:  # also if the program ends in the meantime
        if process.returncode is None:
            process.kill()
        while process.returncode is None:  # it ends at once, also if this is cancelled a second time
            with suppress(asyncio.CancelledError):
                await process.wait()
    if code := process.returncode:
        return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return None


def _say_copied(screen: Screen[None], text: str) -> None:
    screen.notify(f"copied {fit(safe(text), COPIED_CELLS).rstrip()}", timeout=2, markup=False)


def write_file(screen: Screen[None], text: str, why: str = "", ending: str = ".txt") -> None:
    """Write a text to a new file that is this user's, and say where; `why` begins with a comma."""
    from tempfile import NamedTemporaryFile

    try:
        with NamedTemporaryFile(
            "w", prefix="jobtui-", suffix=ending, delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.write(text)
    except OSError as error:
        screen.notify(f"not written{why}; {error.strerror}", severity="warning", markup=False)
        return
    screen.notify(f"written to {safe(file.name)}{why}", timeout=10, markup=False)


async def job_report(shared: Shared, job_id: JobId) -> str:
    """The report on a job as Markdown; "" if no source has a record of it."""
    from jobtui.analysis.explain.verdict import explain
    from jobtui.render.verdicts import post_mortem_lines

    evidence = await shared.gatherer().whole(job_id)
    if evidence.job is None:
        return ""
    job = shared.store.with_agent(evidence.job)
    return "\n".join(post_mortem_lines(job, explain(evidence), evidence))


async def record_of(shared: Shared, job_id: JobId) -> JobDetail | None:
    with suppress(Unreadable):
        if (detail := await shared.job_reader.detail(job_id)) is not None:
            return detail
    job = shared.store.job(job_id)
    return None if job is None else JobDetail(job=job)


async def job_target(shared: Shared, job: Job, context: RowContext) -> CopyTarget:
    detail = await record_of(shared, job.id)
    values = ((column.key, column.cell(job, context).strip()) for column in JOB_COLUMNS)
    facts = "\n".join(f"{key:<10}{value}" for key, value in values if value and value != "–")
    return CopyTarget(facts, shared.command("show", about=[job.id]), detail.path or "" if detail else "")


def step_taken(shared: Shared, step: Step) -> CopyTarget:
    block = f"{where(step, full=True)}\n{show(step.text)}"
    if not is_file(shared, step.source):
        return CopyTarget(block, shared.command("find", about=[step.text]))
    return file_target(step.source, step.line if step.line > 0 else 0, step.offset)._replace(block=block)


def is_file(shared: Shared, source: str) -> bool:
    return all(known.kind == LOG_FILE.kind for known in shared.store.sources() if known.name == source)


def file_target(path: str, line: int = 0, offset: int = 0) -> CopyTarget:
    """How to copy a line of a file: its path, and `less` at the line, or at the byte if it has no number."""
    path = os.path.abspath(path)
    at = f"+{line}" if line else f"+{offset}P" if offset else ""
    return CopyTarget(show(path), Command("less", *((at,) if at else ()), about=[path]), path, line)


PAGERS: Mapping[str, tuple[str, ...]] = {"less": ("-+r", "-+R"), "most": ()}
"""Safe pagers, with what makes them so."""
EDITORS: Mapping[str, tuple[str, ...]] = {
    "vi": ("-R",), "vim": ("-R",), "nvim": ("-R",), "view": (), "nano": ("-v",), "pico": ("-v",),
    "kak": ("-ro",), "micro": ("-readonly", "true"),
}  # fmt: skip
"""Editors, with what keeps them from writing."""
GUARDS = {"LESSSECURE": "1", "LESSOPEN": "", "LESSCLOSE": ""}
"""Keeps `less` from starting other programs."""


class NotStarted(Exception):
    """A program cannot be started. The text says why, and what to do."""


def pager_call(environ: Mapping[str, str], path: str, line: int = 0) -> tuple[str, ...]:
    """The user's pager on a file at a line; `less` in place of one that sends control characters."""
    chosen = _words(environ.get("PAGER", ""))
    if not chosen or os.path.basename(chosen[0]) not in PAGERS:
        chosen = ["less"]
    return _call(chosen, PAGERS[os.path.basename(chosen[0])], path, line)


def editor_call(environ: Mapping[str, str], path: str, line: int = 0) -> tuple[str, ...]:
    """The user's editor on a file at a line, in its read-only mode. Raises NotStarted."""
    chosen = _words(environ.get("VISUAL") or environ.get("EDITOR") or "vi")
    name = os.path.basename(chosen[0]) if chosen else ""
    if name not in EDITORS:
        raise NotStarted(f"{name} is not known to open files read-only; {key_of('app.page')} opens the pager")
    return _call(chosen, EDITORS[name], path, line)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _call(chosen: Sequence[str], options: Sequence[str], path: str, line: int) -> tuple[str, ...]:
    at = (f"+{line}",) if line else ()
    return (*chosen, *options, *at, os.path.abspath(path))


def check_file(path: str) -> None:
    """Whether a path is a file that can be opened. Raises NotStarted."""
    if not os.path.isfile(path):
        raise NotStarted(f"{path}: no such file here")
    if not os.access(path, os.R_OK):
        raise NotStarted(f"{path}: permission denied; run as a user who may read it")


def run_program(words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Run a program until it ends; ctrl+c goes to it alone until then. Raises NotStarted."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGQUIT)}
    for number in before:
        signal.signal(number, lambda *_: None)  # not SIG_IGN, which the program would inherit
    try:
        subprocess.run(words, check=False, env={**environ, **GUARDS})
    except OSError as error:
        raise NotStarted(f"{words[0]}: {error.strerror}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
