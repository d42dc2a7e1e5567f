"""`find THING`: ranked candidates for anything pasted, with reasons."""

import sys

from jobtui.analysis.find import Candidate, is_ambiguous
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.named_file import told_in_file
from jobtui.commands.printing import candidate_record, print_csv, print_document, print_lines
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.resolve import SURE, candidates_for
from jobtui.commands.streams import complain
from jobtui.render.table import Cell, Head, table_lines
from jobtui.render.text import show

LONGEST_INPUT = 1 << 20
HEADS = (
    Head("SCORE", "right", least=5),
    Head("KIND", least=5),
    Head("ID", least=12),
    Head("JOB", least=12, drop=1),
    Head("WHY", least=12),
)
CSV_COLUMNS = ("score", "kind", "id", "job", "why")


def run(context: Context) -> Exit:
    """Print the candidates; NOT_FOUND when there is none, or no likeliest one."""
    return in_session(context, _find)


async def _find(reader: Reader) -> Exit:
    thing = " ".join(reader.context.words)
    if thing == "-":
        thing = sys.stdin.buffer.read(LONGEST_INPUT).decode("utf-8", "replace")
    candidates = await told_in_file(reader, thing.strip()) or await candidates_for(reader, thing)
    match reader.context.format:
        case OutputFormat.JSON:
            records = [candidate_record(candidate) for candidate in candidates]
            print_document("find", {"candidates": records}, reader)
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, map(candidate_record, candidates))
        case _ if candidates:
            rows = [_row(candidate) for candidate in candidates]
            print_lines(table_lines(HEADS, rows, reader.context.width, reader.context.colour))
    return reader.settle(_judge(thing, candidates))


def _judge(thing: str, candidates: tuple[Candidate, ...]) -> Exit:
    if not candidates or candidates[0].score < SURE:
        complain(f"nothing is known of {thing.strip()!r}")
        return Exit.NOT_FOUND
    if is_ambiguous(candidates):
        complain(f"{thing.strip()!r} is ambiguous")
        return Exit.NOT_FOUND
    return Exit.FINE


def _row(candidate: Candidate) -> list[Cell]:
    return [
        Cell(f"{candidate.score:.2f}"),
        Cell(candidate.kind),
        Cell(show(candidate.id)),
        Cell(show(candidate.job or "")),
        Cell(show(candidate.why)),
    ]
