"""`show ID`: one job, its record, its runs, and where its files and logs are."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from jobtui.analysis.cluster_paths import Reach
from jobtui.analysis.flags import flags_of, waits_for
from jobtui.analysis.run_dirs import CLUSTER_MODE, run_dirs_of
from jobtui.analysis.slurm_join import slurm_of, slurm_words
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.jobs import with_agent
from jobtui.commands.places import Place, places_of
from jobtui.commands.printing import print_csv, print_document, print_lines, print_not_found
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.resolve import resolve
from jobtui.commands.verdict import judge
from jobtui.model.clock import Nanos
from jobtui.model.job_desk import Noted
from jobtui.model.jobs import Job, JobDetail, Run
from jobtui.model.slurm import SYSTEM as SLURM
from jobtui.render.cluster import cluster_record, cluster_words, is_of_newest_run
from jobtui.render.json_output import detail_record, history_records, job_record
from jobtui.render.run_table import ran_s, result_text
from jobtui.render.status import STYLES, glyph
from jobtui.render.table import Cell, Head, fact_lines, paint, table_lines
from jobtui.render.text import NONE, Zone, date_time, duration, show

RUN_HEADS = (
    Head("RUN", "right"),
    Head("STATE", least=9),
    Head("QUEUED", drop=2, least=19),
    Head("STARTED", drop=1, least=19),
    Head("ENDED", drop=3, least=19),
    Head("TOOK", "right", least=6),
    Head("WHY", least=12),
)


def run(context: Context) -> Exit:
    """Print the job; FAILED or ATTENTION when it failed or needs a person."""
    return in_session(context, lambda reader: show_job(reader, context.words[0]))


async def show_job(reader: Reader, thing: str) -> Exit:
    """Print the job that `thing` names."""
    found = await resolve(reader, thing)
    if found.job is None:
        return print_not_found("show", {"job": None, "history": []}, found, reader)
    await reader.read_logs(found.detail)
    job = with_agent(reader, found.job)
    noted = await noted_of(reader, job)
    _print(reader, job, found.detail, noted, await slurm_beside(reader, job, noted))
    return reader.settle(judge(job, reader.now))


async def noted_of(reader: Reader, job: Job) -> Noted | None:
    """What is noted of the job on its cluster, where that can be reached from here."""
    if job.mode != CLUSTER_MODE:
        return None
    config, ops = reader.context.config, reader.session.store.correlation.ops_of(job.id)
    paths = run_dirs_of(job, None, ops, job.host, Reach(config.mounts, config.hosts))
    noted = await reader.session.desk().noted_on_cluster(paths)
    return noted if noted is not None and is_of_newest_run(noted.status, job) else None


async def slurm_beside(reader: Reader, job: Job, noted: Noted | None) -> Job | None:
    """The Slurm job that a job of Sirepo runs as, where Slurm is read too."""
    if job.mode != CLUSTER_MODE or all(source.kind != SLURM for source in reader.session.sources):
        return None
    await reader.watched(reader.session.catch_up((SLURM,)))
    number = noted.status.slurm_id if noted is not None else None
    return slurm_of(job, reader.session.store.jobs.values(), number)


def _print(
    reader: Reader, job: Job, detail: JobDetail | None, noted: Noted | None, slurm: Job | None
) -> None:
    places = places_of(reader, job, detail)
    if noted is not None:
        words = cluster_words(noted.status)
        places = (*places, Place("on the cluster", noted.directory, note=words))
    if slurm is not None:
        places = (*places, Place("in Slurm", slurm.id, note=slurm_words(slurm)))
    history = detail.history if detail else ()
    match reader.context.format:
        case OutputFormat.JSON:
            shown = detail_record(msgspec.structs.replace(detail, job=job), reader.now) if detail else None
            body = {
                "job": shown or job_record(job, reader.now) | {"native": None},
                "history": history_records(history),
                "runs": history_records(detail.runs if detail else ()),
                "places": [place._asdict() for place in places],
                "cluster": cluster_record(*noted) if noted else None,
                "slurm": job_record(slurm, reader.now) if slurm else None,
            }
            print_document("show", body, reader)
        case OutputFormat.CSV:
            record = job_record(job, reader.now)
            print_csv(list(record), [record])
        case _:
            print_lines(_lines(reader, job, detail, places))


def _lines(reader: Reader, job: Job, detail: JobDetail | None, places: Iterable[Place]) -> Iterator[str]:
    width, colour = reader.context.width, reader.context.colour
    yield headline(job, colour)
    told = ((name, Cell(show(text))) for name, text in (detail.facts if detail else ()))
    yield from fact_lines((*_facts(job, reader.now), *told), width, colour)
    if detail and detail.runs:
        yield ""
        rows = [_run_row(run, reader.now) for run in detail.runs]
        yield from table_lines(RUN_HEADS, rows, width, colour)
    known = list(places)
    if known:
        yield ""
        yield from fact_lines(((p.what, Cell(show(p.described))) for p in known), width, colour)


def headline(job: Job, colour: bool) -> str:
    """A job in one line: its id and state."""
    state = f"{glyph(job.status)} {job.status.value}"
    native = "" if job.native_status in ("", job.status.value, "error") else f" ({show(job.native_status)})"
    return f"{paint(show(job.id), 'heading', colour)}  {paint(state, STYLES[job.status], colour)}{native}"


def _facts(job: Job, now: Nanos) -> Iterator[tuple[str, Cell]]:
    """What a person reads of a record; what is not known is left out."""
    texts: Mapping[str, str | None] = {
        "error": job.error,
        "alert": job.alert,
        "waits for": waits_for(job, now),
        "message": job.message,
        "flags": " ".join(flags_of(job, now)),
        "user": job.owner,
        "name": job.name,
        "app": job.app,
        "model": job.model,
        "mode": job.mode,
        "driver": job.driver,
        "host": job.host,
        "plan": job.plan,
        "progress": None if job.percent is None else f"{job.percent:.0f} %",
        "queued": time_text(job.queued_at),
        "started": time_text(job.started_at),
        "updated": time_text(job.updated_at),
        "ended": time_text(job.ended_at),
        "waited": _seconds(job.waited_s(now)),
        "ran": _seconds(job.elapsed_s(now)),
        "limit": _seconds(job.limit_s),
    }
    for name, text in texts.items():
        if text:
            yield name, Cell(show(text), "error" if name == "error" else "")


def time_text(at: Nanos | None) -> str | None:
    """A time as UTC text, None when there is none."""
    return None if at is None else f"{date_time(at)}{Zone.mark()}"


def _seconds(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds)


def _run_row(run: Run, now: Nanos) -> list[Cell]:
    return [
        Cell(str(run.number)),
        Cell(f"{glyph(run.status)} {run.status.value}", STYLES[run.status]),
        *(Cell(time_text(at) or NONE) for at in (run.queued_at, run.started_at, run.ended_at)),
        Cell(duration(ran_s(run, now))),
        Cell(result_text(run)),
    ]
