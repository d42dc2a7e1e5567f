"""Exit codes, and standard output and error: what may be written, and what to do if they are gone.

Whatever the locale, nothing that is printed raises: a character which the encoding of a stream lacks is
replaced by one ASCII character, so that tables stay aligned.
"""

import codecs
import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    """The meanings of exit codes; one line on stderr says why."""

    FINE = 0
    FAILED = 1
    USAGE = 2
    ATTENTION = 3
    NOT_FOUND = 4
    NO_SOURCE = 5
    FAULT = 70
    """A fault of jobtui itself, as EX_SOFTWARE of sysexits.h."""
    INTERRUPTED = 130


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from jobtui.render.terminal import signs  # few streams lack a character

    known = signs("ascii")
    return "".join(known.get(char, "?") for char in error.object[error.start : error.end]), error.end


SIGNALLED = 128
"""Added to the number of the signal that ended a command, as shells do."""
_UNWRITABLE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF, errno.EINVAL, errno.EPERM, errno.ENXIO,
     errno.EAGAIN, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET, errno.ENOTCONN}
)  # fmt: skip
"""The errors of an output that cannot be written to; errors of files also name the file."""

codecs.register_error("jobtui.ascii", _replace)


def prepare_streams() -> None:
    if sys.stdin is None:  # closed by the caller, as with <&-
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - lives as long as we do
    # Python takes these for UTF-8
    has_ascii_only = (os.environ.get("LC_ALL") or os.environ.get("LANG")) in ("C", "POSIX")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller, as with >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - lives as long as we do
        elif hasattr(stream, "reconfigure"):
            is_ascii = has_ascii_only and stream.isatty()
            stream.reconfigure(errors="jobtui.ascii", **({"encoding": "ascii"} if is_ascii else {}))


def complain(text: str, code: Exit = Exit.FINE) -> Exit:
    """Say on stderr what is wrong. Returns the exit code for it."""
    from jobtui.render.text import show

    prepare_streams()
    try:
        shown = show(text)
    except Exception as error:  # noqa: BLE001 - as `contained`, which takes long to import, would have it
        from jobtui.model.health import FAULTS

        shown = FAULTS.note(error, "saying what is wrong").words
    try:
        sys.stderr.write(f"jobtui: {shown}\n")
        sys.stderr.flush()
    except OSError:
        _detach(sys.stderr.fileno())
    return code


def guarded(write: Callable[[], int]) -> int:
    """The exit code of `write`; if its reader goes away (`| head`) it ends quietly."""
    try:
        code = write()
        sys.stdout.flush()
    except BrokenPipeError:
        _detach(sys.stdout.fileno())
        return Exit.FINE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _detach(sys.stdout.fileno())
        return complain(f"the output cannot be written: {error.strerror}", Exit.USAGE)
    return code


@contextmanager
def termination_signals() -> Iterator[Callable[[int], int]]:
    """Let SIGTERM and SIGHUP end a command as ctrl+c does, so that programs it started end with it.

    An ignored signal stays ignored, as under nohup. Gives a function that makes the exit code.
    """
    received: list[int] = []
    before: dict[int, Any] = {}

    def end(number: int, frame: object) -> None:
        received.append(number)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.raise_signal(signal.SIGINT)
            return
        # As of what a script starts with `&`. Python ignores what is raised in some places (`__del__`).
        loop = events._get_running_loop() if (events := sys.modules.get("asyncio.events")) else None
        if loop is None:
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(signal.default_int_handler, number, None)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, end)
    try:
        yield lambda code: SIGNALLED + received[-1] if received else code
    finally:
        for signalled, handler in before.items():
            signal.signal(signalled, handler)


def fault(error: Exception) -> int:
    """Say on stderr what ended a command: settings, a source, or a fault of jobtui. Returns the exit code."""
    from jobtui.config import ConfigError
    from jobtui.model.health import FAULTS, SourceError

    if isinstance(error, ConfigError):
        for line in error.lines:
            complain(line)
        return Exit.USAGE
    if isinstance(error, SourceError):  # no thread, for one
        return complain(str(error), Exit.NO_SOURCE)
    FAULTS.note(error, "running the command")
    return say_faults(Exit.FAULT)


def say_faults(code: int) -> int:
    """Report faults of jobtui on stderr. Returns FAULT if the exit code would otherwise be FINE.

    Their jobs or lines are missing in the output.
    """
    from jobtui.model.health import FAULTS, SEE

    if not (faults := FAULTS.all()):
        return code
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    complain(f"{faults[0].words}{more}; its results are missing; {SEE}")
    return code or Exit.FAULT


def _detach(descriptor: int) -> None:
    """Redirect a stream whose reader is gone to nothing, so that Python's flush at exit stays quiet."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def clear_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
