"""Printing what a command found: a JSON document, CSV, or lines of text."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jobtui.commands.context import OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.reading import Reader
from jobtui.model.secrets import mask_text

if TYPE_CHECKING:
    from jobtui.analysis.find import Candidate
    from jobtui.commands.resolve import Found


def print_document(command: str, body: Mapping[str, object], reader: Reader) -> None:
    """A command's JSON document, as the contract has it."""
    from jobtui.render.json_output import document, document_lines

    whole = document(command, body, reader.sources, reader.now, partial=reader.partial)
    print_lines(document_lines(whole))


def print_lines(lines: Iterable[str]) -> None:
    """Lines of text that are safe already."""
    write = sys.stdout.write
    for line in lines:
        write(line + "\n")


def print_csv(columns: Sequence[str], records: Iterable[Mapping[str, object]], *, head: bool = True) -> None:
    """Records as CSV with these columns; texts are masked and made safe, lists are joined with blanks."""
    import csv

    from jobtui.render.text import show

    writer = csv.writer(sys.stdout, lineterminator="\n")
    if head:
        writer.writerow(columns)

    def text_of(value: object) -> object:
        if isinstance(value, list | tuple):
            return " ".join(show(str(item)) for item in value)
        return show(value) if isinstance(value, str) else value

    writer.writerows([text_of(record.get(name)) for name in columns] for record in records)


def print_not_found(command: str, body: Mapping[str, object], found: "Found", reader: Reader) -> Exit:
    """What a command prints that found no job: as JSON what may have been meant. Gives the exit code."""
    if reader.context.format is OutputFormat.JSON:
        records = [candidate_record(candidate) for candidate in found.candidates]
        print_document(command, {**body, "candidates": records}, reader)
    return reader.settle(found.code)


def candidate_record(candidate: "Candidate") -> dict[str, object]:
    """Something a pasted text may mean."""
    return {
        "kind": candidate.kind,
        "id": mask_text(candidate.id),
        "score": candidate.score,
        "why": mask_text(candidate.why),
        "job": candidate.job,
    }
