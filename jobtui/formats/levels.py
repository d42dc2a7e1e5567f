"""How much a line of any log matters, guessed by its form and words: few logs say it.

A level of Python's logging, or one in capitals or as a `level=`, decides alone: a line at INFO that mentions
a failure stays plain. Otherwise a line is an error by a traceback, the name of an exception, or a value such
as `error=` and `exit=`; a word such as "failed" makes a warning.
"""

import re
from collections.abc import Iterator

from jobtui.model.pages import Level

LEVEL_BYTES = 4096
"""How much of a line is read."""

_STATED = re.compile(
    r"(?<![\w./-])(?:(?P<python>DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]+:"
    r"|(?P<capital>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERR|ERROR|CRIT|CRITICAL|FATAL|PANIC|ALERT|EMERG)"
    r"(?![\w.=/-])"
    r"|[\"']?(?:level|lvl|severity)[\"']?[=:] ?[\"']?(?P<key>[A-Za-z]+))",
    re.ASCII,
)
_ERROR_WORDS = ("Traceback (most recent call last)", "egmentation fault", "core dumped")
_ERROR_BEGIN = re.compile(
    r"(?:[\w.]+\.)?\w*(?:Error|Exception)\b(?::|$)|(?:error|fatal|panic)(?:\[\w+\])?:", re.ASCII
)
_ERROR_VALUE = re.compile(
    r"[=:](?:(?:(?<=\berror=)|(?<=\bexception=))(?!None\b|''|\"\"|\s|$|<)|(?<=\serror msg=)"
    r"|(?:(?<=\bexit=)|(?<=\breturncode=)|(?<=\bexit_code=))-?[1-9]"
    r"|(?:(?<=\bstate.)|(?<=\bstatus.)|(?<=\bstate['\"].)|(?<=\bstatus['\"].)) ?['\"]?error\b)",
    re.ASCII,
)
"""It begins with what is rare in a line, as a search is fast up to there."""
_WARNING = re.compile(
    r"\b(?:warn(?:ing)?|fail(?:ed|ure)|refused|denied|timed out|killed|aborted)\b", re.ASCII | re.IGNORECASE
)
_NEEDLES = (
    *(b"rror", b"ERR", b"raceback", b"xception", b"CRIT", b"FATAL", b"PANIC", b"ALERT", b"EMERG"),
    *(b"evel", b"everity", b"lvl", b"xit=", b"xit_code=", b"returncode=", b"gmentation", b"dumped"),
    *(b"fatal", b"panic"),
)
"""A line that is an error holds one of these."""
_GATE = (
    *("err", "crit", "fatal", "panic", "alert", "emerg", "warn", "level", "lvl", "severity"),
    *("traceback", "xception", "exit", "returncode", "tion fault", "dumped"),
    *("fail", "refused", "denied", "timed out", "killed", "aborted"),
)
"""A line that is not plain holds one of these in lower case: a fast test, as most lines are plain."""
_NAMES = {
    **dict.fromkeys(["ERR", "ERROR", "CRIT", "CRITICAL", "FATAL", "PANIC", "ALERT", "EMERG"], Level.ERROR),
    **dict.fromkeys(("WARN", "WARNING"), Level.WARNING),
}


def level_of(text: str) -> Level:
    text = text[:LEVEL_BYTES]
    low = text.lower()
    if not any(word in low for word in _GATE):
        return Level.PLAIN
    if stated := _STATED.search(text):
        word = stated["python"] or stated["capital"] or stated["key"]
        return _NAMES.get(word.upper(), Level.PLAIN)
    if any(word in text for word in _ERROR_WORDS) or _ERROR_BEGIN.match(text) or _ERROR_VALUE.search(text):
        return Level.ERROR
    return Level.WARNING if _WARNING.search(text) else Level.PLAIN


def error_lines(data: bytes, start: int, stop: int) -> Iterator[int]:
    """The offsets in `data` of lines that are errors, of those that begin in `start` .. `stop`, in order.

    A line begins at 0 and after each newline. `data` should go on after `stop` for LEVEL_BYTES.
    """
    candidates: set[int] = set()
    limit = min(len(data), stop + LEVEL_BYTES)
    for needle in _NEEDLES:
        at = data.find(needle, start, limit)
        while at >= 0:
            begin = data.rfind(b"\n", 0, at) + 1
            if start <= begin < stop:
                candidates.add(begin)
            end = data.find(b"\n", at, limit)
            at = data.find(needle, end, limit) if end >= 0 else -1
    for begin in sorted(candidates):
        end = data.find(b"\n", begin, begin + LEVEL_BYTES)
        line = data[begin : end if end >= 0 else begin + LEVEL_BYTES]
        if level_of(line.decode("utf-8", "replace")) is Level.ERROR:
            yield begin
