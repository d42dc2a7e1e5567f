"""Where a simulated site keeps its files: in memory for tests, in a directory for the live demo."""

import shutil
from pathlib import Path
from typing import Protocol


class Disk(Protocol):
    """Files by absolute path."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file by temporary file and rename, as Sirepo does."""
        ...

    def append(self, path: str, data: bytes) -> None:
        """Add to a file."""
        ...

    def read(self, path: str) -> bytes | None:
        """A file's content, None when there is none."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all in it."""
        ...


class MemoryDisk:
    """Files in a dictionary."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def write(self, path: str, data: bytes) -> None:
        """Write a file."""
        self.files[path] = data

    def append(self, path: str, data: bytes) -> None:
        """Add to a file."""
        self.files[path] = self.files.get(path, b"") + data

    def read(self, path: str) -> bytes | None:
        """A file's content, None when there is none."""
        return self.files.get(path)

    def remove_tree(self, path: str) -> None:
        """Remove every file under a directory."""
        for name in [name for name in self.files if name.startswith(f"{path}/")]:
            del self.files[name]


class RealDisk:
    """Files under a directory; a path outside of it is an error."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        self._made: set[Path] = set()
        self._written = 0

    def write(self, path: str, data: bytes) -> None:
        """Write `<path>.pkio-tmp-<n>` and rename it over the file. Raises OSError."""
        target = self._inside(path)
        self._written += 1
        beside = target.with_name(f"{target.name}.pkio-tmp-{self._written:08d}")
        beside.write_bytes(data)
        beside.replace(target)

    def append(self, path: str, data: bytes) -> None:
        """Add to a file. Raises OSError."""
        with self._inside(path).open("ab") as file:
            file.write(data)

    def read(self, path: str) -> bytes | None:
        """A file's content, None when there is none. Raises OSError."""
        target = self._inside(path)
        return target.read_bytes() if target.exists() else None

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all in it, if it is there."""
        target = self._inside(path)
        shutil.rmtree(target, ignore_errors=True)
        self._made = {made for made in self._made if not made.is_relative_to(target)}

    def _inside(self, path: str) -> Path:
        target = Path(path)
        if not target.is_relative_to(self._directory):
            raise ValueError(f"{path} is not inside {self._directory}")
        if target.parent not in self._made:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(target.parent)
        return target
