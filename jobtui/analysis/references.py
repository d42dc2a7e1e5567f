"""What a pasted text refers to, by its form alone: a bare id, a path, an address, or a whole log line.

Whether anything of that name exists is for `find` to say.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from jobtui.model.condor_ids import JOBSUB_ID, condor_id
from jobtui.model.ids import JID, LABEL, NUMBER, SIMULATION_ID, UID, is_full_id, is_prefix
from jobtui.model.trace_ids import TraceRef, find_trace

MAX_LENGTH = 20_000
"""Of a longer text only the start is looked at."""


class Target(Enum):
    """What a reference may refer to."""

    JOB = auto()
    USER = auto()
    SIMULATION = auto()
    OP = auto()
    AGENT = auto()
    CONTAINER = auto()
    TRACE = auto()
    NUMBER = auto()
    CONDOR = auto()
    PART = auto()


class Reference(NamedTuple):
    """A piece of text that refers to something. `weight` (0..1) is how surely, `why` says by what."""

    target: Target
    text: str
    weight: float
    why: str


class _Shape(NamedTuple):
    pattern: str
    target: Target
    weight: float
    why: str
    form: str = r"\1"


_WORD_BEFORE = r"(?<![A-Za-z0-9])"
_WORD_AFTER = r"(?![A-Za-z0-9])"

_SHAPES = (
    _Shape(rf"(?<![\w-])({JID})", Target.JOB, 1.0, "its id is in the text"),
    _Shape(
        rf"(?<![\w/.@-])((?:balsam|slurm)(?:@{LABEL})?/{NUMBER})(?![\w/])",
        Target.JOB,
        1.0,
        "its id is in the text",
    ),
    _Shape(rf"(?<![\w.@/-])({JOBSUB_ID})", Target.CONDOR, 0.98, "its id is in the text"),
    _Shape(r"\bsubmitted to cluster (\d{1,12})\b", Target.CONDOR, 0.95, "its cluster is in the text"),
    _Shape(
        rf"/user/({UID})/\w+/({SIMULATION_ID})/(\w+)",
        Target.JOB,
        0.97,
        "this is its run directory",
        r"\1-\2-\3",
    ),
    _Shape(
        rf"\*(\w+)\*({SIMULATION_ID})\*", Target.SIMULATION, 0.8, "a frame of its simulation is named", r"\2"
    ),
    _Shape(r"\b_Op\((?:DESTROYED, )?\w+, (\w{4})\b", Target.OP, 0.9, "the text names its op"),
    _Shape(r"\bo=(\w{4})\b", Target.OP, 0.9, "the text names its op"),
    _Shape(r"\bopId\W{1,6}(\w{32})\b", Target.OP, 0.95, "the text has the op's full id"),
    _Shape(r"\ba=(\w{4})\b", Target.AGENT, 0.6, "the text names the agent"),
    _Shape(r"\b(?i:agent_?id)\W{1,6}(\w{4})", Target.AGENT, 0.6, "the text names the agent"),
    _Shape(r"\bagent-local/(\w{4})", Target.AGENT, 0.6, "this is the agent's directory"),
    _Shape(
        rf"{_WORD_BEFORE}(srj-[sp]-{UID}){_WORD_AFTER}", Target.CONTAINER, 0.7, "the text names the container"
    ),
    _Shape(rf"\bu=({UID}){_WORD_AFTER}", Target.USER, 0.5, "the text names the user"),
    _Shape(rf"\buid=(?:l[io]-|cr-)?({UID}){_WORD_AFTER}", Target.USER, 0.5, "the text names the user"),
    _Shape(rf"/user/({UID}){_WORD_AFTER}", Target.USER, 0.5, "this is a directory of the user"),
    _Shape(rf"{_WORD_BEFORE}({UID}){_WORD_AFTER}", Target.SIMULATION, 0.75, "its simulation is named"),
    _Shape(rf"{_WORD_BEFORE}({UID}){_WORD_AFTER}", Target.USER, 0.45, "the user's id is in the text"),
    _Shape(
        r"(?i:sbatch_id\W{1,6}|Submitted batch job |JobId=|slurm job )(\d{1,18}(?:_\d{1,9})?)\b",
        Target.NUMBER,
        0.95,
        "the text names its number in Slurm",
    ),
)
_SHORTEST_TRACE = 20
"""Characters of the shortest text in which a trace is looked for: fewer digits are ids of other things."""


def references(thing: str) -> Iterator[Reference]:
    """What `thing` may refer to, in no order; the same thing may come several times."""
    text = thing.strip()[:MAX_LENGTH]
    if len(text) >= _SHORTEST_TRACE and (ref := find_trace(text)) is not None:
        yield _trace(ref, text)
    if not any(char.isspace() for char in text):
        yield from _bare(text)
    for pattern, target, weight, why, form in _SHAPES:
        for found in re.finditer(pattern, text, re.ASCII):
            yield Reference(target, found.expand(form), weight, why)


def _trace(ref: TraceRef, text: str) -> Reference:
    """The trace that a text names; a bare id may be one of something else."""
    if ref.span_id is not None:
        return Reference(Target.TRACE, ref.trace_id, 1.0, "a trace context")
    if text.isalnum():
        return Reference(Target.TRACE, ref.trace_id, 0.5, "this has the form of a trace id")
    return Reference(Target.TRACE, ref.trace_id, 0.9, "a trace is named in the text")


def _bare(text: str) -> Iterator[Reference]:
    """What a text without spaces may be as a whole."""
    if number := re.fullmatch(rf"#?({NUMBER})", text, re.ASCII):
        yield Reference(Target.NUMBER, number[1], 0.97, "this is its number")
    if labelled := re.fullmatch(rf"#?(\d{{1,18}})@({LABEL})", text, re.ASCII):
        job_id = f"balsam@{labelled[2]}/{labelled[1]}"
        yield Reference(Target.JOB, job_id, 1.0, "this is its number, and its server")
    if (condor := condor_id(text)) is not None:
        yield Reference(Target.CONDOR, condor.job_id, 0.97, "this is its number in HTCondor")
    if is_prefix(text):
        yield Reference(Target.OP, text, 0.9, "its op id begins so")
        yield Reference(Target.AGENT, text, 0.9, "its id begins so")
    if is_full_id(text):
        yield Reference(Target.OP, text, 1.0, "this is its op id")
        yield Reference(Target.AGENT, text[:4], 0.6, "its id begins so")
    if re.fullmatch(UID, text, re.ASCII):
        yield Reference(Target.USER, text, 0.95, "this is the user's id")
        yield Reference(Target.SIMULATION, text, 0.95, "this is its simulation")
    yield Reference(Target.PART, text, 0.6, "its id contains this")
