"""Captures of a real Sirepo: their logs in blocks, and the truth that was noted inside the supervisor."""

import json
import random
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Op
from tests.demo.workload import TrueOp

ROOT = Path(__file__).parents[1] / "fixtures" / "sirepo"
CAPTURES = tuple(sorted(path.parent.name for path in ROOT.glob("*/expected.json")))
NEWEST = Nanos(1_795_300_000 * SECOND)
"""A day after the captures were taken."""
LARGEST_BLOCK = 60
"""Lines given to a parser at a time, at most."""


class Seen(NamedTuple):
    """What is compared of an op."""

    op: str
    name: str
    jid: str | None
    agent: str | None
    sends: int
    replies: int
    updates: int
    api: str | None
    job_cmd: str | None


def seen(op: Op | TrueOp) -> Seen:
    return Seen(*(getattr(op, name) for name in Seen._fields))


@cache
def expected(capture: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / capture / "expected.json").read_text())
    return found


def true_ops(capture: str) -> list[Seen]:
    truth = expected(capture)
    of_jobs = [(jid, op) for jid, job in truth["jobs"].items() for op in job["ops"]]
    names = ("op", "opName", "jid", "agent", "sent", "replies", "updates", "api", "jobCmd")
    defaults = {"updates": 0, "jobCmd": None}
    return [
        Seen(*({**defaults, **op, "jid": jid}[name] for name in names))
        for jid, op in [*of_jobs, *((None, op) for op in truth["opsWithoutJob"])]
    ]


def logs(capture: str) -> dict[str, bytes]:
    """Every log of a capture by its path in it; the one of the cluster's side too."""
    folder = ROOT / capture
    paths = [*folder.glob("*.log"), *folder.glob("scratch/**/job_agent.log")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(paths)}


def correlate(sources: Mapping[str, bytes], newest: Nanos = NEWEST, **limits: int) -> Correlator:
    """Each source at once, one after the other."""
    correlator = Correlator(**limits)
    for name, data in sources.items():
        correlator.feed(LogParser(name).parse(data, 0, 1, newest).records)
    return correlator


def correlate_interleaved(sources: dict[str, bytes], seed: int) -> Correlator:
    """All sources as if they grew together."""
    correlator = Correlator()
    for records in growing(sources, seed):
        correlator.feed(records)
    return correlator


def growing(sources: dict[str, bytes], seed: int) -> Iterator[list[LogRecord]]:
    """Records of blocks of all sources in a random order; those of one source keep theirs."""
    draw = random.Random(seed)
    blocks = {name: _blocks(name, data, draw) for name, data in sources.items()}
    while blocks:
        name = draw.choice(sorted(blocks))
        records = next(blocks[name], None)
        if records is None:
            del blocks[name]
        else:
            yield records


def _blocks(name: str, data: bytes, draw: random.Random) -> Iterator[list[LogRecord]]:
    parser = LogParser(name)
    lines = data.splitlines(keepends=True)
    offset = number = 0
    while number < len(lines):
        block = b"".join(lines[number : number + draw.randint(1, LARGEST_BLOCK)])
        parsed = parser.parse(block, offset, number + 1, NEWEST)
        yield parsed.records
        offset += len(block)
        number += parsed.lines


def with_few_prefixes(capture: str, count: int, seed: int) -> tuple[dict[str, bytes], list[Seen]]:
    """A capture's logs and truth with ids rewritten so that there are only `count` different op prefixes."""
    draw = random.Random(seed)
    pool = ["".join(draw.choices("ABCDEFGHabcdefgh0123", k=4)) for _ in range(count)]
    truth = expected(capture)
    ids = [op["opId"] for job in truth["jobs"].values() for op in job["ops"]]
    ids += [op["opId"] for op in truth["opsWithoutJob"]]
    new = {op_id[:4]: draw.choice(pool) for op_id in ids}
    names = "|".join(sorted(new))
    full = re.compile("|".join(sorted(ids)))
    one = re.compile(rf"(?P<before>_Op\((?:DESTROYED, )?\w+, |\bo=)(?P<op>{names})(?=[,) ]|$)", re.MULTILINE)

    def rewrite(data: bytes) -> bytes:
        text = full.sub(lambda found: new[found[0][:4]] + found[0][4:], data.decode())
        return one.sub(lambda found: found["before"] + new[found["op"]], text).encode()

    sources = {name: rewrite(data) for name, data in logs(capture).items()}
    return sources, [op._replace(op=new[op.op]) for op in true_ops(capture)]
