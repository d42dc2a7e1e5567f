"""Files and scripts of a job: lists, what is in one, two scripts beside each other. Masked and safe."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from jobtui.analysis import scripts
from jobtui.analysis.paths import OUTPUT_ENDS, OUTPUT_NAMES
from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.job_reader import FileKind, FilePart, RunFile
from jobtui.model.numbers import read_json
from jobtui.model.scripts import ArchivedScript, Environment, Tried, Variable
from jobtui.model.secrets import mask_document, mask_text, masked_lines
from jobtui.render.columns import Cells, TableColumn, TimeLook, fixed
from jobtui.render.json_output import fields_of
from jobtui.render.spans import Line, Piece
from jobtui.render.text import ELLIPSIS, Zone, date_time, fit, safe, show

MOST_LINES = 5_000


def document_lines(document: object, most: int = MOST_LINES) -> Iterator[str]:
    try:
        text = json.dumps(mask_document(document), indent=2, ensure_ascii=False, default=str)
    except ValueError as error:
        yield f"cannot be shown: {show(str(error))}"
        return
    lines = text.split("\n")
    yield from map(show, lines[:most])
    if len(lines) > most:
        yield f"… {len(lines) - most:,} more lines"


def formatted(text: str, most: int = MOST_LINES) -> list[str] | None:
    try:
        document = read_json(text)
    except ValueError:
        return None
    return list(document_lines(document, most))


FIRST_NAMES = (*OUTPUT_NAMES, "in.json", "parameters.py")
"""Files that people open first; all others follow, newest first."""
_UNITS = ("", "k", "M", "G", "T", "P")
_STEP = 1000
_KINDS = {FileKind.DIRECTORY: "dir", FileKind.LINK: "link", FileKind.MISSING: "missing",
          FileKind.UNLISTED: "unknown"}  # fmt: skip


def in_order(
    files: Iterable[RunFile], outputs: Sequence[str] = (), lost_kind: FileKind = FileKind.MISSING
) -> list[RunFile]:
    """The order in a list: the job's own output first. `lost_kind` is that of an output not among them."""
    there = tuple(files)
    names = {file.name for file in there}
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys((*outputs, *FIRST_NAMES)))}
    lost = [RunFile(name, lost_kind, 0, Nanos(0)) for name in outputs if name not in names]
    return sorted(
        [*lost, *there], key=lambda file: (ranks.get(file.name, len(ranks)), -file.written_at, file.name)
    )


def is_tailed(name: str) -> bool:
    return name.endswith(OUTPUT_ENDS)  # they grow, and their last lines matter


def size_text(size: int) -> str:
    """A number of bytes in at most five cells: "812", "4.1k", "310M"."""
    amount, unit = float(size), 0
    while amount >= _STEP - 0.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{size}" if unit == 0 else f"{amount:.{int(amount < 9.95)}f}{_UNITS[unit]}"


FILE_COLUMNS: tuple[TableColumn[RunFile, TimeLook], ...] = (
    TableColumn("name", "", lambda file, look: show(file.name), Cells(10, 40, 10_000), 100,
                keeps_ends=True, style=lambda file, look: "" if file.kind is FileKind.FILE else "settled"),
    TableColumn("size", "", lambda file, look:
                size_text(file.size) if file.kind is FileKind.FILE else _KINDS.get(file.kind, "other"),
                fixed(7), 60, "right", style=lambda file, look: "dim"),
    TableColumn("written", "",
                lambda file, look: look.since(file.written_at) if file.written_at else "",
                fixed(8), 50, "right", style=lambda file, look: "dim"),
)  # fmt: skip


def part_title(part: FilePart, zone: str) -> str:
    return f"{show(part.name)}   {part.size:,} bytes   written {date_time(part.written_at)}{zone}"


def part_lines(part: FilePart, most: int = MOST_LINES) -> Iterator[Piece]:
    """The text of the part; a line takes the place of what is left out."""
    if part.is_binary:
        yield Piece("not text; nothing of it is shown", "dim")
        return
    if part.size == 0:
        yield Piece("empty", "dim")
        return
    lines = formatted(part.text, most) if part.name.endswith(".json") and part.is_whole else None
    if lines is None:
        lines = [safe(line) for line in mask_text(part.text).splitlines()]
    if part.begin:
        yield Piece(f"… {part.begin:,} bytes before this are not shown", "dim")
    kept = lines[-most:] if is_tailed(part.name) else lines[:most]
    left = len(lines) - len(kept)
    if left and is_tailed(part.name):
        yield Piece(f"… lines before this, not shown: {left:,}", "dim")
    yield from map(Piece, kept)
    if left and not is_tailed(part.name):
        yield Piece(f"… {left:,} more lines", "dim")
    if not part.is_to_end:
        yield Piece("… what follows was not read", "dim")


def script_lines(
    script: ArchivedScript, most: int | None = None, longest: int | None = None
) -> Iterator[Line]:
    """The first lines of a script, cut to a length; scheduler options and comments are highlighted."""
    for line in masked_lines(cut(line, longest) for line in islice(scripts.lines_of(script.script), most)):
        is_option = line.startswith(("#SBATCH", "#PBS", "#!"))
        style = "accent" if is_option else "settled" if line.lstrip().startswith("#") else ""
        yield (Piece(safe(line), style),)


