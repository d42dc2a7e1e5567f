"""Exit codes of the program."""

from enum import IntEnum


class Exit(IntEnum):
    """What an exit code says; one line on stderr says why."""

    FINE = 0
    FAILED = 1
    USAGE = 2
    ATTENTION = 3
    NOT_FOUND = 4
    NO_SOURCE = 5
    INTERRUPTED = 130
