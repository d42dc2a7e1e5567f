"""Bytes to try on readers, and damage to the files of a world, as disks, networks and people do it."""

import json
import os
import random
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.fuzz.targets import Target
from tests.rows import FIXTURES

Files = Mapping[str, bytes]


class Edit(NamedTuple):
    """`length` bytes at a place of a file become `text`; or the file becomes one of INSTEAD."""

    file: str
    at: int
    length: int
    text: bytes
    instead: str = ""


INSTEAD: Mapping[str, Callable[[Path], object]] = {
    "absent": lambda path: None,
    "gone": lambda path: None,
    "directory": Path.mkdir,
    "pipe": os.mkfifo,
    "unreadable": lambda path: path.symlink_to("/proc/self/mem"),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
    "dangling": lambda path: path.symlink_to(path.name + ".other"),
    "forbidden": lambda path: path.touch(0),
}
"""What a file may become. "absent" is no damage: the undamaged world has no such file either."""


def applied(files: Files, edits: Sequence[Edit]) -> dict[str, bytes]:
    """The files with these edits, made from the last to the first of a file so that places stay true."""
    damaged = dict(files)
    for edit in sorted(edits, key=lambda edit: edit.at, reverse=True):
        data = damaged.get(edit.file, b"")
        damaged[edit.file] = data[: edit.at] + edit.text + data[edit.at + edit.length :]
    return damaged


TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null')
ODD_TOKENS = (
    b"null", b"true", b"[]", b"{}", b'""', b"0", b"-1", b"1e999", b"-1e999", b"NaN", b"9" * 25, b"9" * 5_000,
    b"18446744073709551616", b"1e-320", b'"\\ud800"', b'"\\u0000"', b'"\\u202e\\u001b[31m"',
    b'"9999-12-31T23:59:59Z"', b'"0001-01-01"', b'"1e999"', b'"-9223372036854775809"',
    b'"' + b"x" * 20_000 + b'"', b"[[[[[[[[]]]]]]]]",
    b'{"a": {"a": {"a": 1}}}', b'"password=hunter2"', '"\u0663"'.encode(),
)  # fmt: skip
NUMBER = re.compile(rb"\d[\d.:]*")
ODD_NUMBERS = (
    b"", b"-1", b"0", b"9" * 25, b"9" * 5_000, b"8../x", b"1e999", b"nan", b"99:99:99", b"2e", b"\xd9\xa3",
    b"-9" + b"0" * 30, b"18446744073709551616",
)  # fmt: skip
TIME = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
ODD_TIMES = (
    b"0001-01-01", b"9999-12-31", b"9999-12-31T23:59:59.999999999+14:00", b"2026-02-30", b"0000-00-00",
    b"1969-12-31", b"2262-04-12", b"2038-01-19T03:14:08", b"2026-11-20T24:00:00", b"2026-11-20T23:59:60",
)  # fmt: skip
"""What may stand in place of as much of the beginning of a time."""
SHIFTS_S = (-86_400 * 365, -86_400, -3_600, -60, -1, 1, 60, 3_600, 18_000, 86_400, 86_400 * 36_500)
NOISE = (
    b"\0" * 300, b"\xff\xfe garbage", b"\x1b[2J", b"", b"x" * 20_000, b"{" * 2_000, b"[" * 2_000,
    b"\xed\xa0\x80", "\ufeffgarbage".encode(), "garbage".encode("utf-16"), "\u202e\u2066garbage".encode(),
    b"[" * 1_500 + b"]" * 1_500, b'{"a":' * 1_500 + b"1" + b"}" * 1_500, b"<a>" * 2_000, b"9" * 5_000,
    b"-" * 80,
)  # fmt: skip
JUNK = (b"null", b"5", b'"x"', b"[]", b"{}", b'{"id": null}', b"-1e999", b"[" * 200 + b"]" * 200, b"true")
"""Rows among those of a list that say nothing."""
LISTS = re.compile(rb'"(?:results|spans)"\s*:\s*\[|\A\s*\[')
BETWEEN = re.compile(r"[\s,]*")

