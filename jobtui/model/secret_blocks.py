"""Values of secrets in lines below their key: the one part of masking that needs the lines before.

Imported for every log that is printed, so it compiles little.
"""

import re
from typing import Literal

from jobtui.model.secret_words import MASK, SECRET_WORDS, holds_any

_RECORD_HEAD = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d |\d{4}-\d\d-\d\d[ T])\d\d:\d\d:\d\d[^\n]{0,300}?:\d{1,7}(?::\w+|\]) ", re.ASCII
)
"""What comes before the message of a log record, see `formats.parser.LINE` and the logs of Balsam's sites."""
_STYLE = r"[|>][+\-\d]{0,2}"
_SIGN = rf"(?P<sign>[:=](?:[ \t]*(?:{_STYLE}|[{{\[(]))?)"
"""What is between a key and its value, with the style of a block of YAML or an opening bracket."""
_BLOCK_KEY = re.compile(
    rf"(?<![\w.\-])[{{(]?['\"]?[\w.\-]{{0,60}}(?:{SECRET_WORDS})[\w.\-]{{0,60}}"
    r"(?:[ ](?:key|code|phrase))?(?:[ ](?:for|of)[ ](?:user[ ])?[\w.@\-]{1,64})?(?:[ ](?:is|was)(?:[ ]now)?)?"
    rf"['\"]?[ \t]*{_SIGN}[ \t]*(?:[ \t]#.*)?\s*$",
    re.IGNORECASE | re.ASCII,
)
_MARGIN = re.compile(r"[ \t]*(?:-[ \t]+)?")
_OPENERS = "{[("
_KEY_ENDS = ":=|>" + _OPENERS
_KEY_CHARACTERS = 300
"""How far from the end of a line its key begins at most."""
_ITEM_NAME = re.compile(
    r"(?:(?<=\s)|^)[ \t]*(?:-[ \t]+)?(?:['\"]?(?:name|key|stringValue)['\"]?:[ \t]*['\"]?|['\"]?--?)"
    rf"[\w.\-]*(?:{SECRET_WORDS})[\w.\-]*['\"]?,?\s*$",
    re.IGNORECASE | re.ASCII,
)
_ITEM_VALUE = re.compile(
    rf"[ \t]*(?:['\"]?(?:value|stringValue)['\"]?:[ \t]+(?!{_STYLE}\s*$)(?=[^\s{{])"
    r"|-[ \t]+(?=\S)|(?=['\"][^'\"]*['\"][\s,]*$))"
)
_ITEM_BLOCK = re.compile(rf"[ \t]*value:[ \t]*(?:{_STYLE})?\s*")
_ITEM_GOES_ON = re.compile(r"[ \t]*(?:['\"]?value['\"]?:[ \t]*)?[\s{}\[\],]*(?:#.*)?")
"""Environments and arguments in YAML and JSON: the line of a name, and that of its value after it."""
_HEADER = re.compile(
    r"(?<!\S)(?:[\w\-]*(?:authorization|cookie)|x-[\w\-]*(?:auth|key|token|signature)[\w\-]*)\s*:\s*(?=\S)",
    re.I,
)
"""A header of HTTP with a value, which indented lines may continue."""
_LOGIN = re.compile(r"(?<!\S)(?:default[ \t]+)?(?:(?:machine|login|account)[ \t]+\S+\s*)+$")
_LOGIN_VALUE = re.compile(r"[ \t]*(?:(?:login|account)[ \t]+\S+[ \t]+)*passw(?:or)?d[ \t]+(?=\S)")
"""Lines of `.netrc`, before that of a password and its own."""
_CUT = re.compile(
    rf"(?:://[^\s/?#'\"@:]*:(?!\d{{1,5}}\\?\s*$)[^\s'\"@\\]*"
    rf"|[?&][\w.\-]*(?:{SECRET_WORDS}|sig)[\w.\-]*=[^\s&'\"\\]*|eyJ[\w.\-]{{8,}})\\?\s*$",
    re.IGNORECASE | re.ASCII,
)
"""An address, or a token, at the end of a line, that may go on in the next one."""
_HEAD_END = re.compile(r"\d[^'\"]*$")
_ADDRESS_REST = re.compile(r"[^\s'\"/]*(?=@[\w.\-\[])")
_LONE_VALUE = re.compile(r"(?=\S*\w{3})(?![\w.\-]+['\"]?[:=]|[\[<])\S{4,}\s*", re.ASCII)
"""A line of one word that begins no pair, section or tag."""
_BLOCK_VALUE = re.compile(r"(?s)^(?:(['\"])[^'\"]*(\1[\])},]*)|.*())$")
WORDLIKE = re.compile(
    r"[/~].*|\.{1,2}/.*|\d+[\W_]?[a-z]+|[\d\W_]+|(?:aes|base|hs|krb|md|oauth|rs|rsa|sha|utf|v)[\W_]?\d.*"
    r"|[A-Z]?[a-z]+(?:[\W_][A-Za-z]?[a-z]+)*|[\w/.\-]+\.[a-z]{1,4}(?::\d+)?|[A-Z]+|\w+://.*|\w+\(.*",
    re.ASCII,
)
"""What is no secret in prose: words, paths, names of files, sizes, times, kinds of ciphers, addresses."""
_WORD = re.compile(r"(\S+)(\s*)")
_DIGITS = re.compile(r"\d+", re.ASCII)
_PRIVATE_BEGIN = re.compile("-----BEGIN [A-Z ]{0,40}PRIVATE KEY")
_PRIVATE_END = "-----END "
_PRIVATE_LINE = re.compile(
    r"[^\w+/=]*(?:[A-Za-z0-9+/=]*|(?:Proc-Type|DEK-Info|Comment): .*)(?:\\+n|[^\w+/=])*", re.ASCII
)
_SETTLED = re.compile(
    r"(?!(?:string)?value\b|Proc-Type|DEK-Info|Comment|login\b|account\b|passw)[^\s\-'\"{}\[\],@][^\s@]*"
    r"(?: (?!\S{16,}$)\S+)+",
    re.I | re.A,
)
"""A message of several words at the margin, which is the value of no key whatever is above it."""


