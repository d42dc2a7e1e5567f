"""Which kind of text of HTCondor or jobsub a file holds, and its pieces: events, job ads, lines.

An event of a user log is a block that ends in a line `...` in the classic form, an element `<c>` in XML, an
object in JSON. Job ads are the same two of the latter, or blocks of lines `Name = value`, parted by empty
ones. Works on bytes that may be anything; what is not a whole piece yet is left for later.
"""

import json
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

HEAD_BYTES = 64 << 10
"""So much of a file tells what it is."""


class Form(StrEnum):
    """What a file holds."""

    CLASSIC = "events"
    XML = "xml"
    JSON = "json"
    ADS = "ads"
    XML_ADS = "xml ads"
    JSON_ADS = "json ads"
    SUBMIT = "submit"
    OUTPUT = "output"

    @property
    def grows(self) -> bool:
        """Whether such a file is written on at its end, and not written anew."""
        return self in _GROWING


_GROWING = frozenset({Form.CLASSIC, Form.XML, Form.JSON, Form.OUTPUT})

HEADER = re.compile(
    rb"(?:^|(?<=\0))(?P<number>\d{3}) "
    rb"\((?P<cluster>-?\d{1,12})\.(?P<proc>-?\d{1,9})\.(?P<subproc>-?\d{1,9})\) "
    rb"(?P<date>\d{4}-\d\d-\d\d|\d\d/\d\d(?:/\d{2,4})?)[ T](?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?"
    rb"(?:Z|[+-]\d\d:?\d\d)?) ?(?P<text>[^\n]*)",
    re.MULTILINE,
)
"""The first line of an event in the classic form. In the head of a schedd's own log all are -1."""
_EVENT = b"EventTypeNumber"
"""What every event in XML and JSON has, and no job ad."""
_DOTS = re.compile(rb"^\.\.\.[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_END = b"\n...\n"
"""How the end of an event is nearly always written."""
_ANOTHER = re.compile(rb"\n(?:\d{3} \(|\.\.\.)")
"""In an event: another one may begin, or end, there."""
_QUEUE = re.compile(rb"^\s*queue\b", re.MULTILINE | re.IGNORECASE)
_COMMAND = re.compile(
    rb"^\s*(?:universe|executable|transfer_\w+|arguments)\s*=", re.MULTILINE | re.IGNORECASE
)
_ATTRIBUTE_LINE = re.compile(rb"[A-Za-z_][\w.]*\s*=[^=]")
_WRAPPER = re.compile(rb"BEGIN EXECUTION|COMPLETED with exit status")
_EMPTY_LINE = re.compile(rb"(?:^[ \t\r]*\n|^\*\*\* [^\n]*\n)+", re.MULTILINE)
_OBJECT = re.compile(rb"^[ \t\r\f\v,\[]*+(?=\{)", re.MULTILINE)
"""Where an object begins. Each line is looked at once: a log may have a million empty ones."""
ADS_WANTED = 3
"""So many attributes in the first lines make an ad."""


class Frame(NamedTuple):
    """One piece of a file. `is_whole` is False for one whose end is missing though more came after it.

    `line` is the number of lines before it in its block.
    """

    data: bytes
    offset: int
    is_whole: bool = True
    line: int = 0


class Framed(NamedTuple):
    """The pieces of a block, and how many bytes of it they take: what follows is not whole yet."""

    frames: list[Frame]
    taken: int


def form_of(head: bytes) -> Form | None:
    """What a file holds, by its beginning; None while nothing can be told."""
    head = head[:HEAD_BYTES]
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n\0")
    if not text:
        return None
    if HEADER.search(head) and not _WRAPPER.search(head):
        return Form.CLASSIC
    if text[:1] == b"<" and (b"<c>" in head or b"<?xml" in head or b"<classads" in head):
        return Form.XML if _EVENT in head else Form.XML_ADS
    if text[:1] in (b"{", b"["):
        return Form.JSON if _EVENT in head else Form.JSON_ADS
    if _QUEUE.search(head) and _COMMAND.search(head):
        return Form.SUBMIT
    lines = [line for line in text.split(b"\n")[: ADS_WANTED * 3] if line.strip()]
    attributes = sum(_ATTRIBUTE_LINE.match(line) is not None for line in lines)
    is_ad = attributes >= min(ADS_WANTED, len(lines)) and attributes * 2 > len(lines)
    return Form.ADS if is_ad and not _WRAPPER.search(head) else Form.OUTPUT


def frames_of(form: Form, data: bytes, *, to_end: bool) -> Framed:
    """The pieces of a block. With `to_end` nothing follows it: what has no end is given as it is."""
    framed = _framed(form, data, to_end=to_end)
    return Framed(list(_with_lines(framed.frames, data)), framed.taken)


def _framed(form: Form, data: bytes, *, to_end: bool) -> Framed:
    match form:
        case Form.CLASSIC:
            return _classic(data)
        case Form.XML | Form.XML_ADS:
            return _ended_by(data, b"</c>")
        case Form.JSON | Form.JSON_ADS:
            return _json(data)
        case Form.ADS:
            return _blocks(data, to_end=to_end)
        case Form.SUBMIT:
            return Framed([Frame(data, 0)], len(data))
    end = len(data) if to_end else data.rfind(b"\n") + 1
    return Framed([Frame(data[:end], 0)] if end else [], end)


def _with_lines(frames: Iterable[Frame], data: bytes) -> Iterator[Frame]:
    lines = counted = 0
    for frame in frames:
        lines += data.count(b"\n", counted, frame.offset)
        counted = frame.offset
        yield Frame(frame.data, frame.offset, frame.is_whole, lines)


def _classic(data: bytes) -> Framed:
    """Events one after the other. Nearly all are as they should be, which is seen at a glance."""
    frames: list[Frame] = []
    begin = 0
    while (end := data.find(_END, begin)) >= 0:
        block, end = data[begin : end + 1], end + len(_END)
        if HEADER.match(block) and not (_ANOTHER.search(block) or b"\0" in block):
            frames.append(Frame(block, begin))
        else:
            frames += _oddly_ended(data[begin:end], begin).frames
        begin = end
    rest = _oddly_ended(data[begin:], begin)
    return Framed(frames + rest.frames, begin + rest.taken)


def _oddly_ended(data: bytes, offset: int) -> Framed:
    """The events of a block in which ends may be missing, or be written in another way."""
    frames: list[Frame] = []
    begin = 0
    for dots in _DOTS.finditer(data):
        if dots.end() == len(data) and data[-1:] != b"\n":
            break  # it may be the beginning of a longer line
        frames.extend(_events_in(data[begin : dots.start()], offset + begin))
        begin = dots.end()
    return Framed(frames, begin)


def _events_in(data: bytes, offset: int) -> Iterator[Frame]:
    """The event of a block, and before it those whose end was never written."""
    starts = [found.start() for found in HEADER.finditer(data)] or [0]
    if starts[0] > 0 and data[: starts[0]].strip(b" \t\r\n\0"):
        yield Frame(data[: starts[0]], offset, is_whole=False)
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        if data[start:end].strip(b" \t\r\n\0"):
            yield Frame(data[start:end], offset + start, is_whole=end == len(data))


def _ended_by(data: bytes, end: bytes) -> Framed:
    frames: list[Frame] = []
    begin = 0
    while (at := data.find(end, begin)) >= 0:
        start = data.rfind(b"<c>", begin, at)
        frames.append(Frame(data[max(begin, start) : at + len(end)], max(begin, start), is_whole=start >= 0))
        begin = at + len(end)
    return Framed(frames, begin)


def _blocks(data: bytes, *, to_end: bool) -> Framed:
    frames: list[Frame] = []
    begin = 0
    for gap in _EMPTY_LINE.finditer(data):
        if data[begin : gap.start()].strip():
            frames.append(Frame(data[begin : gap.start()], begin))
        begin = gap.end()
    if to_end and data[begin:].strip(b" \t\r\n\0"):
        frames.append(Frame(data[begin:], begin))
        begin = len(data)
    return Framed(frames, begin)


def _json(data: bytes) -> Framed:
    """Objects, one after the other or in a list. One that is broken ends where the next line begins one."""
    frames: list[Frame] = []
    starts = [found.end() for found in _OBJECT.finditer(data)]
    text, taken, after = data.decode("latin-1"), 0, 0
    for number, start in enumerate(starts):
        if start < after:
            continue
        try:
            _, after = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            if number + 1 == len(starts):
                break
            after = starts[number + 1]
            frames.append(Frame(data[start:after], start, is_whole=False))
        else:
            frames.append(Frame(data[start:after], start))
        taken = after
    return Framed(frames, taken)


_DECODER = json.JSONDecoder()
