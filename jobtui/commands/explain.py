"""`explain ID`: what is the matter with a job, what that rests on, and what to type next."""

from collections.abc import Mapping

from jobtui.analysis.explain.balsam import SYSTEM, BalsamFacts
from jobtui.analysis.explain.gather import lines_wanted
from jobtui.analysis.explain.next_steps import on_sources
from jobtui.analysis.explain.study import Study, study
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.jobs import with_agent
from jobtui.commands.printing import print_csv, print_document, print_lines, print_not_found
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.resolve import Found, resolve
from jobtui.commands.show import headline, noted_of, slurm_beside
from jobtui.commands.spelled import spelled
from jobtui.model.ids import JobId
from jobtui.model.job_desk import Unreadable
from jobtui.model.jobs import Job
from jobtui.model.verdicts import Concern
from jobtui.render.json_output import job_record
from jobtui.render.verdicts import (
    chain_lines,
    chain_record,
    contradiction_lines,
    contradiction_record,
    verdict_lines,
    verdict_record,
)

RECORD_LINES = 60
"""Lines read behind a step at most."""
CSV_COLUMNS = ("id", "verdict", "confidence", "concern", "sentence", "last_step", "missing_step")
EXITS: Mapping[Concern, Exit] = {
    Concern.FINE: Exit.FINE,
    Concern.OPEN: Exit.FINE,
    Concern.FAILED: Exit.FAILED,
    Concern.STUCK: Exit.ATTENTION,
}


def run(context: Context) -> Exit:
    """Print the verdict; FAILED or ATTENTION when the job failed or is stuck."""
    return in_session(context, _explain)


async def _explain(reader: Reader) -> Exit:
    found = await resolve(reader, reader.context.words[0])
    if found.job is None:
        return print_not_found("explain", {"job": None, "verdict": None}, found, reader)
    studied = await explained(reader, found)
    _print(reader, found, studied)
    return reader.settle(EXITS[studied.verdict.concern])


async def explained(reader: Reader, found: Found) -> Study:
    """Read what a verdict on a job takes; the study of it."""
    assert found.job is not None
    if found.job.system == SYSTEM:
        await reader.read_jobs()  # allocations and sites come with all jobs
    await reader.read_logs(found.detail)
    store = reader.session.store
    noted = await noted_of(reader, found.job)
    await slurm_beside(reader, found.job, noted)
    made = study(
        store.correlation,
        {**store.jobs, found.job.id: found.job} if found.detail is not None else store.jobs,
        store.sources(),
        found.job.id,
        reader.now,
        found.detail.runs if found.detail is not None else None,
        await _behind(reader, found.job.id),
        BalsamFacts(store.changes_of(found.job.id), store.allocations(), store.sites()),
        found.detail,
        noted.status.slurm_id if noted is not None else None,
        store.facts_of(found.job.id),
    )
    flags = spelled(reader.context.config, reader.specs)
    return made._replace(verdict=on_sources(made.verdict, flags))


async def _behind(reader: Reader, job_id: JobId) -> dict[tuple[str, int], str]:
    """The whole records of the steps that have more than one line."""
    session = reader.session
    desk = session.desk()
    texts = {}
    for step in lines_wanted(session.store.correlation.ops_of(job_id)):
        try:
            lines = await desk.lines_behind(step, RECORD_LINES)
        except Unreadable:
            continue
        if lines:
            texts[step.source, step.line] = "\n".join(line.text for line in lines)
    return texts


def verdict_body(reader: Reader, job: Job, studied: Study) -> dict[str, object]:
    """What `--json` prints between its schema and its sources."""
    return {
        "job": job_record(with_agent(reader, job), reader.now),
        **verdict_record(studied.verdict),
        "waits": chain_record(studied.chain) if studied.chain.waits else None,
        "contradictions": list(map(contradiction_record, studied.contradictions)),
    }


def _print(reader: Reader, found: Found, studied: Study) -> None:
    assert found.job is not None
    job, colour = with_agent(reader, found.job), reader.context.colour
    match reader.context.format:
        case OutputFormat.JSON:
            print_document("explain", verdict_body(reader, found.job, studied), reader)
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, [{"id": job.id, **verdict_record(studied.verdict)}])
        case _:
            lines = [headline(job, colour), *verdict_lines(studied.verdict, colour, reader.context.width)]
            lines += contradiction_lines(studied.contradictions, colour)
            print_lines([*lines, *chain_lines(studied.chain, colour)])
