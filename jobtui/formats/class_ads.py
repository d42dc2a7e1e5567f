"""Job ads as condor_q and condor_history print them (-long, -json, -xml), and submit files.

Values become texts: a string what it holds, a number or word as it is written, any other expression too.
`expressions_of` tells which of these a value is. An environment is written in two ways, `A=1;B=2` and
`"A=1 B='2 3'"`
(https://htcondor.readthedocs.io/en/latest/man-pages/condor_submit.html, command `environment`).
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from html import unescape

from jobtui.model.trace_ids import TraceRef, find_trace

MOST_CHARACTERS = 64 << 10
"""Kept of one value."""

_ATTRIBUTE = re.compile(r"\s*\+?(?P<name>[A-Za-z_][\w.]*)\s*=(?P<value>.*)", re.ASCII | re.DOTALL)
BLANKS = " \t\r\n\f\v"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Mapping[str, str] = {"n": "\n", "t": "\t", "r": "\r"}
_XML_ATTRIBUTE = re.compile(
    r'<a n="(?P<name>\w{1,200})">\s*(?:<b v="(?P<bool>[tf])"\s*/>'
    r"|<(?P<kind>[a-z]{1,9})>(?P<value>[^<]*)</(?P=kind)>|<s/>)\s*</a>",
    re.ASCII,
)
_XML_NAME = re.compile(r'<a n="(?P<name>\w{1,200})">', re.ASCII)
_JSON_EXPRESSION = re.compile(r"/Expr\((?P<expression>.*)\)/", re.DOTALL)
"""An expression among strings, as HTCondor writes it into JSON."""
_OLD_BACKSLASH = re.compile(r'\\(?!"(?!\s*\Z))')
"""One that stands for itself: with -long only a quotation mark is escaped, unless it ends the value."""
NESTED = "[]"
"""Stands for an ad or a list inside an ad of JSON or XML, whose inside is not read."""
ENVIRONMENTS = frozenset({"environment", "env"})
_TELLING = ENVIRONMENTS | {"traceparent"}
"""Attributes that can hold the trace that a job was handed, in lower case."""
_OLD_SEPARATOR = re.compile(r"[;|]")


def attribute(line: str) -> tuple[str, str] | None:
    """Name and value of a line `Name = value`; None for any other."""
    found = _ATTRIBUTE.fullmatch(line[:MOST_CHARACTERS])
    return (found["name"], unquoted(found["value"].strip(BLANKS))) if found else None


def unquoted(value: str) -> str:
    """What a string holds; any other expression as it is written."""
    if not _STRING.fullmatch(value):
        return value
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), value[1:-1])


def texts_of(document: Mapping[str, object]) -> dict[str, str]:
    """The attributes of an ad in JSON as texts; nested ones are left out."""
    return {
        str(name): _text(value)[:MOST_CHARACTERS]
        for name, value in document.items()
        if isinstance(value, str | int | float | bool)
    }


def _text(value: object) -> str:
    if isinstance(value, str) and (found := _JSON_EXPRESSION.fullmatch(value)):
        return found["expression"]
    return str(value).lower() if isinstance(value, bool) else str(value)


def texts_of_xml(text: str) -> dict[str, str]:
    """The attributes of an ad in XML as texts."""
    return {
        found["name"]: {"t": "true", "f": "false"}.get(found["bool"] or "", unescape(found["value"] or ""))
        for found in _XML_ATTRIBUTE.finditer(text)
    }


def is_cut(text: str) -> bool:
    """Whether this is all that was kept of a longer ad."""
    return len(text) >= MOST_CHARACTERS


def expressions_of(text: str) -> dict[str, str]:
    """The attributes of an ad, in any of its forms, as expressions of the language of ads.

    Strings are in quotation marks there, escaped as in ads of today. Nothing for a text that was cut, as an
    attribute that is missing means something else.
    """
    if is_cut(text):
        return {}
    match text.lstrip()[:1]:
        case "{":
            return dict(_json_expressions(text))
        case "<":
            return dict(_xml_expressions(text))
        case _:
            found = filter(None, map(_ATTRIBUTE.fullmatch, text.split("\n")))
            return {one["name"]: _of_today(one["value"].strip(BLANKS)) for one in found}


def _of_today(value: str) -> str:
    return _OLD_BACKSLASH.sub(r"\\\\", value)


def _json_expressions(text: str) -> Iterator[tuple[str, str]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    for name, value in document.items() if isinstance(document, dict) else ():
        yield name, _json_expression(value)


def _json_expression(value: object) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "undefined"
    if isinstance(value, str):
        return _text(value) if _JSON_EXPRESSION.fullmatch(value) else _quoted(value)
    return _text(value) if isinstance(value, int | float) else NESTED


def _xml_expressions(text: str) -> Iterator[tuple[str, str]]:
    for known in _XML_NAME.finditer(text):
        yield known["name"], NESTED
    for found in _XML_ATTRIBUTE.finditer(text):
        value = unescape(found["value"] or "")
        is_string = not found["bool"] and found["kind"] in (None, "s")
        truth = {"t": "true", "f": "false"}.get(found["bool"] or "")
        yield found["name"], truth or (_quoted(value) if is_string else value)


def _quoted(text: str) -> str:
    """A string as an expression."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def environment(value: str) -> dict[str, str]:
    """The variables of an environment, whichever way it is written."""
    value = value.strip()
    if value[:1] == '"' and value[-1:] == '"' and len(value) > 1:
        value = value[1:-1].replace('""', '"')
        return dict(_pairs(_words(value)))
    if ";" not in value and (" " in value or "'" in value):
        return dict(_pairs(_words(value)))
    return dict(_pairs(_OLD_SEPARATOR.split(value)))


def _pairs(words: Iterator[str] | list[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.strip():
            yield name.strip(), value


def _words(text: str) -> Iterator[str]:
    """Words between blanks; what stands between quotes is one, where two quotes are one that counts."""
    word: list[str] = []
    is_quoted = False
    at = 0
    while at < len(text):
        char = text[at]
        if char == "'" and is_quoted and text[at + 1 : at + 2] == "'":
            word.append(char)
            at += 1
        elif char == "'":
            is_quoted = not is_quoted
        elif char.isspace() and not is_quoted:
            yield "".join(word)
            word.clear()
        else:
            word.append(char)
        at += 1
    yield "".join(word)


def trace_of(values: Mapping[str, str]) -> TraceRef | None:
    """The trace that a job was handed, by its ad or submit file: its attribute, else its environment."""
    telling = [(name, value) for name, value in values.items() if name.lower() in _TELLING]
    if not telling:
        return None
    own = (value for name, value in telling if name.lower() not in ENVIRONMENTS)
    environments = (environment(value) for name, value in telling if name.lower() in ENVIRONMENTS)
    handed = (held[name] for held in environments for name in held if name.upper() == "TRACEPARENT")
    return next((ref for value in (*own, *handed) if (ref := find_trace(value)) is not None), None)
