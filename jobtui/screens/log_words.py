"""What the header of a log screen says of how things stand."""

from jobtui.render.text import fit, safe, show
from jobtui.screens.log_reader import LogReader
from jobtui.widgets.log_view import LogView

QUERY_CELLS = 24
PROBLEM_CELLS = 40

Words = list[tuple[str, str]]
"""Words with their styles, the most important first; safe to show."""


def status_words(reader: LogReader | None, view: LogView, number: int | None) -> Words:
    """How a log stands, whose line under the cursor has this number in its file."""
    if reader is None:
        return [("no logs to read", "warning")]
    problem = reader.problem.removeprefix(f"{reader.name}: ")
    words = [(fit(show(problem), PROBLEM_CELLS).rstrip(), "error")] if problem else []
    if reader.search is not None:
        line = view.line_at_cursor
        begin, end = (line.place, line.end) if line else (0, 0)
        sign = "&" if reader.is_filtered else "/"
        typed = safe(reader.search.query.text)
        short = typed if len(typed) <= QUERY_CELLS else fit(typed, QUERY_CELLS)
        words.append((f"{sign}{short} {reader.search_words(begin, end)}", "accent"))
    words.append(("following", "good") if view.follows else (_position(reader, view, number), "dim"))
    if view.selection is not None:
        words.append(("selecting", "accent"))
    if reader.extent.event:
        words.append((show(reader.extent.event), "warning"))
    return words


def _position(reader: LogReader, view: LogView, number: int | None) -> str:
    """Where the cursor is: the number of the line, or the share of the log before it."""
    if number is not None:
        return f"line {number:,}"
    place, extent = view.place, reader.extent
    if place is None or extent.end <= extent.begin or reader.name is None:
        return ""
    return f"{(place - extent.begin) * 100 // (extent.end - extent.begin)} %"
