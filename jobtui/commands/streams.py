"""Standard output and standard error: what may be written to them, and what to do when they are gone.

Whatever the locale, nothing that is printed raises: a character which the encoding of a stream lacks is
replaced by one ASCII character, so that tables stay aligned.
"""

import codecs
import errno
import os
import sys
from collections.abc import Callable, Mapping

from jobtui.commands.exits import Exit
from jobtui.model.secrets import mask_text


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from jobtui.render.glyphs import ASCII_FOR  # few streams lack a character

    return "".join(ASCII_FOR.get(c, "?") for c in error.object[error.start : error.end]), error.end


_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})

codecs.register_error("jobtui.ascii", _replace)


def said_ascii(environment: Mapping[str, str]) -> bool:
    """Whether a locale was named that has ASCII only, which Python takes for UTF-8."""
    return (environment.get("LC_ALL") or environment.get("LANG")) in ("C", "POSIX")


def prepare_streams() -> None:
    """Make the standard streams take every character, and exist."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller, as with >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - lives as long as we do
        elif hasattr(stream, "reconfigure"):
            is_ascii = said_ascii(os.environ) and stream.isatty()
            stream.reconfigure(errors="jobtui.ascii", **({"encoding": "ascii"} if is_ascii else {}))


def complain(text: str) -> None:
    """One line on stderr."""
    from jobtui.render.text import show

    prepare_streams()
    try:
        sys.stderr.write(f"jobtui: {show(text)}\n")
        sys.stderr.flush()
    except OSError:
        _detach(sys.stderr.fileno())


def guarded(write: Callable[[], int]) -> int:
    """The exit code that `write` returns; a reader that goes away (`| head`) is a quiet end."""
    try:
        code = write()
        sys.stdout.flush()
    except BrokenPipeError:
        _detach(sys.stdout.fileno())
        return Exit.FINE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        _detach(sys.stdout.fileno())
        complain(f"the output cannot be written: {error.strerror}")
        return Exit.USAGE
    return code


def _detach(descriptor: int) -> None:
    """Point a stream whose reader is gone at nothing, so that Python's own flush at exit stays quiet."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def marked(text: str, start: int, end: int) -> str:
    """A text with what is wrong in it between marks; masked and without them when it holds a secret.

    Marks would part the name of a secret from its value, so that neither is known for one.
    """
    masked = mask_text(text)
    return f"{text[:start]}>>>{text[start:end]}<<<{text[end:]}" if masked == text else masked
