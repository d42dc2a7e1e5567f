"""A directory for sockets of this user alone, with a path short enough for one."""

import os
import stat
import tempfile
from pathlib import Path

SOCKET_PATH_BYTES = 104
"""The shortest `sun_path` of the systems there are, the ending NUL counted."""
SSH_NAME_BYTES = 1 + 40 + 17 + 1
"""ssh's name for a connection (%C), and what it adds while it makes the socket."""
_AWKWARD = frozenset("%\"'\\ \t\n")


def private_directory(name: str) -> Path | None:
    """A directory that only this user may enter, made when needed; None when there can be none.

    Below XDG_RUNTIME_DIR, else below the directory for temporary files. One that somebody else owns, or that
    others may enter, is not taken.
    """
    places = [Path(os.environ["XDG_RUNTIME_DIR"]) / name] if os.environ.get("XDG_RUNTIME_DIR") else []
    places.append(Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}")
    return next((place for place in places if _fits(place) and _is_ours(place)), None)


def _fits(place: Path) -> bool:
    text = str(place)
    return (
        place.is_absolute()
        and not _AWKWARD.intersection(text)
        and len(os.fsencode(text)) + SSH_NAME_BYTES <= SOCKET_PATH_BYTES
    )


def _is_ours(place: Path) -> bool:
    """Whether the directory is there and this user's alone."""
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        status = place.lstat()
    except OSError:
        return False
    is_alone = stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o077
    return is_alone and status.st_uid == os.getuid()
