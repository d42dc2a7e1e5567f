"""What is kept of a recording, to bytes and back, with secrets masked on the way in. Pure.

JSON and not a closer format: it has numbers of any size, as places in journals are, bytes as base64, and can
be read in years to come by whatever there will be. Deflated, which also tells a damaged entry.
"""

import json
import re
import zlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from jobtui.backends.base import Batch
from jobtui.model.job_desk import FilePart, Noted, RunListing
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.lines import RawLine
from jobtui.model.scripts import Answer
from jobtui.model.secrets import mask_document
from jobtui.model.traces import Telemetry

LEVEL = 6
LARGEST_BYTES = 256 << 20
"""No entry is larger, unpacked: what claims to be is damaged."""

_NO_TEXT = re.compile("[\ud800-\udfff]")


class Damaged(ValueError):
    """An entry cannot be read. The text says why."""


class NotPacked(ValueError):
    """A value cannot be kept. The text says why."""


class What(StrEnum):
    """What an entry holds."""

    BATCH = "batch"
    FAILURE = "failure"
    JOB = "job"
    DETAIL = "detail"
    LINES = "lines"
    LISTING = "listing"
    FILE = "file"
    NOTED = "noted"
    SCRIPT = "script"
    TRACE = "trace"


TYPES: Mapping[What, Any] = {
    What.BATCH: Batch,
    What.FAILURE: str,
    What.JOB: Job,
    What.DETAIL: JobDetail | None,
    What.LINES: tuple[RawLine, ...],
    What.LISTING: RunListing | str,
    What.FILE: FilePart | str,
    What.NOTED: Noted | None,
    What.SCRIPT: Answer,
    What.TRACE: Telemetry | None,
}
"""The type of each; a text in place of what was asked for says why there is none."""

COUNTS = ("skip_count", "recovered", "count")
LISTS = tuple(field.name for field in msgspec.structs.fields(Batch) if field.default == ())
"""What a batch counts, and what it holds."""


def packed(value: object) -> bytes:
    """A value with its secrets masked, as bytes. Raises NotPacked for what JSON cannot hold."""
    try:
        return zlib.compress(encoded(mask_document(msgspec.to_builtins(value))), LEVEL)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotPacked(f"cannot be kept: {error}") from error


def encoded(document: object) -> bytes:
    """A document as JSON; see `storable` for what that cannot hold."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return storable(json.dumps(document, ensure_ascii=False)).encode()


def storable(text: str) -> str:
    """A text that UTF-8 can hold: bytes of names of files that are no text become replacement characters."""
    return text if text.isascii() else _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def unpacked(what: What, data: bytes) -> Any:
    """The value again, of the type that `TYPES` says. Raises Damaged."""
    try:
        return msgspec.json.decode(_inflated(data), type=TYPES[what])
    except (zlib.error, msgspec.MsgspecError) as error:
        raise Damaged(f"a {what} cannot be read: {error}") from error


def _inflated(data: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(data, LARGEST_BYTES)
    if not unpacking.eof:
        raise Damaged("an entry is cut off, or larger than any that is written")
    return text
