"""`logs CONTAINER` of one journal on this machine: lines are printed as journalctl gives them.

journalctl starts first, and the few modules for printing are imported while it reads, so that the first lines
appear before the rest of the program would be loaded. `commands.logs` does everything else.
"""

import os
import signal
import sys
from collections.abc import Iterator

from jobtui.backends.registry import JOURNAL
from jobtui.commands.context import Context
from jobtui.commands.streams import complain
from jobtui.model.ids import split_container
from jobtui.model.specs import journal_words

LAST_LINES = 1_000
"""How many lines of a log are printed if neither a number nor a time is given, and read at a time."""
MOST_LINES = 100_000
_LINE_LENGTH = 16 << 10
_PIECE_BYTES = 1 << 15
_FIELDS = (b"_HOSTNAME", b"CONTAINER_ID_FULL", b"MESSAGE")


def print_container(context: Context) -> bool:
    """Print the last lines of a container. True if there are any, and nothing else was asked for."""
    name, flags, config = context.words[0], context.invocation.flags, context.config
    journals = [spec.target for spec in config.sources if JOURNAL.names(spec)]
    if len(journals) != 1 or "://" in journals[0] or split_container(name) is None or config.warnings:
        return False
    width, most = 0, LAST_LINES if context.most is None else context.most
    if flags.keys() - {"lines", "plain"} or context.since or context.until or not 0 < most <= MOST_LINES:
        return False
    problems: list[str] = []
    for rows in _rows(name, _printed(journals[0], most, name, problems), problems):
        from jobtui.render.table import paint

        style = "settled" if context.colour else ""
        width = max(width, *(len(source) for _, source, _ in rows))
        for at, source, text in rows:
            sys.stdout.write(paint(f"{at}  {source:<{width}}", style) + f"  {text}\n")
        sys.stdout.flush()
    if width:
        complain(f"container {name}: its lines in 1 journal")
        for problem in filter(None, (*problems, _unread(journals[0]))):
            complain(f"journal {journals[0]}: {problem}")
    return width > 0


def _unread(journal: str) -> str:
    """The part of a journal that this user cannot read. Asked last, as nothing waits for it."""
    from asyncio import run

    from jobtui.backends.journal.journalctl import JournalctlReader
    from jobtui.model.health import SourceError

    try:
        return run(JournalctlReader(journal).condition()).note
    except SourceError as error:
        return str(error)


def _rows(name: str, pieces: Iterator[bytes], problems: list[str]) -> Iterator[list[tuple[str, ...]]]:
    """Time, source and text of the entries completed by a piece; entries that cannot be read are counted."""
    next(pieces, None)  # while the following is imported journalctl reads
    from jobtui.formats.journal_export import LATEST_US, ExportParser, not_understood, number, text
    from jobtui.model.clock import TIME_LENGTH, Nanos, latest
    from jobtui.model.secret_blocks import SecretBlocks
    from jobtui.model.secrets import mask_line
    from jobtui.render.text import Zone, date_time, safe

    parser, blocks = ExportParser(), dict[tuple[str, str], SecretBlocks]()
    for piece in pieces:
        rows: list[tuple[str, ...]] = []
        for entry in parser.feed(piece):
            host, instance, line = (text(entry.get(field)) for field in _FIELDS)
            shown = blocks.setdefault((host, instance), SecretBlocks()).hide(line[:_LINE_LENGTH])
            again = f".{instance[:4]}" if (host, instance) != next(iter(blocks)) else ""
            times = map(number, map(entry.get, (b"_SOURCE_REALTIME_TIMESTAMP", b"__REALTIME_TIMESTAMP")))
            received = Nanos(next((at for at in times if at is not None and at <= LATEST_US), 0) * 1_000)
            time = date_time(latest(line[:TIME_LENGTH], received) or received)
            source = safe(f"{name}{again}@{host.partition('.')[0]}")
            rows.append((f"{time}{Zone.mark()}", source, safe(mask_line(shown))))
        if rows:
            yield rows
    problems.append(not_understood(parser.skipped + parser.pending))


def _printed(journal: str, most: int, container: str, problems: list[str]) -> Iterator[bytes]:
    """First an empty piece when journalctl runs, then what it prints of a container, piece by piece."""
    reading, writing = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    words = [*journal_words(journal), f"--lines={most}", f"CONTAINER_NAME={container}"]
    command = ["journalctl", "--quiet", "--no-pager", "--output=export", *words]
    try:
        pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    except OSError:
        os.close(reading)
        return
    finally:
        os.close(writing)
    is_whole = False
    try:
        yield b""
        while piece := os.read(reading, _PIECE_BYTES):
            yield piece
        is_whole = True
    finally:
        os.close(reading)
        if not is_whole:  # no more is wanted
            os.kill(pid, signal.SIGTERM)
        if os.waitpid(pid, 0)[1] and is_whole:
            problems.append("journalctl failed, so lines may be missing; see `jobtui doctor`")
