"""`compare ID [OTHER]`: a run beside the last good one of its job, user or model, or beside any other."""

from collections.abc import Sequence

from jobtui.analysis.compare import Choice, Kept, Side, choose, compare, texts_compared
from jobtui.analysis.paths import run_dirs_of
from jobtui.analysis.timeline import ops_in, window_of
from jobtui.backends.registry import Gives, gives
from jobtui.commands.find import Found, print_not_found, resolve
from jobtui.commands.jobs import with_agent
from jobtui.commands.printing import Report, answer
from jobtui.commands.reader import Reader
from jobtui.commands.show import judged
from jobtui.commands.streams import Exit, complain
from jobtui.model.jobs import Run
from jobtui.model.ops import Op
from jobtui.render.runs import comparison_lines, comparison_record, step_records
from jobtui.session.evidence import Gatherer

CSV_COLUMNS = ("step", "component", "this", "other", "parts", "slower")


async def run(reader: Reader) -> Exit:
    """Print the comparison; ATTENTION when what it rests on cannot be believed now."""
    words = reader.context.words
    if len(words) > 2:
        complain("compare takes one job, or two")
        return Exit.USAGE
    empty: dict[str, object] = {"this": None, "other": None}
    found = await resolve(reader, words[0])
    if found.job is None:
        return print_not_found("compare", empty, found, reader)
    choice = await _choice(reader, found, words[1:])
    if choice is None:
        return reader.settle(Exit.NOT_FOUND)
    other = found if choice.job_id == found.job.id else await resolve(reader, choice.job_id)
    if other.job is None:
        return print_not_found("compare", empty, other, reader)
    await reader.read_logs(_wider(found, other).detail)
    left, right = _side(reader, found, None), _side(reader, other, choice.number)
    if any(gives(spec, Gives.SCRIPTS) for spec in reader.specs):
        await reader.open_archives()
    job_reader = reader.session.job_reader()
    files = await texts_compared(job_reader, _kept(left, found), _kept(right, other))
    verdicts = [await judged(reader, one) for one in ((found,) if other is found else (found, other))]
    doubts = Gatherer.of(reader.session).blind_spots()
    made = compare(left, right, choice.why, reader.now, files, verdicts, doubts)
    report = Report(
        "compare",
        lambda: comparison_record(made),
        CSV_COLUMNS,
        lambda: step_records(made),
        lambda width, colour: comparison_lines(made, width, colour),
    )
    return answer(report, reader, Exit.ATTENTION if made.doubts else Exit.FINE)


async def _choice(reader: Reader, found: Found, others: Sequence[str]) -> Choice | None:
    """What to compare with: what was named, else what is likeliest to tell something."""
    assert found.job is not None
    if others:
        other = await resolve(reader, others[0])
        return None if other.job is None else Choice(other.job.id, None, "as it was asked for")
    runs = found.detail.runs if found.detail is not None else ()
    choice = choose(found.job, runs, ())
    if choice is None:
        await reader.read_jobs()
        choice = choose(found.job, runs, reader.session.store.jobs.values())
    if choice is None:
        what = found.job.model or found.job.app or found.job.id
        complain(f"no good run of {what} is known; name a job to compare with")
    return choice


def _wider(one: Found, two: Found) -> Found:
    """That of two jobs whose logs begin earlier."""
    begins = [found.job.queued_at or 0 if found.job is not None else 0 for found in (one, two)]
    return one if begins[0] <= begins[1] else two


def _side(reader: Reader, found: Found, number: int | None) -> Side:
    assert found.job is not None
    runs: Sequence[Run] = found.detail.runs if found.detail is not None else ()
    wanted = next((one for one in runs if one.number == number), runs[-1] if runs else None)
    correlation = reader.session.store.correlation
    ops: tuple[Op, ...] = correlation.ops_of(found.job.id)
    if wanted is not None:
        ops = ops_in(window_of(runs, wanted.number), ops)
    agent = correlation.agent_of(found.job.id)
    return Side(with_agent(reader, found.job), wanted, ops, agent)


def _kept(side: Side, found: Found) -> Kept:
    path = found.detail.path if found.detail is not None else None
    return Kept(side, run_dirs_of(side.job, path, side.ops), found.detail)
