"""The files of a run directory as a list, and what stands in one of them. Masked and safe."""

from collections.abc import Iterable, Iterator

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.job_desk import FileKind, FilePart, RunFile
from jobtui.model.secrets import mask_text
from jobtui.render.json_text import MOST_LINES, formatted
from jobtui.render.spans import Line, Span, fitting
from jobtui.render.text import age, clock_time, date_time, fit, safe, show

FIRST_NAMES = ("run.log", "job.out", "in.json", "parameters.py")
"""What somebody looks for first; everything else by age, the newest first."""
TAILED = (".log", ".out", ".err")
"""Ends of names of files that grow, whose last lines matter."""
SIZE_CELLS = 8
AGE_CELLS = 8
LEAST_NAME_CELLS = 10
_UNITS = ("", "k", "M", "G", "T", "P")
_STEP = 1000


def in_order(files: Iterable[RunFile]) -> list[RunFile]:
    """As they are listed."""
    return sorted(files, key=lambda file: (_rank(file.name), -file.written_at, file.name))


def _rank(name: str) -> int:
    return FIRST_NAMES.index(name) if name in FIRST_NAMES else len(FIRST_NAMES)


def is_tailed(name: str) -> bool:
    """Whether the end of a file is shown, and not its beginning."""
    return name.endswith(TAILED)


def size_text(size: int) -> str:
    """A number of bytes in at most five cells: "812", "4.1k", "310M"."""
    amount, unit = float(size), 0
    while amount >= _STEP - 0.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{size}" if unit == 0 else f"{amount:.{int(amount < 9.95)}f}{_UNITS[unit]}"


def file_line(file: RunFile, now: Nanos, cells: int, *, absolute: bool = False) -> Line:
    """A file in one line; its age goes first where it is narrow."""
    ages = AGE_CELLS if cells >= LEAST_NAME_CELLS + SIZE_CELLS + AGE_CELLS else 0
    sizes = SIZE_CELLS if cells >= LEAST_NAME_CELLS + SIZE_CELLS else 0
    names = max(1, cells - ages - sizes - 1)
    is_file = file.kind is FileKind.FILE
    size = (
        size_text(file.size)
        if is_file
        else {FileKind.DIRECTORY: "dir", FileKind.LINK: "link"}.get(file.kind, "other")
    )
    when = clock_time(file.written_at) if absolute else age(max(0.0, seconds_between(file.written_at, now)))
    spans = (
        Span(" " + fit(show(file.name), names), "" if is_file else "settled", names + 1),
        Span(fit(size, sizes, align="right"), "dim", sizes),
        Span(fit(when, ages, align="right"), "dim", ages),
    )
    return fitting(spans, cells)


def part_title(part: FilePart, zone: str) -> str:
    """Which file it is, how large, and how old."""
    return f"{show(part.name)}   {part.size:,} bytes   written {date_time(part.written_at)}{zone}"


def part_lines(part: FilePart, most: int = MOST_LINES) -> Iterator[Span]:
    """What stands in the part; what is left out is said where it would be."""
    if part.is_binary:
        yield Span("not text; nothing of it is shown", "dim")
        return
    if part.size == 0:
        yield Span("empty", "dim")
        return
    lines = formatted(part.text, most) if part.name.endswith(".json") and part.is_whole else None
    if lines is None:
        lines = [safe(line) for line in mask_text(part.text).splitlines()]
    if part.begin:
        yield Span(f"… {part.begin:,} bytes before this are not shown", "dim")
    kept = lines[-most:] if is_tailed(part.name) else lines[:most]
    left = len(lines) - len(kept)
    if left and is_tailed(part.name):
        yield Span(f"… {left:,} lines before this are not shown", "dim")
    yield from map(Span, kept)
    if left and not is_tailed(part.name):
        yield Span(f"… {left:,} more lines", "dim")
    if not part.is_to_end:
        yield Span("… what follows was not read", "dim")
