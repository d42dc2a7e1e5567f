"""Values of secrets in lines below their key: the one part of masking that needs the lines before.

Imported for every log that is printed, so it compiles little.
"""

import re
from collections.abc import Iterable, Iterator

from jobtui.model.secret_words import MASK, SECRET_WORDS

_RECORD_HEAD = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d |\d{4}-\d\d-\d\d[ T])\d\d:\d\d:\d\d[^\n]{0,300}?:\d{1,7}(?::\w+|\]) ", re.ASCII
)
"""What comes before the message of a log record, see `formats.parser.LINE` and the logs of Balsam's sites."""
_BLOCK_KEY = re.compile(
    rf"(?P<indent>[ \t]*(?:-[ \t]+)?)[{{(]?['\"]?[\w.\-]{{0,60}}(?:{SECRET_WORDS})"
    r"[\w.\-]{0,60}['\"]?[ \t]*:"
    r"[ \t]*(?:[|>][+\-\d]{0,2}[ \t]*)?(?:[ \t]#.*)?\s*",
    re.IGNORECASE | re.ASCII,
)
_LONE_VALUE = re.compile(r"(?=\S*\w{3})(?![\w.\-]+['\"]?[:=]|[\[<])\S{4,}\s*", re.ASCII)
"""A line of one word that begins no pair, section or tag."""
_BLOCK_VALUE = re.compile(r"(?s)^(?:(['\"])[^'\"]*(\1[\])},]*)|.*())$")


def without_blocks(lines: Iterable[str]) -> Iterator[str]:
    """`lines` with those masked that are the value of a secret key above them.

    These are all that YAML indents below it, or the next line when it is a word of its own. Each may be a
    record of a log of its own.
    """
    indent: int | None = None
    for line in lines:
        if line.strip():
            found = _RECORD_HEAD.match(line)
            head = found.end() if found else 0
            begin = len(line) - len(line[head:].lstrip(" \t"))
            inner = begin - head
            if indent is not None and (inner > indent or (inner == indent and line.startswith("- ", begin))):
                yield line[:begin] + _BLOCK_VALUE.sub(rf"\1{MASK}\2", line[begin:])
                continue
            if inner == indent and _LONE_VALUE.fullmatch(line, begin):
                yield line[:begin] + _BLOCK_VALUE.sub(rf"\1{MASK}\2", line[begin:])
                indent = None
                continue
            key = _BLOCK_KEY.fullmatch(line, head)
            indent = len(key["indent"]) if key else None
        yield line
