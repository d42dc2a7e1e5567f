"""Bytes to try: really written files, cut and changed as disks, networks and people do; what they cost."""

import json
import random
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.targets import Target
from tests.rows import FIXTURES

LARGEST_SEED = 6_000
SEED_FILES = 12
CHUNKS = 3
COMMON = (
    b"", b"\0", b"\n", b"\r\n", b"\xff", b"\xc3", b"\xef\xbb\xbf", b'"', b"'", b"\\", b"\\u0000", b"{", b"}",
    b"[", b"]", b"(", b")", b"<", b">", b":", b"=", b",", b";", b" ", b"\t", b"%s", b"-1", b"0", b"1e999",
    b"NaN", b"9" * 25, b"18446744073709551616", b"-9223372036854775809", b"null", b"true", b'""', b"[]",
    b"{}", "٣".encode(), "\u2028".encode(), "\u202e".encode(), "\ufeff".encode(), b"\xed\xa0\x80",
    b"\x1b[2J", b"\x9b31m", b"\x1f\x8b\x08", b"\x0a\xff\xff\xff\xff\x0f", b"1970-01-01T00:00:00Z",
    b"9999-12-31T23:59:59.999999999+14:00",
)  # fmt: skip
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), 1 << 63) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@cache
def seeds_of(patterns: tuple[str, ...]) -> tuple[bytes, ...]:
    """Pieces of the files that fit these, whole where they are small."""
    paths = sorted(path for pattern in patterns for path in FIXTURES.glob(pattern) if path.is_file())
    some = paths[:: max(1, len(paths) // SEED_FILES)]
    return tuple(chunk for path in some for chunk in _chunks(path.read_bytes()))


def inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Bytes for a target: pieces of what it reads, changed in some places."""
    known = [*seeds_of(target.seeds), b"".join(target.pieces), *target.pieces]
    texts = st.sampled_from([*COMMON, *target.pieces])
    begin = st.one_of(
        st.sampled_from(known) if known else st.binary(max_size=64),
        st.lists(texts, max_size=12).map(b"".join),
        st.binary(max_size=64),
    )
    change = st.tuples(
        st.integers(0, 1 << 16), st.integers(0, 40), texts | st.binary(max_size=6), st.booleans()
    )
    changed = st.builds(_changed, begin, st.lists(change, max_size=6))
    documents = [data for data in known if data[:1] in (b"{", b"[") and is_document(data)]
    others = st.lists(st.tuples(st.integers(0, 1 << 16), JUNK), min_size=1, max_size=4)
    return changed | st.builds(_retyped, st.sampled_from(documents), others) if documents else changed


def _changed(data: bytes, changes: Sequence[tuple[int, int, bytes, bool]]) -> bytes:
    """Bytes, some of which are replaced or repeated."""
    for place, length, text, is_repeat in changes:
        at = place % (len(data) + 1)
        new = data[at : at + length] * 3 if is_repeat else text
        data = data[:at] + new + data[at + length :]
    return data


def is_document(data: bytes) -> bool:
    try:
        return bool(json.loads(data))
    except ValueError:
        return False


def _retyped(data: bytes, others: Sequence[tuple[int, object]]) -> bytes:
    """A document with other things in place of some of its values."""
    document = json.loads(data)
    for place, other in others:
        held = [*_held(document)]
        holder, key = held[place % len(held)]
        holder[key] = other
    return json.dumps(document).encode()


def _held(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every value below, as what holds it and where."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _held(value[key])


def _chunks(data: bytes) -> list[bytes]:
    if len(data) <= LARGEST_SEED:
        return [data]
    rng = random.Random(len(data))
    places = [0, *(rng.randrange(len(data)) for _ in range(CHUNKS))]
    return [data[place : place + LARGEST_SEED // 2] for place in places]


SMALL, TIMES = 1 << 15, 4
"""Sizes that are compared: these bytes, and a multiple of them."""
FASTER = 2.5
"""Times are rough: so much more than in proportion is allowed. In square it would be 4 times more."""
NOTABLE_S = 0.2
"""What is quicker than this for the larger size is not measured."""
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
