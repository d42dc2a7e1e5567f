"""Values of secrets in lines below their key: the one part of masking that needs the lines before.

Imported for every log that is printed, so it compiles little.
"""

import re

from jobtui.model.patterns import regex
from jobtui.model.secret_words import KEY_LENGTH, MASK, SECRET_WORDS, decoded, holds_any, is_key, without_keys

_RECORD_HEAD = regex(
    r"(?:[A-Z][a-z]{2} [ \d]\d |\d{4}-\d\d-\d\d[ T])\d\d:\d\d:\d\d[^\n]{0,300}?:\d{1,7}(?::\w+|\]) ", re.ASCII
)
"""What comes before the message of a log record, see `formats.parser.LINE` and the logs of Balsam's sites."""
_STYLE = r"[|>][+\-\d]{0,2}"
_TEXT = r"(?<!\w:)(?<!\w: )[bBuU]?(?P<text>'{3}|\"{3})(?:(?!(?P=text)).)*"
_SIGN = rf"(?:(?P<word>=)|:)(?:[ \t]*(?:(?P<block>{_STYLE})|(?P<group>[{{\[(])|{_TEXT}))?"
"""What is between a key and its value: the last group is the kind of the value, see `SecretBlocks`."""
_TEXT_REST = regex("(?s).*?(?='{3}|\"{3})")
_BLOCK_KEY = regex(
    rf"(?<![\w.\-])[{{(]?['\"]?(?:[\w.\-]{{0,60}}(?:{SECRET_WORDS})[\w.\-]{{0,60}}"
    r"|(?P<data>data(?=['\"]?:[ \t]*\{?\s*$)))"
    r"(?:[ ](?:key|code|phrase))?(?:[ ](?:for|of)[ ](?:user[ ])?[\w.@\-]{1,64})?(?:[ ](?:is|was)(?:[ ]now)?)?"
    rf"['\"]?[ \t]*{_SIGN}[ \t]*(?:[ \t]#.*)?\s*$",
    re.IGNORECASE | re.ASCII,
)
_MARGIN = regex(r"[ \t]*(?:-[ \t]+)?")
_KEY_ENDS = ":=|>{[("
_KEY_CHARACTERS = 300
"""How far from the end of a line its key begins at most."""
_ITEM_NAME = regex(
    r"(?:(?<=\s)|^)[ \t]*(?:-[ \t]+)?(?:['\"]?(?:name|key|stringValue)['\"]?:[ \t]*['\"]?|['\"]?--?)"
    rf"[\w.\-]*(?:{SECRET_WORDS})[\w.\-]*['\"]?,?\s*$"
    r"|(?:(?<=\s)|^)[ \t]*(?:expect\b|-\w+|(?P<bare>['\"]))[^\n]*?ass(?:word|phrase)"
    r"(?(bare):)[^\w'\"]{0,9}['\"][\s{]*$"
    r"|(?<!\S)(?:default[ \t]+)?(?:(?:machine|login|account)[ \t]+\S+\s*)+$",
    re.IGNORECASE | re.ASCII,
)
_ITEM_VALUE = regex(
    rf"[ \t]*(?:['\"]?(?:value|stringValue)['\"]?:[ \t]+(?!{_STYLE}\s*$)(?=[^\s{{])"
    r"|-[ \t]+(?=\S)|\{?[ \t]*(?:exp_)?send[ \t]+(?:--[ \t]+)?(?=['\"])|(?=['\"][^'\"]*['\"][\s,]*$)"
    r"|(?:(?:login|account)[ \t]+\S+[ \t]+)*passw(?:or)?d[ \t]+(?=\S))"
)
_ITEM_BLOCK = regex(rf"[ \t]*value:[ \t]*(?:{_STYLE})?\s*")
_ITEM_GOES_ON = regex(r"[ \t]*(?:['\"]?value['\"]?:[ \t]*)?[\s{}\[\],]*(?:#.*)?")
"""Environments and arguments in YAML and JSON, `.netrc`, prompts: the lines of a name and its value."""
_DATA_VALUE = regex(
    r"['\"]?[\w.\-]+['\"]?:[ \t]+(?=['\"]?([A-Za-z0-9+/]{8,}={0,2}|[A-Za-z0-9+/]+={1,2})['\"]?,?\s*$)"
)
"""A line of the data of a secret of Kubernetes, which may be above the one that says that it is a secret."""
_HEADER = regex(
    r"(?<!\S)(?:[\w\-]*(?:authorization|cookie)|x-[\w\-]*(?:auth|key|token|signature)[\w\-]*)\s*:\s*(?=\S)",
    re.I,
)
"""A header of HTTP with a value, which indented lines may continue."""
_CUT = regex(
    rf"(?:://[^\s/?#'\"@:]*:(?!\d{{1,5}}\\?\s*$)[^\s'\"@\\]*"
    rf"|[?&][\w.\-]*(?:{SECRET_WORDS}|sig)[\w.\-]*=[^\s&'\"\\]*|eyJ[\w.\-]{{8,}})\\?\s*$",
    re.IGNORECASE | re.ASCII,
)
"""An address, or a token, at the end of a line, that may go on in the next one."""
_HEAD_END = regex(r"\d[^'\"]*$")
_ADDRESS_REST = regex(r"[^\s'\"/]*(?=@[\w.\-\[])")
_LONE_VALUE = regex(r"(?=\S*\w{3})(?![\w.\-]+['\"]?[:=]|[\[<])\S{4,}\s*", re.ASCII)
"""A line of one word that begins no pair, section or tag."""
_BLOCK_VALUE = regex(r"(?s)^(?:(['\"])[^'\"]*(\1[\])},]*)|.*())$")
WORDLIKE = regex(
    r"[/~].*|\.{1,2}/.*|\d+(?:\.\d+)?(?:[eE][+\-]?\d+)?[\W_]?[a-z]*|[\d\W_]+"
    r"|(?:aes|base|hs|krb|md|oauth|rs|rsa|sha|utf|v)[\W_]?\d.*"
    r"|_?[A-Z]?[a-z]+(?:[\W_][A-Za-z]?[a-z]+)*|[\w/.\-]+\.[a-z]{1,4}(?::\d+)?|[A-Z]+|\w+://.*|\w+\(.*",
    re.ASCII,
)
"""What is no secret in prose: words, paths, names of files, sizes, times, kinds of ciphers, addresses."""
_WORD = regex(r"(\S+)(\s*)")
_DIGITS = regex(r"\d+", re.ASCII)
_PRIVATE_BEGIN = regex("-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?!.*-----END )")
_PRIVATE_LINE = regex(
    r"[^\w+/=]*(?:[A-Za-z0-9+/=]*|(?:Proc-Type|DEK-Info|Comment): .*)(?:\\+n|[^\w+/=*])*", re.ASCII
)
_BODY_LINE = regex(r"[\s'\"|>]*[A-Za-z0-9+/=]{16,76}(?:\\+n|[\s'\",\\])*", re.ASCII)
"""A line of a key below its head, and below another line of it."""
_SETTLED = regex(
    r"(?!(?:string)?value\b|Proc-Type|DEK-Info|Comment|login\b|account\b|passw)[^\s\-'\"{}\[\],@][^\s@]*"
    r"(?: (?!\S{16,}$)\S+)+",
    re.I | re.A,
)
"""A message of several words at the margin, which is the value of no key whatever is above it."""


