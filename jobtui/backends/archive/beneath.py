"""Walking from a directory to a file below it, through links as far as they stay below: nothing leads out.

Each step is taken from the directory that is open, so that nobody can exchange one between looking and
opening. Python knows no `openat2`, whose RESOLVE_IN_ROOT does the same; here an absolute link counts as one
that stays below when it names the directory where that really is.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

MOST_LINKS = 40
"""As many as Linux follows."""
THROUGH = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
"""A directory may be passed through without being readable (mode 0711)."""


class Place(NamedTuple):
    """A directory that is open and a name in it, which is no link."""

    directory: int
    name: str


@contextmanager
def beneath(root: int, path: str) -> Iterator[Place]:
    """Where a path below the root ends. Raises OSError: EXDEV where a link leads out, ELOOP in a ring."""
    walk = _Walk(root)
    try:
        yield walk.to(path)
    finally:
        walk.close()


class _Walk:
    """The open directories from the root to here, and the names that are still to go."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._passed: list[int] = []
        self._names: list[str] = []
        self._links = 0

    @property
    def _here(self) -> int:
        return self._passed[-1] if self._passed else self._root

    def to(self, path: str) -> Place:
        self._go_on(path)
        while self._names:
            name = self._names.pop()
            if name == "..":
                self._up()
            elif (target := _target(name, self._here)) is not None:
                self._follow(target)
            elif not self._names:
                return Place(self._here, name)
            else:
                self._passed.append(os.open(name, THROUGH | os.O_NOFOLLOW, dir_fd=self._here))
        return Place(self._here, ".")

    def _go_on(self, path: str) -> None:
        self._names += [name for name in reversed(path.split("/")) if name not in ("", ".")]

    def _up(self) -> None:
        if not self._passed:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        os.close(self._passed.pop())

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            target = self._below_root(target)
            self.close()
        self._go_on(target)

    def _below_root(self, target: str) -> str:
        """An absolute path as seen from the root."""
        root = os.readlink(f"/proc/self/fd/{self._root}").rstrip("/") + "/"
        if not target.startswith(root):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return target.removeprefix(root)

    def close(self) -> None:
        """Leave all but the root."""
        while self._passed:
            os.close(self._passed.pop())


def _target(name: str, directory: int) -> str | None:
    """Where a link leads, None for what is no link."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise
