"""Bytes that no log's writer has written: holes of NUL, and what is no text. Finds them; mends nothing.

A disk that was full, a host that went down, or several writers of one file leave them; what stood in their
place, and perhaps beside them, is lost.
"""

from collections.abc import Iterator

SHAPE = "damaged"
"""The shape of the record that stands for a damaged place."""
STRIDE = 1 << 16
"""Bytes behind a damaged place for which no other is told."""
WHY = "the log is damaged: NUL bytes, or bytes that are no text"


def damaged_places(block: bytes) -> Iterator[int]:
    """Where a block is damaged, in bytes from its beginning; after each place at most one in `STRIDE`."""
    if block.isascii() and b"\0" not in block:
        return
    at = 0
    while at < len(block) and (place := _first(block[at:])) is not None:
        yield at + place
        at += place + STRIDE


def _first(block: bytes) -> int | None:
    hole = block.find(b"\0")
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start if hole < 0 else min(hole, error.start)
    return None if hole < 0 else hole
