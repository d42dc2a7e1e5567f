"""Journals beside a simulated site that grow and fault: a directory of files, and another behind gatewayd."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.journal_files import UNIT, journal_remote, remote_writer
from benchmarks.sides import LASTS_S, Fault, Side, Wait

ACTIVATE = "systemd-socket-activate"
GATEWAYD = ("/lib/systemd/systemd-journal-gatewayd", "/usr/lib/systemd/systemd-journal-gatewayd")
BOOT, MACHINE = "b" * 32, "c" * 32


def gatewayd() -> str | None:
    """The path of systemd-journal-gatewayd, None where it cannot be run."""
    found = next((place for place in GATEWAYD if os.path.exists(place)), None)
    return found if shutil.which(ACTIVATE) and journal_remote() else None


class JournalSide(Side):
    """A directory of journal files, written as collected ones are."""

    name = "journal"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        directory.mkdir()
        self._directory = directory
        self._file = directory / f"remote-{directory.name}.journal"
        self._rotations = 0
        self._writer = remote_writer(self._file)
        self.source = str(directory)
        self.flags = ("--journal", self.source)
        self.tick()

    def tick(self) -> None:
        """One more entry of a unit of Sirepo."""
        assert self._writer.stdin is not None
        self.written += 1
        self._writer.stdin.write(self._entry())
        self._writer.stdin.flush()

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls a journal."""
        return {"rotated": self._rotated, "vacuumed": self._vacuumed, "gone and back": self._away}

    def close(self) -> None:
        """End what writes it."""
        if self._writer.stdin is not None and not self._writer.stdin.closed:
            self._writer.stdin.close()
        self._writer.wait(30)

    def _entry(self) -> bytes:
        at_us = time.time_ns() // 1_000
        host = self._directory.name
        return (
            f"__REALTIME_TIMESTAMP={at_us}\n__MONOTONIC_TIMESTAMP={time.monotonic_ns() // 1_000}\n"
            f"_BOOT_ID={BOOT}\n_MACHINE_ID={MACHINE}\n_HOSTNAME={host}\nPRIORITY=6\n_PID=14458\n"
            f"_SYSTEMD_UNIT={UNIT}\nMESSAGE=beat {self.written}\n\n"
        ).encode()

    def _rotated(self, wait: Wait) -> None:
        """The file is closed and kept under another name, the next one begun."""
        self.close()
        self._rotations += 1
        self._file.rename(self._archived(self._rotations))
        self._writer = remote_writer(self._file)
        self.tick()

    def _vacuumed(self, wait: Wait) -> None:
        """All files but the one that is written are removed, when all of them has been read."""
        self._rotated(wait)
        wait(LASTS_S)
        for number in range(1, self._rotations + 1):
            self._archived(number).unlink(missing_ok=True)
        self.tick()

    def _away(self, wait: Wait) -> None:
        away = self._directory.with_name(f"{self._directory.name}.away")
        self._directory.rename(away)
        wait(LASTS_S)
        away.rename(self._directory)
        self.tick()

    def _archived(self, number: int) -> Path:
        return self._file.with_name(f"{self._file.stem}@{number:032x}-{number:016x}-{number:016x}.journal")


class GatewaySide(JournalSide):
    """A journal behind systemd-journal-gatewayd on the loopback interface."""

    name = "gatewayd"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            self._address = f"127.0.0.1:{bound.getsockname()[1]}"
        self.source = f"http://{self._address}"
        self.flags = ("--journal", self.source)
        self._server = self._serve()

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls a server."""
        return {"killed and started again": self._killed, "stopped and resumed": self._held}

    def close(self) -> None:
        """End the server and what writes its journal."""
        self._end(signal.SIGKILL)
        super().close()

    def _serve(self) -> "subprocess.Popen[bytes]":
        program = gatewayd()
        assert program is not None
        return subprocess.Popen(
            [ACTIVATE, "-l", self._address, program, "-D", str(self._directory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _end(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._server.pid, number)
        self._server.wait(30)

    def _killed(self, wait: Wait) -> None:
        self._end(signal.SIGKILL)
        self.tick()
        wait(LASTS_S)
        self._server = self._serve()

    def _held(self, wait: Wait) -> None:
        """It answers nothing for a while, as on a host that is swapped out."""
        os.killpg(self._server.pid, signal.SIGSTOP)
        self.tick()
        wait(LASTS_S)
        os.killpg(self._server.pid, signal.SIGCONT)