Draw = Callable[[random.Random, str, bytes], Edit]


def _line(draw: random.Random, data: bytes) -> tuple[int, int]:
    at = data.rfind(b"\n", 0, draw.randrange(len(data))) + 1
    end = data.find(b"\n", at)
    return at, (len(data) if end < 0 else end + 1) - at


def _drop(draw: random.Random, file: str, data: bytes) -> Edit:
    at, length = _line(draw, data)
    return Edit(file, at, length, b"")


def _garble(draw: random.Random, file: str, data: bytes) -> Edit:
    at, length = _line(draw, data)
    return Edit(file, at, max(0, length - 1), draw.choice(NOISE).replace(b"\n", b""))


def _noise(draw: random.Random, file: str, data: bytes) -> Edit:
    at, _ = _line(draw, data)
    return Edit(file, at, 0, draw.choice(NOISE) + b"\n")


EVENT_END = re.compile(rb"(?m)^(?:\.\.\.|\}|</c>)\n")


def _noise_between(draw: random.Random, file: str, data: bytes) -> Edit:
    """Garbage between events of HTCondor, which have several lines."""
    found = EVENT_END.search(data, draw.randrange(len(data))) or EVENT_END.search(data)
    return Edit(file, found.end() if found else 0, 0, draw.choice(NOISE).replace(b"\n", b"") + b"\n")


def _glue(draw: random.Random, file: str, data: bytes) -> Edit:
    at, length = _line(draw, data)
    return Edit(file, at + max(0, length - 1), 1, b"")


def _tear(draw: random.Random, file: str, data: bytes) -> Edit:
    at, length = _line(draw, data)
    kept = draw.randrange(length)
    return Edit(file, at + kept, length - kept, draw.choice((b"", b"\n")))


def _repeat(draw: random.Random, file: str, data: bytes) -> Edit:
    at, length = _line(draw, data)
    return Edit(file, at, 0, data[at : at + length] * draw.choice((1, 3, 50)))


def _move(draw: random.Random, file: str, data: bytes) -> Edit:
    at, length = _line(draw, data)
    where, _ = _line(draw, data)
    return Edit(file, where, 0, data[at : at + length])


def _cut(draw: random.Random, file: str, data: bytes) -> Edit:
    at = draw.randrange(len(data))
    return Edit(file, at, len(data) - at, b"") if draw.random() < 0.5 else Edit(file, 0, at, b"")


def _number(draw: random.Random, file: str, data: bytes) -> Edit:
    found = NUMBER.search(data, draw.randrange(len(data))) or NUMBER.search(data)
    return _put(file, found, draw.choice(ODD_NUMBERS)) if found else _bytes(draw, file, data)


def _token(draw: random.Random, file: str, data: bytes) -> Edit:
    found = TOKEN.search(data, draw.randrange(len(data))) or TOKEN.search(data)
    return _put(file, found, draw.choice(ODD_TOKENS)) if found else _bytes(draw, file, data)


def _put(file: str, found: re.Match[bytes], text: bytes) -> Edit:
    return Edit(file, found.start(), found.end() - found.start(), text)


def _bytes(draw: random.Random, file: str, data: bytes) -> Edit:
    at = draw.randrange(len(data) + 1)
    return Edit(file, at, draw.randrange(9), draw.choice(COMMON))


def _mix(draw: random.Random, file: str, data: bytes) -> Edit:
    """Two lines as writers make them that do not wait for each other: one in the middle of the other."""
    at, length = _line(draw, data)
    other, other_length = _line(draw, data)
    where = at + draw.randrange(length)
    return Edit(file, where, 0, data[other : other + other_length])


