"""Which lines of a block of bytes can be of interest at all, found without looking at each line.

In a quiet block (most lines matter to nobody) searching the block for each needle costs a fraction of
looking at the lines; in a busy one looking at each line is quicker. Both give the same lines.
"""

from collections.abc import Iterator

from jobtui.formats.schema import LogFormat

BUSY = 8
"""A block is busy when at least one line in this many holds the format's dense needle."""


def sift(block: bytes, log_format: LogFormat) -> Iterator[tuple[int, int]]:
    """Start and end (without the newline) of each line of `block` that holds a needle, in order."""
    if block.count(log_format.dense) * BUSY > block.count(b"\n"):
        return _by_line(block, log_format.needles)
    return _by_needle(block, log_format.needles)


def _by_line(block: bytes, needles: tuple[bytes, ...]) -> Iterator[tuple[int, int]]:
    start = 0
    for line in block.split(b"\n"):
        end = start + len(line)
        for needle in needles:
            if needle in line:
                yield start, end
                break
        start = end + 1


def _by_needle(block: bytes, needles: tuple[bytes, ...]) -> Iterator[tuple[int, int]]:
    found: dict[int, int] = {}
    for needle in needles:
        at = block.find(needle)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            found[block.rfind(b"\n", 0, at) + 1] = end
            at = block.find(needle, end)
    yield from sorted(found.items())
