"""Prints what a command found: as JSON, CSV, or lines of text; and short names of sources."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.streams import Exit, complain
from jobtui.model.health import SourceHealth
from jobtui.model.numbers import real
from jobtui.render.sources import labels
from jobtui.render.table import unpainted
from jobtui.render.text import show

if TYPE_CHECKING:
    from jobtui.analysis.timeline import JobLine
    from jobtui.commands.reader import Reader
    from jobtui.model.ops import Step


Row = TypeVar("Row")


class SourceNames:
    """The shortest name of each source that no other source has."""

    def __init__(self, sources: Sequence[SourceHealth]) -> None:
        self._labels = dict(zip((source.name for source in sources), labels(sources), strict=True))

    def short(self, source: str) -> str:
        """The short name of a source, safe to show."""
        if not (known := self._labels.get(source)):
            known = self._labels[source] = show(source)
        return known

    def location_of(self, one: "Step | JobLine") -> str:
        """The log and number of a line, or its first byte if lines are not counted."""
        name = self.short(one.source)
        if one.cursor is not None:
            return name
        return f"{name}:{one.line}" if one.line > 0 else f"{name}@{one.offset}"


class Report(NamedTuple):
    """The result of a command in each form of output; only the wanted one is made.

    `document` is what JSON holds between schema and sources, `records` become CSV with these `columns`, and
    `lines` are for people, for a width in cells (None for no limit) with their styles. `command` is its name
    if it may be printed by another command.
    """

    document: Callable[[], Mapping[str, object]]
    columns: Sequence[str] = ()
    records: Callable[[], Iterable[Mapping[str, object]]] = tuple
    lines: Callable[[int | None], Iterable[str]] = lambda width: ()
    command: str = ""

    def print(self, context: "Context", reader: "Reader | None" = None) -> None:
        """Print it in the requested format; `reader` is None if no source was read."""
        write = context.write or print_lines
        match context.format:
            case OutputFormat.JSON:
                from jobtui.render.json_output import document, document_lines, fault_records

                body = self.document()
                if faults := fault_records():
                    body = {**body, "faults": faults}
                command = self.command or context.invocation.command.name
                sources, is_partial = (reader.sources, reader.partial) if reader is not None else ((), False)
                whole = document(command, body, sources, context.clock.now(), partial=is_partial)
                write(document_lines(whole))
            case OutputFormat.CSV:
                if self.columns:
                    print_csv(self.columns, self.records())
            case _:
                write(coloured(self.lines(context.width), context))

    def answer(self, reader: "Reader", code: Exit) -> Exit:
        """Print it, and on stderr what was not read; the exit code."""
        self.print(reader.context, reader)
        return reader.settle(code)


def coloured(lines: Iterable[str], context: "Context") -> Iterable[str]:
    """Lines as they are printed: without styles if there is no colour."""
    return lines if context.colour else map(unpainted, lines)


def lowered(lines: Iterable[str], context: "Context") -> Iterable[str]:
    """Lines in signs that the terminal can show: some lack those of bars."""
    from jobtui.render.terminal import glyphs_for, lowering

    table = lowering(glyphs_for(context.config.looks.glyphs, os.environ, sys.stdout.encoding))
    return lines if table is None else (line.translate(table) for line in lines)


def first(rows: Sequence[Row], context: "Context", *, from_end: bool = False) -> Sequence[Row]:
    """The wanted number of first or last rows; how many are left out is printed."""
    left = 0 if context.most is None else len(rows) - context.most
    if left > 0:
        complain(f"and {left:,} more")
    return rows[max(0, left) :] if from_end else rows[: context.most]


def print_lines(lines: Iterable[str]) -> None:
    """Lines of text that are safe already."""
    write = sys.stdout.write
    for line in lines:
        write(line + "\n")


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The beginning of a formula, also in full-width characters."""


def print_csv(columns: Sequence[str], records: Iterable[Mapping[str, object]], *, head: bool = True) -> None:
    """Records as CSV with these columns; texts are masked and made safe, lists are joined with blanks.

    A text that a spreadsheet would take for a formula gets a quote before it; a number stays one.
    """
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    if head:
        writer.writerow(columns)

    def text_of(value: object) -> object:
        if isinstance(value, list | tuple):
            value = " ".join(map(str, value))
        if not isinstance(value, str):
            return value
        text = show(value)
        return f"'{text}" if text.lstrip().startswith(_FORMULA) and real(text) is None else text

    writer.writerows([text_of(record.get(name)) for name in columns] for record in records)