def _reorder(draw: random.Random, file: str, data: bytes) -> Edit:
    at, _ = _line(draw, data)
    lines = data[at : at + 4_000].splitlines(keepends=True)[: draw.randint(2, 12)]
    length = sum(map(len, lines))
    draw.shuffle(lines)
    return Edit(file, at, length, b"".join(lines))


def _time(draw: random.Random, file: str, data: bytes) -> Edit:
    found = TIME.search(data, draw.randrange(len(data))) or TIME.search(data)
    if found is None:
        return _number(draw, file, data)
    odd = draw.choice(ODD_TIMES)
    return Edit(file, found.start(), min(len(odd), len(found[0])), odd)


def _shift(draw: random.Random, file: str, data: bytes) -> Edit:
    """The clock of who wrote it is off from a line on, for a while or for good."""
    at, _ = _line(draw, data)
    piece = data[at : at + draw.choice((2_000, 20_000, len(data)))]
    by = timedelta(seconds=draw.choice(SHIFTS_S))

    def shifted(found: re.Match[bytes]) -> bytes:
        with suppress(ValueError, OverflowError):
            return (datetime.fromisoformat(found[0].decode()) + by).isoformat(chr(found[0][10])).encode()
        return found[0]

    return Edit(file, at, len(piece), TIME.sub(shifted, piece))


def _recode(draw: random.Random, file: str, data: bytes) -> Edit:
    """What a Windows editor, or a transfer as text, makes of a file."""
    text = data.decode("utf-8", "replace")
    ways = (
        lambda: text.encode("utf-16"),
        lambda: b"\xef\xbb\xbf" + data,
        lambda: data.replace(b"\n", b"\r\n"),
        lambda: data.replace(b"\n", b"\r"),
    )
    return Edit(file, 0, len(data), draw.choice(ways)())


def _flip(draw: random.Random, file: str, data: bytes) -> Edit:
    at = draw.randrange(len(data))
    return Edit(file, at, 1, bytes([data[at] ^ 1 << draw.randrange(8)]))


def _empty(draw: random.Random, file: str, data: bytes) -> Edit:
    return Edit(file, 0, len(data), draw.choice((b"", b"", b"\0" * min(len(data), 5_000), b"\n")))


def _rows(data: bytes) -> list[tuple[int, int]]:
    found, text = [], data.decode("latin-1")
    for begin in LISTS.finditer(data):
        at = begin.end()
        with suppress(ValueError, RecursionError):
            while True:
                at += len(BETWEEN.match(text, at)[0])  # type: ignore[index]  # it may be empty
                end = json.JSONDecoder().raw_decode(text, at)[1]
                found.append((at, end - at))
                at = end
    return found


def _row(draw: random.Random, file: str, data: bytes) -> tuple[int, int]:
    return draw.choice(_rows(data) or [(0, 0)])


def _drop_row(draw: random.Random, file: str, data: bytes) -> Edit:
    at, length = _row(draw, file, data)
    if data[at + length : at + length + 1] == b",":
        return Edit(file, at, length + 1, b"")
    before = data.rfind(b",", 0, at) if length else at
    return Edit(file, before, at + length - before, b"")


def _double_row(draw: random.Random, file: str, data: bytes) -> Edit:
    at, length = _row(draw, file, data)
    where, _ = _row(draw, file, data)
    return Edit(file, where, 0, (data[at : at + length] + b",") * draw.choice((1, 3)) if length else b"")


def _junk_row(draw: random.Random, file: str, data: bytes) -> Edit:
    at, length = _row(draw, file, data)
    return Edit(file, at, 0, draw.choice(JUNK) + b"," if length else b"")


KEY = re.compile(rb'"[^"\\\n]{1,80}"\s*:\s*(?:"(?:[^"\\\n]|\\.)*"|[\w.+-]+)\s*,')


