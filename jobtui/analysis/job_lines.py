"""The log lines that belong to a job: steps of its ops and what could not be placed, in the order of time."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import Certainty, Component, Op, Step, Unlinked

_LEVEL = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL)(?::[\w.]+:| \| )", re.ASCII)


class JobLine(NamedTuple):
    """One line of a log, as written. `line` is 0 where the lines before it are not counted."""

    at: Nanos | None
    source: str
    line: int
    offset: int
    component: Component
    text: str
    certainty: Certainty
    job_id: JobId
    op: Op | None = None
    continues: bool = False
    cursor: str | None = None

    @property
    def place(self) -> tuple[str, int, str]:
        """What tells it from every other line; output of a container can hold several in one."""
        return self.source, self.offset, self.text

    @property
    def level(self) -> str | None:
        """The level of a line of Python's logging, as Sirepo or Balsam has it, None for others."""
        found = _LEVEL.match(self.text)
        return found[1].lower() if found else None


def job_lines(job_id: JobId, ops: Iterable[Op], unlinked: Iterable[Unlinked]) -> list[JobLine]:
    """Every line of a job once, with its surest link, in the order of time; each source keeps its own."""
    surest: dict[tuple[str, int, str], JobLine] = {}
    for line in _lines(job_id, ops, unlinked):
        before = surest.get(line.place)
        if before is None or line.certainty.rank < before.certainty.rank:
            surest[line.place] = line
    return in_time_order(surest.values())


def _lines(job_id: JobId, ops: Iterable[Op], unlinked: Iterable[Unlinked]) -> Iterator[JobLine]:
    for op in ops:
        for step in op.steps:
            yield _line(job_id, step, op)
    for loose in unlinked:
        yield _line(job_id, loose.step, None)


def _line(job_id: JobId, step: Step, op: Op | None) -> JobLine:
    number = step.line if step.line > 0 else 0
    return JobLine(
        at=step.at,
        source=step.source,
        line=number,
        offset=step.offset,
        component=step.component,
        text=step.text,
        certainty=step.certainty,
        job_id=job_id,
        op=op,
        cursor=step.cursor,
    )


def in_time_order(lines: Iterable[JobLine]) -> list[JobLine]:
    """Lines of several sources merged: by time, the server's first; each source keeps its order."""
    by_source: dict[str, list[JobLine]] = {}
    for line in lines:
        by_source.setdefault(line.source, []).append(line)
    keyed: list[tuple[Nanos, bool, str, int, JobLine]] = []
    for source, own in by_source.items():
        own.sort(key=lambda line: line.offset)
        latest = Nanos(0)
        for line in own:
            latest = max(latest, line.at or latest)
            keyed.append((latest, line.component is not Component.SERVER, source, line.offset, line))
    return [item[-1] for item in sorted(keyed, key=lambda item: item[:-1])]
