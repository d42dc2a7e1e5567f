"""A line of a file as it is there, one record of a log, and numbers of lines that are not counted yet."""

import msgspec

from jobtui.model.clock import Nanos

UNCOUNTED = 1 << 40
"""What is taken off the number of a line when the lines before reading began are not counted yet."""


class RawLine(msgspec.Struct, frozen=True, gc=False):
    """One physical line, without its newline.

    `line` is its 1-based number, None where that is not known; `offset` the byte where it begins. `text` is
    decoded with errors replaced: not masked, not safe for a terminal. `cut` says that only a part is given.
    """

    line: int | None
    offset: int
    text: str
    cut: bool = False


def provisional(nth: int) -> int:
    """The number of the `nth` line (1-based) from where reading began, the lines before it being uncounted.

    Such numbers are negative and grow from line to line as true ones do.
    """
    return nth - UNCOUNTED


TOLD = -1
"""The identity of a record that another source has told: it counts no more, only what follows it does."""


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """One log record whose message has a known shape.

    `source` is the file (or journal) it came from, `line` its 1-based line number there (negative while
    the lines before it are not counted, see `provisional`), `offset` its byte offset. `shape` is the name of
    the shape in `formats/`, `fields` what the shape's pattern found. `text` is the message without its
    prefix, as written: not masked, not safe for a terminal. `container` is set when the record was forwarded
    out of a container. `pid` is None where the process writes none.

    A record out of a journal has no line number (0), its `cursor` is the place of its entry there and
    `offset` a number that grows along the journal; `identity` is the same for the same record read twice,
    whichever way: out of two journals that both hold it. Both are None for one out of a file.
    """

    source: str
    line: int
    offset: int
    at: Nanos | None
    pid: int | None
    shape: str
    fields: dict[str, str | None]
    text: str
    container: str | None = None
    cursor: str | None = None
    identity: int | None = None
