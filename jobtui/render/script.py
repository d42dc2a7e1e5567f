"""A script and its environment as lines to be read, and as parts of JSON documents. Everything is masked."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import structs

from jobtui.analysis.job_outputs import Output
from jobtui.analysis.script_text import (
    MOST_COLOURED,
    Piece,
    ScriptPiece,
    lines_of,
    masked_script,
    pieces,
    shown_variables,
)
from jobtui.model.clock import to_rfc3339
from jobtui.model.scripts import ArchivedScript, Environment, Tried, Variable
from jobtui.model.secret_lines import masked_lines
from jobtui.render.spans import Line, Span
from jobtui.render.text import ELLIPSIS, Zone, date_time, safe, show

STYLES = {
    Piece.PLAIN: "",
    Piece.COMMENT: "settled",
    Piece.DIRECTIVE: "accent",
    Piece.STRING: "good",
    Piece.VARIABLE: "warning",
    Piece.KEYWORD: "title",
}
NO_VALUE = "(no value)"


def script_lines(
    script: ArchivedScript, most: int | None = None, longest: int | None = None, *, colour: bool = True
) -> Iterator[Line]:
    """The lines of a script, the first of them in colour if wanted; at most so many, so much of each."""
    left = MOST_COLOURED if colour else 0
    for line in masked_lines(cut(line, longest) for line in islice(lines_of(script.script), most)):
        left -= len(line)
        parts = pieces(line) if left >= 0 else (ScriptPiece(line),)
        yield tuple(Span(safe(part.text), STYLES[part.piece]) for part in parts)


def cut(text: str, longest: int | None) -> str:
    """The beginning of a text that is longer than this."""
    return text if longest is None or len(text) <= longest else f"{text[:longest]}{ELLIPSIS}"


def head_facts(script: ArchivedScript, outputs: Sequence[Output]) -> Iterator[tuple[str, str]]:
    """What is to be known about a script: whose, from where, since when, and where its output went."""
    number = f"{script.cluster}/{script.number}" if script.cluster else script.number
    yield "job", f"{show(number)} ({script.scheduler})"
    yield "from", show(script.source)
    if script.archived_at is not None:
        yield "archived", f"{date_time(script.archived_at)}{Zone.mark()}"
    for output in outputs:
        yield f"job.{'err' if output.stream == 'error' else 'out'}", f"{show(output.path)} ({output.said_by})"
    for note in (*script.notes, *_doubts(script)):
        yield "note", show(note)


def colour_facts(script: ArchivedScript) -> Iterator[tuple[str, str]]:
    """That not all of a script is in colour."""
    if len(script.script) > MOST_COLOURED:
        yield "colours", f"of the first {MOST_COLOURED:,} characters only"


def _doubts(script: ArchivedScript) -> Iterator[str]:
    if script.is_lossy:
        yield "bytes that were no text are lost: they were replaced before it was archived"
    environment = script.environment
    if environment is None:
        return
    if not environment.is_whole:
        yield f"{environment.announced} variables were announced, there are {len(environment.variables)}"
    if environment.mended:
        yield f"{len(environment.mended)} variables were kept damaged and are mended here"


def tried_lines(tried: Iterable[Tried]) -> Iterator[tuple[str, str]]:
    """Where a script was sought, and with what result."""
    return ((show(one.where), show(one.result)) for one in tried)


def variable_rows(environment: Environment, longest: int | None = None) -> list[tuple[str, str]]:
    """The variables by name, values on one line each, at most so many bytes of each."""
    kept = [Variable(v.name[:longest], v.value and v.value[:longest]) for v in environment.variables]
    shown = shown_variables(structs.replace(environment, variables=tuple(kept)))
    return sorted((safe(one.name), NO_VALUE if one.value is None else safe(one.value)) for one in shown)


def script_record(script: ArchivedScript | None, tried: Iterable[Tried], job: str) -> dict[str, object]:
    """A script as part of a JSON document."""
    results = [{"where": show(one.where), "result": show(one.result)} for one in tried]
    if script is None:
        empty = dict.fromkeys(("cluster", "script", "environment", "archived_at", "source"))
        return {"job": job, **empty, "tried": results}
    at, environment = script.archived_at, script.environment
    return {
        "job": job,
        "number": show(script.number),
        "cluster": show(script.cluster) or None,
        "scheduler": script.scheduler.value,
        "script": masked_script(script.script),
        "script_base64": _bytes_of(script.script),
        "is_lossy": script.is_lossy,
        "environment": None if environment is None else _environment_record(environment),
        "environment_announced": environment.announced if environment is not None else None,
        "archived_at": None if at is None else to_rfc3339(at),
        "source": show(script.source),
        "notes": [show(note) for note in (*script.notes, *_doubts(script))],
        "tried": results,
    }


def _environment_record(environment: Environment) -> dict[str, object]:
    return {one.name: one.value for one in shown_variables(environment)}


def _bytes_of(script: bytes) -> str | None:
    """The bytes themselves where they are no text; with the same parts masked."""
    try:
        script.decode()
    except UnicodeDecodeError:
        text = script.decode("utf-8", "surrogateescape")
        return b64encode(
            "\n".join(masked_lines(text.split("\n"))).encode("utf-8", "surrogateescape")
        ).decode()
    return None


def output_records(outputs: Iterable[Output]) -> list[dict[str, object]]:
    """Where the output goes, as part of a JSON document."""
    return [{"stream": o.stream, "path": show(o.path), "said_by": o.said_by} for o in outputs]
