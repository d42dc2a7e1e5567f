"""`compare ID [OTHER]`: a run beside the last good one of its job, user or model, or beside any other."""

from collections.abc import Sequence

from msgspec.structs import replace

from jobtui.analysis.compare import Partner, choose
from jobtui.backends.registry import Gives, gives
from jobtui.commands.find import FoundJob, print_not_found, resolve
from jobtui.commands.printing import Report, first
from jobtui.commands.reader import Reader
from jobtui.commands.show import judged
from jobtui.commands.streams import Exit, complain
from jobtui.model.jobs import JobDetail
from jobtui.render.runs import comparison_lines, comparison_record, step_records
from jobtui.render.table import painted
from jobtui.session.comparison import compared
from jobtui.session.evidence import Gatherer

CSV_COLUMNS = ("step", "component", "this", "other", "parts", "slower")


async def run(reader: Reader) -> Exit:
    """Print the comparison; ATTENTION if its evidence cannot be trusted now."""
    words = reader.context.words
    if len(words) > 2:
        return complain("compare takes one job, or two", Exit.USAGE)
    empty: dict[str, object] = {"this": None, "other": None}
    found = await resolve(reader, words[0])
    if found.job is None:
        return print_not_found(empty, found, reader)
    choice = await _choice(reader, found, words[1:])
    if choice is None:
        return reader.settle(Exit.NOT_FOUND)
    other = found if choice.job_id == found.job.id else await resolve(reader, choice.job_id)
    if other.job is None:
        return print_not_found(empty, other, reader)
    earlier = found if (found.job.queued_at or 0) <= (other.job.queued_at or 0) else other
    await reader.read_logs(earlier.detail)
    if any(gives(spec, Gives.SCRIPTS) for spec in reader.specs):
        await reader.open_archives()
    verdicts = [await judged(reader, one) for one in ((found,) if other is found else (found, other))]
    made = await compared(Gatherer.of(reader.session), _record(found), _record(other), choice, verdicts)
    return Report(
        lambda: comparison_record(made),
        CSV_COLUMNS,
        lambda: step_records(made),
        lambda width: first([*map(painted, comparison_lines(made, width))], reader.context),
    ).answer(reader, Exit.ATTENTION if made.doubts else Exit.FINE)


async def _choice(reader: Reader, found: FoundJob, others: Sequence[str]) -> Partner | None:
    """What to compare with: what was named, else the most useful run."""
    assert found.job is not None
    if others:
        other = await resolve(reader, others[0])
        return None if other.job is None else Partner(other.job.id, None, "as it was submitted")
    runs = found.detail.runs if found.detail is not None else ()
    choice = choose(found.job, runs, ())
    if choice is None:
        await reader.read_jobs()
        choice = choose(found.job, runs, reader.session.store.jobs.values())
    if choice is None:
        what = found.job.model or found.job.app or found.job.id
        complain(f"no good run of {what} is known; name a job to compare with")
    return choice


def _record(found: FoundJob) -> JobDetail:
    assert found.job is not None
    detail = found.detail
    return JobDetail(job=found.job) if detail is None else replace(detail, job=found.job)
