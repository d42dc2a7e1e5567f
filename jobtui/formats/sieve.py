"""Which lines of a block of bytes can be of interest at all, found without looking at each line.

In a quiet block (most lines matter to nobody) searching the block for each needle costs a fraction of
looking at the lines. In a busy one the search costs more than it saves: then every line is given.
"""

from collections.abc import Iterator

from jobtui.formats.schema import LogFormat

BUSY = 4
"""A block is busy when at least one line in this many holds the format's dense needle."""


def sift(block: bytes, log_format: LogFormat) -> Iterator[tuple[int, int, int]]:
    """Number (from 0), start and end (without the newline) of each line that holds a needle, in order.

    A busy block gives other lines too.
    """
    if block.count(log_format.dense) * BUSY > block.count(b"\n"):
        return _each_line(block)
    return _by_needle(block, log_format.needles)


def _each_line(block: bytes) -> Iterator[tuple[int, int, int]]:
    start = 0
    for number, line in enumerate(block.split(b"\n")):
        end = start + len(line)
        yield number, start, end
        start = end + 1


def _by_needle(block: bytes, needles: tuple[bytes, ...]) -> Iterator[tuple[int, int, int]]:
    found: dict[int, int] = {}
    for needle in needles:
        at = block.find(needle)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            found[block.rfind(b"\n", 0, at) + 1] = end
            at = block.find(needle, end)
    number = counted = 0
    for start, end in sorted(found.items()):
        number += block.count(b"\n", counted, start)
        counted = start
        yield number, start, end
