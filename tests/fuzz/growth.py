"""Whether time and memory of a reader grow no faster than its input."""

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

from tests.fuzz.inputs import COMMON, seeds_of
from tests.fuzz.targets import Target

SMALL, TIMES = 1 << 15, 4
"""Sizes that are compared: these bytes, and so many times as many."""
FASTER = 2.5
"""Times are rough: so much more than in proportion is allowed. In square it would be 4 times more."""
NOTABLE_S = 0.2
"""What is quicker than this for the larger size is not looked at any more."""
MOST_BYTES_EACH = 250
"""Memory at most for each byte of input, beside a constant."""
CONSTANT_BYTES = 16 << 20
SEEDS = 4


def grows_badly(target: Target) -> Iterator[tuple[bytes, str]]:
    """Pieces that, repeated, take a target more than in proportion, and what they take."""
    own = (*target.pieces, *seeds_of(target.seeds)[:SEEDS])
    pairs = (first + second for first in target.pieces for second in (b"\n", b" ", b'"', b"a"))
    for piece in (*filter(None, COMMON), *own, *pairs):
        if (large_s := _once(target, _repeated(piece, SMALL * TIMES))) > NOTABLE_S:
            small_s = _once(target, _repeated(piece, SMALL))
            large_s = min(large_s, _once(target, _repeated(piece, SMALL * TIMES)))
            if large_s > small_s * TIMES * FASTER:
                yield piece, f"{small_s:.3f} s for {SMALL} bytes, {large_s:.3f} s for {SMALL * TIMES}"
    for piece in own:
        if (peak := _peak(target, _repeated(piece, SMALL))) > CONSTANT_BYTES + SMALL * MOST_BYTES_EACH:
            yield piece, f"{peak} bytes of memory for {SMALL} bytes"


def _repeated(piece: bytes, size: int) -> bytes:
    return (piece * (size // len(piece) + 1))[:size]


def _once(target: Target, data: bytes) -> float:
    began = time.thread_time()
    with suppress(*target.raises):
        target.read(data)
    return time.thread_time() - began


def _peak(target: Target, data: bytes) -> int:
    tracemalloc.start()
    try:
        _once(target, data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
