"""Log lines through formats and correlation, in lines per second of one core.

    python benchmarks/log_lines.py [--quick] [--json]

Lines are those of a recorded supervisor log, copied many times with other op ids. Three mixes: lines
that matter to nobody, the log as it is, and only its lines that become records. The reference is what no
reader in Python can be quicker than: one match of the line's call site for each line, in the same process.
"""

import random
import re
import string
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.rows import Row, at_least, main
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.formats.parser import LogParser, split
from jobtui.model.clock import SECOND, Nanos

LOG = Path(__file__).parent.parent / "tests/fixtures/sirepo/local/supervisor.log"
NEWEST = Nanos(1_795_300_000 * SECOND)
QUIET = (
    b"Nov 20 20:34:30 30699     0 ../../venv/lib/python3.11/site-packages/tornado/web.py:2591:log_request "
    b"INFO:tornado.access:200 POST /job-api-request (127.0.0.1) 0.89ms\n"
)
BLOCK_LINES = 10_000
REPEATS = 5

_OP = re.compile(rb"(?<=_Op\()(\w+, )(\w{4})|( o=)(?!None)(\w{4})")


def with_other_ids(log: bytes, seed: int) -> bytes:
    letters = string.ascii_letters.encode()
    table = bytes.maketrans(letters, bytes(random.Random(seed).sample(letters, len(letters))))
    return _OP.sub(lambda m: (m[1] or m[3]) + (m[2] or m[4]).translate(table), log)


def quickest_s(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def correlated(blocks: list[bytes]) -> Correlator:
    parser, correlator = LogParser("supervisor.log"), Correlator()
    for block in blocks:
        correlator.feed(parser.parse(block, 0, 1, NEWEST).records)
    return correlator


def relevant_lines(log: bytes) -> bytes:
    lines = log.splitlines(keepends=True)
    records = LogParser("supervisor.log").parse(log, 0, 1, NEWEST).records
    return b"".join(lines[record.line - 1] for record in records)


def measure(what: str, blocks: list[bytes], limit: float) -> Row:
    """Lines per second of a mix, beside one match for each line."""
    lines = sum(block.count(b"\n") for block in blocks)
    texts = [line.decode() for line in blocks[0].splitlines()]
    one_match_s = quickest_s(lambda: [split(text) for text in texts]) / len(texts)
    rate = lines / quickest_s(lambda: correlated(blocks))
    row = at_least(what, rate, "lines/s", limit)
    return replace(row, measured=round(rate), reference=round(1 / one_match_s), ratio=rate * one_match_s)


def measure_all(quick: bool) -> list[Row]:
    log = LOG.read_bytes()
    relevant = relevant_lines(log)
    copies = range(10 if quick else 60)
    return [
        measure("log lines that matter to nobody", [QUIET * BLOCK_LINES] * (len(copies) // 2), 1_000_000),
        measure("supervisor log, parsed and correlated", [with_other_ids(log, n) for n in copies], 150_000),
        measure("only its lines that matter", [with_other_ids(relevant, n) for n in copies], 150_000),
    ]


if __name__ == "__main__":
    sys.exit(main(__doc__.partition("\n")[0], measure_all))