def is_settled(line: str) -> bool:
    """Whether a line is shown as it is whatever is above it, and lines below it need nothing of what is."""
    found = _RECORD_HEAD.match(line)
    is_message = _SETTLED.fullmatch(line, found.end() if found else 0) is not None
    return is_message and WORDLIKE.fullmatch(line.rpartition(" ")[2].rstrip(".,;:!?)]}'\"")) is not None


_Kind = Literal["block", "group", "word", "item", "private key", "header", "login", "cut"]
"""What the lines below may be."""
_BEGINS: tuple[tuple[_Kind, tuple[str, ...], re.Pattern[str], int], ...] = (
    ("item", ("name", "key", "stringValue", "--", " -", "'-", '"-'), _ITEM_NAME, 80),
    ("header", ("uthorization", "ookie", "X-", "x-"), _HEADER, 1_000),
    ("login", ("login", "account"), _LOGIN, 80),
    ("cut", ("://", "eyJ"), _CUT, _KEY_CHARACTERS),
)
"""What begins at the end of a line, what the line has then, and how far from its end it begins at most."""


class SecretBlocks:
    """Masks what is secret by what is above it in the lines of one text, which are given in their order.

    That is all that YAML indents below a secret key, what is in its brackets, or the next line when it is a
    word of its own, of items the one after their name, and the lines of a private key. Behind a key that
    other words are before, it is a next word that looks like none. Each line may be a record of a log of its
    own: what is before a key and differs in numbers only from what is before its value is a head.
    """

    def __init__(self) -> None:
        self._kind: _Kind | None = None
        self._indent = 0
        self._before: list[tuple[str, str]] = []
        """The words before the key on its line, and the blanks after each."""

    def hide(self, text: str) -> str:
        return "\n".join(map(self._hide, text.split("\n"))) if "\n" in text else self._hide(text)

    def _hide(self, line: str) -> str:
        if self._kind is not None:
            at, is_alike = self._head_of(line)
            if self._kind == "cut" and (rest := _ADDRESS_REST.match(line, at)):
                self._kind = None
                return f"{line[:at]}{MASK}{line[rest.end() :]}"
            if (begin := self._begin_of_value(line, at, is_alike)) is not None:
                return line[:begin] + _BLOCK_VALUE.sub(rf"\1{MASK}\2", line[begin:])
        if self._kind is None:
            self._find_key(line)
        return line

    def _head_of(self, line: str) -> tuple[int, bool]:
        """Where the head of a record ends, and whether it is the one before the key."""
        at, is_head = 0, False
        for word, blanks in self._before:
            found = _WORD.match(line, at)
            if found is None or _DIGITS.sub("0", found[1]) != word or not found[2].startswith(blanks):
                break
            is_head |= "0" in word
            at = found.end(1) + len(blanks)
        else:
            if is_head:
                return at, True
        record = _RECORD_HEAD.match(line)
        return max(at if is_head else 0, record.end() if record else 0), False

    def _begin_of_value(self, line: str, head: int, is_alike: bool) -> int | None:
        """Where the value begins that a line is, or is part of; None for a line that is none."""
        kind, begin = self._kind, len(line) - len(line[head:].lstrip(" \t"))
        inner, self._kind = begin - head, None
        if kind == "private key":
            is_value = _PRIVATE_LINE.fullmatch(line, head) is not None and _PRIVATE_END not in line
            self._kind = kind if is_value else None
            return head if is_value else None
        if kind in ("item", "login"):
            value = (_ITEM_VALUE if kind == "item" else _LOGIN_VALUE).match(line, head)
            if value is None and kind == "item" and _ITEM_BLOCK.fullmatch(line, head):
                self._kind, self._indent = "block", inner
            elif value is None and kind == "item" and _ITEM_GOES_ON.fullmatch(line, head):
                self._kind = kind
            return value.end() if value else None
        if kind == "header":
            self._kind = kind if inner > self._indent and (is_alike or not self._before) else None
            return begin if self._kind else None
        if not line[begin:].strip():
            self._kind = kind
            return None
        is_word = _LONE_VALUE.fullmatch(line, begin) is not None
        if kind == "cut" or (kind == "word" and not is_alike):
            return begin if is_word and not WORDLIKE.fullmatch(line[begin:].strip().strip("'\"`,;")) else None
        if inner > self._indent or (inner == self._indent and line.startswith("- ", begin)):
            self._kind = kind
            return begin
        return begin if inner == self._indent and is_word and kind != "group" else None

    def _find_key(self, line: str) -> None:
        if "PRIVATE KEY" in line and _PRIVATE_END not in line and (begin := _PRIVATE_BEGIN.search(line)):
            self._begin("private key", line[: begin.start()])
            return
        if line.rstrip(" \t\r\n+-0123456789")[-1:] in _KEY_ENDS or "#" in line:
            record = _RECORD_HEAD.match(line)
            head = record.end() if record else 0
            if key := _BLOCK_KEY.search(line, max(head, len(line) - _KEY_CHARACTERS)):
                margin = _MARGIN.fullmatch(line, head, key.start())
                is_word = key["sign"] == "=" or (key["sign"] == ":" and margin is None)
                self._begin("word" if is_word else "block", line[: key.start()] if margin is None else "")
                self._kind = "group" if key["sign"][-1] in _OPENERS else self._kind
                self._indent = len(margin[0]) if margin else 0
                return
        for kind, signs, pattern, reach in _BEGINS:
            start = max(0, len(line) - reach)
            if holds_any(signs, line) and (found := pattern.search(line, start)):
                before = line[: found.start()]
                if kind == "cut" or not before.strip() or _HEAD_END.search(before):
                    self._begin(kind, before)
                    self._indent = 0 if before.strip() else len(before)
                    return

    def _begin(self, kind: _Kind, before: str) -> None:
        self._kind, self._indent = kind, 0
        self._before = [(_DIGITS.sub("0", word), blanks) for word, blanks in _WORD.findall(before)]
