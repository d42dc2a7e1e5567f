"""Spans and log records out of the bytes of a file, whatever it holds.

JSON is OTLP or Jaeger's, one document or one a line; what is neither text nor empty is taken for protobuf.
Gzip is unpacked up to a limit. Nothing in here raises: what makes no sense is skipped and counted.
"""

import re
import zlib

from jobtui.formats.jaeger_json import holds_jaeger, read_jaeger
from jobtui.formats.otlp_json import holds_otlp, read_otlp
from jobtui.formats.telemetry import Found, as_dict, decoded
from jobtui.model.traces import Telemetry

UNPACKED_BYTES = 256 << 20
"""A packed file may become so large."""
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
EXPECTED = "expected OTLP as JSON or protobuf, or Jaeger's JSON"


def read_telemetry(data: bytes, where: str) -> Telemetry:
    """All spans and log records with a trace id in the bytes of a file; `where` names it in skips."""
    found = Found(where)
    if data[:2] == GZIP:
        data = _unpacked(data, found)
    text = data.removeprefix(BOM).lstrip(b" \t\r\n")
    if text[:1] in (b"{", b"["):
        _read_json(text, found)
    elif data.strip(b" \t\r\n\0"):
        from jobtui.formats.otlp_protobuf import read_protobuf

        read_protobuf(data, found, where)
    return found.telemetry()


def _unpacked(data: bytes, found: Found) -> bytes:
    """What gzip packed, as far as it goes; one that is cut off or too large is noted."""
    parts: list[bytes] = []
    size = 0
    while data[:2] == GZIP:  # files of a writer that goes on are several packs
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            part = unpacker.decompress(data, UNPACKED_BYTES - size + 1)
        except zlib.error as error:
            found.skip("", f"cannot be unpacked: {error}")
            break
        parts.append(part)
        size += len(part)
        if size > UNPACKED_BYTES:
            found.skip("", f"unpacks to more than {UNPACKED_BYTES >> 20} MiB: the rest is left out")
            break
        if not unpacker.eof:
            found.skip("", "the packed file is cut off")
            break
        data = unpacker.unused_data
    return b"".join(parts)[:UNPACKED_BYTES]


def telemetry_of(document: object, where: str) -> Telemetry:
    """The same out of a document that is decoded."""
    found = Found(where)
    _take(document, found, "")
    return found.telemetry()


def _read_json(text: bytes, found: Found) -> None:
    try:
        whole = decoded(text)
    except ValueError as error:
        _read_lines(text, found, error)
        return
    _take(whole, found, "")


def _read_lines(text: bytes, found: Found, of_the_whole: ValueError) -> None:
    """One document a line, if there is more than one line and the first of them is a document."""
    first, newline, _ = text.partition(b"\n")
    if not newline or not _is_document(first):
        found.skip("", f"is no JSON: {of_the_whole}")
        return
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            document = decoded(line)
        except ValueError as error:
            found.skip(f"line {number}", f"is no JSON: {error}")
            continue
        _take(document, found, f"line {number}")


_KEYS = (b'"resourceSpans"', b'"resourceLogs"', b'"traceID"', b'"batches"', b'"resource_spans"')
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def begins_with_spans(head: bytes) -> bool:
    """Whether a file begins as one of spans or their log records: with their keys, or as no text does."""
    return any(key in head for key in _KEYS) or _BINARY.search(head) is not None


def is_line_of_json(head: bytes) -> bool:
    """Whether the beginning of a file is a document on a line of its own."""
    first, newline, _ = head.partition(b"\n")
    return bool(newline) and first[:1] == b"{" and _is_document(first)


def _is_document(line: bytes) -> bool:
    try:
        return isinstance(decoded(line), dict)
    except ValueError:
        return False


def _take(whole: object, found: Found, where: str) -> None:
    documents = whole if isinstance(whole, list) else [whole]
    for piece in documents:
        document = as_dict(piece) or piece
        if isinstance(document, dict) and holds_otlp(document):
            read_otlp(document, found)
        elif isinstance(document, dict) and holds_jaeger(document):
            read_jaeger(document, found)
        elif document != {}:
            found.skip(where, EXPECTED)
