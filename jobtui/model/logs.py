"""One record of a log."""

import msgspec

from jobtui.model.clock import Nanos


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """One log record whose message has a known shape.

    `source` is the file (or journal) it came from, `line` its 1-based line number there (negative while
    the lines before it are not counted, see `model.lines`), `offset` its byte offset. `shape` is the name of
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