def cut(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else f"{text[:longest]}{ELLIPSIS}"


def head_facts(script: ArchivedScript, outputs: Sequence[scripts.OutputFile]) -> Iterator[tuple[str, str]]:
    """Facts about a script: whose it is, from where, since when, and where its output went."""
    number = f"{script.cluster}/{script.number}" if script.cluster else script.number
    yield "job", f"{show(number)} ({script.scheduler})"
    yield "from", show(script.source)
    if script.archived_at is not None:
        yield "archived", f"{date_time(script.archived_at)}{Zone.mark()}"
    for output in outputs:
        unknown = f"; {output.unknown} is not known here" if output.unknown else ""
        path = f"{show(output.path)} ({output.said_by}{unknown})"
        yield f"job.{'err' if output.stream == 'error' else 'out'}", path
    for note in (*script.notes, *_doubts(script)):
        yield "note", show(note)


def _doubts(script: ArchivedScript) -> Iterator[str]:
    if script.is_lossy:
        yield "bytes that were not text are lost: they were replaced before it was archived"
    environment = script.environment
    if environment is None:
        return
    if not environment.is_whole:
        yield f"{environment.announced} variables were announced, {len(environment.variables)} are in it"
    if environment.mended:
        yield f"{len(environment.mended)} variables were archived damaged and are repaired here"


def tried_lines(tried: Iterable[Tried]) -> Sequence[tuple[str, str]]:
    lines = [(show(one.where), show(one.result)) for one in tried]
    return lines or [("nothing", "name an archive with --archive; `jobtui init` finds some")]


def variable_rows(environment: Environment, longest: int | None = None) -> list[tuple[str, str]]:
    """The variables by name, one per line, with long values cut."""
    kept = (Variable(v.name[:longest], v.value and v.value[:longest]) for v in environment.variables)
    shown = map(scripts.shown_variable, kept)
    return sorted((safe(name), "(no value)" if value is None else safe(value)) for name, value in shown)


def script_record(
    script: ArchivedScript | None, tried: Iterable[Tried], job: str | None
) -> dict[str, object]:
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
        "script": scripts.masked_script(script.script),
        "script_base64": _bytes_of(script.script),
        "is_lossy": script.is_lossy,
        "environment": None
        if environment is None
        else dict(map(scripts.shown_variable, environment.variables)),
        "environment_announced": environment.announced if environment is not None else None,
        "archived_at": None if at is None else to_rfc3339(at),
        "source": show(script.source),
        "notes": [show(note) for note in (*script.notes, *_doubts(script))],
        "tried": results,
    }


def _bytes_of(script: bytes) -> str | None:
    """The bytes themselves if they are not text, with the same parts masked."""
    try:
        script.decode()
    except UnicodeDecodeError:
        text = script.decode("utf-8", "surrogateescape")
        return b64encode("\n".join(masked_lines(text.split("\n"))).encode(errors="surrogateescape")).decode()
    return None


DIFF_STYLES = {
    scripts.RowKind.SAME: "settled",
    scripts.RowKind.NOISE: "settled",
    scripts.RowKind.CHANGED: "warning",
    scripts.RowKind.THIS: "good",
    scripts.RowKind.OTHER: "error",
}
BESIDE_CELLS = 100
"""From this width in cells on the two are side by side."""
LEAST_CELLS = 20


def diff_lines(found: scripts.ScriptDiff, cells: int | None, *, beside: bool) -> Iterator[Line]:
    """The difference as lines of at most this many cells, None for no limit."""
    if found.is_same:
        yield (Piece("no relevant difference", "good"),)
    differs = any(scripts.hunks(found.rows))
    if differs:
        yield (Piece("script", "title"),)
        if beside and cells:
            yield from _beside(found.rows, cells)
        else:
            styles = {"+": "good", "-": "error", "@": "accent"}
            yield from (
                (Piece(safe(line), styles.get(line[0], "settled")),) for line in scripts.unified(found.rows)
            )
    changed = [v for v in found.variables if v.differs]
    if changed:
        yield ()
        yield (Piece("environment", "title"),)
    for one in changed:
        mark = " (differs)" if one.other == one.this else ""  # of a secret both are masked
        for sign, value, style in (("-", one.other, "error"), ("+", one.this, "good")):
            if value is not None:
                yield (Piece(safe(f"{sign}{one.name}={value}{mark}"), style),)
    if found.folded:
        yield ()
        yield (Piece(f"{found.folded} more differ in dates, ids or ports only", "dim"),)
    if found.note:
        yield (Piece(safe(found.note), "warning"),)


def _beside(rows: Sequence[scripts.DiffRow], cells: int) -> Iterator[Line]:
    half = max(LEAST_CELLS, (cells - 3) // 2)
    heads = (Piece(fit("this", half), "dim"), Piece(" │ ", "dim"), Piece("other", "dim"))
    yield heads
    for number, hunk in enumerate(scripts.hunks(rows)):
        if number:
            yield (Piece("┄" * (2 * half + 3), "dim"),)
        for row in hunk:
            style = DIFF_STYLES[row.kind]
            left, right = (fit(side or "", half) for side in (row.this, row.other))
            yield Piece(left, style), Piece(" │ ", "dim"), Piece(right.rstrip(), style)


def diff_record(found: scripts.ScriptDiff) -> dict[str, object]:
    changed = (one for one in found.variables if one.kind is not scripts.RowKind.SAME)
    return {
        "same": found.is_same,
        "script": list(scripts.unified(found.rows)),
        "environment": [fields_of(one, "name kind this other") for one in changed],
        **fields_of(found, "folded note"),
    }