def end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a match of `pattern` that begins at `at` ends; `at` when there is none."""
    found = pattern.match(text, at)
    return found.end() if found else at


def is_settled(line: str) -> bool:
    """Whether a line is shown as it is whatever is above it, and lines below it need nothing of what is."""
    is_message = _SETTLED.fullmatch(line, end_of(_RECORD_HEAD, line, 0)) is not None
    return is_message and WORDLIKE.fullmatch(line.rpartition(" ")[2].rstrip(".,;:!?)]}'\"")) is not None


_BEGINS: tuple[tuple[str, tuple[str, ...], re.Pattern[str], int], ...] = (
    ("private key", ("PRIVATE KEY",), _PRIVATE_BEGIN, 1 << 20),
    ("item", ("name", "key", "stringValue", "--", " -", "'-", '"-', "login", "acc", "ass"), _ITEM_NAME, 80),
    ("header", ("uthorization", "ookie", "X-", "x-"), _HEADER, 1_000),
    ("cut", ("://", "eyJ"), _CUT, _KEY_CHARACTERS),
)
"""What begins at the end of a line, what the line has then, and how far from its end it begins at most."""
_RESTS: dict[str | None, re.Pattern[str]] = {"cut": _ADDRESS_REST, "text": _TEXT_REST}
"""What ends a value in the next line."""
_LINES: dict[str | None, re.Pattern[str]] = {"private key": _PRIVATE_LINE, "key body": _BODY_LINE}
"""What the lines of a value are as a whole."""


class SecretBlocks:
    """Masks what is secret by what is above it in the lines of one text, which are given in their order.

    That is all that YAML indents below a secret key, what is in its brackets or three quotes, or the next
    line when it is a word of its own, of items the one after their name, what is base64 below `data`, and the
    lines of a private key. Behind a key that other words are before, it is a next word that looks like none.
    Each line may be a record of a log of its own: what is before a key and differs in numbers only from what
    is before its value is a head.
    """

    def __init__(self) -> None:
        self._kind: str | None = None
        """What the lines below may be: a name of `_BEGINS`, of `_LINES`, or of a group of `_BLOCK_KEY`."""
        self._indent = 0
        self._before: list[tuple[str, str]] = []
        """The words before the key on its line, and the blanks after each."""

    def hide(self, text: str) -> str:
        return "\n".join(map(self._hide, text.split("\n"))) if "\n" in text else self._hide(text)

    def _hide(self, line: str) -> str:
        if self._kind is not None:
            at, is_alike = self._head_of(line)
            if (pattern := _RESTS.get(self._kind)) and (rest := pattern.match(line, at)):
                self._kind = None
                return f"{line[:at]}{MASK}{line[rest.end() :]}" if rest[0].strip() else line
            if (begin := self._begin_of_value(line, at, is_alike)) is not None:
                return line[:begin] + _BLOCK_VALUE.sub(rf"\1{MASK}\2", line[begin:])
        if self._kind in (None, "data"):
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
        return max(at if is_head else 0, end_of(_RECORD_HEAD, line, 0)), False

    def _begin_of_value(self, line: str, head: int, is_alike: bool) -> int | None:
        """Where the value begins that a line is, or is part of; None for a line that is none."""
        kind, begin = self._kind, len(line) - len(line[head:].lstrip(" \t"))
        inner, self._kind = begin - head, None
        if kind in _LINES:
            self._kind = kind if _LINES[kind].fullmatch(line, head) else None
            return begin if self._kind else None
        if kind == "item":
            value = _ITEM_VALUE.match(line, head)
            if value is None and _ITEM_BLOCK.fullmatch(line, head):
                self._kind, self._indent = "block", inner
            elif value is None and _ITEM_GOES_ON.fullmatch(line, head):
                self._kind = kind
            return value.end() if value else None
        if kind == "header":
            self._kind = kind if inner > self._indent and (is_alike or not self._before) else None
            return begin if self._kind else None
        if not line[begin:].strip():
            self._kind = kind
            return None
        if kind == "data":
            self._kind = kind if inner > self._indent and line.rstrip()[-1] not in "{[(" else None
            entry = _DATA_VALUE.match(line, begin) if self._kind else None
            text = entry and "".join(decoded(entry[1]).split())
            return entry.end() if entry and (text.isprintable() if text else is_key(entry[1])) else None
        is_word = _LONE_VALUE.fullmatch(line, begin) is not None
        if kind == "cut" or (kind == "word" and not is_alike):
            return begin if is_word and not WORDLIKE.fullmatch(line[begin:].strip().strip("'\"`,;")) else None
        is_item = inner == self._indent and line.startswith("- ", begin)
        if inner > self._indent or is_item or (kind == "text" and not is_settled(line)):
            self._kind = kind
            return begin
        return begin if inner == self._indent and is_word and kind in ("block", "word") else None

    def _find_key(self, line: str) -> None:
        if len(line) >= KEY_LENGTH and (shown := without_keys(line)) != line:
            self._begin("key body", shown.rpartition(MASK)[0])
            return
        has_text = '"""' in line or "'''" in line
        if has_text or line.rstrip(" \t\r\n+-0123456789")[-1:] in _KEY_ENDS or "#" in line:
            head = end_of(_RECORD_HEAD, line, 0)
            key = _BLOCK_KEY.search(line, head if has_text else max(head, len(line) - _KEY_CHARACTERS))
            if key and not (key["data"] and _HEADER.search(line, head)):
                margin = _MARGIN.fullmatch(line, head, key.start())
                kind = "data" if key["data"] else key.lastgroup or ("block" if margin else "word")
                self._begin(kind, "" if margin else line[: key.start()], len(margin[0]) if margin else 0)
                return
        for kind, signs, pattern, reach in _BEGINS:
            if holds_any(signs, line) and (found := pattern.search(line, max(0, len(line) - reach))):
                before = line[: found.start()]
                if kind in ("cut", "private key") or not before.strip() or _HEAD_END.search(before):
                    self._begin(kind, before, 0 if before.strip() else len(before))
                    return

    def _begin(self, kind: str, before: str, indent: int = 0) -> None:
        self._kind, self._indent = kind, indent
        self._before = [(_DIGITS.sub("0", word), blanks) for word, blanks in _WORD.findall(before)]
