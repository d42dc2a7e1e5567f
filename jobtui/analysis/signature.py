"""The signature of a failure: what it says, without what differs from one run to the next.

Numbers, ids, addresses, times, directories and lengths of lists are left out; names of files and functions,
exit codes, signals and numbers of errors stay. A digit that belongs to a word goes too: `node17` is `nodeN`.
"""

import re
from collections.abc import Callable, Sequence

from jobtui.model.jobs import Job
from jobtui.model.patterns import regex
from jobtui.model.verdicts import Concern, Verdict

LONGEST_READ, LONGEST = 1_200, 200
"""How many characters of a text are used, and of a signature."""
LONGEST_EXAMPLE = 300


def _last_part(found: re.Match[str]) -> str:
    """A path as its last part, where that is the name of a file or of a program."""
    directories, _, name = found[0].rpartition("/")
    is_named = "." in name.strip(".") or directories.endswith(("bin", "lib", "libexec"))
    return f"…/{name}" if is_named else "…"


_KEPT = regex(
    r"(?i)\b(?:exit(?:ed)?(?: with)?(?: (?:code|status))?|signal|errno|status(?: code)?|http(?:/[\d.]++)?"
    r"|error)"
    r"[\s:=]*(?P<code>\d{1,3}(?::\d{1,3})?)\b(?![.:/]\d)"
)
"""Numbers that say what went wrong."""
_ALTERNATES = regex(r"[a-zA-Z]\d+[a-zA-Z]|\d[a-zA-Z]+\d")
_FOLDS: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = (
    (regex(r"\x1b\[[0-?]*[ -/]*[@-~]"), ""),
    (regex(r"\b[a-z][a-z+]+://[^\s'\"<>]+"), "URL"),
    (regex(r"(?<![\w.…])(?:~|\.{1,2})?/(?:[^\s/'\"`:;,()<>\[\]]+/)*[^\s/'\"`:;,()<>\[\]]*"), _last_part),
    (regex(r"(?<![\w/.+-])(?:[\w.+-]+/(?:[\w.+-]+/)+[\w.+-]*|[\w+-]+/[\w+-]+\.\w+)"), _last_part),
    (regex(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b0x[0-9a-fA-F]+\b"), "N"),
    (regex(r"\b(?=\w*\d)(?=\w*[a-fA-F])[0-9a-fA-F]{8,}\b"), "N"),
    (regex(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "N"),
    (regex(r"(?:(?<![\w)\]])[+-])?(?<![\w.])\d+(?:[.,:]\d+)*\.?(?:[eE][+-]?\d+)?(?![\w])"), "N"),
    # A word in which digits and letters alternate is an id; a name keeps its letters
    (regex(r"[a-zA-Z0-9]+"), lambda found: "N" if _ALTERNATES.search(found[0]) else found[0]),
    (regex(r"\d+(?:\.\d+)*"), "N"),
    (regex(r"\bN(?:[\s,;x×*]+N\b)+"), "N"),
    (regex(r"\s+"), " "),
)  # fmt: skip
_HELD = "\x02{}\x03"
_HOLDS = regex("\x02([a-j:]+)\x03")
_LETTERS = str.maketrans("0123456789", "abcdefghij")
_DIGITS = str.maketrans("abcdefghij", "0123456789")


def signature(text: str) -> str:
    """A text without what differs between runs. The signature of a signature is itself."""
    text = _KEPT.sub(_hold, text[:LONGEST_READ])
    for pattern, replacement in _FOLDS:
        text = pattern.sub(replacement, text)
    return _HOLDS.sub(lambda found: found[1].translate(_DIGITS), text).strip()[:LONGEST].rstrip()


def _hold(found: re.Match[str]) -> str:
    return found[0][: found.start("code") - found.start()] + _HELD.format(found["code"].translate(_LETTERS))


def failure_text(job: Job, verdict: Verdict) -> str:
    """Why a job failed, by its output, its record, or the verdict; "" where it did not fail.

    A line of output that ends as the record does gives the record's words: other runs have only these.
    """
    if verdict.concern is not Concern.FAILED:
        return ""
    said = verdict.cause.text if verdict.cause is not None else ""
    if not said or (job.error and said.endswith(job.error)):
        said = job.error or job.alert or ""
    return said or verdict.code.value.replace("_", " ")
