"""`script ID`: the script that a job ran, beside that of another; `--grep RE`: which scripts contain it."""

import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jobtui.analysis import scripts
from jobtui.analysis.compare import choose
from jobtui.backends.archive.search import Hit, ScriptQuery, Tally, find_script
from jobtui.backends.archive.search import search as search_scripts
from jobtui.backends.registry import SLURM, SOURCES, Gives, gives
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.find import SHOWN, FoundJob, resolve
from jobtui.commands.printing import Report, coloured, first, print_lines
from jobtui.commands.reader import Reader, in_session
from jobtui.commands.streams import Exit, clear_progress, complain
from jobtui.formats.sarchive import parse_wanted
from jobtui.model.clock import to_rfc3339
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import SLURM as SYSTEM
from jobtui.model.scripts import Answer, ScriptPeriod, Wanted
from jobtui.render import job_files
from jobtui.render.columns import head, table_lines
from jobtui.render.spans import Piece
from jobtui.render.table import fact_lines, paint, painted
from jobtui.render.text import safe, show
from jobtui.session.evidence import Gatherer

GOOD = "good"
"""The word for the last good job with which `compare` compares it."""
CSV_COLUMNS = ("name", "value")
VARIABLE_HEADS = (head("VARIABLE", 12), head("VALUE", 20))


class Side(NamedTuple):
    """A job whose script was searched: the text that was typed, what is known of it, and the result."""

    text: str
    wanted: Wanted
    found: FoundJob
    answer: Answer

    @property
    def outputs(self) -> tuple[scripts.OutputFile, ...]:
        named = scripts.named_outputs(self.found.detail.facts) if self.found.detail is not None else ()
        script = self.answer.script
        return named or (scripts.outputs_of(script, self.wanted) if script is not None else ())


def run(context: Context) -> Exit:
    if context.flag("grep") is not None:
        return in_session(context, search)
    if context.flag("user") is not None:
        return complain("--user only works with --grep", Exit.USAGE)
    if not context.words:
        return complain("script needs ID (a job of Slurm or Torque, a computeJid) or --grep RE", Exit.USAGE)
    return in_session(context, _script)


async def _script(reader: Reader) -> Exit:
    nothing = Report(lambda: job_files.script_record(None, (), None))
    if no_archive(reader):
        return nothing.answer(reader, Exit.NO_SOURCE)
    await reader.open_archives()
    side = await _side(reader, reader.context.words[0])
    if side is None:
        return nothing.answer(reader, Exit.NOT_FOUND)
    other, diff = None, None
    if (wanted := reader.context.flag("diff")) is not None:
        other = await _other(reader, side, wanted)
        if other is None:
            return nothing.answer(reader, Exit.NOT_FOUND)
        if side.answer.script is not None and other.answer.script is not None:
            diff = scripts.diff_scripts(side.answer.script, other.answer.script)
    _report(reader, side, other, diff).print(reader.context, reader)
    missing = [one for one in (side, other) if one is not None and one.answer.script is None]
    for one in missing:
        hint = "see `jobtui doctor`"
        if one.found.job is None and not one.wanted.server and not any(map(SLURM.names, reader.specs)):
            number = "a task of an array is kept under the array's number"
            hint = f"{number}, which only Slurm knows: --slurm local"
        complain(f"{one.wanted.shown}: no script was found; {hint}")
    return reader.settle(Exit.NOT_FOUND if missing else Exit.FINE)


def no_archive(reader: Reader) -> bool:
    if any(gives(spec, Gives.SCRIPTS) for spec in reader.specs):
        return False
    where = " or ".join(f"--{one.setting} {one.metavar}" for one in SOURCES if one.gives & Gives.SCRIPTS)
    complain(f"no archive of scripts is configured: {where}; `jobtui init` finds some")
    return True


async def _side(reader: Reader, text: str) -> Side | None:
    """A job and its script; None, with a message, if it is not known which job is meant."""
    found, wanted = await job_of(reader, text)
    if wanted is None:
        return None
    if wanted.submitted_at is None:
        wanted = wanted._replace(until=reader.context.until)
    return Side(text, wanted, found, await find_script(reader.session.sources, wanted))


async def job_of(reader: Reader, text: str) -> tuple[FoundJob, Wanted | None]:
    """The job, and the number by which its script is kept. An id of a scheduler needs no other source."""
    named = parse_wanted(text)
    if named is None:
        return await _of_sirepo(reader, text)
    if any(SLURM.names(spec) for spec in reader.specs) and not named.server:
        task = f"_{named.task}" if named.task else ""
        ids = (JobId(text.strip()), system_job_id(SYSTEM, f"{named.number}{task}"))
        for job_id in ids if text.strip().startswith(f"{SYSTEM}@") else ids[1:]:
            if (detail := await reader.look_up(job_id)) is not None:
                return FoundJob(detail.job, detail), scripts.wanted_of_slurm(detail.job, detail) or named
    return FoundJob(), named


async def _of_sirepo(reader: Reader, text: str) -> tuple[FoundJob, Wanted | None]:
    found = await resolve(reader, text)
    if found.job is None:
        return found, None
    if found.job.system != SYSTEM:
        await reader.read_logs(found.detail)
    wanted, job, detail = await Gatherer.of(reader.session).script_of(found.job, found.detail)
    if wanted is None:
        complain(f"{found.job.id}: its number in a scheduler is not known; give that number")
    return FoundJob(job, detail), wanted


async def _other(reader: Reader, side: Side, text: str) -> Side | None:
    if text != GOOD:
        return await _side(reader, text)
    job = side.found.job
    if job is not None:
        await reader.read_jobs()
        good = choose(job, (), reader.session.store.jobs.values())
        if good is not None:
            return await _side(reader, good.job_id)
    complain(f"{side.text}: no good run like it is known; name a job: --diff OTHER")
    return None


