"""The logs of the simulated site: rotated in every way there is, and each given under further names.

Beside each log there are a symbolic link, a hard link and a copy, and where systemd-journal-remote is
installed a journal with the lines of the supervisor's log. jobtui is given all of them.
"""

import gzip
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from benchmarks.journal_files import UNIT, remote_writer
from jobtui.model.specs import SourceSpec, parse_journal, parse_log
from tests.backends.journal.make import REMOTE

KEPT = 5
"""Rotated files of a log, as logrotate's `rotate 5`."""
NULS = 1 << 16
CHATTER = b"a line that matters to nobody, as a library prints them\n" * 200_000
"""More than a third of what is read of a log at first."""
BOOT, MACHINE = "b" * 32, "c" * 32


class GrowingFile:
    """One log file. `written` to by name, so that what follows a rotation is in a new file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def rotate(self, way: str) -> None:
        if self.path.exists():
            WAYS[way](self.path)
        for old in self.rotated()[:-KEPT]:
            old.unlink()

    def rotated(self) -> list[Path]:
        beside = (path for path in self.path.parent.iterdir() if path.name.startswith(f"{self.path.name}."))
        dated = (path for path in self.path.parent.glob(f"{self.path.name}-*"))
        return sorted([*beside, *dated], key=lambda path: path.stat().st_mtime_ns)


class SiteLog(GrowingFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.link, self.hard = (path.parent / way / path.name for way in ("linked", "hard"))
        self._copy = GrowingFile(path.parent / "copied" / path.name)
        self.copy = self._copy.path
        self._copy_is_first = False
        for other in (self.link, self.hard):
            other.parent.mkdir(exist_ok=True)
        self.link.symlink_to(path)
        self._link_again()

    def write(self, data: bytes) -> None:
        self._copy_is_first = not self._copy_is_first
        if self._copy_is_first:
            self._copy.write(data)
        super().write(data)
        if not self._copy_is_first:
            self._copy.write(data)
        self._link_again()

    def rotate(self, way: str) -> None:
        super().rotate(way)
        ways = [*WAYS]
        self._copy.rotate(ways[(ways.index(way) + 1) % len(ways)])

    def chatter(self) -> None:
        self.write(CHATTER)

    def break_off(self) -> None:
        super().write(b"\0" * NULS + b"\n")

    def _link_again(self) -> None:
        if self.hard.exists() and self.hard.samefile(self.path):
            return
        draft = self.hard.with_name("draft")
        os.link(self.path, draft)
        draft.replace(self.hard)


class JournalCopy:
    """A journal of the lines of a log. Its files are closed and begun again when the log is rotated."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self._file = directory / "remote-site.journal"
        self._count = 0
        self._writer: subprocess.Popen[bytes] = remote_writer(self._file)

    def write(self, data: bytes) -> None:
        assert self._writer.stdin is not None
        at_us, monotonic_us = time.time_ns() // 1_000, time.monotonic_ns() // 1_000
        head = (
            f"__REALTIME_TIMESTAMP={at_us}\n__MONOTONIC_TIMESTAMP={monotonic_us}\n"
            f"_BOOT_ID={BOOT}\n_MACHINE_ID={MACHINE}\n_HOSTNAME=site\nPRIORITY=6\n_PID=14458\n"
            f"_SYSTEMD_UNIT={UNIT}\nMESSAGE="
        ).encode()
        self._writer.stdin.write(b"".join(head + line + b"\n\n" for line in data.splitlines() if line))
        self._writer.stdin.flush()

    def rotate(self) -> None:
        self.close()
        self._count += 1
        number = f"{self._count:032x}-{self._count:016x}-{self._count:016x}"
        self._file.rename(self._file.with_name(f"{self._file.stem}@{number}.journal"))
        for old in sorted(self.directory.glob("*@*"))[:-KEPT]:
            old.unlink()
        self._writer = remote_writer(self._file)

    def close(self) -> None:
        if self._writer.stdin is not None:
            with suppress(OSError):
                self._writer.stdin.close()
        self._writer.wait(30)


class SiteLogs:
    def __init__(self, directory: Path) -> None:
        self.logs = {role: SiteLog(directory / f"{role}.log") for role in ("supervisor", "server")}
        self._directory = directory
        self._journal: JournalCopy | None = None

    def begin_journal(self) -> None:
        if REMOTE:
            self._journal = JournalCopy(self._directory / "journal")

    def chatter(self) -> None:
        for log in self.logs.values():
            log.chatter()

    def specs(self) -> Iterator[SourceSpec]:
        for role, log in self.logs.items():
            for path in (log.path, log.link, log.hard, log.copy):
                yield parse_log(f"{role}={path}")
        if self._journal is not None:
            yield parse_journal(str(self._journal.directory))

    def write(self, role: str, data: bytes) -> None:
        if data:
            self.logs[role].write(data)
            if self._journal is not None and role == "supervisor":
                self._journal.write(data)

    def rotate(self, way: str) -> None:
        for log in self.logs.values():
            log.rotate(way)
        if self._journal is not None:
            self._journal.rotate()

    def break_off(self) -> None:
        for log in self.logs.values():
            log.break_off()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()


def _numbered(path: Path) -> None:
    """Moved away by logrotate's `delaycompress`: the last one stays as it is, the one before is packed."""
    for number in range(KEPT + 1, 0, -1):
        for ending in ("", ".gz"):
            with suppress(FileNotFoundError):
                path.with_name(f"{path.name}.{number}{ending}").replace(
                    path.with_name(f"{path.name}.{number + 1}{ending}")
                )
    path.replace(path.with_name(f"{path.name}.1"))
    with suppress(FileNotFoundError):
        _pack(path.with_name(f"{path.name}.2"))


def _copied_and_cut(path: Path) -> None:
    """Copied and cut to nothing, logrotate's `copytruncate`."""
    shutil.copy2(path, _dated_name(path))
    os.truncate(path, 0)


def _dated(path: Path) -> None:
    """Moved away under a date, logrotate's `dateext`."""
    path.replace(_dated_name(path))


def _packed(path: Path) -> None:
    moved = _dated_name(path)
    path.replace(moved)
    _pack(moved)


WAYS: Mapping[str, Callable[[Path], None]] = {
    "numbered": _numbered,
    "copied and cut": _copied_and_cut,
    "dated": _dated,
    "packed": _packed,
}


def _dated_name(path: Path) -> Path:
    return path.with_name(f"{path.name}-{time.strftime('%Y%m%d')}-{time.time_ns()}")


def _pack(path: Path) -> None:
    draft, times = path.with_name(f"packing {path.name}"), path.stat()
    with path.open("rb") as plain, gzip.open(draft, "wb", compresslevel=1) as packed:
        shutil.copyfileobj(plain, packed)
    os.utime(draft, ns=(times.st_atime_ns, times.st_mtime_ns))
    draft.replace(path.with_name(f"{path.name}.gz"))
    path.unlink()
