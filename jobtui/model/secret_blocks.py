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
_BLOCK_SIGN = re.compile(
    rf"(?P<indent>)(?:{SECRET_WORDS})[\w.\-]{{0,60}}['\"]?[ \t]*:[ \t]*[|>][+\-\d]{{0,2}}\s*$", re.I | re.A
)
"""The end of a line after which a block follows, whatever is before."""
_ITEM_NAME = re.compile(
    r"[ \t]*(?:-[ \t]+)?(?:['\"]?(?:name|key|stringValue)['\"]?:[ \t]*['\"]?|['\"]?--?)"
    rf"[\w.\-]*(?:{SECRET_WORDS})[\w.\-]*['\"]?,?\s*",
    re.IGNORECASE | re.ASCII,
)
_ITEM_VALUE = re.compile(
    r"[ \t]*(?:['\"]?(?:value|stringValue)['\"]?:[ \t]+(?=[^\s{])|-[ \t]+(?=\S)|(?=['\"][^'\"]*['\"][\s,]*$))"
)
_ITEM_GOES_ON = re.compile(r"[ \t]*(?:['\"]?value['\"]?:[ \t]*)?[\s{}\[\],]*")
"""Environments and arguments in YAML and JSON: the line of a name, and that of its value after it."""
_LONE_VALUE = re.compile(r"(?=\S*\w{3})(?![\w.\-]+['\"]?[:=]|[\[<])\S{4,}\s*", re.ASCII)
"""A line of one word that begins no pair, section or tag."""
_BLOCK_VALUE = re.compile(r"(?s)^(?:(['\"])[^'\"]*(\1[\])},]*)|.*())$")


def without_blocks(lines: Iterable[str]) -> Iterator[str]:
    """`lines` with those masked that are the value of a secret key above them.

    These are all that YAML indents below it, or the next line when it is a word of its own. Each may be a
    record of a log of its own.
    """
    indent: int | None = None
    is_item = False
    for line in lines:
        item = _ITEM_VALUE.match(line) if is_item else None
        is_item = (_ITEM_GOES_ON if is_item else _ITEM_NAME).fullmatch(line) is not None
        if item is not None:
            yield item[0] + _BLOCK_VALUE.sub(rf"\1{MASK}\2", line[item.end() :])
            continue
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
            if key is None and not {"|", ">"}.isdisjoint(line.rstrip()[-2:]):
                key = _BLOCK_SIGN.search(line, head)
            indent = len(key["indent"]) if key else None
        yield line
