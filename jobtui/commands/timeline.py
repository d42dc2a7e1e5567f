"""`timeline ID`: the ops of a job, each with its steps."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from jobtui.analysis import timeline
from jobtui.commands.find import print_not_found, resolve
from jobtui.commands.printing import Report, SourceNames, first
from jobtui.commands.reader import Reader
from jobtui.commands.show import headline, judge
from jobtui.commands.streams import Exit
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job
from jobtui.model.ops import Certainty, Op, OpStatus, Unlinked
from jobtui.render.columns import KEPT, TableColumn, at_least, printed
from jobtui.render.json_output import op_record, step_record
from jobtui.render.lanes import TimeStyle, folded, op_glyph
from jobtui.render.table import paint
from jobtui.render.text import clock_time, date_of, duration, show
from jobtui.render.verdicts import INDENT

STEP_COLUMNS: tuple[TableColumn[timeline.TimelineRow, SourceNames], ...] = (
    TableColumn("time", "TIME", lambda row, names: clock_time(row.step.at), at_least(8), KEPT),
    TableColumn("start", "+START", lambda row, names: duration(row.from_start_s), at_least(6), 70, "right"),
    TableColumn("since", "+STEP", lambda row, names: duration(row.since_prev_s), at_least(6), 75, "right",
                style=lambda row, names: "warning" if row.is_gap else "settled"),
    TableColumn("who", "WHO", lambda row, names: row.step.component.value, at_least(6), KEPT),
    TableColumn("step", "STEP", lambda row, names: show(row.step.step) + (
                " (inferred)" if row.step.certainty is Certainty.ADJACENT else ""), at_least(16), KEPT),
    TableColumn("line", "LINE", lambda row, names: names.location_of(row.step), at_least(12), 60,
                style=lambda row, names: "settled"),
)  # fmt: skip
CSV_COLUMNS = (
    "op", "name", "agent", "status", "step", "at", "component", "text", "source", "line", "certainty",
)  # fmt: skip


async def run(reader: Reader) -> Exit:
    found = await resolve(reader, reader.context.words[0])
    if found.job is None:
        return print_not_found({"job": None, "ops": [], "unlinked": []}, found, reader)
    await reader.read_logs(found.detail)
    correlation = reader.session.store.correlation
    ops = correlation.ops_of(found.job.id)
    unlinked = correlation.unlinked_of(found.job.id)
    if not ops:
        ops = timeline.ops_of_changes(found.job, reader.session.store.changes_of(found.job.id))
    if reader.context.most is not None:
        ops = _with_last_steps(ops, reader)
    job = reader.session.store.with_agent(found.job)
    return _report(reader, job, ops, unlinked).answer(reader, await judge(reader, found))


def _report(reader: Reader, job: Job, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> Report:
    # A new session's may have started the job's agent. Logs show the first characters of the user only
    correlation = reader.session.store.correlation
    others = [op for op in correlation.ops() if op.jid is None and op.uid and job.owner.startswith(op.uid)]

    def records() -> Iterator[dict[str, object]]:
        for op in ops:
            head = {"op": op.op, "name": op.name, "agent": op.agent, "status": op.status.value}
            yield from (head | step_record(step) for step in op.steps)

    def lines(width: int | None) -> Iterator[str]:
        yield headline(job)
        yield from _lines(reader, ops, unlinked, width)
        if others:
            names = ", ".join(sorted({op.name for op in others}))
            yield ""
            yield f"ops of this user that belong to no job: {len(others)} ({show(names)})"

    return Report(
        lambda: {
            "job": reader.record_of(job),
            "ops": [op_record(op) for op in ops],
            "unlinked": [step_record(line.step) | {"why": line.why} for line in unlinked],
            "ops_without_job": [op_record(op) for op in others],
            "dropped": correlation.dropped_ops,
        },
        CSV_COLUMNS,
        records,
        lines,
    )


def _with_last_steps(ops: Sequence[Op], reader: Reader) -> tuple[Op, ...]:
    """The ops with some of the wanted number of last steps, each with only these."""
    steps = sorted((step for op in ops for step in op.steps), key=lambda step: step.at or 0)
    kept = set(map(id, first(steps, reader.context, from_end=True)))
    cut = (replace(op, steps=tuple(step for step in op.steps if id(step) in kept)) for op in ops)
    return tuple(op for op in cut if op.steps)


def _lines(
    reader: Reader, ops: Sequence[Op], unlinked: Sequence[Unlinked], width: int | None
) -> Iterator[str]:
    inner = None if width is None else max(1, width - len(INDENT))
    names = SourceNames(reader.sources)
    if not ops:
        yield "no op of it is in the logs that were read, and no source has its states"
    for op in ops:
        yield ""
        yield _op_line(op, reader.now)
        steps, done = timeline.timeline_rows(op), 0
        shown: list[timeline.TimelineRow] = []
        for fold in timeline.folds_in(steps):
            shown += [*steps[done : fold.first], folded(steps, fold, TimeStyle())]
            done = fold.last + 1
        shown += steps[done:]
        yield from (INDENT + line for line in printed(STEP_COLUMNS, shown, names, inner))
        if op.dropped_steps:
            yield f"{INDENT}{op.dropped_steps} more steps were not kept"
    if unlinked:
        yield ""
        yield paint("lines that could not be placed", "heading")
        for step, why in ((line.step, line.why) for line in unlinked):
            at, where = clock_time(step.at), names.location_of(step)
            yield f"{INDENT}{at}  {show(step.text)}  ({show(why)}; {where})"


def _op_line(op: Op, now: Nanos) -> str:
    sign, style = op_glyph(op)
    is_run = timeline.is_of_states(op)
    agent = () if is_run else (op.driver, op.any_agent or "no agent", op.kind)
    messages = "" if is_run else f"sent {op.sends}, replies {op.replies}, updates {op.updates}"
    status = op.result if op.result and (is_run or style == "error") else op.status.value
    status = "running" if is_run and op.status is OpStatus.REPLIED else status
    parts = [
        f"{sign} {op.name} {op.op}",
        op.api or "",
        " ".join(filter(None, agent)),
        f"{status} {duration(timeline.op_duration_s(op, now))}",
        "" if op.created_at is None or date_of(op.created_at) == date_of(now) else date_of(op.created_at),
        messages,
        f"error: {op.error}" if op.error else "",
        f"may also belong to {', '.join(op.candidates)}" if op.candidates else "",
    ]
    is_bad = style == "error" or op.status in (OpStatus.DESTROYED, OpStatus.LOST)
    return paint(show("  ".join(part for part in parts if part)), "error" if is_bad else "heading")
