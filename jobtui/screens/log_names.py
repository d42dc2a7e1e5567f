"""Which logs there are on a log screen, and what they are called there."""

from collections.abc import Mapping

from jobtui.render.log_tags import Tags, stream_label
from jobtui.render.sources import labels
from jobtui.screens.board import Board

JOURNAL = "journald"
Names = tuple[str | None, ...]
"""Names of logs; None for all in one."""


def all_names(board: Board, extra: str | None) -> Names:
    """The logs there are, before them all in one where there are several, and `extra` behind them."""
    known = board.logs.names()
    more = () if extra is None or extra in known else (extra,)
    return (*((None,) if len(known) > 1 else ()), *known, *more)


def labels_of(board: Board, names: Names) -> Mapping[str, str]:
    """A short name for each, safe to show."""
    health = [source for source in board.store.sources() if source.name in names]
    short = dict(zip((source.name for source in health), labels(health), strict=True))
    return {name: short.get(name) or stream_label(name) for name in names if name is not None}


def tags_of(board: Board, known: Mapping[str, str], most: int) -> Tags:
    """What stands before the lines of logs with these labels, at most so many cells wide.

    Journals as a whole have tags, too: before what is said of all their streams.
    """
    sources = board.store.sources()
    short = zip(sources, labels(sources), strict=True)
    names = {source.name: label for source, label in short if source.kind == JOURNAL}
    names.update(known)
    return Tags({name: label.removesuffix(".log") for name, label in names.items()}, most)
