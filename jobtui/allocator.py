"""How the C library hands out memory, set so that a program of many threads that runs for days stays small.

glibc gives each thread a heap of its own. Each source, and each log on the screen, is read by its own thread,
so memory that one thread has freed is of no use to another: most of such a heap is free, and stays with the
process. Also, glibc stops returning large blocks once a few were freed. mallopt(3) changes both: the memory
of a text then goes back to the system when the text is dropped.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
"""Parameters of mallopt(3), from glibc's malloc.h."""
ONE_BLOCK_BYTES = 64 << 10
"""Blocks of this size are mapped one by one: read pages and their texts, nothing that stays."""
HEAPS = 1


@cache
def _glibc() -> "ctypes.CDLL | None":
    import ctypes  # a one-shot command needs none of this

    library = ctypes.CDLL(None)
    # Other C libraries have numbers of their own for what is set here
    return library if hasattr(library, "gnu_get_libc_version") else None


def share_heaps() -> bool:
    """Let all threads share one heap. True if the C library can do that. Heaps that exist are kept."""
    library = _glibc()
    if library is None:
        return False
    return bool(library.mallopt(_ARENA_MAX, HEAPS) and library.mallopt(_MMAP_THRESHOLD, ONE_BLOCK_BYTES))


def give_back() -> bool:
    """Return free memory between used parts to the system. True if there was any. Takes milliseconds."""
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))
