"""Job ads as condor_q and condor_history print them (-long, -json, -xml), and submit files.

Values become texts: a string what it holds, a number or word as it is written, any other expression too. An
environment is written in two ways, `A=1;B=2` and `"A=1 B='2 3'"`
(https://htcondor.readthedocs.io/en/latest/man-pages/condor_submit.html, command `environment`).
"""

import re
from collections.abc import Iterator, Mapping
from html import unescape

from jobtui.model.trace_ids import TraceRef, find_trace

MOST_CHARACTERS = 64 << 10
"""Kept of one value."""

_ATTRIBUTE = re.compile(r"\s*(?P<name>\+?[A-Za-z_][\w.]*)\s*=\s*(?P<value>.*?)\s*", re.ASCII | re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Mapping[str, str] = {"n": "\n", "t": "\t", "r": "\r"}
_XML_ATTRIBUTE = re.compile(
    r'<a n="(?P<name>\w{1,200})">\s*(?:<b v="(?P<bool>[tf])"\s*/>'
    r"|<(?P<kind>[a-z]{1,9})>(?P<value>[^<]*)</(?P=kind)>|<s/>)\s*</a>",
    re.ASCII,
)
_ENVIRONMENTS = frozenset({"environment", "env"})
_TELLING = _ENVIRONMENTS | {"traceparent"}
"""Attributes that can hold the trace that a job was handed, in lower case."""
_OLD_SEPARATOR = re.compile(r"[;|]")


def attribute(line: str) -> tuple[str, str] | None:
    """Name and value of a line `Name = value`; None for any other."""
    found = _ATTRIBUTE.fullmatch(line[:MOST_CHARACTERS])
    return (found["name"].lstrip("+"), unquoted(found["value"])) if found else None


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
    return str(value).lower() if isinstance(value, bool) else str(value)


def texts_of_xml(text: str) -> dict[str, str]:
    """The attributes of an ad in XML as texts."""
    return {
        found["name"]: {"t": "true", "f": "false"}.get(found["bool"] or "", unescape(found["value"] or ""))
        for found in _XML_ATTRIBUTE.finditer(text)
    }


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
    own = (value for name, value in telling if name.lower() not in _ENVIRONMENTS)
    environments = (environment(value) for name, value in telling if name.lower() in _ENVIRONMENTS)
    handed = (held[name] for held in environments for name in held if name.upper() == "TRACEPARENT")
    return next((ref for value in (*own, *handed) if (ref := find_trace(value)) is not None), None)
