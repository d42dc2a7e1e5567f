"""What happened to a job as Markdown (CommonMark), for the text that is written afterwards. Pure.

Outside text stands in code, which Markdown leaves alone, with every character visible and secrets masked.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jobtui.analysis.contradictions import Contradiction
from jobtui.analysis.time_words import duration
from jobtui.model.clock import Nanos, seconds_between, to_rfc3339
from jobtui.model.health import SourceHealth
from jobtui.model.jobs import Job, Run
from jobtui.model.ops import Op, Step
from jobtui.model.verdicts import Verdict
from jobtui.render.text import NONE, show
from jobtui.render.verdicts import step_line, sureness

LONGEST = 200
"""Characters of a line of a log that are quoted."""
_TICKS = re.compile("`+")


class PostMortem(NamedTuple):
    """What there is to tell: the job, what is the matter with it, its runs and ops, and what was read."""

    job: Job
    verdict: Verdict
    contradictions: Sequence[Contradiction]
    runs: Sequence[Run]
    ops: Sequence[Op]
    sources: Sequence[SourceHealth]
    now: Nanos


def post_mortem_lines(told: PostMortem) -> Iterator[str]:
    """The whole of it, line by line."""
    yield f"# {_plain(told.job.id)}: {_plain(told.job.status.value)}"
    yield ""
    yield f"**{_plain(told.verdict.sentence)}**"
    yield ""
    yield f"Verdict {code(told.verdict.code.value)}, {sureness(told.verdict)}, {to_rfc3339(told.now)}."
    if step := step_line(told.verdict):
        yield f"Flow: {_plain(step)}."
    yield from _section("The job", _table(("", ""), _facts(told.job)))
    yield from _section(
        "Runs", _table(("run", "state", "queued", "started", "ended", "took"), _runs(told.runs))
    )
    yield from _section("What happened", _timeline(told.ops))
    yield from _section("What the verdict rests on", _evidence(told.verdict))
    yield from _section("Sources disagree", _disputes(told.contradictions))
    yield from _section("What is not known", (f"- {_plain(spot)}" for spot in told.verdict.blind_spots))
    yield from _section("What to do next", _next(told.verdict))
    yield from _section(
        "What was read", _table(("source", "state", "read at", "records", "left out"), _read(told))
    )


def code(text: str) -> str:
    """Outside text as Markdown's code, whatever it holds; `|` as a table needs it."""
    shown = show(text)
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|") if shown else NONE


def _plain(text: str) -> str:
    """Text in which nothing means anything to Markdown."""
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", show(text))


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    first = next(lines, None)
    if first is not None:
        yield from ("", f"## {title}", "", first)
        yield from lines


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    filled = list(rows)
    if filled:
        yield f"| {' | '.join(heads)} |"
        yield f"|{'---|' * len(heads)}"
        yield from (f"| {' | '.join(row)} |" for row in filled)


def _facts(job: Job) -> Iterator[tuple[str, str]]:
    texts = {
        "name": job.name, "owner": job.owner, "app": job.app, "model": job.model, "mode": job.mode,
        "driver": job.driver, "host": job.host, "state in its system": job.native_status, "error": job.error,
        "message": job.message, "alert": job.alert,
    }  # fmt: skip
    yield from ((name, code(text[:LONGEST])) for name, text in texts.items() if text)
    times = {"queued": job.queued_at, "started": job.started_at, "ended": job.ended_at}
    yield from ((name, to_rfc3339(at)) for name, at in times.items() if at is not None)


def _runs(runs: Sequence[Run]) -> Iterator[tuple[str, ...]]:
    for run in runs:
        took = (
            NONE
            if run.started_at is None or run.ended_at is None
            else duration(seconds_between(run.started_at, run.ended_at))
        )
        times = (_time(at) for at in (run.queued_at, run.started_at, run.ended_at))
        yield (str(run.number), _plain(run.status.value), *times, took)


def _time(at: Nanos | None) -> str:
    return NONE if at is None else to_rfc3339(at)


def _timeline(ops: Sequence[Op]) -> Iterator[str]:
    steps = sorted(
        ((step, op) for op in ops for step in op.steps if step.at is not None),
        key=lambda pair: (pair[0].at or 0, pair[0].source, pair[0].offset),
    )
    return _table(("time", "op", "who", "step", "line"), (_step_row(step, op) for step, op in steps))


def _step_row(step: Step, op: Op) -> tuple[str, ...]:
    place = f"{step.source}:{step.line}" if step.line > 0 else step.source
    return (_time(step.at), code(f"{op.name} {op.op}"), _plain(step.component), code(step.step), code(place))


def _evidence(verdict: Verdict) -> Iterator[str]:
    for one in verdict.evidence:
        place = f"{one.source}:{one.line}" if one.line > 0 else one.source
        yield f"- {_plain(one.what)}, {_time(one.at)}, {code(place)}:"
        yield f"  {code(one.text[:LONGEST])}"


def _disputes(found: Sequence[Contradiction]) -> Iterator[str]:
    for one in found:
        yield f"- {_plain(one.about)}"
        for fact in (one.one, one.other):
            yield f"    - {_time(fact.at)} {code(fact.source)}: {code(fact.text[:LONGEST])}"


def _next(verdict: Verdict) -> Iterator[str]:
    for step in verdict.next:
        yield f"- {_plain(step.why)}: {code(step.command)}"


def _read(told: PostMortem) -> Iterator[tuple[str, ...]]:
    for source in told.sources:
        note = source.error or source.note or NONE
        yield (
            code(source.name), _plain(source.state.value), _time(source.read_at), f"{source.records:,}",
            _plain(note) if not source.skipped else f"{source.skipped:,} skipped; {_plain(note)}",
        )  # fmt: skip
