"""What jobsub's wrapper and commands write around a job, out of the lines of its output: see `jobsub.toml`.

Two lines begin with what `date` prints on the worker; only the first of them names the job, so that reading
goes through a file in order. Any line may name the trace that the job was handed.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from jobtui.formats.date_output import LONGEST, Moment, read_date
from jobtui.formats.schema import MATCH_LIMIT, load
from jobtui.formats.sieve import sift
from jobtui.model.condor import BEGIN, END, SIGNAL, TRACEPARENT
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_ids import CondorId, condor_id
from jobtui.model.trace_ids import find_trace

KEPT_CHARACTERS = 2_000
"""Of one line."""
MOST_PROCESSES = 10_000
"""Jobs that one submission is taken to have made."""
_MARK = re.compile(
    r"(?:(?<= )\d{1,12}\.?\d{0,9}@[\w.@-]+ BEGIN EXECUTION|BEGIN EXECUTION|[^ ]* ?COMPLETED with exit status)"
)
_FIRST_WORD = re.compile(r"\w*", re.ASCII)
_TRACES = frozenset({"names_trace", BEGIN, END, SIGNAL})
_SUBMITTED = frozenset({"submitted", "submitted_count"})


class Line(NamedTuple):
    """A line, its date taken off."""

    text: str
    moment: Moment | None


class OutputReader:
    """Makes facts of the lines of one file. It remembers which job they are of, and the trace they named."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._job = ""
        self._trace = ""

    def copy(self) -> "OutputReader":
        """One that has read the same, and goes on by itself."""
        other = OutputReader(self._source)
        other._job, other._trace = self._job, self._trace
        return other

    def read(self, data: bytes, begin: int, first_line: int) -> list[CondorFact]:
        """The facts of whole lines; `begin` is the byte, `first_line` the number of the first one.

        Never raises on any bytes.
        """
        facts: list[CondorFact] = []
        for number, start, end in sift(data, load("jobsub")):
            text = data[start:end][:MATCH_LIMIT].replace(b"\0", b"").decode("utf-8", "replace").rstrip("\r")
            facts.extend(self._facts(text, first_line + number, begin + start))
        return facts

    def _facts(self, text: str, line: int, offset: int) -> Iterator[CondorFact]:
        dated = _without_date(text)
        head = _FIRST_WORD.match(dated.text)
        func = "plain" if dated.moment is None else "dated"
        matched = load("jobsub").match(dated.text, func, head[0] if head else "")
        if matched is None:
            return
        shape, fields = matched
        if (named := condor_id(fields.get("job") or "")) is not None:
            self._job = named.job_id
        values = {name: value for name, value in fields.items() if value}
        if shape.name in _TRACES and (ref := find_trace(text)) is not None:
            values[TRACEPARENT] = self._trace = ref.trace_id
        elif shape.name == "names_trace":
            return
        if shape.name in _SUBMITTED and self._trace:
            values[TRACEPARENT] = self._trace
        at, is_local = dated.moment or (None, False)
        jobs = _of_cluster(values) if shape.name == "submitted_count" else iter((self._job,))
        for job in jobs:
            yield CondorFact(
                job, Teller.OUTPUT, shape.name, at, text[:KEPT_CHARACTERS], self._source, line, offset,
                values, is_local,
            )  # fmt: skip


def _of_cluster(values: dict[str, str]) -> Iterator[str]:
    """The jobs that a submission made."""
    count, cluster = int(values["count"]), int(values["cluster"])
    return (CondorId(cluster, proc).job_id for proc in islice(range(count), MOST_PROCESSES))


def _without_date(text: str) -> Line:
    """A line of the wrapper without the date at its beginning; any other as it is."""
    mark = _MARK.search(text[: 4 * LONGEST])
    if mark is None:
        return Line(text, None)
    moment = read_date(text[: mark.start()])
    return Line(text[mark.start() :], moment) if moment else Line(text, None)