def _report(reader: Reader, side: Side, other: Side | None, diff: scripts.ScriptDiff | None) -> Report:
    def document() -> dict[str, object]:
        if other is None:
            return _side_record(side)
        changes = None if diff is None else job_files.diff_record(diff)
        return _side_record(side) | {"other": _side_record(other), "diff": changes}

    def records() -> Iterator[Mapping[str, object]]:
        environment = side.answer.script.environment if side.answer.script is not None else None
        for row in job_files.variable_rows(environment) if environment is not None else ():
            yield dict(zip(CSV_COLUMNS, row, strict=True))

    return Report(
        document,
        CSV_COLUMNS,
        records,
        lambda width: first([*_lines(reader, side, other, diff, width)], reader.context),
    )


def _side_record(side: Side) -> dict[str, object]:
    job = side.found.job.id if side.found.job is not None else side.wanted.shown
    body = job_files.script_record(side.answer.script, side.answer.tried, job)
    outputs = [
        {"stream": o.stream, "path": show(o.path), "said_by": o.said_by, "unknown": o.unknown or None}
        for o in side.outputs
    ]
    return body | {"outputs": outputs}


def _lines(
    reader: Reader, side: Side, other: Side | None, diff: scripts.ScriptDiff | None, width: int | None
) -> Iterator[str]:
    if other is None:
        yield from _head_lines(reader, side, width)
        if (script := side.answer.script) is not None:
            yield ""
            yield from map(painted, job_files.script_lines(script))
            if script.environment is not None:
                yield ""
                variables = job_files.variable_rows(script.environment)
                rows = [[Piece(name), Piece(value)] for name, value in variables]
                yield from table_lines(VARIABLE_HEADS, rows, width)
        return
    for one in (side, other):
        yield from _head_lines(reader, one, width)
        yield ""
    if diff is not None:
        has_room = width is not None and width >= job_files.BESIDE_CELLS
        beside = has_room and reader.context.flag("unified") is None
        yield from map(painted, job_files.diff_lines(diff, width, beside=beside))


def _head_lines(reader: Reader, side: Side, width: int | None) -> Iterator[str]:
    script = side.answer.script
    if script is not None:
        facts = [*job_files.head_facts(script, side.outputs)]
        yield from fact_lines(facts, width)
    if script is None or len(side.answer.tried) > 1:
        yield paint("tried", "heading")
        yield from fact_lines(job_files.tried_lines(side.answer.tried), width)


HIT_COLUMNS = ("number", "cluster", "user", "archived_at", "count", "line", "text", "source")


async def search(reader: Reader) -> Exit:
    """Print the scripts that contain it as they are found; NOT_FOUND if there is none."""
    context = reader.context
    pattern = context.flag("grep") or ""
    if context.words:
        return complain("script takes a job or --grep, not both", Exit.USAGE)
    if no_archive(reader):
        return Report(lambda: {"matches": []}).answer(reader, Exit.NO_SOURCE)
    await reader.open_archives()
    query = ScriptQuery(pattern, context.flag("user") or "", ScriptPeriod(context.since, context.until))
    tally, hits = Tally(), list[Hit]()
    await reader.watched(
        _collect(reader, query, tally, hits),
        lambda: f"{tally.scripts:,} scripts, {len(hits):,} contain it, in {show(tally.where)}",
    )
    report = Report(
        lambda: {
            "matches": [
                _head(hit) | {"lines": [{"line": line, "text": show(text)} for line, text in hit.lines]}
                for hit in hits
            ],
            "scripts": tally.scripts,
            "unreadable": tally.unreadable,
            "left_out": tally.cuts,
        },
        HIT_COLUMNS,
        lambda: (_head(hit) | {"line": line, "text": text} for hit in hits for line, text in hit.lines),
    )
    report.print(reader.context, reader)
    if _is_streamed(reader):
        complain(f"{len(hits):,} of {tally.scripts:,} scripts match")
    down = {source.error for source in reader.sources}  # `settle` names these
    for text in (*tally.cuts, *(why for why in tally.reasons if why not in down)):
        complain(text)
    if tally.unreadable > len(tally.reasons):
        complain(f"{tally.unreadable} in all could not be read")
    return reader.settle(Exit.FINE if hits else Exit.NOT_FOUND)


async def _collect(reader: Reader, query: ScriptQuery, tally: Tally, hits: list[Hit]) -> None:
    async for hit in search_scripts(reader.session.sources, query, tally):
        hits.append(hit)
        if not _is_streamed(reader):
            continue
        script = hit.script
        number = f"{script.cluster}/{script.number}" if script.cluster else script.number
        at = f"  {to_rfc3339(script.archived_at)}" if script.archived_at is not None else ""
        head = f"{show(number)}  {show(hit.user) or '?'}{at}  {show(script.source)}"
        lines = [paint(head, "heading")]
        lines += [f"  {paint(f'{line}:', 'settled')} {show(text)}" for line, text in hit.lines[:SHOWN]]
        if hit.total > SHOWN:
            lines.append(paint(f"  and {hit.total - SHOWN} more lines", "dim"))
        clear_progress()
        print_lines(coloured(lines, reader.context))
        sys.stdout.flush()


def _is_streamed(reader: Reader) -> bool:
    return reader.context.format not in (OutputFormat.JSON, OutputFormat.CSV)


def _head(hit: Hit) -> dict[str, object]:
    script, at = hit.script, hit.script.archived_at
    return {
        "number": safe(script.number),
        "cluster": safe(script.cluster) or None,
        "user": show(hit.user) or None,
        "archived_at": None if at is None else to_rfc3339(at),
        "source": show(script.source),
        "count": hit.total,
    }