def _key(draw: random.Random, file: str, data: bytes) -> Edit:
    """A key that is missing, doubled, or has another name."""
    found = KEY.search(data, draw.randrange(len(data))) or KEY.search(data)
    if found is None:
        return _token(draw, file, data)
    key = found[0].partition(b":")[0]
    odd = key + b":" + draw.choice(ODD_TOKENS) + b","
    return _put(file, found, draw.choice((b"", found[0] + odd, odd + found[0], b'"x' + found[0][1:])))


LOSSES: tuple[Draw, ...] = (_drop, _garble, _tear, _cut)
"""What only takes away: nothing is told afterwards that was not so."""
GARBAGE: tuple[Draw, ...] = (_garble, _noise)
"""What puts lines that say nothing among the lines and in their place."""
BETWEEN_EVENTS: tuple[Draw, ...] = (_noise_between,)
TO_LINES: tuple[Draw, ...] = (
    *LOSSES, _noise, _glue, _repeat, _move, _number, _bytes, _mix, _reorder, _time, _shift, _flip,
)  # fmt: skip
ROW_LOSSES: tuple[Draw, ...] = (_drop_row,)
ROW_GARBAGE: tuple[Draw, ...] = (_junk_row,)
TO_DOCUMENTS: tuple[Draw, ...] = (
    _token, _token, _token, _key, _key, _cut, _bytes, _flip, _time, _drop_row, _double_row, _junk_row, _shift,
)  # fmt: skip
TO_BYTES: tuple[Draw, ...] = (_bytes, _cut, _flip, _flip)
TO_WHOLE: tuple[Draw, ...] = (_empty, _recode)
RARELY = 0.15
"""How often a whole file is damaged or becomes something else, in place of a piece of it."""


def ways_for(file: str) -> tuple[Draw, ...]:
    if file.endswith((".json", ".jsonl", ".rows")):
        return TO_DOCUMENTS
    return TO_BYTES if file.endswith((".pb", ".journal", ".gz", ".tape", ".jobtui")) else TO_LINES


def drawn(
    draw: random.Random, files: Files, only: Sequence[Draw] = (), ending: str = "", most: int = 6
) -> list[Edit]:
    """Some edits that do not overlap; `only` such of files whose names end so, where that is given."""
    edits: list[Edit] = []
    full = sorted(name for name, data in files.items() if data and name.endswith(ending))
    for _ in range(draw.randint(1, most)):
        file = draw.choice(full)
        if not only and draw.random() < RARELY:
            edit = _of_whole(draw, file, files, full)
        else:
            edit = draw.choice(only or ways_for(file))(draw, file, files[file])
        if not any(_overlaps(edit, other) for other in edits):
            edits.append(edit)
    return edits


def _of_whole(draw: random.Random, file: str, files: Files, full: Sequence[str]) -> Edit:
    """A file becomes something else, or one of the others, or has a piece of one of them in it."""
    size, other = len(files[file]), files[draw.choice(full)]
    match draw.randrange(5):
        case 0 | 4:
            return Edit(file, 0, size, b"", draw.choice([name for name in INSTEAD if name != "absent"]))
        case 1:
            return draw.choice(TO_WHOLE)(draw, file, files[file])
        case 2:
            return Edit(file, 0, size, other)
    at, length = _line(draw, other)
    return Edit(file, _line(draw, files[file])[0], 0, other[at : at + min(length, 20_000)])


def without_garbage(edits: Sequence[Edit]) -> list[Edit]:
    """The same edits by GARBAGE, but for the garbage: the lines in whose place it was are not there."""
    return [
        edit if edit.instead else edit._replace(length=edit.length + 1, text=b"")
        for edit in edits
        if edit.length or edit.instead
    ]


def _overlaps(one: Edit, other: Edit) -> bool:
    return one.file == other.file and one.at <= other.at + other.length and other.at <= one.at + one.length


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
VALUES = st.recursive(
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
    others = st.lists(st.tuples(st.integers(0, 1 << 16), VALUES), min_size=1, max_size=4)
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
